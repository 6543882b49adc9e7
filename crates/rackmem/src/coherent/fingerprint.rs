//! What tells types apart that are as long as each other.

use std::any::type_name;

/// A number that stands for a type: of its name without the modules that it is in,
/// its size and its alignment. Never 0.
///
/// It is the same in every program that knows the type under this name, wherever it is declared, so
/// a struct that two programs declare alike is one type to them. A type that is renamed is another
/// one, and so is one whose size has changed; fields that have changed places are not noticed.
pub(crate) fn fingerprint<T>() -> u32 {
    let mut hash = Fnv::new();
    short(type_name::<T>(), |byte| hash.add(byte));
    for number in [size_of::<T>(), align_of::<T>()] {
        (number as u64)
            .to_le_bytes()
            .into_iter()
            .for_each(|byte| hash.add(byte));
    }
    ((hash.0 >> 32) as u32 ^ hash.0 as u32).max(1)
}

/// The FNV-1a hash.
struct Fnv(u64);

impl Fnv {
    fn new() -> Self {
        Fnv(0xcbf2_9ce4_8422_2325)
    }

    fn add(&mut self, byte: u8) {
        self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    }
}

/// The bytes of a type's name, without `path::` in front of any part of it, and without spaces.
fn short(name: &str, mut each: impl FnMut(u8)) {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    for part in name.split_inclusive(|c: char| !is_word(c) && c != ':') {
        let last = part.rsplit("::").next().unwrap_or(part);
        last.bytes()
            .filter(|byte| *byte != b' ')
            .for_each(&mut each);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    mod elsewhere {
        pub struct Point(#[expect(dead_code)] pub [u64; 2]);
    }
    struct Point(#[expect(dead_code)] [u64; 2]);

    fn name_of(name: &str) -> String {
        let mut text = Vec::new();
        short(name, |byte| text.push(byte));
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn a_name_is_shortened_in_all_its_parts() {
        assert_eq!(name_of("u64"), "u64");
        assert_eq!(name_of("a::b::Point"), "Point");
        assert_eq!(name_of("[a::Point; 4]"), "[Point;4]");
        assert_eq!(name_of("a::Pair<b::c::Left, [u8; 2]>"), "Pair<Left,[u8;2]>");
    }

    #[test]
    fn types_of_one_size_differ_and_modules_do_not_matter() {
        let all = [
            fingerprint::<u64>(),
            fingerprint::<i64>(),
            fingerprint::<f64>(),
            fingerprint::<[u8; 8]>(),
            fingerprint::<[u32; 2]>(),
            fingerprint::<[u64; 2]>(),
            fingerprint::<Point>(),
        ];
        for (at, one) in all.iter().enumerate() {
            assert!(*one != 0 && all[at + 1..].iter().all(|other| other != one));
        }
        assert_eq!(fingerprint::<Point>(), fingerprint::<elsewhere::Point>());
    }
}
