//! Who is inside of what: a check of the locks of a model that shares nothing with what lets
//! threads in.

/// Readers and writers inside each lock.
pub struct Occupied(Box<[(i32, i32)]>);

impl Occupied {
    /// Nobody is in any of so many locks.
    pub fn new(locks: u32) -> Self {
        Occupied(vec![(0, 0); locks as usize].into())
    }

    /// A thread comes in (1), or goes out (-1). `false`: a writer is not alone.
    pub fn moves(&mut self, lock: u32, writes: bool, by: i32) -> bool {
        let (readers, writers) = &mut self.0[lock as usize];
        *if writes { &mut *writers } else { &mut *readers } += by;
        *writers == 0 || (*writers, *readers) == (1, 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writers_are_alone() {
        let mut occupied = Occupied::new(2);
        assert!(occupied.moves(0, false, 1) && occupied.moves(0, false, 1));
        assert!(occupied.moves(1, true, 1));
        assert!(!occupied.moves(1, false, 1) && !occupied.moves(0, true, 1));
        assert!(occupied.moves(1, false, -1));
        assert!(!occupied.moves(0, false, -1) && occupied.moves(0, false, -1));
    }
}
