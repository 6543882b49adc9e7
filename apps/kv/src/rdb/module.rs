//! Values and data of modules: skipped, since what they mean is the module's secret.

use std::io::Read;

use super::error::Result;
use super::source::Source;

/// What the parts of a module's value are.
mod part {
    pub const END: u64 = 0;
    pub const SIGNED: u64 = 1;
    pub const UNSIGNED: u64 = 2;
    pub const FLOAT: u64 = 3;
    pub const DOUBLE: u64 = 4;
    pub const STRING: u64 = 5;
}

const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Skips a module's value, to its end; the name of its type.
pub(crate) fn skip<R: Read>(source: &mut Source<R>) -> Result<String> {
    let name = name(source.number()?);
    loop {
        let start = source.offset();
        match source.number()? {
            part::END => return Ok(name),
            part::SIGNED | part::UNSIGNED => {
                source.number()?;
            }
            part::FLOAT => {
                source.u32()?;
            }
            part::DOUBLE => {
                source.u64()?;
            }
            part::STRING => {
                source.string()?;
            }
            _ => return source.malformed(start, "an unknown part of a module's value"),
        }
    }
}

/// The nine letters of a module's type; below them is its version.
fn name(id: u64) -> String {
    let letter = |place: u32| LETTERS[(id >> (10 + 6 * place)) as usize & 63];
    (0..9)
        .rev()
        .map(|place| char::from(letter(place)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_nine_letters() {
        let number = |letter: &u8| LETTERS.iter().position(|l| l == letter).unwrap() as u64;
        let id = b"ReJSON-RL"
            .iter()
            .fold(0, |id, letter| id << 6 | number(letter));
        assert_eq!(name(id << 10 | 3), "ReJSON-RL");
    }
}
