//! Single rows out of a large file, and opening a wide one; both in the page cache.

// A benchmark that cannot write its file has nothing to measure.
#![allow(clippy::unwrap_used)]

use bench::files::{random_rows, write_tall, write_wide};
use criterion::{Criterion, criterion_group, criterion_main};

fn files(criterion: &mut Criterion) {
    let folder = tempfile::tempdir().unwrap();
    let (tall, wide) = (folder.path().join("tall.cb2t"), folder.path().join("wide.cb2t"));
    write_tall(&tall).unwrap();
    write_wide(&wide).unwrap();
    let (table, rows) = (cb2t::open(&tall).unwrap(), random_rows());
    criterion
        .bench_function("take 1000", |bencher| bencher.iter(|| table.take(&rows, Some(vec![0])).unwrap()));
    criterion.bench_function("open 14,000 columns", |bencher| bencher.iter(|| cb2t::open(&wide).unwrap()));
}

criterion_group!(benches, files);
criterion_main!(benches);
