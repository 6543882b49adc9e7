//! FlowCC's part of a node: its home agent, its cache agent, and its side of ownership migration.

use super::protocol::{Protocol, Reporter};
use super::{
    Answer, Change, CoherentHost, Copies, Defect, Home, Memory, Note, Payload, Report, rescuing,
};
use crate::call::Executed;
use crate::flowcc::{LocalStatus, Members, Open, Settled, Shards, Storing, copy_record};
use crate::membership::View;
use crate::wire::{
    Contract, Copyset, Flags, GlobalStatus, Header, Kind, MAX_BODY, MIN_BLOCK, NodeId, Record, Tag,
};
use crate::{Data, Dest, Output, Outputs};
use alloc::vec::Vec;
use core::convert::Infallible;
use core::hash::{Hash, Hasher};
use core::ops::RangeInclusive;

/// FlowCC, the `Coherent` contract, with what is compared with it and memory's giver.
#[derive(Clone, Copy, Debug)]
pub enum FlowCc {}

/// Its packets.
pub(super) const KINDS: &[RangeInclusive<Kind>] = &[
    Kind::ReadMiss..=Kind::StoreAck,
    Kind::AcceptLoss..=Kind::AcceptLossAck,
    Kind::Fetch..=Kind::FetchAck,
    Kind::GatherAck..=Kind::GatherAck,
    Kind::Alloc..=Kind::AllocAck,
    Kind::Free..=Kind::FreeAck,
];

/// A role of a node in FlowCC.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// The cache agent.
    Cache,
    /// One of the node's requesters.
    Requester,
    /// The shadow of the switch.
    Shadow,
    /// The home agent, and the shadow for a copy.
    ShadowAndHome,
    /// The home agent.
    Home,
}

/// Who takes a packet of FlowCC that has come to the agents of node `me`.
#[inline]
pub fn role(me: NodeId, header: &Header) -> Role {
    let forwarded = header.kind.is_request() && header.flags.has(Flags::GRANTED);
    match header.kind {
        Kind::WriteBackAck => Role::Requester,
        // The shadow has a copy of every answer to a move, whoever asked for it.
        Kind::AddAck | Kind::RemoveAck if header.requester.node == me => Role::ShadowAndHome,
        Kind::AddAck | Kind::RemoveAck | Kind::HeatReport | Kind::Tags => Role::Shadow,
        _ if forwarded && header.status != GlobalStatus::Unshared => Role::Cache,
        _ => Role::Home,
    }
}

impl<H: CoherentHost> Protocol<H> for FlowCc {
    const NAME: &'static str = "FlowCC";
    const NUMBER: u8 = Contract::Coherent as u8;
    const KINDS: &'static [RangeInclusive<Kind>] = KINDS;
    /// The requester's side of an access is its driver's, and not in the engine.
    type Command = Infallible;
    type Outcome = Infallible;

    #[inline]
    fn packet(host: &mut H, header: &Header) {
        match role(host.me(), header) {
            Role::Cache => cache(host, header),
            Role::Requester => host.requester(header),
            Role::Shadow => shadow(host, header),
            Role::ShadowAndHome => {
                shadow(host, header);
                home(host, header);
            }
            Role::Home if header.kind == Kind::Fetch => fetch(host, header),
            Role::Home if header.kind == Kind::Store => store(host, header),
            Role::Home if header.kind == Kind::Operate => operate(host, header),
            Role::Home => home(host, header),
        }
    }

    fn command(_: &mut H, _: u8, command: Infallible) {
        match command {}
    }

    fn tick(host: &mut H, period_ended: bool) {
        for shard in host.shards().all() {
            let outputs: Vec<Output> = host.home(shard, |home, _| {
                let again: Vec<Output> = home.agent.resend().collect();
                let moves = match period_ended {
                    true => home.agent.end_period(),
                    false => home.agent.start_moves(),
                };
                again.into_iter().chain(moves).collect()
            });
            for output in &outputs {
                host.send(output, Payload::Nothing);
            }
        }
        if !period_ended {
            return;
        }
        let epoch = host.epoch();
        let Some((outputs, report)) = host.migrating(|migrating| migrating.end_period(epoch))
        else {
            return;
        };
        for output in &outputs {
            host.send(output, Payload::Nothing);
        }
        if let Some(Report { output, records }) = report {
            host.send(&output, Payload::Records(&records));
        }
    }

