#![no_main]
#![allow(missing_docs)]

libfuzzer_sys::fuzz_target!(|input: &[u8]| rackmem_fuzz::bounded::fuzz(input));
