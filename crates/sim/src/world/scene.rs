//! What a run looks like to somebody who follows it: one scene an occurrence,
//! with its virtual time.

use super::block;
use rackmem_proto::Dest;
use rackmem_proto::wire::{Contract, Header, Kind, NodeId, PacketLine, Tag};
use std::fmt::{self, Display};

/// What became of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// It was sent, and will arrive.
    Sent,
    /// It was sent, and never arrives.
    Lost,
    /// It was sent, and arrives twice.
    Doubled,
    /// It has arrived.
    Arrived,
}

/// A packet and what became of it.
#[derive(Clone, Copy, Debug)]
pub struct Passing<'a> {
    /// What became of it.
    pub fate: Fate,
    /// The member that sent it: a node, or `rackmem_proto::switch::SWITCH`.
    pub from: NodeId,
    /// Whether one of the node's requesters sent it, and not its agents.
    pub from_requester: bool,
    /// To whom.
    pub to: Dest,
    /// The packet.
    pub header: &'a Header,
    /// Its body: a word for each KiB of a block, or records of two words.
    pub body: &'a [u64],
}

/// Something that happened.
#[derive(Clone, Copy, Debug)]
pub enum Sight<'a> {
    /// To a packet.
    Packet(Passing<'a>),
    /// In a node's cache or memory, to a block.
    Local(NodeId, Tag, &'static str),
    /// To an operation of a thread, about a block if that is known.
    Operation(Option<Tag>, &'a str),
    /// To the rack: failures, views, steps of a rebuild.
    Rack(&'a str),
}

/// Something that happened, and when. Its text is one line.
#[derive(Clone, Copy, Debug)]
pub struct Scene<'a> {
    /// Virtual time in nanoseconds.
    pub at: u64,
    /// What.
    pub what: Sight<'a>,
    homes: u16,
}

/// Somebody who follows a run. Called in the order of virtual time.
pub type Watcher = Box<dyn FnMut(&Scene<'_>)>;

impl<'a> Scene<'a> {
    pub(super) fn new(at: u64, what: Sight<'a>, homes: u16) -> Self {
        Scene { at, what, homes }
    }

    /// The block it is about, if it is about one.
    pub fn tag(&self) -> Option<Tag> {
        match self.what {
            Sight::Packet(passing) => block_of(passing.header),
            Sight::Local(_, tag, _) => Some(tag),
            Sight::Operation(tag, _) => tag,
            Sight::Rack(_) => None,
        }
    }

    /// The number of that block: the same in every incarnation of its home.
    pub fn block(&self) -> Option<u32> {
        let tag = self.tag().filter(|tag| !tag.is_under(Contract::Locked))?;
        Some(block::number(tag, self.homes))
    }
}

/// The block that a packet is about.
pub fn block_of(header: &Header) -> Option<Tag> {
    let list = matches!(
        header.kind,
        Kind::Rebuild | Kind::RebuildAck | Kind::HeatReport | Kind::ReadTags | Kind::Tags
    );
    (!list).then_some(header.tag)
}

impl Display for Scene<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:9.2}  ", self.at as f64 / 1000.0)?;
        let number = |tag: Tag| block::number(tag, self.homes);
        let named = |tag: Tag| match tag.is_under(Contract::Locked) {
            true => format!("lock {}", number(tag)),
            false => format!("block {}", number(tag)),
        };
        match self.what {
            Sight::Local(node, tag, action) => {
                write!(f, "node {node} {}: {action}", named(tag))
            }
            Sight::Operation(Some(tag), text) => write!(f, "{text}, {}", named(tag)),
            Sight::Operation(None, text) => write!(f, "{text}"),
            Sight::Rack(text) => write!(f, "* {text}"),
            Sight::Packet(passing) => {
                let block: &dyn Display = match block_of(passing.header) {
                    Some(tag) if tag.is_under(Contract::Locked) => {
                        &format!("{} (a lock)", number(tag))
                    }
                    Some(tag) => &number(tag),
                    None => &"-",
                };
                let line = PacketLine {
                    to: passing.to,
                    header: passing.header,
                    block,
                };
                let fate = format!("{:?}", passing.fate);
                write!(f, "{fate:<8}{line}")
            }
        }
    }
}
