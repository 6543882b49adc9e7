//! A node's part in ownership migration beside its home agent's (§5.2.2): it counts the
//! invalidations of the switch's blocks, reports them to the shadow node,
//! and keeps the shadow if it is the one.

use crate::flowcc::{Heat, Shadow, ShadowConfig, ShadowCounters};
use crate::wire::{Header, Kind, NodeId, Record, RequesterId, Seq, Tag};
use crate::{Data, Dest, Output};
use alloc::vec::Vec;

/// What the shadow is told of a period.
#[derive(Clone, Debug)]
pub struct Report {
    /// The packet.
    pub output: Output,
    /// Its records: blocks, and how often each was invalidated here.
    pub records: Vec<Record>,
}

/// See the module.
#[derive(Clone)]
pub struct Migrating {
    config: ShadowConfig,
    /// Records of a report.
    fit: usize,
    heat: Heat,
    /// The shadow node, while there is a switch.
    node: Option<NodeId>,
    /// The shadow, if this node keeps it.
    shadow: Option<Shadow>,
}

impl Migrating {
    /// The part of `config.home`. Heat of about `tracked` blocks is counted at a time,
    /// and `fit` of them go into a report.
    pub fn new(config: ShadowConfig, tracked: u32, fit: usize) -> Self {
        Migrating {
            config,
            fit,
            heat: Heat::new(tracked),
            node: None,
            shadow: None,
        }
    }

    /// From now on this node keeps the shadow, or nobody does. A new shadow, and one in a new
    /// epoch, knows nothing yet and reads TAG from the switch.
    pub fn set_shadow(&mut self, node: Option<NodeId>, epoch: u32) {
        let goes_on = (self.shadow.as_ref()).is_some_and(|shadow| shadow.epoch() == epoch);
        self.node = node;
        if node != Some(self.config.node) {
            self.shadow = None;
        } else if !goes_on {
            let config = ShadowConfig {
                epoch,
                ..self.config
            };
            self.shadow = Some(Shadow::new(config));
        }
    }

    /// The shadow, if this node keeps it.
    pub fn shadow(&self) -> Option<&Shadow> {
        self.shadow.as_ref()
    }

    /// What the shadow has done, and how many blocks it knows, if this node keeps it.
    pub fn counters(&self) -> Option<(ShadowCounters, usize)> {
        self.shadow.as_ref().map(|s| (s.counters(), s.len()))
    }

    /// One of the switch's blocks was invalidated here.
    pub fn invalidated(&mut self, tag: Tag) {
        self.heat.add(tag, 1);
    }

    /// A packet for the shadow.
    pub fn packet(&mut self, header: &Header, records: &[Record]) -> Vec<Output> {
        let shadow = self.shadow.as_mut();
        shadow.map_or(Vec::new(), |shadow| {
            shadow.handle(header, records.iter().copied())
        })
    }

    /// What a period's end has this node send: as the shadow, and to it.
    pub fn end_period(&mut self, epoch: u32) -> (Vec<Output>, Option<Report>) {
        let outputs = self.shadow.as_mut().map(Shadow::end_period);
        let records = self.heat.end_period(self.fit, 1);
        let to = self.node.filter(|_| !records.is_empty());
        let report = to.map(|to| {
            let id = RequesterId {
                node: self.config.node,
                slot: 0,
            };
            let header = Header::request(Kind::HeatReport, epoch, Tag(0), id, Seq(0));
            let output = Output::with(Dest::Agent(to), header, Data::Records);
            Report { output, records }
        });
        (outputs.unwrap_or_default(), report)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The shadow hears how often a block was invalidated, in the period in which it was, and is
    /// not sent packets that say nothing.
    #[test]
    fn a_period_is_reported_to_the_shadow_if_there_is_something_to_say() {
        let tag = Tag(0x3000);
        let mut part = Migrating::new(ShadowConfig::new(0, 1, 2, 8), 64, 10);
        part.invalidated(tag);
        assert!(part.end_period(1).1.is_none(), "there is no shadow");
        part.set_shadow(Some(2), 1);
        assert!(part.end_period(1).1.is_none(), "nothing was invalidated");
        part.invalidated(tag);
        part.invalidated(tag);
        let report = part.end_period(1).1.expect("a report");
        assert_eq!(report.output.to, Dest::Agent(2));
        assert_eq!(report.records, [Record { tag, word: 2 }]);
        assert!(part.end_period(1).1.is_none(), "it was told");
    }
}
