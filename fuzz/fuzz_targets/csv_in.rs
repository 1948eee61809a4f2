#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| cb2t_fuzz::foreign::csv_in(input));
