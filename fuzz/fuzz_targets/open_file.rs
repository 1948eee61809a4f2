#![no_main]

use cb2t_fuzz::files::{mutate_file, open_file};
use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};

fuzz_target!(|input: &[u8]| open_file(input));

// Damage that ignores the checksums is found by them; most of it respects them.
fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    let structured = if seed.is_multiple_of(8) { None } else { mutate_file(data, size, seed) };
    structured.unwrap_or_else(|| fuzzer_mutate(data, size, max_size))
});
