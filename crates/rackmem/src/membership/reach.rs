//! Which members this process can reach: it asks each of them once a beat, on the network that
//! everything else goes by, and counts how often in a row no answer came.
//!
//! Only an answer counts, and nothing else that comes: a link that carries packets one way only is
//! none. Time in which this process' own thread did not run says nothing about others.

use crate::membership::{Links, Places, Role, View, now};
use rackmem_fabric::udp::Peers;
use rackmem_fabric::{Body, Net, Nobody, Receiver};
use rackmem_proto::Dest;
use rackmem_proto::switch::SWITCH;
use rackmem_proto::wire::{
    HEADER_LEN, Header, Kind, NodeId, RequesterId, Seq, Tag, decode, encode,
};
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Questions in a row without an answer after which a member is unheard: two leases of beats.
const UNANSWERED: u32 = 10;
/// Beats after which a thread that has not had its turn is starved.
const STARVED: u64 = 2;

/// See the module.
pub(crate) struct Reach {
    me: Role,
    /// How often to ask, ns.
    every: u64,
    /// By place: the incarnation that is a member, 0 for none, and questions that it has not
    /// answered.
    incarnations: [AtomicU32; Role::COUNT],
    unanswered: [AtomicU32; Role::COUNT],
    /// When the thread that answers others had its last turn, and when it last asked.
    turned: AtomicU64,
    asked: AtomicU64,
}

impl Reach {
    /// Of a process that has not heard anybody.
    pub fn new(me: Role, lease: Duration) -> Reach {
        let lease = u64::try_from(lease.as_nanos()).unwrap_or(u64::MAX);
        Reach {
            me,
            every: lease / 5,
            incarnations: [const { AtomicU32::new(0) }; Role::COUNT],
            unanswered: [const { AtomicU32::new(UNANSWERED) }; Role::COUNT],
            turned: AtomicU64::new(0),
            asked: AtomicU64::new(0),
        }
    }

    /// Takes a view: whoever has come is asked from now on, and is not blamed for anybody's silence
    /// before.
    pub fn follow(&self, view: &View) {
        for role in Role::all() {
            let incarnation = match role {
                Role::Node(node) => view.incarnation(node),
                Role::Switch => view.switch,
            };
            let incarnation = incarnation.unwrap_or(0);
            if self.incarnations[role.index()].swap(incarnation, Relaxed) != incarnation {
                self.unanswered[role.index()].store(0, Relaxed);
            }
        }
    }

    /// What is known just now.
    pub fn links(&self) -> Links {
        let unheard = |role: &Role| self.unanswered[role.index()].load(Relaxed) >= UNANSWERED;
        let turned = self.turned.load(Relaxed);
        Links {
            unheard: Role::all()
                .filter(|role| *role != self.me)
                .filter(unheard)
                .collect::<Places>(),
            starved: now().saturating_sub(turned) > STARVED * self.every,
        }
    }

    /// A member has answered, or asks. Says whether that was it.
    pub fn packet(&self, net: &dyn Net, header: &Header, reply: &mut dyn Receiver) -> bool {
        match header.kind {
            Kind::Pong => self.heard(header),
            Kind::Ping => answer(self.me, net, header, reply),
            _ => return false,
        }
        true
    }

    fn heard(&self, header: &Header) {
        if let Some(role) = role_of(header.sender) {
            self.unanswered[role.index()].store(0, Relaxed);
        }
    }

    /// A turn of the thread that answers others: asks whom it is time to ask.
    pub fn tick(&self, net: &dyn Net, epoch: u32) {
        let members = |role: &Role| self.incarnations[role.index()].load(Relaxed) != 0;
        self.turn(now(), members, |role| {
            net.send(dest(role), &self.question(epoch), Body::None, &mut Nobody);
        });
    }

