//! Packets about objects of homes that groups keep, which need a majority of the group.
//!
//! What a packet needs is `rackmem_proto::sabre::KeptObjects`' to say; this brings it, and gives
//! the packet again, until it is answered.

use crate::error::AccessError;
use crate::host::here::Here;
use crate::host::inner::NodeInner;
use crate::host::kept::goes_on;
use crate::host::names::{Came, Held, Send};
use rackmem_fabric::{Body, Net, Nobody};
use rackmem_proto::abd::Command;
use rackmem_proto::engine::ObjectHost;
use rackmem_proto::sabre::Need;
use rackmem_proto::wire::Tag;
use std::time::Duration;

/// Between two attempts to reach a majority.
const AGAIN: Duration = Duration::from_millis(1);

/// Serves a packet; what is to be sent, once a majority has what it is about. None: the epoch is
/// over, no majority answers, the region is removed or not heard of yet, and the packet comes
/// again.
pub(super) fn turn(node: &NodeInner, epoch: u32, came: &Came, net: &dyn Net) -> Option<Vec<Send>> {
    let agents = &node.access.agents;
    let held = Held::over(net);
    loop {
        agents.serve(&held, &came.header, came.body.body(), &mut Nobody);
        let mut nobody = Nobody;
        let mut here = Here::new(agents, net, Body::None, &mut nobody);
        let need = here.objects(|sabre, _| {
            let need = sabre.kept.take_need()?;
            // Looked at together: another region may have the number at any time.
            let first = need.line().and_then(|line| sabre.kept.first_of(line));
            Some((need, first.unwrap_or_default()))
        });
        match need {
            None => return Some(held.into_sends()),
            Some((Need::Line(line), first)) => {
                let of = (epoch, first);
                let take = Command::Take(line);
                let value = node.access.operate_in_region(of, take, Vec::new()).ok()?;
                here.objects(|sabre, fx| sabre.kept.fetched((line, epoch), &value, fx));
            }
            Some((Need::Store(line, value), first)) => {
                store(node, (epoch, first), line, &value)?;
                here.objects(|sabre, fx| sabre.kept.stored(fx));
            }
            Some((Need::News, _)) => {
                node.access.groups.hurry();
                return None;
            }
        }
    }
}

/// Sees to it that a majority has this in a line. Until it is known to, nobody may find anything
/// else, so nothing is served meanwhile, for as long as that takes.
fn store(node: &NodeInner, (epoch, first): (u32, u32), line: Tag, value: &[u8]) -> Option<()> {
    loop {
        let write = Command::Write(line);
        let written = node
            .access
            .operate_in_region((epoch, first), write, value.to_vec());
        match written {
            Ok(_) => return Some(()),
            Err(AccessError::Removed { .. }) => return None,
            Err(_) if !goes_on(node, epoch) => return None,
            Err(_) => std::thread::sleep(AGAIN),
        }
    }
}
