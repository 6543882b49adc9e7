//! The lock service: every order of messages, with lost and duplicated ones.

use rackmem_baselines::locks::{
    Access, Algorithm, Machine, Manager, Op, Reply, Request, Shape, Step, ThreadPlace,
};
use rackmem_proto::wire::Copyset;
use std::collections::{BTreeMap, HashSet, VecDeque};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Defect {
    None,
    /// A thread that has left does not say so again.
    SaysOnce,
    /// A thread does not look which of its turns an answer is about.
    AnyTurn,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Message {
    To(Request),
    From(Reply),
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Thread {
    seat: ThreadPlace,
    machine: Machine,
    plan: VecDeque<Access>,
    access: Access,
    /// The end of a turn that the manager has not acknowledged.
    untold: Option<Request>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct World {
    manager: Manager,
    threads: Vec<Thread>,
    /// How many of each are on their way.
    network: BTreeMap<Message, u8>,
    /// Losses and doublings that may still happen.
    losses: u8,
    doublings: u8,
}

impl World {
    fn new(plans: &[&str], losses: u8, doublings: u8) -> World {
        let shape = Shape::new(plans.len() as u16, 1).unwrap();
        let thread = |(node, plan): (usize, &&str)| {
            let seat = ThreadPlace {
                node: node as u16,
                place: 0,
            };
            Thread {
                seat,
                machine: Machine::new(Algorithm::Service, shape, seat).unwrap(),
                plan: plan
                    .chars()
                    .map(|c| {
                        if c == 'r' {
                            Access::Read
                        } else {
                            Access::Write
                        }
                    })
                    .collect(),
                access: Access::Read,
                untold: None,
            }
        };
        World {
            manager: Manager::default(),
            threads: plans.iter().enumerate().map(thread).collect(),
            network: BTreeMap::new(),
            losses,
            doublings,
        }
    }

    fn put(&mut self, message: Message) {
        *self.network.entry(message).or_default() += 1;
    }

    fn take(&mut self, message: Message) {
        if let Some(count) = self.network.get_mut(&message) {
            *count -= 1;
        }
        self.network.retain(|_, count| *count > 0);
    }

    fn deliver(&mut self, message: Message, defect: Defect) {
        self.take(message);
        match message {
            Message::To(request) => {
                for reply in self.manager.handle(&request) {
                    self.put(Message::From(reply));
                }
            }
            Message::From(reply) => {
                let mine = self.threads.iter_mut().find(|t| t.seat == reply.seat);
                let thread = mine.unwrap();
                if let Step::Do(Op::Ask(asked)) = thread.machine.said()
                    && reply.inside
                    && (asked.turn == reply.turn || defect == Defect::AnyTurn)
                {
                    thread.machine.result(0);
                }
                if thread.untold.is_some_and(|told| told.turn == reply.turn) && !reply.inside {
                    thread.untold = None;
                }
            }
        }
    }

    /// What a thread does by itself.
    fn act(&self, nth: usize) -> Option<World> {
        let mut next = self.clone();
        let thread = &mut next.threads[nth];
        let step = match thread.machine.said() {
            Step::Outside => {
                thread.access = thread.plan.pop_front()?;
                // A new turn says that the last one is over.
                thread.untold = None;
                thread.machine.enter(thread.access)
            }
            Step::Inside => thread.machine.leave(),
            Step::Do(_) => return None,
        };
        match step {
            Step::Do(Op::Ask(request)) => next.put(Message::To(request)),
            Step::Do(Op::Tell(request)) => {
                thread.untold = Some(request);
                thread.machine.result(0);
                next.put(Message::To(request));
            }
            other => unreachable!("{other:?}"),
        }
        Some(next)
    }

    /// Nothing is on its way: what was not answered is said again.
    fn again(&self, defect: Defect) -> Option<World> {
        let mut next = self.clone();
        for thread in &self.threads {
            if let Step::Do(Op::Ask(request)) = thread.machine.said() {
                next.put(Message::To(request));
            }
            if let Some(request) = thread.untold.filter(|_| defect != Defect::SaysOnce) {
                next.put(Message::To(request));
            }
        }
        (!next.network.is_empty()).then_some(next)
    }

    fn moves(&self, defect: Defect) -> Vec<World> {
        let mut moves: Vec<World> = (0..self.threads.len())
            .filter_map(|n| self.act(n))
            .collect();
        for &message in self.network.keys() {
            let mut next = self.clone();
            next.deliver(message, defect);
            moves.push(next);
            if self.losses > 0 {
                let mut next = self.clone();
                next.losses -= 1;
                next.take(message);
                moves.push(next);
            }
            if self.doublings > 0 {
                let mut next = self.clone();
                next.doublings -= 1;
                next.put(message);
                moves.push(next);
            }
        }
        if self.network.is_empty() {
            moves.extend(self.again(defect));
        }
        moves
    }

    fn over(&self) -> bool {
        let through = |t: &Thread| t.machine.said() == Step::Outside && t.plan.is_empty();
        self.threads.iter().all(through)
    }

    fn alone(&self) -> bool {
        let inside = self
            .threads
            .iter()
            .filter(|t| t.machine.said() == Step::Inside);
        let inside: Vec<Access> = inside.map(|t| t.access).collect();
        inside.len() < 2 || !inside.contains(&Access::Write)
    }
}

/// Looks at every state, and that from each a way leads to the end.
fn explore(start: World, defect: Defect) -> Result<usize, &'static str> {
    let mut numbers = std::collections::HashMap::from([(start.clone(), 0usize)]);
    let mut back: Vec<Vec<usize>> = vec![vec![]];
    let mut open = vec![start];
    let mut ends = Vec::new();
    while let Some(world) = open.pop() {
        let here = numbers[&world];
        if !world.alone() {
            return Err("not alone");
        }
        if world.over() {
            ends.push(here);
        }
        for next in world.moves(defect) {
            let fresh = numbers.len();
            let there = *numbers.entry(next.clone()).or_insert(fresh);
            if there == fresh {
                assert!(fresh < 1_000_000, "too large a case");
                back.push(vec![]);
                open.push(next);
            }
            back[there].push(here);
        }
    }
    let mut reached: HashSet<usize> = ends.iter().copied().collect();
    while let Some(state) = ends.pop() {
        ends.extend(back[state].iter().filter(|before| reached.insert(**before)));
    }
    if reached.len() < numbers.len() {
        return Err("stuck");
    }
    Ok(numbers.len())
}

#[test]
fn every_order_of_messages_excludes_and_leaves_nobody_waiting() {
    for (plans, losses, doublings) in [
        (&["ww", "ww"][..], 1, 1),
        (&["rw", "wr"], 1, 1),
        (&["w", "r", "r"], 1, 1),
        (&["wr", "r", "w"], 0, 0),
    ] {
        let states = explore(World::new(plans, losses, doublings), Defect::None);
        assert!(states.unwrap_or_else(|wrong| panic!("{plans:?}: {wrong}")) > 100);
    }
}

#[test]
fn what_the_host_must_not_forget_is_noticed() {
    let of = |losses, doublings| World::new(&["ww", "ww"], losses, doublings);
    assert_eq!(explore(of(1, 0), Defect::SaysOnce), Err("stuck"));
    assert_eq!(explore(of(0, 1), Defect::AnyTurn), Err("not alone"));
}

#[test]
fn the_dead_are_neither_inside_nor_in_the_way() {
    let seat = |node| ThreadPlace { node, place: 0 };
    let ask = |node, turn, access| Request {
        seat: seat(node),
        turn,
        want: Some(access),
    };
    let mut manager = Manager::default();
    assert_eq!(manager.handle(&ask(1, 1, Access::Write)).len(), 1);
    assert_eq!(manager.handle(&ask(2, 1, Access::Write)).len(), 0);
    assert_eq!(manager.handle(&ask(3, 1, Access::Read)).len(), 0);
    assert_eq!(manager.waiting(), 2);
    let told = manager.gone(Copyset::EMPTY.with(1).with(2));
    let inside = Reply {
        seat: seat(3),
        turn: 1,
        inside: true,
    };
    assert_eq!(told, [inside]);
    // A node that comes back begins anew.
    assert_eq!(manager.handle(&ask(1, 1, Access::Read)).len(), 1);
}

#[test]
fn who_gives_up_is_no_longer_in_the_queue_and_a_late_request_is_not_believed() {
    let seat = ThreadPlace { node: 1, place: 0 };
    let other = ThreadPlace { node: 2, place: 0 };
    let request = |seat, turn, want| Request { seat, turn, want };
    let write = Some(Access::Write);
    let mut manager = Manager::default();
    manager.handle(&request(other, 1, write));
    assert_eq!(manager.handle(&request(seat, 1, write)), []);
    assert_eq!(manager.handle(&request(seat, 1, None)).len(), 1);
    assert_eq!(manager.waiting(), 0);
    assert_eq!(manager.handle(&request(seat, 1, write)), []);
    assert_eq!(manager.handle(&request(other, 1, None)).len(), 1);
    // Nor is one from before.
    assert_eq!(manager.handle(&request(seat, 2, write)).len(), 1);
    assert_eq!(manager.handle(&request(seat, 1, None)), []);
    assert_eq!(manager.handle(&request(other, 2, write)), []);
}
