#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| cb2t_fuzz::tiles::check_then_decode(input));
