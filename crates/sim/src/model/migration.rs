//! A node's part in ownership migration beside its home agent's (§5.2.2): it counts invalidations, reports them to the
//! shadow node, and keeps the shadow if it is the one.

use super::EPOCH;
use super::workload::Workload;
use rackmem_proto::flowcc::{Heat, Migration, Shadow, ShadowConfig};
use rackmem_proto::switch::SwitchConfig;
use rackmem_proto::wire::{Header, Kind, NodeId, Record, RequesterId, Seq, Tag, records_that_fit};
use rackmem_proto::{Data, Dest, Output};

/// Who keeps the shadow.
pub const SHADOW: NodeId = 0;
/// Bytes of records in a packet, a RoCE MTU.
const BODY: usize = 4096;

/// Records in a packet at most.
pub const RECORDS: usize = records_that_fit(BODY);

/// What a home agent moves in a period: the shipped policy, scaled as everything is.
pub fn policy(workload: &Workload) -> Migration {
    let shipped = Migration::default();
    Migration {
        top: shipped.top.div_ceil(workload.scale),
        tracked: shipped.tracked.div_ceil(workload.scale),
        ..shipped
    }
}

/// The switch of a rack.
pub fn switch(workload: &Workload) -> SwitchConfig {
    SwitchConfig {
        epoch: EPOCH,
        sets: workload.switch_sets(),
        shadow: Some(SHADOW),
        ..SwitchConfig::default()
    }
}

/// See the module.
pub struct Migrating {
    me: NodeId,
    heat: Heat,
    shadow: Option<Shadow>,
}

impl Migrating {
    /// A node's part.
    pub fn new(me: NodeId, workload: &Workload) -> Self {
        let switch = switch(workload);
        let shipped = ShadowConfig::new(me, EPOCH, switch.ways, switch.sets);
        let config = ShadowConfig {
            leave: shipped.leave.div_ceil(workload.scale),
            ..shipped
        };
        Migrating {
            me,
            heat: Heat::new(policy(workload).tracked),
            shadow: (me == SHADOW).then(|| Shadow::new(config)),
        }
    }

    /// One of the switch's blocks was invalidated here.
    pub fn invalidated(&mut self, tag: Tag) {
        self.heat.add(tag, 1);
    }

    /// Whether the shadow wants to see a packet.
    pub fn concerns(kind: Kind) -> bool {
        matches!(
            kind,
            Kind::AddAck | Kind::RemoveAck | Kind::HeatReport | Kind::Tags
        )
    }

    /// A packet that concerns the shadow.
    pub fn handle(&mut self, header: &Header, records: &[Record]) -> Vec<Output> {
        let shadow = self.shadow.as_mut();
        shadow.map_or(Vec::new(), |shadow| {
            shadow.handle(header, records.iter().copied())
        })
    }

    /// Ends a period: what the shadow sends.
    pub fn end_period(&mut self) -> Vec<Output> {
        (self.shadow.as_mut()).map_or(Vec::new(), Shadow::end_period)
    }

    /// What the shadow is to be told of a period here, if there is anything.
    pub fn report(&mut self) -> Option<(Output, Box<[Record]>)> {
        let records = self.heat.end_period(RECORDS, 1);
        let id = RequesterId {
            node: self.me,
            slot: 0,
        };
        let header = Header::request(Kind::HeatReport, EPOCH, Tag(0), id, Seq(0));
        let output = Output::with(Dest::Agent(SHADOW), header, Data::Records);
        (!records.is_empty()).then(|| (output, records.into()))
    }
}
