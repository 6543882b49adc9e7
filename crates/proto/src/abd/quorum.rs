//! Who has answered, and who agrees on the highest stamp: bitmaps,
//! so that a copy of an answer never counts twice.

use super::Stamp;

/// What members of a group have said in one phase of an operation. Bit *n* is the member at
/// place *n* of its config.
///
/// An answer of a member says one bit; a switch that counts says many at once. Whether they are a
/// quorum the config decides.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Quorum {
    /// Who has answered.
    pub answered: u8,
    /// Of these, who has answered with the highest stamp.
    pub agree: u8,
    /// The highest stamp.
    pub max: Stamp,
}

impl Quorum {
    /// These members have answered, and of them these with the stamp, which is their highest.
    #[inline]
    pub fn add(&mut self, answered: u8, agree: u8, stamp: Stamp) {
        self.answered |= answered;
        if stamp > self.max {
            (self.max, self.agree) = (stamp, 0);
        }
        if stamp == self.max {
            self.agree |= agree;
        }
    }

    /// As the switch says it: who has answered, and above it who agrees.
    pub const fn to_copyset(self) -> u32 {
        self.answered as u32 | (self.agree as u32) << 8
    }

    /// From what the switch says. None: it contradicts itself.
    pub const fn from_copyset(copyset: u32, max: Stamp) -> Option<Self> {
        let (answered, agree) = (copyset as u8, (copyset >> 8) as u8);
        if copyset >> 16 != 0 || agree & !answered != 0 {
            return None;
        }
        Some(Quorum {
            answered,
            agree,
            max,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_count_once_and_a_higher_stamp_begins_agreement_anew() {
        let mut quorum = Quorum::default();
        quorum.add(1, 1, Stamp(5));
        quorum.add(1, 1, Stamp(5));
        assert_eq!((quorum.answered, quorum.agree), (1, 1));
        quorum.add(2, 2, Stamp(9));
        quorum.add(4, 4, Stamp(5));
        assert_eq!((quorum.answered, quorum.agree), (7, 2));
        quorum.add(8, 8, Stamp(9));
        assert_eq!(
            (quorum.answered, quorum.agree, quorum.max),
            (15, 10, Stamp(9))
        );
    }

    #[test]
    fn a_switch_says_many_at_once_and_cannot_contradict_itself() {
        let mut quorum = Quorum::default();
        quorum.add(3, 2, Stamp(4));
        let told = Quorum::from_copyset(quorum.to_copyset(), quorum.max);
        assert_eq!(told, Some(quorum));
        assert_eq!(Quorum::from_copyset(0x0201, Stamp(4)), None);
        assert_eq!(Quorum::from_copyset(1 << 16, Stamp(4)), None);
    }
}