    fn enter(host: &mut H, members: Members) {
        let forgets = host.defect() == Some(Defect::ForgetRescued);
        let moves_on = host.defect() == Some(Defect::MoveOn);
        let shows = host.defect() == Some(Defect::ShowInNext);
        for shard in host.shards().all() {
            host.home(shard, |home, memory| {
                // An entry that begins to move is locked until the switch answers. There may be
                // none, and until all members go on nobody can say that there is.
                if !moves_on {
                    home.agent.set_migration(None);
                }
                if forgets {
                    home.agent.forget_rescued();
                }
                if !shows {
                    memory.hide_all();
                }
                home.agent.freeze(members.epoch);
            });
        }
        if host.defect() != Some(Defect::KeepExecuted) {
            host.copies(Copies::enter);
        }
        // Who keeps the next one is in the view that the host will live by.
        host.migrating(|migrating| migrating.set_shadow(None, members.epoch));
    }

    fn forget(host: &mut H, gone: Copyset) {
        if host.defect() != Some(Defect::KeepDeadCopies) {
            let cached = host.cached().into_iter();
            for (tag, _) in cached.filter(|(tag, _)| tag.home().dies_with(gone)) {
                if host.hold(tag, false).is_some() {
                    host.set(LocalStatus::Invalid);
                    host.note(Note::Dropped(tag));
                }
            }
        }
        host.copies(|copies| copies.forget(gone));
    }

    fn report(host: &mut H) -> Vec<Record> {
        let (defect, cached) = (host.defect(), host.cached());
        let told = |(tag, status): (Tag, LocalStatus)| {
            let writable = status == LocalStatus::Modified;
            let hidden = match defect {
                Some(Defect::HideModified) => writable,
                Some(Defect::HideClean) => !writable,
                Some(Defect::ForgetOwnCopies) => host.is_home_of(tag),
                _ => false,
            };
            (!hidden).then(|| copy_record(tag, writable))
        };
        cached.into_iter().filter_map(told).collect()
    }

    fn hear(host: &mut H, from: Reporter, record: Record) {
        match from {
            Reporter::Node(node) => {
                let shard = host.shards().of(record.tag);
                host.home(shard, |home, _| home.agent.note_copy(node, record));
            }
            // Some of what a switch tells is of its grants and not of a block.
            Reporter::Switch => each_home(host, |home| home.agent.note_registers(record)),
        }
    }

    fn settle(host: &mut H, change: &Change) {
        host.settling(change);
        let trusts = host.defect() == Some(Defect::TrustMoving);
        let switch_lost = change.switch_lost && !trusts;
        let gone = match host.defect() {
            Some(Defect::ForgetGone) => Copyset::EMPTY,
            _ => change.gone,
        };
        let mut settled = Settled::default();
        each_home(host, |home| {
            settled = settled.and(home.agent.settle(gone, switch_lost));
        });
        let lost = settled.lost;
        host.home(Shards::BOOKS, |home, _| home.agent.note_losses(lost));
        host.settled(change, settled);
    }

    fn note_open(host: &mut H, node: NodeId, open: Open, settled: u32) {
        let shard = host.shards().of(open.tag);
        host.home(shard, |home, _| home.agent.note_open(node, open, settled));
    }

    fn to_rescue(host: &mut H, open: &[(NodeId, Open)], read: &[Tag]) -> Vec<(Tag, H::Bytes)> {
        rescuing::found(host, open, read)
    }

    fn rescue(host: &mut H, header: &Header, store: bool, whole: bool) {
        rescuing::came(host, header, store, whole);
    }

    fn rescue_own(host: &mut H, tag: Tag, bytes: &H::Bytes) {
        rescuing::own(host, tag, bytes);
    }

