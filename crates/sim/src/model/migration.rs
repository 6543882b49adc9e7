//! Ownership migration of the model's racks (§5.2.2): the shipped policy, scaled as everything is.

use super::EPOCH;
use super::workload::Workload;
use rackmem_proto::engine::Migrating;
use rackmem_proto::flowcc::{Migration, ShadowConfig};
use rackmem_proto::switch::SwitchConfig;
use rackmem_proto::wire::{NodeId, records_that_fit};

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

/// A node's part.
pub fn migrating(me: NodeId, workload: &Workload) -> Migrating {
    let switch = switch(workload);
    let shipped = ShadowConfig::new(me, EPOCH, switch.ways, switch.sets);
    let config = ShadowConfig {
        leave: shipped.leave.div_ceil(workload.scale),
        ..shipped
    };
    let mut migrating = Migrating::new(config, policy(workload).tracked, RECORDS);
    migrating.set_shadow(Some(SHADOW), EPOCH);
    migrating
}
