//! The 16-bit reader-writer lock of a directory entry: the top bit a writer,
//! 15 bits of readers (§5.1.1).

const WRITER: u16 = 1 << 15;

/// An entry's lock word.
pub type LockWord = u16;

/// Takes the lock if there is no conflict. `shared` asks as a reader.
#[inline]
pub fn acquire(lock: &mut LockWord, shared: bool) -> bool {
    match (shared, *lock) {
        (true, held) if held < WRITER - 1 => *lock += 1,
        (false, 0) => *lock = WRITER,
        _ => return false,
    }
    true
}

/// Gives back what one [`acquire`] of the same kind took. Says whether there was anything to give
/// back.
#[inline]
pub fn release(lock: &mut LockWord, shared: bool) -> bool {
    match (shared, *lock) {
        (true, held) if held != 0 && held < WRITER => *lock -= 1,
        (false, WRITER) => *lock = 0,
        _ => return false,
    }
    true
}

/// Whether a writer holds it.
#[inline]
pub fn held_alone(lock: LockWord) -> bool {
    lock & WRITER != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_readers_or_one_writer() {
        let mut lock = 0;
        assert!(acquire(&mut lock, true) && acquire(&mut lock, true));
        assert!(!acquire(&mut lock, false));
        assert!(!release(&mut lock, false));
        assert!(release(&mut lock, true) && release(&mut lock, true));
        assert!(!release(&mut lock, true));
        assert!(acquire(&mut lock, false));
        assert!(!acquire(&mut lock, true) && !acquire(&mut lock, false));
        assert!(release(&mut lock, false));
        assert_eq!(lock, 0);
    }

    #[test]
    fn a_full_reader_count_refuses_instead_of_becoming_a_writer() {
        let mut lock = WRITER - 1;
        assert!(!acquire(&mut lock, true));
        assert_eq!(lock, WRITER - 1);
    }
}