    fn rescued(host: &mut H, tag: Tag) {
        host.copies(|copies| copies.rescued(tag));
        host.home_has(tag);
    }

    fn fingerprint(host: &mut H, into: &mut impl Hasher)
    where
        H::Bytes: Hash,
    {
        each_home(host, |home| home.agent.fingerprint(into));
        host.copies(|copies| copies.fingerprint(into));
    }
}

/// Does something to each shard of a home, one after the other.
fn each_home<H: CoherentHost>(host: &mut H, mut f: impl FnMut(&mut Home)) {
    for shard in host.shards().all() {
        host.home(shard, |home, _| f(home));
    }
}

/// Lives by what a view says of the switch and its shadow: entries may move if there is one.
pub fn follow<H: CoherentHost>(host: &mut H, view: &View) {
    let policy = host.policy().filter(|_| view.switch.is_some());
    for shard in host.shards().own() {
        host.home(shard, |home, _| home.agent.set_migration(policy));
    }
    host.migrating(|migrating| migrating.set_shadow(view.shadow, view.epoch));
}

/// Lets all shards know what the books have given out. Before that nobody may use it.
pub fn spread<H: CoherentHost>(host: &mut H) {
    let shards = host.shards();
    if shards.count() == 1 {
        return;
    }
    let news = host.home(Shards::BOOKS, |home, _| home.agent.news());
    let Some(news) = news else { return };
    for shard in shards.own().skip(1) {
        host.home(shard, |home, _| home.agent.hear(&news));
    }
    host.home(Shards::BOOKS, |home, _| home.agent.heard(&news));
}

fn home<H: CoherentHost>(host: &mut H, header: &Header) {
    let defect = host.defect();
    host.note(Note::AtHome);
    let books = matches!(header.kind, Kind::Alloc | Kind::Free);
    let shard = match books {
        true => Shards::BOOKS,
        false => host.shards().of(header.tag),
    };
    let objects = match header.kind {
        Kind::Free => host.records(),
        _ => Vec::new(),
    };
    let body = (host.body_len(), objects);
    let mut outputs = Outputs::default();
    let served = host.home(shard, |home, memory| {
        home.packet(header, body, memory, defect, &mut outputs)
    });
    // The books share their section with entries, whose packets change nothing that others must
    // know.
    if books {
        spread(host);
    }
    if served.accepted {
        host.note(Note::Accepted(header.tag));
    }
    if served.stored {
        host.note(Note::Stored(header.tag));
    }
    for output in outputs.iter() {
        let payload = match output.data {
            Data::Home => Payload::Home,
            _ => Payload::Nothing,
        };
        host.send(output, payload);
    }
}

/// Blocks that one answer has at most: of the smallest ones. How many it has room for is the host's
/// to say.
const MOST_FETCHED: u64 = (MAX_BODY / MIN_BLOCK) as u64;

/// Bytes of blocks for a requester that keeps no copy of them: each as it is at one moment, and
/// none if home's memory has it not.
fn fetch<H: CoherentHost>(host: &mut H, header: &Header) {
    host.note(Note::AtHome);
    let defect = host.defect();
    let shards = host.shards();
    let first = shards.of(header.tag);
    let block = host.home(first, |home, _| home.agent.block());
    let blocks = MOST_FETCHED.min(header.offset.into());
    let mut gathered = 0;
    for nth in 0..blocks {
        let tag = Tag(header.tag.0.wrapping_add(nth * block));
        let sent = host.home(shards.of(tag), |home, memory| {
            let has = match defect {
                Some(Defect::FetchLocked) => home.agent.has(tag),
                _ => home.agent.has_current(tag),
            };
            has && memory.gather(tag)
        });
        if !sent {
            break;
        }
        gathered += 1;
    }
    let output = host.home(first, |home, _| home.agent.fetched(header, gathered));
    match gathered {
        0 => host.send(&output, Payload::Nothing),
        _ => host.send(&output, Payload::Gathered),
    }
}

