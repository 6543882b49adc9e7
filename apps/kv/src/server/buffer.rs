//! The buffers of a connection: what has come in, what is to go out.
//!
//! A connection has memory of its own only for what is under way: half a command, or replies that
//! the other side has not taken. While it has its turn it uses its worker's.

use std::io::{ErrorKind, Read, Write};

/// Bytes read at a time, at first.
const FIRST: usize = 16 << 10;
/// A buffer above this is given back when it is empty.
const KEEP: usize = 1 << 20;

/// A worker's buffers, lent to the connection that has its turn.
#[derive(Debug, Default)]
pub(crate) struct Spare {
    input: Vec<u8>,
    output: Vec<u8>,
}

/// What has arrived and not been used up. Grows with what arrives,
/// never ahead of it by more than its size.
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
    /// Bytes of memory that it has.
    pub fn held(&self) -> usize {
        self.data.capacity()
    }

    /// A turn begins.
    pub fn borrow(&mut self, spare: &mut Spare) {
        if self.data.is_empty() {
            self.data = std::mem::take(&mut spare.input);
        }
    }

    /// A turn ends: what has not been used up stays, in as little memory as it takes unless that is
    /// most of it.
    pub fn settle(&mut self, spare: &mut Spare) {
        let rest = self.bytes().len();
        if rest > self.data.len() / 4 {
            return;
        }
        let rest = self.bytes().to_vec();
        (self.start, self.end) = (0, rest.len());
        let data = std::mem::replace(&mut self.data, rest);
        if data.len() <= KEEP && data.len() > spare.input.len() {
            spare.input = data;
        }
    }

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
            self.data.resize((self.data.len() * 2).max(FIRST), 0);
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
    /// Bytes of memory that it has.
    pub fn held(&self) -> usize {
        self.data.capacity()
    }

    /// A turn begins.
    pub fn borrow(&mut self, spare: &mut Spare) {
        if self.data.capacity() == 0 {
            self.data = std::mem::take(&mut spare.output);
        }
    }

    /// A turn ends.
    pub fn settle(&mut self, spare: &mut Spare) {
        if self.data.is_empty() {
            let data = std::mem::take(&mut self.data);
            if data.capacity() > spare.output.capacity() {
                spare.output = data;
            }
        }
    }

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
        // A socket with a buffer of its own may still have some of it.
        let flow = match to.flush() {
            Ok(()) => Flow::Open,
            Err(error) if error.kind() == ErrorKind::WouldBlock => Flow::Dry,
            Err(_) => Flow::Ended,
        };
        if self.data.capacity() > KEEP {
            self.data = Vec::new();
        }
        (n, flow)
    }
}
