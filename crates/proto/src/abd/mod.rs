//! Memory that survives its machines: ABD, registers of lines that a majority of a group keeps
//! (CNVMM).
//!
//! A *group* has 1, 3, 5 or 7 members, each with a copy of each of its lines. A line is a register:
//! it is read and written whole, and every operation takes effect at one instant. While a majority
//! of the copies answers, operations end; nobody is elected, and no death is waited for.
//! `docs/protocols/abd.md` tells the protocol and what the paper leaves open.
//!
//! | question | answered in |
//! |---|---|
//! | what orders writes? | [`Stamp`] |
//! | what does a member do with a packet? | [`Replica`], [`Rows`] |
//! | which rounds does a read or write take, and what follows an answer? | [`Operation`] |
//! | who counts, and what follows who in a group? | [`Config`], [`Quorum`] |
//! | how does a new member get what the others have? | [`Fill`] |
//! | what does a durable member write down, and what does it remember? | [`journal`] |
//! | where are the bytes, and how do they travel? | [`Lines`], [`Section`] |
//! | what may a program in the kernel of a member's host answer? | [`mirror`] |
//! | what does a switch count? | [`crate::switch::QuorumProgram`] |
//!
//! [`Abd`] is all of it at one node. Its packets are fenced by the number of the group's config and
//! by no epoch: a death elsewhere neither stops nor delays them.
//! It moves no bytes ([`Effects`]): those of lines are beside it, in [`ReplicatedMemory`].

mod config;
mod effects;
mod fill;
pub mod journal;
mod lines;
pub mod mirror;
mod node;
mod operation;
mod quorum;
mod replica;
mod rows;
mod stamp;

pub use config::{COPIES, Change, Config, MEMBERS, Member, Refused, Role};
pub use effects::{Body, Defect, Effects, Staging};
pub use fill::{Fill, IN_FLIGHT};
pub use lines::{Effect, Lines, ReplicatedMemory, Section};
pub use node::Abd;
pub use operation::{Operation, Phase};
pub use quorum::Quorum;
pub use replica::{FILLING, LISTED, Replica, config_of, own};
pub use rows::{Progress, Row, Rows};
pub use stamp::{Stamp, Writer};

use crate::wire::{Contract, Tag};
use core::fmt;

/// Groups of a rack: a line's address names its group where other contracts have the home.
pub const GROUPS: usize = 32;
/// The shortest line, in bytes.
pub const MIN_LINE: u32 = 64;
/// The longest.
pub const MAX_LINE: u32 = 64 * 1024;

/// Bytes of a line that a switch can hold between the rounds of an operation.
pub const HELD_LINE: usize = 64;

/// The lines of a group.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Layout {
    /// Bytes of a line.
    pub line: u32,
    /// Bytes of all of them.
    pub bytes: u64,
}

impl Layout {
    /// None: lines are powers of two from [`MIN_LINE`] to [`MAX_LINE`], and there are whole ones.
    pub fn new(line: u32, bytes: u64) -> Option<Self> {
        let fits = line.is_power_of_two() && (MIN_LINE..=MAX_LINE).contains(&line);
        let whole = fits && bytes.is_multiple_of(line.into()) && bytes <= Tag::SPACE;
        whole.then_some(Layout { line, bytes })
    }

    /// Whether an address is a line of this group.
    pub fn has(&self, group: u16, tag: Tag) -> bool {
        tag.home().0 == group
            && tag.is_under(Contract::Replicated)
            && tag.offset() < self.bytes
            && tag.offset().is_multiple_of(self.line.into())
    }
}

/// What survives beside a minority of members.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Durability {
    /// Nothing: copies are in the memory of their processes.
    #[default]
    Memory,
    /// What was acknowledged survives the end of all processes, but no restart of a machine: it is
    /// in the machine's page cache.
    File,
    /// What was acknowledged survives power failures of all machines: it is synced to a medium.
    Sync,
    /// Likewise, and the medium is memory: it is written by stores, where the file system has its
    /// files there (`mount -o dax`).
    Dax,
}

impl Durability {
    /// All of them, with their names.
    pub const ALL: [(Durability, &'static str); 4] = [
        (Durability::Memory, "memory"),
        (Durability::File, "file"),
        (Durability::Sync, "sync"),
        (Durability::Dax, "dax"),
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }

    /// The one of this name.
    pub fn named(name: &str) -> Option<Self> {
        let row = Self::ALL.iter().find(|row| row.1 == name);
        row.map(|row| row.0)
    }
}

impl fmt::Display for Durability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The address of a group's first line.
pub const fn first_line(group: u16) -> Tag {
    Tag((group as u64) << 48).under(Contract::Replicated)
}

/// What a thread asks for. A value that is written is the host's, who has it until the outcome.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Command {
    /// The content of a line.
    Read(Tag),
    /// A new one.
    Write(Tag),
    /// The content, which is written again in the epoch of this node: what an earlier home has left
    /// at a minority is below it, and never comes up again.
    Take(Tag),
}

impl Command {
    /// The line that it is about.
    pub const fn line(self) -> Tag {
        match self {
            Command::Read(line) | Command::Write(line) | Command::Take(line) => line,
        }
    }
}

/// What came of it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Outcome {
    /// The slot has the line's content.
    Read {
        /// Its stamp.
        stamp: Stamp,
        /// Round trips that it took.
        rounds: u8,
    },
    /// A majority has it.
    Written {
        /// Its stamp.
        stamp: Stamp,
        /// Round trips that it took.
        rounds: u8,
    },
    /// A write of one round was under way when the config changed, and its fate cannot be known: it
    /// has taken effect, or may later, or never.
    Interrupted,
    /// It has not begun.
    Refused(Why),
}

/// Why an operation was refused.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Why {
    /// This node knows of no group that has this line.
    NoLine,
    /// The region was removed while it was under way: a write may have taken effect before.
    Removed,
    /// Another operation is under way in the slot, or there is no such slot.
    Slot,
    /// The node cannot make stamps any more: it has started too often,
    /// or the line's rounds are used up.
    Stamps,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_powers_of_two_and_of_one_group() {
        assert_eq!(Layout::new(32, 1 << 20), None);
        assert_eq!(Layout::new(96, 96), None);
        assert_eq!(Layout::new(MAX_LINE * 2, 1 << 20), None);
        assert_eq!(Layout::new(64, 100), None);
        let layout = Layout::new(64, 128).unwrap();
        let line = Tag(first_line(3).0 + 64);
        assert!(layout.has(3, line) && !layout.has(2, line));
        assert!(!layout.has(3, Tag(line.0 + 1)) && !layout.has(3, Tag(line.0 + 64)));
        assert!(!layout.has(3, line.under(Contract::Coherent)));
    }
}
