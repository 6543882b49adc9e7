//! `include/rackmem.h` is what the library has. `RACKMEM_WRITE=1` writes it anew.

use std::path::Path;

#[test]
fn the_header_is_of_the_library() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(here.join("cbindgen.toml")).unwrap();
    let made = cbindgen::Builder::new()
        .with_src(here.join("src/lib.rs"))
        .with_config(config)
        .generate()
        .unwrap();
    let mut header = Vec::new();
    made.write(&mut header);
    let header = String::from_utf8(header).unwrap();
    let path = here.join("include/rackmem.h");
    if std::env::var_os("RACKMEM_WRITE").is_some() {
        std::fs::write(&path, &header).unwrap();
    }
    let there = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        there == header,
        "rackmem.h is older than the library: RACKMEM_WRITE=1 cargo test -p rackmem-c"
    );
}