    fn turn(&self, now: u64, whom: impl Fn(&Role) -> bool, mut ask: impl FnMut(Role)) {
        let before = self.turned.swap(now, Relaxed);
        if now.saturating_sub(self.asked.load(Relaxed)) < self.every {
            return;
        }
        self.asked.store(now, Relaxed);
        // Answers may have been waiting for this thread, and no turn of it has taken them yet.
        let starved = now.saturating_sub(before) > STARVED * self.every;
        for role in Role::all().filter(|role| *role != self.me).filter(&whom) {
            if !starved {
                let count = &self.unanswered[role.index()];
                count.store(count.load(Relaxed).saturating_add(1), Relaxed);
            }
            ask(role);
        }
    }

    fn question(&self, epoch: u32) -> Header {
        let (node, sender) = match self.me {
            Role::Node(node) => (node, node),
            Role::Switch => (0, SWITCH),
        };
        let requester = RequesterId { node, slot: 0 };
        Header {
            sender,
            ..Header::request(Kind::Ping, epoch, Tag(0), requester, Seq(0))
        }
    }
}

fn role_of(sender: NodeId) -> Option<Role> {
    match sender {
        SWITCH => Some(Role::Switch),
        node if usize::from(node) < Role::COUNT - 1 => Some(Role::Node(node)),
        _ => None,
    }
}

fn dest(role: Role) -> Dest {
    match role {
        Role::Node(node) => Dest::Agent(node),
        Role::Switch => Dest::Switch,
    }
}

/// Answers a question: to the port that it names, or to who has sent it.
/// In whatever epoch either is.
pub(crate) fn answer(me: Role, net: &dyn Net, header: &Header, reply: &mut dyn Receiver) {
    let sender = match me {
        Role::Node(node) => node,
        Role::Switch => SWITCH,
    };
    let to = match role_of(header.sender) {
        Some(role) if header.reply_port == 0 => dest(role),
        _ => Dest::Requester(header.requester),
    };
    net.send(to, &header.answer(Kind::Pong, sender), Body::None, reply);
}

/// How long who has become a member waits at most for the thread that has asked the others.
const ENDS: Duration = Duration::from_millis(10);

/// Asks everybody from a socket that nobody serves yet, until it is dropped: a process that wants a
/// place finds out whether it can reach the others before it asks for one.
pub(crate) struct Knocking {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Knocking {
    pub fn start(
        socket: &UdpSocket,
        peers: Arc<Peers>,
        reach: Arc<Reach>,
    ) -> std::io::Result<Knocking> {
        let socket = socket.try_clone()?;
        let pause = Duration::from_nanos(reach.every / 4).clamp(Duration::from_millis(1), ENDS);
        socket.set_read_timeout(Some(pause))?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = std::thread::Builder::new().name("rackmem-knock".into());
        // With the turns that others have: by its being late a member knows that it is starved.
        let thread = thread.spawn(move || knock(&socket, &peers, &reach, &stopped))?;
        Ok(Knocking {
            stop,
            thread: Some(thread),
        })
    }
}

/// How soon whoever has not answered yet is asked again, and each time after twice as long: what
/// starts at the same time as this process may not listen yet.
const AGAIN: Duration = Duration::from_millis(10);

fn knock(socket: &UdpSocket, peers: &Peers, reach: &Reach, stop: &AtomicBool) {
    let address = |role: Role| -> Option<SocketAddr> {
        match role {
            Role::Node(node) => peers.agents.get(usize::from(node)).copied(),
            Role::Switch => peers.switch,
        }
    };
    let question = encode(&reach.question(0), 0);
    let ask = |role| {
        if let Some(address) = address(role) {
            // Whoever cannot be sent to does not answer.
            let _ = socket.send_to(&question, address);
        }
    };
    let mut packet = [0; HEADER_LEN];
    let (mut again, mut pause) = (Instant::now() + AGAIN, AGAIN);
    while !stop.load(Relaxed) {
        reach.turn(now(), |_| true, ask);
        if Instant::now() >= again {
            // Nobody is blamed for this one.
            reach.links().unheard.iter().for_each(ask);
            pause *= 2;
            again = Instant::now() + pause;
        }
        // Anything longer than a header, which an answer is not, comes cut off and is none.
        let Ok((len, _)) = socket.recv_from(&mut packet) else {
            continue;
        };
        if let Ok((header, _)) = decode(&packet[..len])
            && header.kind == Kind::Pong
        {
            reach.heard(&header);
        }
    }
}

impl Drop for Knocking {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic there has been reported by the thread itself.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    const BEAT: u64 = 200;

