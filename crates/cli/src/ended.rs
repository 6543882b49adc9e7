//! How a command ended when nothing went wrong.

/// What the shell learns of a command that did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It did all it had to.
    Done,
    /// It was told to stop, and has put everything away.
    Interrupted,
    /// The rack has declared it dead and goes on without it.
    Fenced,
}

impl Ended {
    /// The exit code; 128 + SIGINT when interrupted, as shells expect.
    pub fn code(self) -> u8 {
        match self {
            Ended::Done => 0,
            Ended::Interrupted => 130,
            Ended::Fenced => 3,
        }
    }
}