/// Blocks from a requester that keeps no copy of them: each is written at one moment, where home's
/// memory is all that there is of it.
fn store<H: CoherentHost>(host: &mut H, header: &Header) {
    host.note(Note::AtHome);
    let defect = host.defect();
    let shards = host.shards();
    let first = shards.of(header.tag);
    let block = host.home(first, |home, _| home.agent.block());
    let len = u64::from(host.body_len());
    // Parts of blocks are nobody's.
    let blocks = match len.is_multiple_of(block) {
        true => len / block,
        false => 0,
    };
    let mut stored = 0;
    while u64::from(stored) < blocks {
        let tag = Tag(header.tag.0.wrapping_add(u64::from(stored) * block));
        let storing = host.home(shards.of(tag), |home, memory| {
            home.store(header, (tag, stored as u16), memory, defect)
        });
        match storing {
            Storing::Write => host.note(Note::StoredInPlace(tag)),
            Storing::Written => {}
            Storing::Refuse => break,
            Storing::Ignore => return,
        }
        stored += 1;
    }
    let output = host.home(first, |home, _| home.agent.stored(header, stored));
    host.send(&output, Payload::Nothing);
}

/// What is to be done to a word of a block, by a requester that keeps no copy of it.
fn operate<H: CoherentHost>(host: &mut H, header: &Header) {
    host.note(Note::AtHome);
    let defect = host.defect();
    let mut outputs = Outputs::default();
    let done = host.home(host.shards().of(header.tag), |home, memory| {
        home.operate(header, memory, defect, &mut outputs)
    });
    if done == Storing::Write {
        host.note(Note::StoredInPlace(header.tag));
    }
    for output in outputs.iter() {
        host.send(output, Payload::Nothing);
    }
}

fn shadow<H: CoherentHost>(host: &mut H, header: &Header) {
    let records = host.records();
    let outputs = host.migrating(|migrating| migrating.packet(header, &records));
    for output in outputs.iter().flatten() {
        host.send(output, Payload::Nothing);
    }
}

/// A request that its owner has granted, for this node's cache.
fn cache<H: CoherentHost>(host: &mut H, header: &Header) {
    let (me, defect) = (host.me(), host.defect());
    let reads = header.kind == Kind::ReadMiss;
    let local = host.hold(header.tag, reads);
    let held = (local, host.executed(header));
    let mut outputs = Outputs::default();
    let Answer {
        reaction,
        executed,
        recalled,
    } = host.copies(|copies| copies.request(me, header, held, defect, &mut outputs));
    host.note(Note::Asked {
        again: executed == Executed::Again,
        old: executed == Executed::Old,
        recalled: recalled.is_some(),
    });
    if reaction.retain {
        let bytes = recalled.clone().unwrap_or_else(|| host.keep());
        host.copies(|copies| copies.retain(header, bytes));
    }
    let invalidates = local.is_some() && reaction.next == LocalStatus::Invalid;
    if invalidates && header.flags.has(Flags::IN_SWITCH) {
        host.migrating(|migrating| migrating.invalidated(header.tag));
    }
    let next = match defect {
        Some(Defect::KeepInvalidated) if invalidates => local.unwrap_or_default(),
        _ => reaction.next,
    };
    // What is read stays where it is: the lock of its entry at the owner keeps writers and
    // evictions away, so the copy need not be held while its bytes travel. What is given away may
    // be overwritten once it is let go.
    if local.is_some() && reads {
        host.set(next);
    }
    for output in outputs.iter() {
        let lies = defect == Some(Defect::SkipWriteBack)
            && output.header.kind == Kind::WriteBack
            && !header.flags.has(Flags::GATHER);
        if lies {
            let ack = header.answer(Kind::WriteBackAck, me);
            let output = Output::new(Dest::Requester(header.requester), ack);
            host.send(&output, Payload::Nothing);
            continue;
        }
        let payload = match (output.data, &recalled) {
            (Data::Cache, Some(kept)) => Payload::Kept(kept),
            (Data::Cache, None) => Payload::Copy,
            _ => Payload::Nothing,
        };
        host.send(output, payload);
    }
    if local.is_some() && !reads {
        host.set(next);
    }
}
