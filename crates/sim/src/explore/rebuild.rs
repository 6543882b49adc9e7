//! A rebuild in one step: over a perfect network, and with nothing else under way.

use super::effects::{Complaint, Effects};
use super::layout::Layout;
use super::node::ExplorerNode;
use super::packet::{ExplorerPacket, FIT, telling};
use rackmem_proto::engine::Change;
use rackmem_proto::flowcc::Rebuild;
use rackmem_proto::membership::View;
use rackmem_proto::switch::SwitchProgram;
use rackmem_proto::wire::Dest;

/// Rounds after which a rebuild over a perfect network has long ended.
const ROUNDS: usize = 100;

/// Every live node goes into the new epoch, and the directory is made anew.
pub fn rebuild(
    nodes: &mut [ExplorerNode],
    switch: &mut Option<SwitchProgram>,
    (view, change): (View, Change),
    layout: &Layout,
    fx: &mut Effects,
) -> Result<(), Complaint> {
    for node in &mut *nodes {
        node.learn(view, change, layout, fx);
    }
    let mut control = switch.as_mut().map(|switch| {
        switch.freeze();
        Rebuild::switch(change.members, FIT, |home| switch.entries_of(home))
    });
    let mut inside = Effects {
        segments: fx.segments,
        ..Effects::default()
    };
    for _ in 0..ROUNDS {
        for node in &mut *nodes {
            node.proceed(layout, &mut inside);
        }
        while let Some(output) = control.as_mut().and_then(Rebuild::poll_output) {
            let records = control.as_ref().map(|c| c.records(output.to));
            let told = telling(&output, records.unwrap_or_default());
            inside.sent.push(told);
        }
        for packet in std::mem::take(&mut inside.sent) {
            deliver(&packet, nodes, &mut control, layout, &mut inside);
        }
        if nodes.iter().all(ExplorerNode::is_done) {
            if let Some(switch) = switch {
                switch.reset(change.members.epoch, None);
            }
            for node in &mut *nodes {
                node.proceed(layout, &mut inside);
                node.forget_rebuild();
            }
            fx.seen.add(inside.seen);
            return Ok(());
        }
    }
    let detail = "the members wait for each other for ever".into();
    Err(("a rebuild ends", "§5.4", detail))
}

/// A packet of a rebuild arrives.
fn deliver(
    packet: &ExplorerPacket,
    nodes: &mut [ExplorerNode],
    control: &mut Option<Rebuild>,
    layout: &Layout,
    inside: &mut Effects,
) {
    if let Dest::Agent(id) = packet.to {
        let node = nodes.iter_mut().find(|node| node.site.id == id);
        node.into_iter()
            .for_each(|node| node.hear(packet, layout, inside));
    } else if let Some(control) = control {
        let ack = control.handle(&packet.header, packet.body.bytes()).1;
        inside.sent.extend(ack.map(|ack| telling(&ack, &[])));
    }
}
