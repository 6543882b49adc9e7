//! Which branches a packet about a lock takes.

use rackmem_conformance::{Reference, Reply};
use rackmem_proto::gcp::{Mode, Verdict, version};
use rackmem_proto::switch::Field;
use rackmem_proto::wire::{GlobalStatus, Header, Kind, MAX_NODES, Reason, decode};

/// Those that there are.
pub const BRANCHES: &[&str] = &[
    "locks: with a body",
    "locks: another epoch",
    "locks: a group's home",
    "locks: a releaser that is no node",
    "locks: a keeper that is no node",
    "locks: not here",
    "locks: in way 0",
    "locks: in way 1",
    "Acquire: for nothing",
    "Acquire: a reader joins",
    "Acquire: readers make way",
    "Acquire: told again",
    "Acquire: to the holder",
    "Release: in mode S",
    "Release: not the holder",
    "Release: of an earlier tenure",
    "Release: refused",
    "Release: to readers",
    "Release: to a writer",
    "Place: into way 0",
    "Place: into way 1",
    "Place: here already",
    "Place: full",
    "Place: shared",
    "Place: modified",
    "versions: carried",
];

/// The taken branches; nothing of a packet that is about no lock.
pub fn branches(
    before: &Reference,
    after: &Reference,
    packet: &[u8],
    reply: &Reply,
) -> Option<Vec<String>> {
    let (header, body) = decode(packet).ok()?;
    if !header.kind.asks_lock_switch() {
        return None;
    }
    let dropped = *reply == Reply::Sent(Vec::new());
    let no_node = |number: u32| number as usize >= MAX_NODES;
    let fences = [
        ("with a body", !body.is_empty()),
        ("another epoch", header.epoch != before.locks().epoch()),
        ("a group's home", !header.tag.home().is_own()),
        (
            "a releaser that is no node",
            header.kind == Kind::Release && no_node(header.sender.into()),
        ),
        (
            "a keeper that is no node",
            header.kind == Kind::Place && no_node(header.offset),
        ),
    ];
    if let Some((fence, _)) = fences.iter().find(|(_, closed)| *closed) {
        assert!(dropped, "{fence}");
        return Some(vec![format!("locks: {fence}")]);
    }
    let way = |of: &Reference| {
        let tagged = |r: &rackmem_proto::switch::Register| {
            r.field == Field::LockTag && r.value == header.tag.0 | 1
        };
        of.locks()
            .registers()
            .into_iter()
            .find(tagged)
            .map(|r| r.way)
    };
    let (was, is) = (way(before), way(after));
    let mut taken = Vec::new();
    if header.kind == Kind::Place {
        taken.push(match (was, is) {
            (Some(_), _) => "Place: here already".into(),
            (None, Some(way)) => format!("Place: into way {way}"),
            (None, None) => "Place: full".into(),
        });
        if was.is_none() && is.is_some() {
            let shared = header.status == GlobalStatus::Shared;
            let mode = if shared { "shared" } else { "modified" };
            taken.push(format!("Place: {mode}"));
        }
        assert_eq!(reason(reply) == Some(Reason::Full), is.is_none());
        return Some(taken);
    }
    let Some(way) = was else {
        return Some(vec!["locks: not here".into()]);
    };
    taken.push(format!("locks: in way {way}"));
    let entry = before.locks().entry(header.tag).expect("it is in a way");
    let mut state = entry.state;
    let verdict = state.decide(&header);
    assert_eq!(dropped, verdict == Verdict::Drop);
    if state.version >> 32 != entry.state.version >> 32 {
        taken.push("versions: carried".into());
    }
    taken.push(decided(&header, entry.state, verdict).into());
    Some(taken)
}

fn decided(header: &Header, was: rackmem_proto::gcp::State, verdict: Verdict) -> &'static str {
    let modified = was.mode == Mode::Modified;
    match verdict {
        Verdict::Drop => "Acquire: for nothing",
        Verdict::Share => "Acquire: a reader joins",
        Verdict::Invalidate if modified => "Acquire: told again",
        Verdict::Invalidate => "Acquire: readers make way",
        Verdict::Enqueue => "Acquire: to the holder",
        Verdict::Over if !modified => "Release: in mode S",
        Verdict::Over if u16::from(was.holder) != header.sender => "Release: not the holder",
        Verdict::Over => {
            assert!(version(header) < was.since);
            "Release: of an earlier tenure"
        }
        Verdict::Deny => "Release: refused",
        Verdict::Pass if header.status == GlobalStatus::Modified => "Release: to a writer",
        Verdict::Pass => "Release: to readers",
    }
}

fn reason(reply: &Reply) -> Option<Reason> {
    let Reply::Sent(sent) = reply else {
        return None;
    };
    let (header, _) = decode(&sent.first()?.bytes).ok()?;
    Some(header.reason)
}