    /// Turns from `from` on, a tick of a tenth of a beat each; what was asked.
    fn turns(reach: &Reach, from: u64, count: u64, answers: bool) -> u32 {
        let asked = Cell::new(0);
        for at in 0..count {
            reach.turn(
                from + at * BEAT / 10,
                |role| *role == Role::Switch,
                |role| {
                    asked.set(asked.get() + 1);
                    if answers {
                        reach.unanswered[role.index()].store(0, Relaxed);
                    }
                },
            );
        }
        asked.get()
    }

    fn reach() -> Reach {
        let reach = Reach::new(Role::Node(1), Duration::from_nanos(5 * BEAT));
        reach.unanswered.iter().for_each(|it| it.store(0, Relaxed));
        reach
    }

    fn unheard(reach: &Reach) -> bool {
        reach.links().unheard.contains(Role::Switch)
    }

    #[test]
    fn silence_is_counted_in_beats_and_an_answer_ends_it() {
        let reach = reach();
        assert_eq!(turns(&reach, 1000, 10 * 20, true), 20);
        assert!(!unheard(&reach));
        turns(&reach, 1000 + 20 * BEAT, 10 * 9, false);
        assert!(!unheard(&reach));
        turns(&reach, 1000 + 29 * BEAT, 10 * 2, false);
        assert!(unheard(&reach));
        turns(&reach, 1000 + 31 * BEAT, 10, true);
        assert!(!unheard(&reach));
    }

    #[test]
    fn a_thread_that_does_not_get_its_turn_blames_nobody() {
        let reach = reach();
        for beat in 1..100 {
            // A turn each five beats.
            turns(&reach, beat * 5 * BEAT, 1, false);
        }
        assert!(!unheard(&reach));
        assert!(reach.links().starved);
    }

    #[test]
    fn whoever_starts_has_heard_nobody_and_a_new_member_is_not_blamed_for_the_old() {
        let reach = Reach::new(Role::Node(1), Duration::from_secs(1));
        assert!(unheard(&reach));
        assert!(!reach.links().unheard.contains(Role::Node(1)));
        let view = View::first(Default::default(), true);
        reach.follow(&view);
        assert!(!unheard(&reach));
    }

    /// A process that begins to listen a little later is not found a beat later.
    #[test]
    fn who_does_not_answer_at_first_is_asked_again_soon() {
        let listener = || {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            socket
                .set_read_timeout(Some(Duration::from_secs(60)))
                .unwrap();
            socket
        };
        let (own, other) = (listener(), listener());
        let peers = Peers {
            switch: None,
            agents: vec![own.local_addr().unwrap(), other.local_addr().unwrap()],
            mtu: 1500,
        };
        let reach = Arc::new(Reach::new(Role::Node(0), Duration::from_secs(100_000)));
        let knocking = Knocking::start(&own, Arc::new(peers), reach.clone()).unwrap();
        let mut packet = [0; HEADER_LEN];
        for _ in 0..2 {
            other.recv_from(&mut packet).unwrap();
        }
        let (question, _) = decode(&packet).unwrap();
        let answer = encode(&question.answer(Kind::Pong, 1), 0);
        other.send_to(&answer, own.local_addr().unwrap()).unwrap();
        let end = Instant::now() + Duration::from_secs(60);
        while reach.links().unheard.contains(Role::Node(1)) {
            assert!(Instant::now() < end);
            std::thread::sleep(Duration::from_millis(1));
        }
        drop(knocking);
    }
}
