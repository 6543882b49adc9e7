//! The switch: its control plane, and its program, which is in this process or in the kernel.

use crate::data_plane::DataPlane;
use crate::data_plane::kernel::{KernelMetrics, KernelPlace};
use crate::membership::reach::{self, Reach};
use crate::membership::{Groups, Role};
use crate::rack::counting::Counting;
use rackmem_fabric::Whole;
use rackmem_fabric::{Body, Handler, Net, Nobody, PacketCounts, PacketStats, Receiver};
use rackmem_proto::Output;
use rackmem_proto::membership::{View, host};
use rackmem_proto::switch::{
    LockConfig, LockCounters, Resources, SwitchCounters, SwitchLocks, SwitchMember, SwitchPart,
    switch_part,
};
use rackmem_proto::wire::{Header, Kind, Record, Tag, records_that_fit};
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
    packets: PacketStats,
    /// The directory of locks that it serves, if its program does not serve them itself.
    locks: Mutex<SwitchLocks>,
    has_locks: bool,
    /// Its part in the rack.
    member: Mutex<SwitchMember>,
    /// What it counts for replicated memory.
    pub(crate) counting: Counting,
    /// What to do when somebody shows that there is a newer epoch.
    behind: OnceLock<Box<dyn Fn() + Send + Sync>>,
    /// Which members it can reach, where cables can be cut.
    reach: OnceLock<Arc<Reach>>,
}

impl std::fmt::Debug for SoftSwitch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SoftSwitch")
            .field("kernel", &self.place.is_some())
            .field("locks", &self.has_locks)
            .finish_non_exhaustive()
    }
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
            member: Mutex::new(SwitchMember::new(records_that_fit(body))),
            locks: Mutex::new(SwitchLocks::new(locks, program.serves_locks())),
            has_locks: !program.serves_locks(),
            counting: Counting::default(),
            program: Mutex::new(program),
            place,
            packets: PacketStats::default(),
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

impl SoftSwitch {
    fn member(&self) -> MutexGuard<'_, SwitchMember> {
        self.member.lock().whole()
    }

    /// From now on, looks which members it can reach.
    pub(crate) fn know(&self, reach: Arc<Reach>) {
        let _ = self.reach.set(reach);
    }

    pub(crate) fn when_behind(&self, act: Box<dyn Fn() + Send + Sync>) {
        let _ = self.behind.set(act);
    }

    /// This is its incarnation.
    pub(crate) fn lives(&self, incarnation: u32) {
        self.program().lives(incarnation);
        self.counting.lives(incarnation);
    }

    /// Lives by these groups of replicated memory.
    pub(crate) fn hear(&self, groups: &Groups) {
        let mut program = self.program();
        self.counting
            .hear(groups, |group, counted| program.counts(group, counted));
    }

    /// Starts to serve, by the first view that it has of its rack.
    pub(crate) fn begin(&self, view: &View) {
        let mut program = self.program();
        program.reset(view.epoch, view.shadow);
        let mut locks = self.locks();
        locks.enter(view.epoch, |epoch| program.next_locks(epoch));
        locks.done();
    }

    /// Lives by a view.
    pub(crate) fn live_by(&self, view: &View) {
        let mut member = self.member();
        member.live_by(view, &mut **self.program(), &mut self.locks());
    }

    fn rebuild_packet(&self, net: &dyn Net, header: &Header, body: Body<'_>) {
        let mut member = self.member();
        let behind = header.epoch > member.epoch(&**self.program());
        if let (true, Some(act)) = (behind, self.behind.get()) {
            act();
        }
        let mut program = self.program();
        let bytes = body.len() as u32;
        let ack = member.packet(header, bytes, &mut **program, &mut self.locks());
        drop(program);
        if let Some(ack) = ack {
            net.send(ack.to, &ack.header, Body::None, &mut Nobody);
        }
        send(&mut member, net);
    }
}

impl Handler for SoftSwitch {
    fn handle(&self, net: &dyn Net, header: &Header, body: Body<'_>, reply: &mut dyn Receiver) {
        self.packets.count(header.kind);
        let outputs = match switch_part(header) {
            SwitchPart::Recovery => return self.rebuild_packet(net, header, body),
            SwitchPart::Reach => {
                return match self.reach.get() {
                    Some(reach) => drop(reach.packet(net, header, reply)),
                    None if header.kind == Kind::Ping => {
                        reach::answer(Role::Switch, net, header, reply);
                    }
                    None => {}
                };
            }
            SwitchPart::Quorum => return self.counting.packet(net, header, body, reply),
            SwitchPart::Tags => {
                let told = self.member().tell_tags(header, &**self.program());
                return (told.iter()).for_each(|(output, tags)| tell(output, tags, net, reply));
            }
            SwitchPart::Locks if !self.has_locks => self.program().handle(header, &body),
            SwitchPart::Locks if body.is_empty() => self.locks().handle(header),
            SwitchPart::Locks => return,
            SwitchPart::Blocks => self.program().handle(header, &body),
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
        let mut member = self.member();
        member.tick();
        send(&mut member, net);
    }
}

fn send(member: &mut SwitchMember, net: &dyn Net) {
    while let Some((output, records)) = member.poll_output() {
        tell(&output, records, net, &mut Nobody);
    }
}

fn tell(output: &Output, records: &[Record], net: &dyn Net, reply: &mut dyn Receiver) {
    let bytes = crate::host::here::bytes(records);
    net.send(output.to, &output.header, Body::Bytes(&bytes), reply);
}

#[cfg(test)]
mod tests {
    use super::*;
    use rackmem_proto::Dest;
    use rackmem_proto::flowcc::{Members, Next, Rebuild};
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
