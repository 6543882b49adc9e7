//! What nodes tell each other.

use super::lane::Packed;

/// What a message is, as a byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Key = 1,
    Flush,
    Channel,
    Shard,
}

impl Kind {
    pub fn from_byte(byte: u8) -> Option<Self> {
        [Self::Key, Self::Flush, Self::Channel, Self::Shard]
            .into_iter()
            .find(|kind| *kind as u8 == byte)
    }
}

/// The number of no database: all of them.
pub(super) const ALL: u8 = u8::MAX;

/// Something that has happened in the rack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Message {
    /// A key has changed, or went.
    Key { db: u8, key: Vec<u8> },
    /// A database was flushed, or all.
    Flush { db: Option<u8> },
    /// A client has published something.
    Published {
        shard: bool,
        channel: Vec<u8>,
        payload: Vec<u8>,
    },
    /// Any key may have changed: notes of it were lost.
    Everything,
    /// Published messages were lost.
    Missed,
}

impl Message {
    /// As it goes into a lane; `None` for what only a receiver finds out.
    pub(super) fn packed(&self) -> Option<Packed<'_>> {
        let (kind, db, first, second): (_, _, &[u8], &[u8]) = match self {
            Message::Key { db, key } => (Kind::Key, *db, key, &[]),
            Message::Flush { db } => (Kind::Flush, db.unwrap_or(ALL), &[], &[]),
            Message::Published {
                shard,
                channel,
                payload,
            } => {
                let kind = if *shard { Kind::Shard } else { Kind::Channel };
                (kind, 0, channel, payload)
            }
            Message::Everything | Message::Missed => return None,
        };
        Some(Packed {
            kind,
            db,
            first,
            second,
            far: None,
        })
    }

    pub(super) fn from_parts(kind: Kind, db: u8, first: &[u8], second: &[u8]) -> Self {
        let (first, second) = (first.to_vec(), second.to_vec());
        match kind {
            Kind::Key => Message::Key { db, key: first },
            Kind::Flush => Message::Flush {
                db: (db != ALL).then_some(db),
            },
            Kind::Channel | Kind::Shard => Message::Published {
                shard: kind == Kind::Shard,
                channel: first,
                payload: second,
            },
        }
    }
}

/// Hears what other nodes, and this one, tell this node. Called from any thread, outside of all
/// buckets' locks; it may not wait.
pub(crate) trait Listener: Send + Sync {
    fn hear(&self, message: &Message);

    /// Called now and then while the node listens.
    fn idle(&self) {}
}
