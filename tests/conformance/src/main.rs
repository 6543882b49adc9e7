//! Writes what is made from the Rust program, or says what of it is stale:
//! `cargo xtask golden [--check]`.
#![allow(clippy::print_stdout)]

use rackmem_conformance::generate;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

fn main() -> ExitCode {
    let root: PathBuf = [env!("CARGO_MANIFEST_DIR"), "../.."].iter().collect();
    let stale = generate::stale(&root);
    match std::env::args().nth(1).as_deref() {
        Some("--check") if stale.is_empty() => ExitCode::SUCCESS,
        Some("--check") => {
            for file in &stale {
                println!("{} is stale", file.path);
            }
            println!("`cargo xtask golden` writes them");
            ExitCode::FAILURE
        }
        None => write(&root, &stale),
        Some(other) => {
            eprintln!("error: `{other}` is no option; there is --check");
            ExitCode::from(2)
        }
    }
}

fn write(root: &Path, stale: &[generate::Generated]) -> ExitCode {
    for file in stale {
        let path = root.join(&file.path);
        let folder = path.parent().map_or(Ok(()), std::fs::create_dir_all);
        if let Err(error) = folder.and_then(|()| std::fs::write(&path, &file.text)) {
            eprintln!("error: {}: {error}", path.display());
            return ExitCode::FAILURE;
        }
        println!("wrote {}", file.path);
    }
    ExitCode::SUCCESS
}
