//! What goes over a link, as bytes. All numbers have their lowest byte first.
//!
//! ```text
//! hello    0 "rmlk"  4 version: u16  6 databases: u16  8 store: u64  16 from: u16  18 to: u16
//!         20 token: u128                               36 bytes
//! welcome  0 "rmlk"  4 version: u16                    6 bytes
//! request  0 length of what follows: u32   4 database: u8   5 version of RESP: u8   6 the command
//! reply    0 length of the reply: u32      4 flags: u8      5 the reply
//! ```
//!
//! A reply whose length is [`BYE`] says that nothing more is run. A command and its reply are in
//! Redis' protocol.

use crate::resp::args::Args;
use crate::resp::reply::Protocol;

const MAGIC: &[u8; 4] = b"rmlk";
/// Version of all of this. Another one is refused.
const VERSION: u16 = 2;
pub(super) const HELLO: usize = 36;
pub(super) const WELCOME: usize = 6;
/// Bytes of a command that is sent, words and what is around them, at most.
pub(super) const MAX_REQUEST: usize = 64 << 10;
/// Words of one, at most: with 16 bytes around each, and [`MAX_WORDS_BYTES`] in them, there is
/// always room.
pub(super) const MAX_WORDS: usize = 1 << 10;
pub(super) const MAX_WORDS_BYTES: usize = MAX_REQUEST - 16 * (MAX_WORDS + 1) - REQUEST;
/// Bytes of a reply at most: the longest that a client gets, and an error's line.
const MAX_REPLY: usize = crate::command::MAX_REPLY + (1 << 16);
const REQUEST: usize = 6;
pub(super) const REPLY: usize = 5;
/// The length that is none.
const BYE: u32 = u32::MAX;

/// What a reply says beside itself, as bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Flags(u8);

impl Flags {
    /// Whoever sends commands to this bucket had better fetch it.
    pub const BRING: Self = Self(1);
    /// A read has found its key.
    pub const HIT: Self = Self(2);
    /// It has not.
    pub const MISS: Self = Self(4);
    /// It is an error.
    pub const FAILED: Self = Self(8);
    /// The command has not run, and there is no reply.
    pub const NOT_RUN: Self = Self(16);

    pub fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    pub fn with(self, other: Self, on: bool) -> Self {
        Self(self.0 | if on { other.0 } else { 0 })
    }
}

/// That what came is nothing that a link says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Garbled;

/// Who wants to send commands, and to whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hello {
    /// What tells one store from others.
    pub store: u64,
    pub from: u16,
    pub to: u16,
    /// What only members of the rack can know of the door.
    pub token: u128,
}

impl Hello {
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&VERSION.to_le_bytes());
        out.extend_from_slice(&(crate::DATABASES as u16).to_le_bytes());
        out.extend_from_slice(&self.store.to_le_bytes());
        out.extend_from_slice(&self.from.to_le_bytes());
        out.extend_from_slice(&self.to.to_le_bytes());
        out.extend_from_slice(&self.token.to_le_bytes());
    }

    /// `None`: it is not all there.
    pub fn read(bytes: &[u8]) -> Result<Option<Self>, Garbled> {
        let begun = MAGIC.len().min(bytes.len());
        if bytes[..begun] != MAGIC[..begun] {
            return Err(Garbled);
        }
        let Some((hello, _)) = bytes.split_first_chunk::<HELLO>() else {
            return Ok(None);
        };
        if word(hello, 4) != VERSION || usize::from(word(hello, 6)) != crate::DATABASES {
            return Err(Garbled);
        }
        let long = |at: usize| (0..8).fold(0, |n, i| n | u64::from(hello[at + i]) << (8 * i));
        Ok(Some(Self {
            store: long(8),
            from: word(hello, 16),
            to: word(hello, 18),
            token: u128::from(long(28)) << 64 | u128::from(long(20)),
        }))
    }
}

fn word(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn length(bytes: &[u8]) -> Option<u32> {
    bytes.first_chunk().map(|four| u32::from_le_bytes(*four))
}

pub(super) fn welcome(out: &mut Vec<u8>) {
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(&VERSION.to_le_bytes());
}

/// Whether this is it; `None`: it is not all there.
pub(super) fn is_welcome(bytes: &[u8]) -> Option<bool> {
    let mut right = Vec::with_capacity(WELCOME);
    welcome(&mut right);
    (bytes.len() >= WELCOME).then(|| bytes[..WELCOME] == right)
}

/// Whether a command can be sent.
pub(super) fn has_room(args: Args<'_>) -> bool {
    args.len() <= MAX_WORDS && args.size() <= MAX_WORDS_BYTES
}

/// A command of a client that speaks `protocol`, for database `db`.
pub(super) fn request(db: u8, protocol: Protocol, args: Args<'_>, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    out.push(db);
    out.push(if protocol == Protocol::Resp3 { 3 } else { 2 });
    let number = |kind: u8, n: usize, out: &mut Vec<u8>| {
        out.push(kind);
        crate::number::push_i64(n as i64, out);
        out.extend_from_slice(b"\r\n");
    };
    number(b'*', args.len(), out);
    for word in args.from(0) {
        number(b'$', word.len(), out);
        out.extend_from_slice(word);
        out.extend_from_slice(b"\r\n");
    }
    let len = (out.len() - start - 4) as u32;
    out[start..start + 4].copy_from_slice(&len.to_le_bytes());
}

/// A command that came over a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Request<'a> {
    pub db: u8,
    pub protocol: Protocol,
    pub command: &'a [u8],
    /// Bytes of all of it.
    pub len: usize,
}

