//! A rebuild in one step: over a perfect network, and with nothing else under way.

use super::effects::{Complaint, Effects};
use super::layout::Layout;
use super::node::ExplorerNode;
use super::packet::{BLOCK_BYTES, FIT, Value, telling};
use crate::site::Form;
use rackmem_proto::engine::Change;
use rackmem_proto::flowcc::{Next, Rebuild};
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
    let mut inside = Effects::new(layout);
    for _ in 0..ROUNDS {
        for node in &mut *nodes {
            node.proceed(layout, &mut inside);
        }
        while let Some(output) = control.as_mut().and_then(Rebuild::poll_output) {
            let records = control.as_ref().map(|c| c.records(output.to));
            inside
                .sent
                .push(telling(&output, records.unwrap_or_default()));
        }
        for packet in std::mem::take(&mut inside.sent) {
            let to = |node: &&mut ExplorerNode| packet.to == Dest::Agent(node.site.id);
            if let Some(node) = nodes.iter_mut().find(to) {
                node.hear(&packet, layout, &mut inside);
            } else if let (Dest::Switch, Some(control)) = (packet.to, &mut control) {
                let ack = control.handle(&packet.header, Value::len(&packet.body)).1;
                inside.send_all(ack);
            }
        }
        let mut rebuilds = nodes
            .iter()
            .filter_map(|node| node.site.recovery().rebuild());
        if rebuilds.all(|rebuild| rebuild.next() == Next::Done) {
            if let Some(switch) = switch {
                switch.reset(change.members.epoch, None);
            }
            for node in &mut *nodes {
                node.proceed(layout, &mut inside);
                // It is as if the rebuild had never been.
                node.site.forget_rebuild(BLOCK_BYTES, FIT);
                node.homecomings = Default::default();
            }
            fx.seen.add(inside.seen);
            return Ok(());
        }
    }
    let detail = "the members wait for each other for ever".into();
    Err(("a rebuild ends", "§5.4", detail))
}
