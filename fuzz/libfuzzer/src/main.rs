//! libFuzzer, led by coverage, on the targets of crate `fuzz`. The environment variable `FUZZ_TARGET` names the target.
#![no_main]

use std::sync::LazyLock;

static RUN: LazyLock<fn(&[u8])> = LazyLock::new(|| {
    let name = std::env::var("FUZZ_TARGET").expect("FUZZ_TARGET names a target");
    fuzz::find(&name).unwrap_or_else(|| panic!("there is no fuzz target {name}")).run
});

libfuzzer_sys::fuzz_target!(|data: &[u8]| RUN(data));
