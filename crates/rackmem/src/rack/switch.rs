//! The switch: its control plane, and its program, which is in this process or in the kernel.

use crate::data_plane::DataPlane;
use crate::data_plane::kernel::{KernelMetrics, KernelPlace};
use crate::membership::Role;
use crate::membership::reach::{self, Reach};
use rackmem_fabric::Whole;
use rackmem_fabric::{Body, Handler, Net, Nobody, PacketCounts, PacketStats, Receiver};
use rackmem_proto::Dest;
use rackmem_proto::engine::Gcp;
use rackmem_proto::flowcc::{Members, Next, Rebuild};
use rackmem_proto::membership::{View, host};
use rackmem_proto::switch::{LockConfig, LockCounters, Resources, SwitchCounters, SwitchLocks};
use rackmem_proto::wire::{Header, HomeId, Kind, Tag, records_that_fit};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

/// A switch that runs in software, in this process or in the kernel of this host.
///
/// ```
/// # fn main() -> rackmem::Result<()> {
/// use rackmem::Rack;
///
/// let rack = Rack::local(2)?;
/// let switch = rack.switch().expect("an embedded rack has one");
/// assert_eq!(switch.entries(), 0);
/// assert!(switch.received().0.iter().all(|(_, count)| *count == 0));
/// # Ok(())
/// # }
/// ```
pub struct SoftSwitch {
    program: Mutex<Box<dyn DataPlane>>,
    /// Where in the kernel the program is, if it is there.
    place: Option<KernelPlace>,
    /// Records that fit into a packet.
    fit: usize,
    packets: PacketStats,
    /// The directory of locks that it serves, if its program does not serve them itself.
    locks: Mutex<SwitchLocks>,
    has_locks: bool,
    /// Its part while the directory is made anew.
    rebuild: Mutex<Option<(View, Rebuild)>>,
    /// What to do when somebody shows that there is a newer epoch.
    behind: OnceLock<Box<dyn Fn() + Send + Sync>>,
    /// Which members it can reach, where cables can be cut.
    reach: OnceLock<Arc<Reach>>,
}

impl SoftSwitch {
    /// A switch with this program, whose packets carry bodies of so many bytes.
    pub(crate) fn over(
        program: Box<dyn DataPlane>,
        body: usize,
        place: Option<KernelPlace>,
    ) -> Self {
        let locks = LockConfig {
            epoch: program.epoch(),
            ..LockConfig::default()
        };
        SoftSwitch {
            fit: records_that_fit(body),
            locks: Mutex::new(SwitchLocks::new(locks, program.serves_locks())),
            has_locks: !program.serves_locks(),
            program: Mutex::new(program),
            place,
            packets: PacketStats::default(),
            rebuild: Mutex::new(None),
            behind: OnceLock::new(),
            reach: OnceLock::new(),
        }
    }

    fn program(&self) -> MutexGuard<'_, Box<dyn DataPlane>> {
        self.program.lock().whole()
    }

    fn locks(&self) -> MutexGuard<'_, SwitchLocks> {
        self.locks.lock().whole()
    }

    /// What it has done so far.
    pub fn counters(&self) -> SwitchCounters {
        self.program().counters()
    }

    /// What it has done for locks so far.
    pub fn lock_counters(&self) -> LockCounters {
        let here = self.locks().counters();
        here.unwrap_or_else(|| self.program().lock_counters())
    }

    /// Entries it owns.
    pub fn entries(&self) -> usize {
        self.program().entries()
    }

    /// What it asks of an ASIC.
    pub fn resources(&self) -> Resources {
        self.program().resources()
    }

    /// Packets it has received, by kind.
    pub fn received(&self) -> PacketCounts {
        let in_kernel = self.program().in_kernel();
        in_kernel.map_or_else(|| self.packets.snapshot(), |(received, _)| received)
    }

    /// Where in the kernel the program is, if it is there.
    pub fn kernel(&self) -> Option<&KernelPlace> {
        self.place.as_ref()
    }

    /// What a program in the kernel counts beyond what every switch does.
    pub fn kernel_metrics(&self) -> Option<KernelMetrics> {
        self.program().in_kernel().map(|(_, metrics)| metrics)
    }

    /// Lock word, status and copyset of an entry that it owns.
    pub fn inspect(&self, addr: u64) -> Option<(u16, &'static str, u32)> {
        let (lock, status, copyset) = self.program().inspect(Tag(addr))?;
        Some((lock, crate::host::metrics::status_name(status), copyset.0))
    }
}

