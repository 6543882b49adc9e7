//! Unsafe code is allowed where the machine is touched: mapped memory, sockets,
//! measured instructions.
//!
//! That each unsafe block has its SAFETY comment is checked by clippy
//! (`undocumented_unsafe_blocks`).

use super::Finding;
use super::rust_code::{code_only, has_word};
use super::tree::Tree;

/// The packages that may hold unsafe code. The fuzz driver counts allocations,
/// which takes an allocator.
const ALLOWED: &[&str] = &[
    "crates/rackmem/",
    "crates/fabric/",
    "crates/dropin/",
    "c/",
    "python/",
    "bench/",
    "fuzz/",
];

pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree
        .rust()
        .filter(|file| !ALLOWED.iter().any(|folder| file.path.starts_with(folder)))
    {
        for (number, line) in code_only(&file.text).lines().enumerate() {
            if has_word(line, "unsafe") {
                let message = format!("unsafe code belongs in {}", ALLOWED.join(", "));
                findings.push(Finding::error(&file.path, number + 1, message));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        check(&Tree::of(&[(path, text)]))
            .iter()
            .map(|finding| finding.line)
            .collect()
    }

    #[test]
    fn unsafe_code_is_found_outside_the_allowed_packages() {
        let text =
            "// unsafe\nunsafe { f() }\nunsafe impl Send for X {}\n#![forbid(unsafe_code)]\n";
        assert_eq!(lines("apps/kv/src/a.rs", text), [2, 3]);
        assert!(lines("crates/rackmem/src/a.rs", text).is_empty());
    }
}
