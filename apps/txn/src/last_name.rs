//! Last names: three syllables for the three digits of a number (4.3.2.3).

const SYLLABLES: [&[u8]; 10] = [
    b"BAR", b"OUGHT", b"ABLE", b"PRI", b"PRES", b"ESE", b"ANTI", b"CALLY", b"ATION", b"EING",
];

/// The last name of a number from 0 to 999, filled up with zeros.
pub fn last_name(number: u32) -> [u8; 16] {
    let digits = [number / 100 % 10, number / 10 % 10, number % 10];
    let syllables = digits.map(|digit| SYLLABLES[digit as usize]);
    crate::schema::text(&syllables.concat())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::shown;

    #[test]
    fn the_example_of_the_specification() {
        assert_eq!(shown(&last_name(371)), b"PRICALLYOUGHT");
        assert_eq!(shown(&last_name(40)), b"BARPRESBAR");
        assert!((0..1000).all(|number| shown(&last_name(number)).len() <= 15));
    }
}