/// A rebuild's member that everyone waits for at the end: after it the switch serves.
impl SoftSwitch {
    fn rebuild(&self) -> MutexGuard<'_, Option<(View, Rebuild)>> {
        self.rebuild.lock().whole()
    }

    /// From now on, looks which members it can reach.
    pub(crate) fn know(&self, reach: Arc<Reach>) {
        let _ = self.reach.set(reach);
    }

    pub(crate) fn when_behind(&self, act: Box<dyn Fn() + Send + Sync>) {
        let _ = self.behind.set(act);
    }

    /// Starts to serve, by the first view that it has of its rack.
    pub(crate) fn begin(&self, view: &View) {
        let mut program = self.program();
        program.reset(view.epoch, view.shadow);
        let mut locks = self.locks();
        locks.enter(view.epoch, |epoch| program.next_locks(epoch));
        locks.done();
    }

    /// Lives by a view: in a new epoch it tells homes what it has, and starts over when all are
    /// ready.
    pub(crate) fn live_by(&self, view: &View) {
        let mut rebuild = self.rebuild();
        let mut program = self.program();
        // A newer view of the same epoch, members and shadow apart, says nothing new.
        // To begin again would lose what the others have told and will not tell twice.
        if let Some((ours, _)) = rebuild
            .as_mut()
            .filter(|(ours, _)| ours.epoch == view.epoch)
        {
            *ours = *view;
        } else if view.epoch != program.epoch() {
            let mut locks = self.locks();
            locks.enter(view.epoch, |epoch| program.next_locks(epoch));
            return Self::enter(&mut rebuild, &mut **program, view, self.fit, &locks);
        }
        if view.epoch == program.epoch() {
            program.set_shadow(view.shadow);
        }
    }

    fn enter(
        rebuild: &mut Option<(View, Rebuild)>,
        program: &mut dyn DataPlane,
        view: &View,
        fit: usize,
        locks: &SwitchLocks,
    ) {
        if view.founders.is_empty() {
            return program.reset(view.epoch, view.shadow);
        }
        program.freeze();
        let members = Members {
            epoch: view.epoch,
            founders: view.founders,
            switch: true,
        };
        let entries = |home: HomeId| {
            let mut entries = program.entries_of(home);
            entries.extend(locks.entries_of(home));
            entries
        };
        let member = Rebuild::switch(members, fit, entries);
        *rebuild = Some((*view, member));
    }

    fn rebuild_packet(&self, net: &dyn Net, header: &Header, body: Body<'_>) {
        let mut rebuild = self.rebuild();
        let ours = match rebuild.as_ref() {
            Some((view, _)) => view.epoch,
            None => self.program().epoch(),
        };
        if header.epoch > ours
            && let Some(act) = self.behind.get()
        {
            act();
        }
        let Some((view, member)) = rebuild.as_mut() else {
            return;
        };
        let (_, ack) = member.handle(header, body.len() as u32);
        let mut program = self.program();
        if member.next() == Next::Done && program.frozen() {
            program.reset(view.epoch, view.shadow);
            self.locks().done();
        }
        drop(program);
        if let Some(ack) = ack {
            net.send(ack.to, &ack.header, Body::None, &mut Nobody);
        }
        send(member, net);
    }

    /// The control plane's answer to a shadow that reads TAG.
    fn tell_tags(&self, net: &dyn Net, header: &Header, reply: &mut dyn Receiver) {
        let (records, next) = {
            let program = self.program();
            if header.epoch != program.epoch() {
                return;
            }
            program.tags(header.offset as usize, self.fit)
        };
        let mut answer = header.answer(Kind::Tags, rackmem_proto::switch::SWITCH);
        answer.tag = Tag(next as u64);
        let bytes = crate::host::here::bytes(&records);
        let to = Dest::Agent(header.requester.node);
        net.send(to, &answer, Body::Bytes(&bytes), reply);
    }
}

