//! The buffers of a connection: what has come in, what is to go out.

use std::io::{ErrorKind, Read, Write};

/// Bytes a quiet connection keeps.
const IDLE: usize = 16 << 10;
/// A buffer above this is given back when it is empty.
const KEEP: usize = 1 << 20;

/// What has arrived and not been used up. Grows with what arrives, never ahead of it by more than its size.
#[derive(Debug, Default)]
pub(crate) struct Input {
    data: Vec<u8>,
    start: usize,
    end: usize,
}

/// How a read or write ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    /// There may be more.
    Open,
    /// Nothing more for now.
    Dry,
    /// The other side is gone.
    Ended,
}

impl Input {
    /// The bytes not used up.
    pub fn bytes(&self) -> &[u8] {
        &self.data[self.start..self.end]
    }

    /// Uses up the first `n`.
    pub fn consume(&mut self, n: usize) {
        self.start += n;
        if self.start >= self.end {
            (self.start, self.end) = (0, 0);
            if self.data.len() > KEEP {
                self.data = Vec::new();
            }
        }
    }

    /// Reads once. The count of bytes, and how it ended.
    pub fn fill(&mut self, from: &mut impl Read) -> (usize, Flow) {
        if self.end == self.data.len() {
            self.make_room();
        }
        match from.read(&mut self.data[self.end..]) {
            Ok(0) => (0, Flow::Ended),
            Ok(n) => {
                self.end += n;
                let full = self.end == self.data.len();
                (n, if full { Flow::Open } else { Flow::Dry })
            }
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock => (0, Flow::Dry),
                ErrorKind::Interrupted => (0, Flow::Open),
                _ => (0, Flow::Ended),
            },
        }
    }

    fn make_room(&mut self) {
        if self.start > self.data.len() / 2 {
            self.data.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        } else {
            self.data.resize((self.data.len() * 2).max(IDLE), 0);
        }
    }
}

/// Replies to be sent.
#[derive(Debug, Default)]
pub(crate) struct Output {
    pub data: Vec<u8>,
    sent: usize,
}

impl Output {
    /// Bytes not sent.
    pub fn pending(&self) -> usize {
        self.data.len() - self.sent
    }

    /// Writes as much as the other side takes.
    pub fn drain(&mut self, to: &mut impl Write) -> (usize, Flow) {
        let before = self.sent;
        while self.sent < self.data.len() {
            match to.write(&self.data[self.sent..]) {
                Ok(0) => return (self.sent - before, Flow::Ended),
                Ok(n) => self.sent += n,
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock => return (self.sent - before, Flow::Dry),
                    ErrorKind::Interrupted => {}
                    _ => return (self.sent - before, Flow::Ended),
                },
            }
        }
        let n = self.sent - before;
        self.sent = 0;
        self.data.clear();
        if self.data.capacity() > KEEP {
            self.data = Vec::new();
        }
        (n, Flow::Open)
    }
}
