//! The bytes of a file in their order: numbers, lengths and strings.

use std::io::{ErrorKind, Read};

use super::error::{Cause, Error, Result};
use super::{MAX_STRING, crc, lzf};

/// Bytes that are read into fresh memory at a time, so that a length nobody has bytes for
/// allocates no more.
const STEP: usize = 64 << 10;

/// A source of bytes that knows how many it has given, and their checksum.
#[derive(Debug)]
pub(crate) struct Source<R> {
    input: R,
    offset: u64,
    pub crc: u64,
}

/// A length, or what stands in its place.
enum Length {
    Bytes(u64),
    Special(u8),
}

impl<R: Read> Source<R> {
    pub fn new(input: R) -> Self {
        Self {
            input,
            offset: 0,
            crc: 0,
        }
    }

    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// What is wrong begins at the next byte.
    pub fn error<T>(&self, cause: Cause) -> Result<T> {
        error(self.offset, cause)
    }

    /// What is wrong began at `offset`.
    pub fn malformed<T>(&self, offset: u64, what: &'static str) -> Result<T> {
        error(offset, Cause::Malformed(what))
    }

    pub fn exact(&mut self, out: &mut [u8]) -> Result<()> {
        match self.input.read_exact(out) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                return self.error(Cause::Truncated);
            }
            Err(error) => return self.error(Cause::Io(error)),
        }
        self.offset += out.len() as u64;
        self.crc = crc::extend(self.crc, out);
        Ok(())
    }

    pub fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut out = [0; N];
        self.exact(&mut out)?;
        Ok(out)
    }

    pub fn byte(&mut self) -> Result<u8> {
        Ok(self.array::<1>()?[0])
    }

    pub fn u32(&mut self) -> Result<u32> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub fn u64(&mut self) -> Result<u64> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    fn any_length(&mut self) -> Result<Length> {
        let first = self.byte()?;
        let low = u64::from(first & 63);
        Ok(match first {
            0..=0x3f => Length::Bytes(low),
            0x40..=0x7f => Length::Bytes(low << 8 | u64::from(self.byte()?)),
            0x80 => Length::Bytes(u32::from_be_bytes(self.array()?).into()),
            0x81 => Length::Bytes(u64::from_be_bytes(self.array()?)),
            0x82..=0xbf => return self.malformed(self.offset - 1, "no length begins so"),
            0xc0.. => Length::Special(first & 63),
        })
    }

    /// A number that is written as a length.
    pub fn number(&mut self) -> Result<u64> {
        let start = self.offset;
        match self.any_length()? {
            Length::Bytes(number) => Ok(number),
            Length::Special(_) => self.malformed(start, "a string where a number belongs"),
        }
    }

    /// Bytes as they are.
    pub fn bytes(&mut self, len: u64) -> Result<Vec<u8>> {
        if len > MAX_STRING {
            return self.error(Cause::TooLong(len));
        }
        let (mut out, len) = (Vec::new(), len as usize);
        while out.len() < len {
            let start = out.len();
            out.resize(len.min(start + STEP), 0);
            self.exact(&mut out[start..])?;
        }
        Ok(out)
    }

    /// A string in any of its encodings.
    pub fn string(&mut self) -> Result<Vec<u8>> {
        let start = self.offset;
        let text = |number: i32| Ok(number.to_string().into_bytes());
        match self.any_length()? {
            Length::Bytes(len) => self.bytes(len),
            Length::Special(0) => text(i8::from_le_bytes(self.array()?).into()),
            Length::Special(1) => text(i16::from_le_bytes(self.array()?).into()),
            Length::Special(2) => text(i32::from_le_bytes(self.array()?)),
            Length::Special(3) => self.compressed(start),
            Length::Special(_) => self.malformed(start, "an unknown encoding of a string"),
        }
    }

    fn compressed(&mut self, start: u64) -> Result<Vec<u8>> {
        let (packed, len) = (self.number()?, self.number()?);
        if len > MAX_STRING {
            return error(start, Cause::TooLong(len));
        }
        let packed = self.bytes(packed)?;
        match lzf::expand(&packed, len as usize) {
            Some(bytes) => Ok(bytes),
            None => self.malformed(start, "a string that is not compressed as it says"),
        }
    }
}

fn error<T>(offset: u64, cause: Cause) -> Result<T> {
    Err(Error { offset, cause })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn string(bytes: &[u8]) -> Result<Vec<u8>> {
        Source::new(bytes).string()
    }

    #[test]
    fn strings_in_every_encoding() {
        let long = [&[0x41, 0x00][..], &[b'x'; 256]].concat();
        let longer = [&[0x80, 0, 1, 0, 0][..], &[b'y'; 65536]].concat();
        for (bytes, want) in [
            (&b"\x03abc"[..], &b"abc"[..]),
            (&long, &[b'x'; 256]),
            (&longer, &[b'y'; 65536]),
            (b"\xc0\xff", b"-1"),
            (b"\xc1\x00\x80", b"-32768"),
            (b"\xc2\xff\xff\xff\x7f", b"2147483647"),
            (b"\xc3\x04\x08\x00a\xa0\x00", b"aaaaaaaa"),
            (b"\x81\0\0\0\0\0\0\0\x02hi", b"hi"),
        ] {
            assert_eq!(string(bytes).unwrap(), want);
        }
    }

    #[test]
    fn lengths_without_bytes_allocate_nothing_and_are_errors() {
        let cause = |bytes| string(bytes).unwrap_err().cause;
        assert!(matches!(cause(b"\x80\x10\0\0\0abc"), Cause::Truncated));
        assert!(matches!(
            cause(b"\x81\xff\0\0\0\0\0\0\0"),
            Cause::TooLong(_)
        ));
        assert!(matches!(
            cause(b"\xc3\x04\x80\xff\0\0\0\x00a\xa0\x00"),
            Cause::TooLong(_)
        ));
        assert!(matches!(cause(b"\xc4"), Cause::Malformed(_)));
        assert!(matches!(cause(b"\x90"), Cause::Malformed(_)));
        assert!(matches!(cause(b""), Cause::Truncated));
        let error = string(b"\x05abc").unwrap_err();
        assert_eq!(
            (error.offset, error.to_string().contains("byte 1")),
            (1, true)
        );
    }
}
