//! The list of branches, in the order of the program.

use super::of_locks;
use rackmem_proto::flowcc::tables::{CHECK, Check, FORWARD};
use std::collections::BTreeSet;

/// Those that no table lists.
const BRANCHES: &[&str] = &[
    // wire::decode
    "malformed: short",
    "malformed: long",
    "malformed: magic",
    "malformed: version",
    "malformed: kind",
    "malformed: node_id",
    "malformed: requester",
    "malformed: tag",
    "malformed: flags",
    "malformed: reserved",
    "malformed: global_status",
    "malformed: reason",
    // program.rs, `handle`
    "to the control plane",
    "request: with a body",
    "request: another epoch",
    "request: frozen",
    "request: a group's home",
    "request: unknown node",
    "request: unknown requester",
    "request: granted already",
    "Unlock: with a body",
    "Unlock: another epoch",
    "Unlock: frozen",
    "Unlock: a group's home",
    "Unlock: unknown node",
    "Unlock: unknown requester",
    "AddToSwitch: with a body",
    "AddToSwitch: another epoch",
    "AddToSwitch: frozen",
    "AddToSwitch: a group's home",
    "AddToSwitch: unknown node",
    "RemoveFromSwitch: with a body",
    "RemoveFromSwitch: another epoch",
    "RemoveFromSwitch: frozen",
    "RemoveFromSwitch: a group's home",
    "RemoveFromSwitch: unknown node",
    // lock.rs, `acquire`
    "lock shared of free: taken",
    "lock shared of readers: taken",
    "lock shared of full: not taken",
    "lock shared of writer: not taken",
    "lock alone of free: taken",
    "lock alone of readers: not taken",
    "lock alone of full: not taken",
    "lock alone of writer: not taken",
    // score.rs, `enter`
    "newer: granted",
    "newer: refused, locked",
    "newer: refused, invalid",
    "same: granted",
    "same: granted, undo",
    "same: refused",
    "same: refused, undo",
    "same: elsewhere",
    "same: elsewhere, undo",
    "older: stale",
    "older: stale, undo",
    // score.rs, `pass_on`
    "not here, newer: elsewhere",
    "not here, same: elsewhere",
    "not here, same: granted, so stale",
    "not here, same: refused",
    "not here, older: stale",
    // hash.rs, `provider`
    "provider: after the place",
    "provider: the lowest",
    "provider: nobody",
    // forward.rs, `send`
    "forward: no row",
    "forward: the provider is nobody",
    "forward: all are nobody",
    "forward: others",
    "forward: no others",
    "forward: as the first copy, which the entry is no longer",
    // program.rs, `unlock`
    "unlock: for another owner",
    "unlock: authorized",
    "unlock: another number",
    "unlock: not granted, or over",
    "release: not here",
    "release shared: a reader",
    "release shared: no reader",
    "release alone: a writer",
    "release alone: no writer",
    "install: keep",
    "install: union",
    "install: overwrite",
    // moves.rs
    "add: first",
    "add: done",
    "add: refused",
    "add: under way",
    "add: older",
    "add: here already",
    "add: into way 0",
    "add: into way 1",
    "add: no way is free",
    "remove: first step",
    "remove: first step done, here",
    "remove: first step done, gone",
    "remove: second step",
    "remove: second step done",
    "remove: refused",
    "remove: under way",
    "remove: older",
    "retire: not here",
    "retire: locked",
    "retire: done",
    "free: not here",
    "free: way 0",
    "free: way 1",
    "answer: no shadow",
    "answer: the shadow asked",
    "answer: the shadow is told as well",
    // entry.rs
    "request: in way 0",
    "request: in way 1",
    "unlock: in way 0",
    "unlock: in way 1",
];

/// All of them: those above and the rows of the tables.
pub fn all() -> BTreeSet<String> {
    let mut all: BTreeSet<String> = BRANCHES
        .iter()
        .chain(of_locks::BRANCHES)
        .map(|&branch| branch.into())
        .collect();
    for (kind, check) in CHECK {
        let kind = kind.name();
        let outcomes: &[&str] = match check {
            Check::Absent => &["absent", "holds"],
            Check::Holds(_) => &["holds", "absent", "another status"],
            Check::Always => &["always"],
        };
        all.extend(
            outcomes
                .iter()
                .map(|outcome| format!("check {kind}: {outcome}")),
        );
    }
    for (kind, status, to) in FORWARD {
        all.insert(format!("forward {} {status:?}: {to:?}", kind.name()));
    }
    all
}
