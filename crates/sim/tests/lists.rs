//! What members tell each other at the beginning of an epoch, where one of them has no processor:
//! the others repeat it seldom, it gets everything once it runs, and then the traffic dies down.

use rackmem_proto::flowcc::{Members, Next, Rebuild};
use rackmem_proto::membership::host;
use rackmem_proto::switch::SWITCH;
use rackmem_proto::wire::{Copyset, Dest, Header, HomeId, NodeId, Record, Tag};
use rackmem_sim::world::Random;
use std::collections::VecDeque;

const NODES: u16 = 4;
const BLOCK: u32 = 4096;
/// Ticks for which a member does not run.
const STARVED: u64 = 10_000;
/// In so many ticks a part is sent so many times: some while the pauses grow,
/// then once a longest pause.
const BOUND: u64 = 8 + STARVED / 64;

struct ListRack {
    members: Vec<(NodeId, Rebuild)>,
    /// Packets for each of them.
    queues: Vec<VecDeque<(Header, u32)>>,
    random: Random,
    /// Out of a thousand packets.
    loss: u64,
}

impl ListRack {
    fn new(seed: u64, loss: u64) -> ListRack {
        let who = Members {
            epoch: 2,
            founders: (0..NODES).fold(Copyset::EMPTY, Copyset::with),
            switch: true,
        };
        let node = |me| (me, Rebuild::node(me, who, BLOCK, 3, &[]));
        let entry = |home: HomeId| Record {
            tag: home.start(),
            word: 0,
        };
        let mut members: Vec<_> = (0..NODES).map(node).collect();
        members.push((
            SWITCH,
            Rebuild::switch(who, 3, |home| vec![entry(home); 20]),
        ));
        ListRack {
            queues: vec![VecDeque::new(); members.len()],
            members,
            random: Random::new(seed),
            loss,
        }
    }

    fn place(to: Dest) -> usize {
        match to.hosted(host) {
            Some(Dest::Agent(node)) => usize::from(node),
            _ => usize::from(NODES),
        }
    }

    fn send(&mut self, to: Dest, header: Header, len: u32) {
        if self.random.below(1000) >= self.loss {
            self.queues[ListRack::place(to)].push_back((header, len));
        }
    }

    /// A member reads what has come, does what it can, and sends. Returns how many packets it has
    /// sent.
    fn run(&mut self, at: usize, ticks: bool) -> usize {
        let mut sent = 0;
        while let Some((header, len)) = self.queues[at].pop_front() {
            if let (_, Some(ack)) = self.members[at].1.handle(&header, len) {
                self.send(ack.to, ack.header, 0);
                sent += 1;
            }
        }
        let me = self.members[at].0;
        let rebuild = &mut self.members[at].1;
        if ticks {
            rebuild.tick();
        }
        match rebuild.next() {
            Next::Collect => {
                let copies = (0..NODES).flat_map(|home| {
                    (0..10).map(move |n| Record {
                        tag: Tag(u64::from(home) << 48 | n << 12),
                        word: 0,
                    })
                });
                let rescued = Tag(u64::from((me + 1) % NODES) << 48);
                rebuild.collect([rescued], copies.collect());
            }
            Next::Settle => rebuild.settled(),
            Next::Wait | Next::Done => {}
        }
        while let Some(output) = self.members[at].1.poll_output() {
            let data = output.data == rackmem_proto::Data::Cache;
            self.send(output.to, output.header, if data { BLOCK } else { 0 });
            sent += 1;
        }
        sent
    }

    fn done(&self) -> bool {
        let done = |(_, rebuild): &(NodeId, Rebuild)| rebuild.next() == Next::Done;
        self.members.iter().all(done)
    }

    fn told(&self) -> bool {
        self.members.iter().all(|(_, rebuild)| rebuild.all_told())
    }
}

#[test]
fn a_member_without_a_processor_is_sent_a_bounded_number_of_lists() {
    for starved in 0..=usize::from(NODES) {
        for (seed, loss) in [(1, 0), (2, 100), (3, 400)] {
            let mut rack = ListRack::new(seed, loss);
            // It may have begun.
            for at in 0..rack.members.len() {
                rack.run(at, false);
            }
            let mut to_it = 0;
            for _ in 0..STARVED {
                for at in (0..rack.members.len()).filter(|at| *at != starved) {
                    rack.run(at, true);
                    to_it += rack.queues[starved].drain(..).count() as u64;
                }
            }
            assert!(!rack.done(), "nothing is done without it");
            // A part of a list from everybody else, and a rescued block from one.
            let most = (u64::from(NODES) + 1) * BOUND;
            assert!(
                to_it > 0 && to_it <= most,
                "{to_it} packets, {most} at most"
            );
            // It runs again. All of it is done soon, and then nobody says anything.
            let mut ticks = 0;
            while !(rack.done() && rack.told()) {
                ticks += 1;
                assert!(
                    ticks < 5_000,
                    "member {starved}, loss {loss}: it takes too long"
                );
                (0..rack.members.len()).for_each(|at| _ = rack.run(at, true));
            }
            for _ in 0..1_000 {
                let sent: usize = (0..rack.members.len()).map(|at| rack.run(at, true)).sum();
                assert_eq!(sent, 0, "traffic goes on");
            }
        }
    }
}
