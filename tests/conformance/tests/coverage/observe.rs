//! Which branches a packet takes, told from the registers before it, the packet and the reply.
//!
//! This reads the program's rules a second time, through the functions that the roles share, and it
//! holds what it expects against the reply: an observer that has gone wrong is noticed.

use rackmem_conformance::{Reply, Setup};
use rackmem_proto::flowcc::forward;
use rackmem_proto::flowcc::lock::{self, held_alone};
use rackmem_proto::flowcc::migration::MAX_MOVES;
use rackmem_proto::flowcc::score::{self, Verdict};
use rackmem_proto::flowcc::tables::{self, CHECK, Check, Forward};
use rackmem_proto::switch::{Field, SwitchProgram, numbers, provider, set_of};
use rackmem_proto::wire::{
    Copyset, Flags, GlobalStatus, Header, Kind, Reason, Tag, WireError, decode,
};
use std::cmp::Ordering;

/// The taken branches, by the names in `branches`.
pub fn branches(
    setup: &Setup,
    before: &SwitchProgram,
    packet: &[u8],
    reply: &Reply,
) -> Vec<String> {
    let (header, body) = match decode(packet) {
        Ok(decoded) => decoded,
        Err(error) => return vec![format!("malformed: {}", name_of(error))],
    };
    if !header.kind.in_data_plane() {
        assert_eq!(*reply, Reply::ControlPlane);
        return vec!["to the control plane".into()];
    }
    let dropped = *reply == Reply::Sent(Vec::new());
    let sort = if header.kind.is_request() {
        "request"
    } else {
        header.kind.name()
    };
    let is_move = matches!(header.kind, Kind::AddToSwitch | Kind::RemoveFromSwitch);
    let fences = [
        ("with a body", !body.is_empty()),
        ("another epoch", header.epoch != setup.epoch),
        ("frozen", before.frozen()),
        ("a group's home", !header.tag.home().is_own()),
        ("unknown node", header.requester.node >= setup.nodes),
        (
            "unknown requester",
            !is_move && header.requester.slot >= setup.requesters,
        ),
        (
            "granted already",
            header.kind.is_request() && header.flags.has(Flags::GRANTED),
        ),
    ];
    if let Some((fence, _)) = fences.iter().find(|(_, closed)| *closed) {
        assert!(dropped, "{sort}: {fence}");
        return vec![format!("{sort}: {fence}")];
    }
    let seen = Observed {
        setup,
        before,
        header,
        reply,
    };
    match header.kind {
        Kind::Unlock => seen.unlock(),
        Kind::AddToSwitch => seen.add(),
        Kind::RemoveFromSwitch => seen.remove(),
        _ => seen.request(),
    }
}

fn name_of(error: WireError) -> &'static str {
    match error {
        WireError::Short => "short",
        WireError::Long => "long",
        WireError::Magic => "magic",
        WireError::Version(_) => "version",
        WireError::Kind(_) => "kind",
        WireError::Field(name) => name,
    }
}

struct Observed<'a> {
    setup: &'a Setup,
    before: &'a SwitchProgram,
    header: Header,
    reply: &'a Reply,
}