impl Handler for SoftSwitch {
    fn handle(&self, net: &dyn Net, header: &Header, body: Body<'_>, reply: &mut dyn Receiver) {
        self.packets.count(header.kind);
        if Rebuild::concerns(header.kind) {
            return self.rebuild_packet(net, header, body);
        }
        if matches!(header.kind, Kind::Ping | Kind::Pong) {
            return match self.reach.get() {
                Some(reach) => drop(reach.packet(net, header, reply)),
                None if header.kind == Kind::Ping => {
                    reach::answer(Role::Switch, net, header, reply);
                }
                None => {}
            };
        }
        if header.kind == Kind::ReadTags {
            return self.tell_tags(net, header, reply);
        }
        let outputs = match Gcp::takes(header.kind) && self.has_locks {
            true if body.is_empty() => self.locks().handle(header),
            true => return,
            false => self.program().handle(header, &body),
        };
        // Each node's own memory is behind the node's port, whether it is a member or not.
        for output in outputs.iter() {
            for (to, header) in output.copies(host) {
                net.send(to, &header, Body::None, reply);
            }
        }
    }

    fn tick(&self, net: &dyn Net) {
        if let Some(reach) = self.reach.get() {
            reach.tick(net, 0);
        }
        if let Some((_, member)) = self.rebuild().as_mut() {
            member.tick();
            send(member, net);
        }
    }
}

fn send(rebuild: &mut Rebuild, net: &dyn Net) {
    while let Some(output) = rebuild.poll_output() {
        let bytes = crate::host::here::bytes(rebuild.records(output.to));
        net.send(output.to, &output.header, Body::Bytes(&bytes), &mut Nobody);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rackmem_proto::Output;
    use rackmem_proto::switch::{SwitchConfig, SwitchProgram};
    use rackmem_proto::wire::Copyset;
    use std::cell::RefCell;

    /// Keeps what the switch sends.
    #[derive(Default)]
    struct Sent(RefCell<Vec<(Dest, Header, u32)>>);

    impl Net for Sent {
        fn send(&self, to: Dest, header: &Header, body: Body<'_>, _: &mut dyn Receiver) {
            self.0.borrow_mut().push((to, *header, body.len() as u32));
        }
    }

    #[test]
    fn a_member_that_comes_in_the_middle_does_not_make_the_switch_forget_who_was_ready() {
        let before = View::first(Copyset(0b11), false);
        let founded = before.admit_switch().unwrap();
        let config = SwitchConfig {
            epoch: before.epoch,
            sets: 4,
            ..SwitchConfig::default()
        };
        let program = SwitchProgram::new(config);
        let switch = SoftSwitch::over(Box::new(program), 1400, None);
        switch.live_by(&founded);
        let members = Members {
            epoch: founded.epoch,
            founders: founded.founders,
            switch: true,
        };
        let mut nodes = [0, 1].map(|node| Rebuild::node(node, members, 4096, 16, &[]));
        let net = Sent::default();
        let (mut ready, mut joined) = (false, false);
        for _ in 0..20 {
            switch.tick(&net);
            for at in 0..nodes.len() {
                // Node 1 is slow: it is ready only after another has joined.
                match nodes[at].next() {
                    Next::Collect => nodes[at].collect([], Vec::new()),
                    Next::Settle if at == 0 || joined => {
                        nodes[at].settled();
                        ready = true;
                    }
                    Next::Wait if at == 0 && ready && nodes[0].all_told() && !joined => {
                        switch.live_by(&founded.admit(2).unwrap());
                        joined = true;
                    }
                    _ => {}
                }
                while let Some(Output { to, header, .. }) = nodes[at].poll_output() {
                    match to {
                        Dest::Switch => switch.handle(&net, &header, Body::None, &mut Nobody),
                        to => net.send(to, &header, Body::None, &mut Nobody),
                    }
                }
            }
            let mut packets = net.0.take();
            while let Some((to, header, len)) = packets.pop() {
                if let Dest::Agent(node) = to {
                    let (_, ack) = nodes[usize::from(node)].handle(&header, len);
                    match ack.map(|ack| (ack.to, ack.header)) {
                        Some((Dest::Agent(node), ack)) => packets.push((Dest::Agent(node), ack, 0)),
                        Some((_, ack)) => switch.handle(&net, &ack, Body::None, &mut Nobody),
                        None => {}
                    }
                }
            }
        }
        assert!(joined && !switch.program().frozen());
        assert_eq!(switch.program().epoch(), founded.epoch);
    }
}
