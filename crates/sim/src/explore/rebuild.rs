//! A rebuild in one step: over a perfect network, and with nothing else under way.

use super::effects::{Complaint, Effects};
use super::node::ExplorerNode;
use super::packet::{BLOCK_BYTES, FIT, Value, telling};
use crate::site::Form;
use rackmem_proto::engine::{Change, Recovery};
use rackmem_proto::membership::View;
use rackmem_proto::switch::{LockConfig, SwitchLocks, SwitchMember, SwitchProgram};
use rackmem_proto::wire::Dest;

/// Rounds after which a rebuild over a perfect network has long ended.
const ROUNDS: usize = 100;

/// Every live node goes into the new epoch, and the directory is made anew.
pub fn rebuild(
    nodes: &mut [ExplorerNode],
    switch: &mut Option<SwitchProgram>,
    (view, change): (View, Change),
    fx: &mut Effects<'_>,
) -> Result<(), Complaint> {
    for node in &mut *nodes {
        node.learn(view, change, fx);
    }
    let no_locks = LockConfig {
        epoch: 0,
        ways: 1,
        sets: 1,
    };
    let (mut member, mut locks) = (SwitchMember::new(FIT), SwitchLocks::new(no_locks, false));
    if let Some(switch) = switch {
        member.live_by(&view, switch, &mut locks);
    }
    let mut inside = Effects::new(fx.layout);
    for node in &mut *nodes {
        node.site.proceed();
        node.follow(None, &mut inside);
    }
    for _ in 0..ROUNDS {
        while let Some((output, records)) = member.poll_output() {
            inside.sent.push(telling(&output, records));
        }
        for packet in std::mem::take(&mut inside.sent) {
            let to = |node: &&mut ExplorerNode| packet.to == Dest::Agent(node.site.id);
            if let Some(node) = nodes.iter_mut().find(to) {
                node.hear(&packet, &mut inside);
            } else if let (Dest::Switch, Some(switch)) = (packet.to, switch.as_mut()) {
                let bytes = Value::len(&packet.body);
                inside.send_all(member.packet(&packet.header, bytes, switch, &mut locks));
            }
        }
    }
    fx.seen.add(inside.seen);
    let waits = switch.as_ref().is_some_and(SwitchProgram::frozen);
    if waits || !nodes.iter().all(|node| node.site.in_service()) {
        let detail = "the members wait for each other for ever".into();
        return Err(("a rebuild ends", "§5.4", detail));
    }
    for node in nodes {
        // It is as if the rebuild had never been.
        node.site.recovery = Recovery::new(BLOCK_BYTES, FIT);
        node.seen.homecomings = Default::default();
    }
    Ok(())
}