impl Observed<'_> {
    fn register(&self, field: Field, way: u8, at: usize) -> u64 {
        let registers = self.before.registers();
        let here = |r: &&rackmem_proto::switch::Register| {
            (r.field, r.way, r.at as usize) == (field, way, at)
        };
        registers.iter().find(here).map_or(0, |r| r.value)
    }

    fn set(&self) -> usize {
        set_of(self.header.tag, self.setup.sets as usize)
    }

    /// The way that has a tag.
    fn way_of(&self, tag: Tag) -> Option<u8> {
        let at = self.set();
        (0..self.setup.ways).find(|&way| self.register(Field::Tag, way, at) == tag.0 | 1)
    }

    fn score(&self) -> u64 {
        let id = self.header.requester;
        let row = usize::from(id.node * self.setup.requesters + id.slot);
        self.register(Field::Score, 0, row * 2 + self.header.seq.parity())
    }

    fn reason(&self) -> Option<Reason> {
        let Reply::Sent(sent) = self.reply else {
            return None;
        };
        let (header, _) = decode(&sent.first()?.bytes).ok()?;
        Some(header.reason)
    }

    fn request(&self) -> Vec<String> {
        let header = &self.header;
        let shared = header.kind.locks_shared();
        let mut taken = Vec::new();
        let mut score = self.score();
        let order = numbers::order(header.seq, (score >> 32) as u32);
        let Some((lock, status, copyset)) = self.before.inspect(header.tag) else {
            let verdict = score::pass_on(&mut score, header.seq);
            taken.push(format!("not here, {}", not_here(order, verdict)));
            return taken;
        };
        let way = self.way_of(header.tag).expect("it was found");
        taken.push(format!("request: in way {way}"));
        let acquired = lock::acquire(&mut lock.clone(), shared);
        taken.push(format!(
            "lock {} of {}: {}",
            if shared { "shared" } else { "alone" },
            word(lock),
            if acquired { "taken" } else { "not taken" }
        ));
        taken.push(self.checked(status, copyset));
        let valid = tables::check(header.kind, header.requester.node, status, copyset);
        let now = forward::choose(header, status, copyset, self.setup.seed);
        taken.push(self.place(copyset));
        let verdict = score::enter(&mut score, header.seq, acquired, valid, now);
        taken.push(entered(order, verdict, acquired));
        if let Verdict::Granted { route, .. } = verdict {
            if route != now {
                taken.push("forward: as the first copy, which the entry is no longer".into());
            }
            taken.extend(self.forwarded(route, copyset));
        }
        taken
    }

    fn checked(&self, status: GlobalStatus, copyset: Copyset) -> String {
        let kind = self.header.kind;
        let holds = copyset.contains(self.header.requester.node);
        let row = CHECK.iter().find(|row| row.0 == kind).expect("a request");
        let outcome = match row.1 {
            Check::Always => "always",
            Check::Absent if holds => "holds",
            Check::Absent => "absent",
            Check::Holds(_) if !holds => "absent",
            Check::Holds(wanted) if status == wanted => "holds",
            Check::Holds(_) => "another status",
        };
        format!("check {}: {outcome}", kind.name())
    }

    /// Whether the provider stands at or after its place.
    fn place(&self, copyset: Copyset) -> String {
        let chosen = provider(&self.header, copyset, self.setup.seed);
        // The place itself: the provider, were everybody in the copyset.
        let place = provider(&self.header, Copyset(u32::MAX), self.setup.seed);
        match (chosen, place) {
            (None, _) => "provider: nobody".into(),
            (Some(chosen), Some(place)) if chosen >= place => "provider: after the place".into(),
            _ => "provider: the lowest".into(),
        }
    }

    fn forwarded(&self, route: score::Route, copyset: Copyset) -> Vec<String> {
        let header = &self.header;
        let Reply::Sent(sent) = self.reply else {
            panic!("a request is not for the control plane")
        };
        let Some(to) = tables::forward(header.kind, route.status) else {
            assert!(sent.is_empty());
            return vec!["forward: no row".into()];
        };
        let mut taken = vec![format!(
            "forward {} {:?}: {to:?}",
            header.kind.name(),
            route.status
        )];
        let others = copyset.without(header.requester.node);
        let (more, copies) = match to {
            Forward::Provider if route.provider.is_none() => {
                (Some("forward: the provider is nobody"), 0)
            }
            Forward::AllWithProvider if copyset.is_empty() => (Some("forward: all are nobody"), 0),
            Forward::AllWithProvider => (None, copyset.len()),
            Forward::Others if others.is_empty() => (Some("forward: no others"), 1),
            Forward::Others => (Some("forward: others"), others.len()),
            _ => (None, 1),
        };
        assert_eq!(sent.len(), copies as usize, "{to:?}");
        taken.extend(more.map(String::from));
        taken
    }

    fn unlock(&self) -> Vec<String> {
        let header = &self.header;
        if !header.flags.has(Flags::IN_SWITCH) {
            return vec!["unlock: for another owner".into()];
        }
        let mut score = self.score();
        let same = (score >> 32) as u32 == header.seq.low();
        if !score::leave(&mut score, header.seq) {
            let why = if same {
                "unlock: not granted, or over"
            } else {
                "unlock: another number"
            };
            return vec![why.into()];
        }
        let mut taken = vec!["unlock: authorized".into()];
        let Some((lock, _, _)) = self.before.inspect(header.tag) else {
            taken.push("release: not here".into());
            return taken;
        };
        let way = self.way_of(header.tag).expect("it was found");
        taken.push(format!("unlock: in way {way}"));
        let shared = header.flags.has(Flags::READER);
        let released = lock::release(&mut lock.clone(), shared);
        let what = match (shared, released) {
            (true, true) => "release shared: a reader",
            (true, false) => "release shared: no reader",
            (false, true) => "release alone: a writer",
            (false, false) => "release alone: no writer",
        };
        taken.push(what.into());
        let install = match (header.flags.has(Flags::KEEP), shared) {
            (true, _) => "install: keep",
            (false, true) => "install: union",
            (false, false) => "install: overwrite",
        };
        taken.push(install.into());
        taken
    }

    /// What a move's slot says of its number.
    fn claim(&self) -> &'static str {
        let id = self.header.requester;
        let at = usize::from(id.node) * MAX_MOVES + usize::from(id.slot);
        let slot = self.register(Field::Move, 0, at);
        match numbers::order(self.header.seq, (slot >> 32) as u32) {
            Ordering::Greater => "first",
            Ordering::Less => "older",
            Ordering::Equal => match slot & 0xffff_ffff {
                0 | 1 => "under way",
                2 => "done",
                _ => "refused",
            },
        }
    }

    fn shadow(&self) -> Option<String> {
        let Reply::Sent(sent) = self.reply else {
            panic!("a move is not for the control plane")
        };
        let asked = self.header.requester.node;
        let (how, copies) = match self.setup.shadow {
            _ if sent.is_empty() => return None,
            None => ("answer: no shadow", 1),
            Some(shadow) if shadow == asked => ("answer: the shadow asked", 1),
            Some(_) => ("answer: the shadow is told as well", 2),
        };
        assert_eq!(sent.len(), copies, "{how}");
        Some(how.into())
    }

    fn add(&self) -> Vec<String> {
        let at = self.set();
        let claim = self.claim();
        let mut taken = vec![format!("add: {claim}")];
        taken.extend(self.shadow());
        if claim == "first" {
            let here = self.way_of(self.header.tag).is_some();
            let free = (0..self.setup.ways).find(|&way| self.register(Field::Tag, way, at) == 0);
            let (how, reason) = match (here, free) {
                (true, _) => ("add: here already".into(), Reason::Full),
                (false, None) => ("add: no way is free".into(), Reason::Full),
                (false, Some(way)) => (format!("add: into way {way}"), Reason::None),
            };
            assert_eq!(self.reason(), Some(reason), "{how}");
            taken.push(how);
        }
        taken
    }

    fn remove(&self) -> Vec<String> {
        let frees = self.header.flags.has(Flags::GRANTED);
        let way = self.way_of(self.header.tag);
        let entry = self.before.inspect(self.header.tag);
        let claim = self.claim();
        let mut taken: Vec<String> = self.shadow().into_iter().collect();
        let what = match (claim, frees) {
            ("first", true) => {
                taken.push(match way {
                    Some(way) => format!("free: way {way}"),
                    None => "free: not here".into(),
                });
                "second step"
            }
            ("first", false) => {
                let (how, reason) = match entry {
                    None => ("retire: not here", Reason::Moved),
                    Some((0, ..)) => ("retire: done", Reason::None),
                    Some(_) => ("retire: locked", Reason::Locked),
                };
                assert_eq!(self.reason(), Some(reason), "{how}");
                taken.push(how.into());
                "first step"
            }
            ("done", true) => "second step done",
            ("done", false) if entry.is_some() => "first step done, here",
            ("done", false) => "first step done, gone",
            (other, _) => other,
        };
        taken.push(format!("remove: {what}"));
        taken
    }
}

