#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| cb2t_fuzz::tables::round_trip(input));
