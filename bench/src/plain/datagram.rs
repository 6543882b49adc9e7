//! The datagrams of the baseline: eight bytes of header, and filling.

use super::PlainError;

/// The header alone.
pub const MIN_DATAGRAM_BYTES: usize = 8;
/// What IPv4 can carry.
pub const MAX_DATAGRAM_BYTES: usize = 65_507;
/// The most datagrams of one request or answer: few enough for a socket's buffer.
pub const MAX_PARTS: usize = 64;

/// Which part of which request a datagram is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub round: u32,
    pub part: u32,
}

impl Header {
    /// Writes the header to the front of a datagram.
    pub fn write(self, datagram: &mut [u8; MAX_DATAGRAM_BYTES]) {
        datagram[..4].copy_from_slice(&self.round.to_be_bytes());
        datagram[4..8].copy_from_slice(&self.part.to_be_bytes());
    }

    /// Reads the header of a datagram, if it is long enough for one.
    pub fn read(datagram: &[u8]) -> Option<Header> {
        let (round, rest) = datagram.split_first_chunk()?;
        let (part, _) = rest.split_first_chunk()?;
        Some(Header {
            round: u32::from_be_bytes(*round),
            part: u32::from_be_bytes(*part),
        })
    }
}

/// The sizes of the datagrams that carry so many bytes, at least one and none too short for a
/// header.
pub(super) fn parts(bytes: usize, datagram: usize) -> Result<Vec<usize>, PlainError> {
    let count = bytes.div_ceil(datagram).max(1);
    if count > MAX_PARTS {
        return Err(PlainError::TooLarge(bytes));
    }
    let size = |part: usize| {
        let rest = bytes.saturating_sub(part * datagram).min(datagram);
        rest.max(MIN_DATAGRAM_BYTES)
    };
    Ok((0..count).map(size).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_split_into_datagrams() {
        let split = |bytes, datagram| parts(bytes, datagram).unwrap();
        assert_eq!(split(0, 100), [8]);
        assert_eq!(split(100, 100), [100]);
        assert_eq!(split(101, 100), [100, 8]);
        assert_eq!(split(4096, 1472), [1472, 1472, 1152]);
        assert!(parts(65 * 100, 100).is_err());
    }

    #[test]
    fn headers_are_read_as_written() {
        let mut datagram = [0; MAX_DATAGRAM_BYTES];
        let header = Header {
            round: 7,
            part: 1 << 30,
        };
        header.write(&mut datagram);
        assert_eq!(Header::read(&datagram[..8]), Some(header));
        assert_eq!(Header::read(&datagram[..7]), None);
    }
}
