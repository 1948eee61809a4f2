//! Every codec on the columns that show it: both hooks, whole blocks, and the encoder.

use bench::codecs::cases;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

fn codecs(criterion: &mut Criterion) {
    for case in cases() {
        let mut group = criterion.benchmark_group(case.name());
        group.throughput(Throughput::Bytes(case.value_bytes() as u64));
        let (mut room, mut tile) = (case.room(), Vec::new());
        group.bench_function("decode tiles", |bencher| bencher.iter(|| case.decode_tiles(&mut room)));
        group.bench_function("decode block", |bencher| bencher.iter(|| case.decode_block(&mut room)));
        group.bench_function("encode tiles", |bencher| bencher.iter(|| case.encode_tiles(&mut tile)));
        group.bench_function("encode block", |bencher| bencher.iter(|| case.encode_block()));
        group.finish();
    }
}

criterion_group!(benches, codecs);
criterion_main!(benches);
