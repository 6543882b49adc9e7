//! The words that scenarios are written in.

use crate::{Case, Implementation, Reference, Setup, Step};
use rackmem_proto::gcp::with_version;
use rackmem_proto::switch::{Register, set_of};
use rackmem_proto::wire::{
    Copyset, Flags, GlobalStatus, Header, Kind, NodeId, RequesterId, Seq, Tag, encode,
};

/// A case without its outputs.
pub struct Scenario {
    name: String,
    about: String,
    setup: Setup,
    prefix: Option<Vec<Vec<u8>>>,
    loaded: Vec<Register>,
    frozen: bool,
    packets: Vec<Vec<u8>>,
    owned: u16,
}

impl Scenario {
    pub fn new(name: impl Into<String>, about: impl Into<String>) -> Self {
        Scenario {
            name: name.into(),
            about: about.into(),
            setup: Setup::default(),
            prefix: Some(Vec::new()),
            loaded: Vec::new(),
            frozen: false,
            packets: Vec::new(),
            owned: 0,
        }
    }

    /// The switch owns the entry: its home has moved it there.
    pub fn owns(mut self, tag: Tag, status: GlobalStatus, copyset: &[NodeId]) -> Self {
        // From the last slot down, so that moves of the scenario itself may use the first ones.
        self.owned += 1;
        let slot = 64 - self.owned;
        self.first(add(tag, slot, 1, status, copyset))
    }

    /// A packet that came before what the case is about.
    pub fn first(mut self, header: Header) -> Self {
        let packets = self.prefix.get_or_insert_default();
        packets.push(encode(&header, 0).to_vec());
        self
    }

    /// Registers that no packets bring about, written over what packets have brought about.
    pub fn loaded(mut self, registers: &[Register]) -> Self {
        self.loaded.extend(registers);
        self
    }

    pub fn packet(self, header: Header) -> Self {
        self.bytes(encode(&header, 0).to_vec())
    }

    pub fn bytes(mut self, bytes: Vec<u8>) -> Self {
        self.packets.push(bytes);
        self
    }

    pub fn setup(mut self, change: impl FnOnce(&mut Setup)) -> Self {
        change(&mut self.setup);
        self
    }

    pub fn frozen(mut self) -> Self {
        self.frozen = true;
        self
    }

    /// Lets the Rust program fill in the rest.
    pub fn case(self) -> Case {
        let mut rust = Reference::new(&self.setup);
        let play = |rust: &mut Reference, packets: Vec<Vec<u8>>| -> Vec<Step> {
            let step = |packet: Vec<u8>| Step {
                reply: rust.take(&packet),
                packet,
            };
            packets.into_iter().map(step).collect()
        };
        let mut prefix = self.prefix.map(|packets| play(&mut rust, packets));
        if !self.loaded.is_empty() {
            prefix = None;
            let loaded = rust.load(&self.loaded);
            debug_assert_eq!(loaded, Ok(()), "{}", self.name);
        }
        let before = rust.registers();
        if self.frozen {
            rust.program_mut().freeze();
        }
        let steps = play(&mut rust, self.packets);
        Case {
            name: self.name,
            about: self.about,
            setup: self.setup,
            prefix,
            before,
            frozen: self.frozen,
            steps,
            after: rust.registers(),
        }
    }
}

pub fn who(node: NodeId, slot: u16) -> RequesterId {
    RequesterId { node, slot }
}

pub fn set(nodes: &[NodeId]) -> Copyset {
    nodes
        .iter()
        .fold(Copyset::EMPTY, |set, &node| set.with(node))
}

/// Block `nth` of a home, of those that fall into a set of the small switch.
pub fn block(home: NodeId, wanted: usize, nth: usize) -> Tag {
    let sets = Setup::default().sets as usize;
    let tags = (0u64..).map(|n| Tag(u64::from(home) << 48 | n << 12));
    let mut here = tags.filter(|&tag| set_of(tag, sets) == wanted);
    here.nth(nth).unwrap_or_default()
}

