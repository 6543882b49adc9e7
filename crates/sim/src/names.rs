//! Names of variants in reports and on command lines.

use std::fmt::Debug;

/// `TwoSharers` as `two-sharers`.
pub fn kebab(variant: impl Debug) -> String {
    let mut name = String::new();
    for letter in format!("{variant:?}").chars() {
        if letter.is_uppercase() && !name.is_empty() {
            name.push('-');
        }
        name.extend(letter.to_lowercase());
    }
    name
}
