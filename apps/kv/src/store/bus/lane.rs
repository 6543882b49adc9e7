//! A lane: the block in which one node leaves messages for another.
//!
//! ```text
//! lane      0 state: u64     bit 0: the receiver listens; bit 1: a note was dropped for lack of
//!                            room; bit 2: a published message was
//!           8 used: u64      bytes of messages
//!          16 messages, packed
//!
//! message   0 size: u32 | kind: u8 | db: u8 | far: u8     size: the whole, a multiple of 8
//!           8 first: u32 | second: u32                    bytes of the two parts
//!          16 number: u64                                 (`numbers.rs`)
//!          24 both parts, padded to 8; with `far` the address of memory that holds them
//! ```
//!
//! One node writes to a lane and one empties it, so that nobody else waits for either.

use rackmem::window::{Window, WindowMut};

use super::message::{Kind, Message};

const STATE: usize = 0;
const USED: usize = 8;
/// Bytes before the first message: what a receiver looks at to see whether there is one.
pub(super) const HEADER: usize = 16;
/// Bytes of a message before its parts.
const HEAD: usize = 24;
const LISTENS: u64 = 1;
const NOTE_DROPPED: u64 = 2;
const PUBLISHED_DROPPED: u64 = 4;

/// What a look at a lane's header tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct State {
    pub listens: bool,
    /// Notes that keys have changed are missing.
    pub lost_notes: bool,
    /// Messages that clients have published are missing.
    pub lost_published: bool,
    pub used: usize,
}

impl State {
    pub fn load(view: &Window<'_>) -> Self {
        let state = view.u64(STATE);
        State {
            listens: state & LISTENS != 0,
            lost_notes: state & NOTE_DROPPED != 0,
            lost_published: state & PUBLISHED_DROPPED != 0,
            used: view.u64(USED) as usize,
        }
    }

    /// Whether its receiver has something to do.
    pub fn is_news(&self) -> bool {
        self.used != 0 || self.lost_notes || self.lost_published || !self.listens
    }
}

/// How putting a message into a lane ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Put {
    Done,
    /// Nobody listens there.
    Deaf,
    /// There is no room.
    Full,
    /// There has been none for too long: the receiver knows that it misses some.
    Dropped,
}

/// A message as it lies in a lane.
pub(super) struct Packed<'a> {
    pub kind: Kind,
    pub db: u8,
    pub first: &'a [u8],
    pub second: &'a [u8],
    /// The memory that holds both parts, if they are too long for a lane.
    pub far: Option<u64>,
}

impl Packed<'_> {
    /// Bytes of both parts.
    pub fn len(&self) -> usize {
        self.first.len() + self.second.len()
    }

    /// Bytes in a lane.
    pub fn size(&self) -> usize {
        let body = if self.far.is_some() { 8 } else { self.len() };
        HEAD + body.next_multiple_of(8)
    }

    fn dropped(&self) -> u64 {
        match self.kind {
            Kind::Channel | Kind::Shard => PUBLISHED_DROPPED,
            Kind::Key | Kind::Flush => NOTE_DROPPED,
        }
    }
}

/// Puts a message behind the others, with the number that `number` gives it. `give_up`: if there is
/// no room, the receiver is told so.
pub(super) fn put(
    lane: &mut WindowMut<'_>,
    message: &Packed<'_>,
    number: impl FnOnce() -> u64,
    give_up: bool,
) -> Put {
    let (state, now) = (lane.u64(STATE), State::load(lane));
    if !now.listens {
        return Put::Deaf;
    }
    if state & message.dropped() != 0 {
        return Put::Dropped;
    }
    let (at, size) = (HEADER.saturating_add(now.used), message.size());
    if size > lane.len().saturating_sub(at) {
        if !give_up {
            return Put::Full;
        }
        lane.set_u64(STATE, state | message.dropped());
        return Put::Dropped;
    }
    let far = u64::from(message.far.is_some());
    let head = size as u64 | (message.kind as u64) << 32 | u64::from(message.db) << 40 | far << 48;
    lane.set_u64(at, head);
    let lens = message.first.len() as u64 | (message.second.len() as u64) << 32;
    lane.set_u64(at + 8, lens);
    lane.set_u64(at + 16, number());
    match message.far {
        Some(addr) => {
            lane.set_u64(at + HEAD, addr);
        }
        None => {
            lane.write(at + HEAD, message.first);
            lane.write(at + HEAD + message.first.len(), message.second);
        }
    }
    lane.set_u64(USED, (now.used + size) as u64);
    Put::Done
}