/// A block of home 1, for scenarios in which it does not matter which.
pub fn any() -> Tag {
    block(1, 2, 0)
}

fn header(kind: Kind, requester: RequesterId, seq: u64, tag: Tag) -> Header {
    let epoch = Setup::default().epoch;
    Header {
        incarnation: 1,
        reply_port: 40_000 + requester.node * 64 + requester.slot,
        ..Header::request(kind, epoch, tag, requester, Seq(seq))
    }
}

/// A request.
pub fn ask(kind: Kind, requester: RequesterId, seq: u64, tag: Tag) -> Header {
    header(kind, requester, seq, tag)
}

/// The end of an event of a writer, with the metadata to install.
pub fn unlock(
    requester: RequesterId,
    seq: u64,
    tag: Tag,
    status: GlobalStatus,
    nodes: &[NodeId],
) -> Header {
    Header {
        status,
        copyset: set(nodes),
        flags: Flags::IN_SWITCH,
        ..header(Kind::Unlock, requester, seq, tag)
    }
}

/// The same packet with these flags, too.
pub fn with(header: Header, flags: Flags) -> Header {
    let flags = header.flags.and(flags);
    Header { flags, ..header }
}

/// ADD-TO-SWITCH from the tag's home.
pub fn add(tag: Tag, slot: u16, seq: u64, status: GlobalStatus, nodes: &[NodeId]) -> Header {
    Header {
        status,
        copyset: set(nodes),
        offset: 9,
        ..header(Kind::AddToSwitch, who(tag.home().0, slot), seq, tag)
    }
}

/// The first step of REMOVE-FROM-SWITCH.
pub fn retire(tag: Tag, slot: u16, seq: u64) -> Header {
    header(Kind::RemoveFromSwitch, who(tag.home().0, slot), seq, tag)
}

/// The second step.
pub fn free(tag: Tag, slot: u16, seq: u64) -> Header {
    with(retire(tag, slot, seq), Flags::GRANTED)
}

/// Lock `nth` of a home, of those that fall into a set of the small switch's directory of locks.
pub fn lock(home: NodeId, wanted: usize, nth: usize) -> Tag {
    let sets = Setup::default().lock_sets as usize;
    let tags = (0x100u64..).map(|n| Tag(u64::from(home) << 48 | n << 4));
    let mut here = tags.filter(|&tag| set_of(tag, sets) == wanted);
    here.nth(nth).unwrap_or_default()
}

/// A version of this epoch.
pub fn count(number: u64) -> u64 {
    u64::from(Setup::default().epoch) << 40 | number
}

fn of_lock(kind: Kind, sender: NodeId, about: NodeId, tag: Tag, version: u64) -> Header {
    let header = Header {
        sender,
        ..header(kind, who(about, 0), 0, tag)
    };
    with_version(header, version)
}

/// A node asks for a lock.
pub fn acquire(node: NodeId, status: GlobalStatus, tag: Tag) -> Header {
    Header {
        status,
        ..of_lock(Kind::Acquire, node, node, tag, 0)
    }
}

/// A holder passes the queue on to `to`, and the lock to it or to readers.
pub fn release(
    (from, to): (NodeId, NodeId),
    status: GlobalStatus,
    readers: &[NodeId],
    tag: Tag,
    version: u64,
) -> Header {
    Header {
        status,
        copyset: set(readers),
        ..of_lock(Kind::Release, from, to, tag, version)
    }
}

/// A home asks the switch to serve a lock.
pub fn place(
    tag: Tag,
    (holder, keeper): (NodeId, NodeId),
    status: GlobalStatus,
    sharers: &[NodeId],
    version: u64,
) -> Header {
    Header {
        status,
        copyset: set(sharers),
        offset: keeper.into(),
        ..of_lock(Kind::Place, tag.home().0, holder, tag, version)
    }
}