impl<'a> Request<'a> {
    /// The first one. `None`: it is not all there.
    pub fn read(bytes: &'a [u8]) -> Result<Option<Self>, Garbled> {
        let Some(length) = length(bytes) else {
            return Ok(None);
        };
        let len = length as usize + 4;
        if !(REQUEST..=MAX_REQUEST).contains(&len) {
            return Err(Garbled);
        }
        let Some(all) = bytes.get(..len) else {
            return Ok(None);
        };
        let protocol = match all[5] {
            2 => Protocol::Resp2,
            3 => Protocol::Resp3,
            _ => return Err(Garbled),
        };
        Ok(Some(Self {
            db: all[4],
            protocol,
            command: &all[REQUEST..],
            len,
        }))
    }
}

/// Makes room for the head of a reply, which is written behind it. Where it begins.
pub(super) fn begin_reply(out: &mut Vec<u8>) -> usize {
    let start = out.len();
    out.extend_from_slice(&[0; REPLY]);
    start
}

/// The reply that began at `start` is whole.
pub(super) fn end_reply(out: &mut [u8], start: usize, flags: Flags) {
    let len = (out.len() - start - REPLY) as u32;
    out[start..start + 4].copy_from_slice(&len.to_le_bytes());
    out[start + 4] = flags.0;
}

/// Nothing more is run.
pub(super) fn bye(out: &mut Vec<u8>) {
    out.extend_from_slice(&BYE.to_le_bytes());
}

/// What a home says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Said<'a> {
    /// With the bytes of all of it.
    Reply(Flags, &'a [u8], usize),
    Bye,
}

impl<'a> Said<'a> {
    /// What comes first. `None`: it is not all there.
    pub fn read(bytes: &'a [u8]) -> Result<Option<Self>, Garbled> {
        let Some(length) = length(bytes) else {
            return Ok(None);
        };
        if length == BYE {
            return Ok(Some(Self::Bye));
        }
        let len = length as usize;
        if len > MAX_REPLY {
            return Err(Garbled);
        }
        let Some(all) = bytes.get(..REPLY + len) else {
            return Ok(None);
        };
        Ok(Some(Self::Reply(Flags(all[4]), &all[REPLY..], REPLY + len)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ME: Hello = Hello {
        store: 0x0123_4567_89ab_cdef,
        from: 2,
        to: 31,
        token: 1 << 127 | 77,
    };

    #[test]
    fn a_hello_is_read_as_it_was_written_and_any_other_is_refused() {
        let mut bytes = Vec::new();
        ME.write(&mut bytes);
        assert_eq!(bytes.len(), HELLO);
        assert_eq!(Hello::read(&bytes), Ok(Some(ME)));
        for part in 0..HELLO {
            assert_eq!(Hello::read(&bytes[..part]), Ok(None), "{part}");
        }
        assert_eq!(Hello::read(b"*1\r\n$4\r\nPING\r\n"), Err(Garbled));
        // Another version, another number of databases.
        for at in [4, 6] {
            let mut other = bytes.clone();
            other[at] += 1;
            assert_eq!(Hello::read(&other), Err(Garbled));
        }
        let mut answer = Vec::new();
        welcome(&mut answer);
        assert_eq!(is_welcome(&answer), Some(true));
        assert_eq!(is_welcome(&answer[1..]), None);
        assert_eq!(is_welcome(&bytes), Some(true), "it begins alike");
        assert_eq!(is_welcome(b"-ERR no"), Some(false));
    }

    #[test]
    fn a_request_has_a_command_and_a_bound() {
        let args = crate::resp::args::OwnedArgs::of(&[b"set", b"k", b"v"]);
        let mut bytes = Vec::new();
        request(7, Protocol::Resp3, args.args(), &mut bytes);
        let request = Request::read(&bytes).unwrap().unwrap();
        assert_eq!((request.db, request.protocol), (7, Protocol::Resp3));
        assert_eq!(
            request.command,
            b"*3\r\n$3\r\nset\r\n$1\r\nk\r\n$1\r\nv\r\n"
        );
        assert_eq!(request.len, bytes.len());
        for part in 0..bytes.len() {
            assert_eq!(Request::read(&bytes[..part]), Ok(None));
        }
        for long in [0, 1, MAX_REQUEST as u32 - 3, BYE] {
            assert_eq!(Request::read(&long.to_le_bytes()), Err(Garbled), "{long}");
        }
        bytes[5] = 4;
        assert_eq!(Request::read(&bytes), Err(Garbled));
        // The longest that may be sent has room.
        let words = vec![vec![b'x'; MAX_WORDS_BYTES / MAX_WORDS]; MAX_WORDS];
        let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
        let longest = crate::resp::args::OwnedArgs::of(&words);
        assert!(has_room(longest.args()));
        bytes.clear();
        super::request(0, Protocol::Resp2, longest.args(), &mut bytes);
        assert!(Request::read(&bytes).unwrap().is_some());
    }

    #[test]
    fn a_reply_says_more_than_itself() {
        let mut bytes = Vec::new();
        let start = begin_reply(&mut bytes);
        bytes.extend_from_slice(b"+OK\r\n");
        let flags = Flags::BRING.with(Flags::FAILED, false);
        end_reply(&mut bytes, start, flags.with(Flags::HIT, true));
        bye(&mut bytes);
        let Ok(Some(Said::Reply(flags, b"+OK\r\n", n))) = Said::read(&bytes) else {
            panic!("no reply: {bytes:?}");
        };
        assert!(flags.has(Flags::BRING) && flags.has(Flags::HIT) && !flags.has(Flags::FAILED));
        assert_eq!(Said::read(&bytes[n..]), Ok(Some(Said::Bye)));
        for part in 0..n {
            assert_eq!(Said::read(&bytes[..part]), Ok(None));
        }
        let long = (MAX_REPLY as u32 + 1).to_le_bytes();
        assert_eq!(Said::read(&long), Err(Garbled));
    }
}