/// Empties a lane into `bytes`; what it was.
pub(super) fn take(lane: &mut WindowMut<'_>, bytes: &mut Vec<u8>) -> State {
    let state = State::load(lane);
    bytes.resize(state.used.min(lane.len() - HEADER), 0);
    lane.read(HEADER, bytes);
    lane.set_u64(USED, 0);
    lane.set_u64(STATE, LISTENS);
    state
}

/// The receiver listens from now on, or does not; what lay there is gone.
pub(super) fn listen(lane: &mut WindowMut<'_>, listens: bool) {
    lane.set_u64(STATE, if listens { LISTENS } else { 0 });
    lane.set_u64(USED, 0);
}

/// A message taken from a lane.
#[derive(Debug)]
pub(super) enum Taken {
    Here(Message),
    /// Both parts are in memory: where, and their lengths.
    Far {
        kind: Kind,
        db: u8,
        addr: u64,
        first: usize,
        second: usize,
    },
}

/// The messages that were in a lane, with their numbers, as far as they make sense.
pub(super) fn unpack(mut bytes: &[u8]) -> impl Iterator<Item = (u64, Taken)> {
    std::iter::from_fn(move || {
        let word = |at: usize| {
            let word = bytes.get(at..at + 8)?.try_into().ok()?;
            Some(u64::from_le_bytes(word))
        };
        let (head, lens, number) = (word(0)?, word(8)?, word(16)?);
        let size = head as u32 as usize;
        let (first, second) = (lens as u32 as usize, (lens >> 32) as usize);
        let (kind, db) = (Kind::from_byte((head >> 32) as u8)?, (head >> 40) as u8);
        let body = bytes.get(HEAD..size)?;
        let taken = if head >> 48 & 1 != 0 {
            let addr = word(HEAD)?;
            Taken::Far {
                kind,
                db,
                addr,
                first,
                second,
            }
        } else {
            let parts = (
                body.get(..first)?,
                body.get(first..first.checked_add(second)?)?,
            );
            Taken::Here(Message::from_parts(kind, db, parts.0, parts.1))
        };
        bytes = &bytes[size..];
        Some((number, taken))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    fn packed<'a>(kind: Kind, first: &'a [u8], second: &'a [u8]) -> Packed<'a> {
        Packed {
            kind,
            db: 3,
            first,
            second,
            far: None,
        }
    }

    #[test]
    fn messages_come_out_as_they_went_in_until_there_is_no_room() {
        let words: Vec<AtomicU64> = (0..32).map(|_| AtomicU64::new(0)).collect();
        let mut lane = WindowMut::new(&words, 0, 256);
        let mut last = 0;
        let mut put = |lane: &mut WindowMut<'_>, message: &Packed<'_>, give_up| {
            let number = || {
                last += 1;
                last
            };
            super::put(lane, message, number, give_up)
        };
        let key = packed(Kind::Key, b"a key", b"");
        assert_eq!(put(&mut lane, &key, true), Put::Deaf);
        listen(&mut lane, true);
        let said = packed(Kind::Channel, b"channel", &[7; 50]);
        assert_eq!(put(&mut lane, &key, false), Put::Done);
        assert_eq!(put(&mut lane, &said, false), Put::Done);
        let far = Packed {
            far: Some(77),
            ..packed(Kind::Shard, b"s", b"xy")
        };
        assert_eq!(put(&mut lane, &far, false), Put::Done);
        let long = packed(Kind::Channel, b"channel", &[7; 200]);
        assert_eq!(put(&mut lane, &long, false), Put::Full);
        assert_eq!(put(&mut lane, &long, true), Put::Dropped);
        assert_eq!(
            put(&mut lane, &said, false),
            Put::Dropped,
            "none after one that is missing"
        );
        assert_eq!(put(&mut lane, &key, false), Put::Done);
        let mut bytes = Vec::new();
        let state = take(&mut lane, &mut bytes);
        assert!(state.lost_published && !state.lost_notes);
        let mut all = unpack(&bytes);
        let here = |taken| match taken {
            Some((number, Taken::Here(message))) => (number, message),
            other => panic!("{other:?}"),
        };
        let note = Message::Key {
            db: 3,
            key: b"a key".to_vec(),
        };
        assert_eq!(here(all.next()), (1, note.clone()));
        let (channel, payload) = (b"channel".to_vec(), vec![7; 50]);
        assert_eq!(
            here(all.next()),
            (
                2,
                Message::Published {
                    shard: false,
                    channel,
                    payload
                }
            )
        );
        assert!(matches!(
            all.next(),
            Some((
                3,
                Taken::Far {
                    kind: Kind::Shard,
                    addr: 77,
                    first: 1,
                    second: 2,
                    ..
                }
            ))
        ));
        assert_eq!(here(all.next()), (4, note));
        assert!(all.next().is_none());
        assert!(!State::load(&lane).is_news());
    }
}
