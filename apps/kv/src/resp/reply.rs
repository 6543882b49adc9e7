//! Writes replies, in either version of the protocol.

use crate::number::push_i64;

/// Which version a client speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Protocol {
    #[default]
    Resp2,
    Resp3,
}

/// The end of a buffer of replies.
pub(crate) struct Reply<'a> {
    pub out: &'a mut Vec<u8>,
    pub protocol: Protocol,
}

impl Reply<'_> {
    fn head(&mut self, kind: u8, number: i64) {
        self.out.push(kind);
        push_i64(number, self.out);
        self.out.extend_from_slice(b"\r\n");
    }

    /// A short line.
    pub fn simple(&mut self, text: &str) {
        self.out.push(b'+');
        self.out.extend_from_slice(text.as_bytes());
        self.out.extend_from_slice(b"\r\n");
    }

    pub fn ok(&mut self) {
        self.out.extend_from_slice(b"+OK\r\n");
    }

    /// An error; line ends in its text become spaces.
    pub fn error(&mut self, code: impl AsRef<[u8]>, text: impl AsRef<[u8]>) {
        self.out.push(b'-');
        self.out.extend_from_slice(code.as_ref());
        self.out.push(b' ');
        let one_line = |b: &u8| if matches!(b, b'\r' | b'\n') { b' ' } else { *b };
        self.out.extend(text.as_ref().iter().map(one_line));
        self.out.extend_from_slice(b"\r\n");
    }

    pub fn int(&mut self, value: i64) {
        self.head(b':', value);
    }

    pub fn count(&mut self, value: usize) {
        self.int(value as i64);
    }

    pub fn double(&mut self, value: f64) {
        let mut text = Vec::new();
        crate::double::push(value, &mut text);
        self.number(&text);
    }

    /// The text of a number that need not be whole.
    pub fn number(&mut self, text: &[u8]) {
        match self.protocol {
            Protocol::Resp2 => self.bulk(text),
            Protocol::Resp3 => {
                self.out.push(b',');
                self.out.extend_from_slice(text);
                self.out.extend_from_slice(b"\r\n");
            }
        }
    }

    pub fn flag(&mut self, value: bool) {
        self.int(i64::from(value));
    }

    pub fn bulk(&mut self, bytes: &[u8]) {
        self.head(b'$', bytes.len() as i64);
        self.out.extend_from_slice(bytes);
        self.out.extend_from_slice(b"\r\n");
    }

    /// A string of `len` bytes that `write` appends.
    #[inline]
    pub fn bulk_with(&mut self, len: usize, write: impl FnOnce(&mut Vec<u8>)) {
        self.head(b'$', len as i64);
        write(self.out);
        self.out.extend_from_slice(b"\r\n");
    }

    /// A string, or nothing.
    pub fn maybe(&mut self, bytes: Option<&[u8]>) {
        match bytes {
            Some(bytes) => self.bulk(bytes),
            None => self.nil(),
        }
    }

    /// Text for people.
    pub fn text(&mut self, text: &str) {
        match self.protocol {
            Protocol::Resp2 => self.bulk(text.as_bytes()),
            Protocol::Resp3 => {
                self.head(b'=', text.len() as i64 + 4);
                self.out.extend_from_slice(b"txt:");
                self.out.extend_from_slice(text.as_bytes());
                self.out.extend_from_slice(b"\r\n");
            }
        }
    }

    pub fn nil(&mut self) {
        self.out.extend_from_slice(match self.protocol {
            Protocol::Resp2 => b"$-1\r\n",
            Protocol::Resp3 => b"_\r\n",
        });
    }

    /// Nothing where an array could be.
    pub fn nil_array(&mut self) {
        self.out.extend_from_slice(match self.protocol {
            Protocol::Resp2 => b"*-1\r\n",
            Protocol::Resp3 => b"_\r\n",
        });
    }

    /// `len` elements follow.
    pub fn array(&mut self, len: usize) {
        self.head(b'*', len as i64);
    }

    /// `len` elements follow that the client has not asked for.
    pub fn push(&mut self, len: usize) {
        match self.protocol {
            Protocol::Resp2 => self.head(b'*', len as i64),
            Protocol::Resp3 => self.head(b'>', len as i64),
        }
    }

    /// `len` pairs follow.
    pub fn map(&mut self, len: usize) {
        match self.protocol {
            Protocol::Resp2 => self.head(b'*', 2 * len as i64),
            Protocol::Resp3 => self.head(b'%', len as i64),
        }
    }

    /// `len` different elements follow.
    pub fn set(&mut self, len: usize) {
        match self.protocol {
            Protocol::Resp2 => self.head(b'*', len as i64),
            Protocol::Resp3 => self.head(b'~', len as i64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions() {
        let write = |protocol| {
            let mut out = Vec::new();
            let mut reply = Reply {
                out: &mut out,
                protocol,
            };
            reply.map(1);
            reply.bulk(b"a");
            reply.nil();
            reply.error("ERR", "two\r\nlines");
            reply.int(-7);
            reply.text("x");
            String::from_utf8(out).unwrap()
        };
        assert_eq!(
            write(Protocol::Resp2),
            "*2\r\n$1\r\na\r\n$-1\r\n-ERR two  lines\r\n:-7\r\n$1\r\nx\r\n"
        );
        assert_eq!(
            write(Protocol::Resp3),
            "%1\r\n$1\r\na\r\n_\r\n-ERR two  lines\r\n:-7\r\n=5\r\ntxt:x\r\n"
        );
    }
}
