//! A node's part in ownership migration beside its home agent's (§5.2.2): it counts the invalidations of the switch's
//! blocks, reports them to the shadow node, and keeps the shadow if it is the one.

use rackmem_fabric::{Body, Net, Nobody};
use rackmem_proto::flowcc::{Heat, Shadow, ShadowConfig, ShadowCounters};
use rackmem_proto::wire::{Header, Kind, NodeId, Record, RequesterId, Seq, Tag};
use rackmem_proto::{Dest, Output};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Which blocks the switch owns: the hottest, period by period.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Migration {
    /// How long heat is counted before it decides.
    pub period: Duration,
    /// Entries that one home agent moves to the switch at the end of a period, at most.
    pub top: u32,
    /// Packets to cache agents in a period that make an entry worth moving.
    pub least: u32,
    /// Blocks whose heat an agent counts at a time.
    pub tracked: u32,
    /// Periods without an invalidation after which an entry goes back.
    pub patience: u32,
    /// Entries that go back at the end of a period for being cold, at most.
    pub leave: u32,
}

impl Default for Migration {
    /// The paper's 10 ms and top 1000; an entry that was cold for 5 s goes back.
    fn default() -> Self {
        Migration {
            period: Duration::from_millis(10),
            top: 1000,
            least: 1,
            tracked: 4096,
            patience: 500,
            leave: 64,
        }
    }
}

impl Migration {
    pub(crate) fn policy(&self) -> rackmem_proto::flowcc::Migration {
        rackmem_proto::flowcc::Migration {
            top: self.top,
            least: self.least,
            tracked: self.tracked,
        }
    }
}

/// What the switch looks like to its shadow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Geometry {
    pub ways: u8,
    pub sets: usize,
}

struct Keeping {
    /// The shadow node, while there is a switch.
    node: Option<NodeId>,
    /// The shadow, if this node keeps it.
    shadow: Option<Shadow>,
    ended: Instant,
}

/// See the module.
pub(crate) struct Migrating {
    me: NodeId,
    settings: Migration,
    geometry: Geometry,
    /// Records that fit into a packet.
    fit: usize,
    heat: Mutex<Heat>,
    keeping: Mutex<Keeping>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Migrating {
    pub fn new(me: NodeId, settings: Migration, geometry: Geometry, fit: usize) -> Self {
        Migrating {
            me,
            settings,
            geometry,
            fit,
            heat: Mutex::new(Heat::new(settings.tracked)),
            keeping: Mutex::new(Keeping {
                node: None,
                shadow: None,
                ended: Instant::now(),
            }),
        }
    }

    /// Which entries to move.
    pub fn policy(&self) -> rackmem_proto::flowcc::Migration {
        self.settings.policy()
    }

    /// From now on this node keeps the shadow, or nobody. A new shadow, and one in a new epoch, knows nothing yet and
    /// reads TAG from the switch.
    pub fn set_shadow(&self, node: Option<NodeId>, epoch: u32) {
        let config = ShadowConfig {
            patience: self.settings.patience,
            leave: self.settings.leave,
            ..ShadowConfig::new(self.me, epoch, self.geometry.ways, self.geometry.sets)
        };
        let mut keeping = locked(&self.keeping);
        let goes_on = keeping
            .shadow
            .as_ref()
            .is_some_and(|shadow| shadow.epoch() == epoch);
        keeping.node = node;
        if node != Some(self.me) {
            keeping.shadow = None;
        } else if !goes_on {
            keeping.shadow = Some(Shadow::new(config));
        }
    }

    /// One of the switch's blocks was invalidated here.
    pub fn invalidated(&self, tag: Tag) {
        locked(&self.heat).add(tag, 1);
    }

    /// What the shadow has done, and how many blocks it knows, if this node keeps it.
    pub fn shadow(&self) -> Option<(ShadowCounters, usize)> {
        let keeping = locked(&self.keeping);
        keeping.shadow.as_ref().map(|s| (s.counters(), s.len()))
    }

    /// Whether a packet is for the shadow: and for nobody else, or a copy of what its home agent gets too.
    pub fn concerns(kind: Kind) -> bool {
        matches!(
            kind,
            Kind::AddAck | Kind::RemoveAck | Kind::HeatReport | Kind::Tags
        )
    }

    /// A packet for the shadow.
    pub fn handle(&self, net: &dyn Net, header: &Header, body: Body<'_>) {
        let outputs = {
            let mut keeping = locked(&self.keeping);
            let records = match body {
                Body::Bytes(bytes) => Some(Record::all(bytes)),
                _ => None,
            };
            let shadow = keeping.shadow.as_mut();
            shadow.map(|shadow| shadow.handle(header, records.into_iter().flatten()))
        };
        send(net, outputs.into_iter().flatten());
    }

    /// Whether a period has ended since this last said so.
    pub fn period_ended(&self) -> bool {
        let mut keeping = locked(&self.keeping);
        let due = keeping.ended.elapsed() >= self.settings.period;
        if due {
            keeping.ended = Instant::now();
        }
        due
    }

    /// What a period's end has this node send.
    pub fn end_period(&self, net: &dyn Net, epoch: u32) {
        let (to, outputs) = {
            let mut keeping = locked(&self.keeping);
            let outputs = keeping.shadow.as_mut().map(Shadow::end_period);
            (keeping.node, outputs)
        };
        send(net, outputs.into_iter().flatten());
        let hot = locked(&self.heat).end_period(self.fit, 1);
        let Some(to) = to.filter(|_| !hot.is_empty()) else {
            return;
        };
        let id = RequesterId {
            node: self.me,
            slot: 0,
        };
        let header = Header::request(Kind::HeatReport, epoch, Tag(0), id, Seq(0));
        let bytes = crate::rebuilding::bytes(&hot);
        net.send(Dest::Agent(to), &header, Body::Bytes(&bytes), &mut Nobody);
    }
}

fn send(net: &dyn Net, outputs: impl IntoIterator<Item = Output>) {
    for output in outputs {
        net.send(output.to, &output.header, Body::None, &mut Nobody);
    }
}