fn word(lock: u16) -> &'static str {
    match lock {
        0 => "free",
        held if held_alone(held) => "writer",
        0x7fff.. => "full",
        _ if !lock::acquire(&mut lock.clone(), true) => "full",
        _ => "readers",
    }
}

fn entered(order: Ordering, verdict: Verdict, acquired: bool) -> String {
    let undo = if verdict.undo() { ", undo" } else { "" };
    match (order, verdict) {
        (Ordering::Greater, Verdict::Granted { .. }) => "newer: granted".into(),
        (Ordering::Greater, _) if acquired => "newer: refused, invalid".into(),
        (Ordering::Greater, _) => "newer: refused, locked".into(),
        (Ordering::Equal, Verdict::Granted { .. }) => format!("same: granted{undo}"),
        (Ordering::Equal, Verdict::Elsewhere { .. }) => format!("same: elsewhere{undo}"),
        (Ordering::Equal, _) => format!("same: refused{undo}"),
        (Ordering::Less, _) => format!("older: stale{undo}"),
    }
}

fn not_here(order: Ordering, verdict: Verdict) -> &'static str {
    match (order, verdict) {
        (Ordering::Greater, _) => "newer: elsewhere",
        (Ordering::Equal, Verdict::Elsewhere { .. }) => "same: elsewhere",
        (Ordering::Equal, Verdict::Stale { .. }) => "same: granted, so stale",
        (Ordering::Equal, _) => "same: refused",
        (Ordering::Less, _) => "older: stale",
    }
}
