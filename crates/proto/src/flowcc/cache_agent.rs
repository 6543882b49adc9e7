//! The cache agent: invalidates copies and provides data (§5.1.1 "Invalidation and Data Transfer").
//!
//! The block's local status lives in the host's concurrent cache,
//! so the agent is a transition function: the host holds off local writers, calls [`react`], sends
//! the outputs with the block's bytes, and only then lets the new status take effect.
//!
//! | request | local | next | answer |
//! |---|---|---|---|
//! | READ-MISS, entry `Shared` | Shared | Shared | data to the requester |
//! | READ-MISS, entry `Modified` | Modified, Shared | Shared | data to the requester *and* home |
//! | WRITE-MISS | Shared, Modified | Invalid | ACK, with data if provider |
//! | WRITE-SHARED | Shared | Invalid | ACK |
//!
//! The paper is silent on how a block gets from `Modified` to `Shared`:
//! the provider sends the dirty data home as well, and the requester ends its event only when home
//! has it, so that every sharer may drop its copy clean (hard place FlowCC 3). It decides by the
//! entry's status in the packet, not by its own, because of two concurrent read misses under
//! `Modified` the second finds the copy already downgraded.

use crate::call::Executed;
use crate::wire::{Flags, GlobalStatus, Header, Kind, NodeId, Reason};
use crate::{Data, Dest, Output, Outputs};

/// What a node's cache may do with a block.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[repr(u8)]
pub enum LocalStatus {
    /// Nothing: no copy.
    #[default]
    Invalid = 0,
    /// Read.
    Shared = 1,
    /// Read and write; the copy is the only one and home's memory is stale.
    Modified = 2,
}

/// What to do about a forwarded request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reaction {
    /// The block's local status once the outputs are sent.
    pub next: LocalStatus,
    /// Keep a copy of the bytes for a retransmission: they leave the cache and may not have
    /// arrived.
    pub retain: bool,
}

/// Answers a forwarded request; what to send goes to `outputs`. `has_data`: the block's bytes are
/// at hand, in the cache or retained.
pub fn react(
    me: NodeId,
    header: &Header,
    local: LocalStatus,
    executed: Executed,
    has_data: bool,
    outputs: &mut Outputs,
) -> Reaction {
    if executed == Executed::Old
        || !matches!(
            header.kind,
            Kind::ReadMiss | Kind::WriteMiss | Kind::WriteShared
        )
    {
        return Reaction {
            next: local,
            retain: false,
        };
    }
    let reads = header.kind == Kind::ReadMiss;
    let next = match (executed, reads, local) {
        (Executed::Again, ..) => local,
        (_, true, LocalStatus::Modified) => LocalStatus::Shared,
        (_, true, same) => same,
        (_, false, _) => LocalStatus::Invalid,
    };
    let provides = header.flags.has(Flags::PROVIDER);
    if header.flags.has(Flags::GATHER) {
        outputs.push(to_home(me, header, provides && has_data));
    } else {
        answer(me, header, provides, has_data, outputs);
    }
    Reaction {
        next,
        retain: !reads && provides && has_data && executed == Executed::New,
    }
}

fn answer(me: NodeId, header: &Header, provides: bool, has_data: bool, outputs: &mut Outputs) {
    let to = Dest::Requester(header.requester);
    let mut ack = header.answer(Kind::Ack, me);
    if !provides {
        return outputs.push(Output::new(to, ack));
    }
    if !has_data {
        // The entry says this node has the block and it has not: say so rather than let the
        // requester wait.
        ack.reason = Reason::Refused;
        return outputs.push(Output::new(to, ack));
    }
    ack.flags = ack.flags.and(Flags::DATA);
    outputs.push(Output::with(to, ack, Data::Cache));
    if header.kind == Kind::ReadMiss && header.status == GlobalStatus::Modified {
        // Second: the application waits for the data, only its unlock waits for home.
        let mut home = header.answer(Kind::WriteBack, me);
        home.flags = home.flags.and(Flags::DATA).but(Flags::GRANTED);
        outputs.push(Output::with(
            Dest::Home(header.tag.home()),
            home,
            Data::Cache,
        ));
    }
}

/// The directory baseline: everything goes back through the gathering home agent.
fn to_home(me: NodeId, header: &Header, with_data: bool) -> Output {
    let to = Dest::Home(header.tag.home());
    let mut home = header.answer(
        if with_data {
            Kind::WriteBack
        } else {
            Kind::GatherAck
        },
        me,
    );
    home.flags = home.flags.but(Flags::GRANTED);
    if with_data {
        home.flags = home.flags.and(Flags::DATA);
        return Output::with(to, home, Data::Cache);
    }
    Output::new(to, home)
}
