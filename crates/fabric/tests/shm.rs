//! Shared memory between members: everything arrives, a full lane is waited for,
//! and no death breaks anything.

mod support;

use rackmem_fabric::shm::{Geometry, Hub, Member, Outlet, ShmPort, serve};
use rackmem_fabric::{Body, Counters, End, Handler, Net, Nobody, Port, Receiver, Service};
use rackmem_wire::{Dest, Header, Kind, MAX_BODY};
use std::io::ErrorKind;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use support::header;

/// Longer than anything here takes on a loaded machine.
const LONG: Duration = Duration::from_secs(30);
/// Says to this program, started as a child, for which rack it should send until it is killed.
const RACK: &str = "RACKMEM_TEST_SHM_RACK";

fn geometry() -> Geometry {
    Geometry::new(3, 4096)
}

/// An agent that notes who has sent which number, checks bodies, and can be told to stand still.
#[derive(Default)]
struct Agent {
    still: AtomicBool,
    got: Mutex<Vec<(u16, u64)>>,
    torn: AtomicU64,
}

impl Handler for Agent {
    fn handle(&self, net: &dyn Net, header: &Header, body: Body<'_>, _: &mut dyn Receiver) {
        while self.still.load(SeqCst) {
            std::thread::sleep(Duration::from_millis(1));
        }
        if bytes(body).iter().any(|byte| *byte != header.seq.0 as u8) {
            self.torn.fetch_add(1, SeqCst);
        }
        self.got.lock().unwrap().push((header.sender, header.seq.0));
        if header.reply_port != 0 {
            let answer = header.answer(Kind::Ack, 0);
            let to = Dest::Requester(header.requester);
            net.send(to, &answer, body, &mut Nobody);
        }
    }
}

impl Agent {
    fn got(&self) -> Vec<(u16, u64)> {
        self.got.lock().unwrap().clone()
    }

    fn count(&self) -> usize {
        self.got.lock().unwrap().len()
    }
}

fn start(hub: &Arc<Hub>, end: End) -> (Arc<Agent>, Service) {
    let agent = Arc::new(Agent::default());
    let service = serve("test", hub.claim(end).unwrap(), agent.clone()).unwrap();
    (agent, service)
}

fn eventually(what: &str, mut done: impl FnMut() -> bool) {
    let end = Instant::now() + LONG;
    while !done() {
        assert!(Instant::now() < end, "never: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn send(net: &impl Net, number: u64, len: usize) {
    let body = vec![number as u8; len];
    net.send(
        Dest::Agent(0),
        &header(number),
        Body::Bytes(&body),
        &mut Nobody,
    );
}

fn of(service: &Service) -> &Counters {
    service.counters()
}

/// A name for a rack that no other test has.
fn rack(name: &str) -> String {
    format!("test-{name}-{}", std::process::id())
}

/// A long body comes where it lies, others are copied out.
fn bytes(body: Body<'_>) -> Vec<u8> {
    match body {
        Body::None => Vec::new(),
        Body::Bytes(bytes) => bytes.to_vec(),
        Body::Block(words) => {
            let word = |word: &AtomicU64| word.load(SeqCst).to_ne_bytes();
            words.iter().flat_map(word).collect()
        }
    }
}

#[derive(Default)]
struct Answers(Vec<(Header, Vec<u8>)>);

impl Receiver for Answers {
    fn receive(&mut self, header: &Header, body: Body<'_>) {
        self.0.push((*header, bytes(body)));
    }
}

#[test]
fn a_request_is_answered_at_the_port_it_came_from() {
    for hub in [
        Hub::in_process(geometry()),
        Hub::on_this_host(&rack("answer"), geometry()).unwrap(),
    ] {
        let (_agent, _service) = start(&hub, End::Node(0));
        let member = hub.claim(End::Node(1)).unwrap();
        let mut ports: Vec<ShmPort> = (0..3).map(|_| ShmPort::open(&member).unwrap()).collect();
        for round in 0..200u64 {
            for (at, port) in ports.iter_mut().enumerate() {
                let number = round * 3 + at as u64;
                let header = Header {
                    reply_port: port.reply_port(),
                    ..header(number)
                };
                // Every third is long, and not all are whole words.
                let most = [4097, 4097, MAX_BODY as u64 + 1][number as usize % 3];
                let body = vec![number as u8; (number * 377 % most) as usize];
                port.send(Dest::Agent(0), &header, Body::Bytes(&body), &mut Nobody);
                let mut answers = Answers::default();
                assert!(port.wait(LONG, &mut answers));
                assert_eq!(answers.0.len(), 1);
                assert_eq!(answers.0[0].0.seq.0, number);
                assert_eq!(answers.0[0].1, body);
            }
        }
        let mut nothing = Answers::default();
        assert!(!ports[0].wait(Duration::ZERO, &mut nothing));
        assert!(!ports[0].wait(Duration::from_millis(2), &mut nothing));
    }
}

#[test]
fn a_full_lane_is_waited_for_and_nothing_is_lost() {
    let hub = Hub::in_process(geometry());
    let (agent, service) = start(&hub, End::Node(0));
    let member = hub.claim(End::Node(1)).unwrap();
    let mut sent: Vec<(u16, u64)> = Vec::new();
    std::thread::scope(|scope| {
        // Many times more than all lanes hold, from several senders at once.
        for sender in 0..3 {
            let port = ShmPort::open(&member).unwrap();
            sent.extend((0..2000).map(|number| (1, sender * 10_000 + number)));
            let len = [4096, 4096, MAX_BODY][sender as usize];
            scope.spawn(move || {
                (0..2000).for_each(|number| send(&port, sender * 10_000 + number, len))
            });
        }
    });
    eventually("all are there", || agent.count() == sent.len());
    let mut got = agent.got();
    for sender in 0..3u64 {
        let of_one = got.iter().filter(|(_, number)| number / 10_000 == sender);
        assert!(of_one.is_sorted(), "a lane keeps its order");
    }
    got.sort_unstable();
    assert!(got == sent);
    assert_eq!(agent.torn.load(SeqCst), 0);
    assert_eq!(of(&service).malformed.load(SeqCst), 0);
}

/// An answer with a counter for what could not be sent: of a member's senders only the service's
/// can be asked.
struct Relay(Dest);

impl Handler for Relay {
    fn handle(&self, net: &dyn Net, header: &Header, body: Body<'_>, _: &mut dyn Receiver) {
        net.send(self.0, header, body, &mut Nobody);
    }
}

#[test]
fn a_receiver_that_stands_still_costs_a_sender_one_wait() {
    let hub = Hub::in_process(geometry());
    let (still, _service) = start(&hub, End::Node(0));
    still.still.store(true, SeqCst);
    let relay = hub.claim(End::Node(1)).unwrap();
    let relay = serve("relay", relay, Arc::new(Relay(Dest::Agent(0)))).unwrap();
    let member = hub.claim(End::Node(2)).unwrap();
    let port = ShmPort::open(&member).unwrap();
    let unsent = || of(&relay).unsent.load(SeqCst);
    let mut number = 0;
    let body = vec![0; 4096];
    eventually("the relay gives up", || {
        port.send(Dest::Agent(1), &header(0), Body::Bytes(&body), &mut Nobody);
        number += 1;
        unsent() > 0
    });
    // From now on it does not wait any more, however much there is to relay.
    let before = unsent();
    for _ in 0..3000 {
        port.send(Dest::Agent(1), &header(0), Body::Bytes(&body), &mut Nobody);
    }
    // Three thousand waits would be five minutes.
    eventually("all of it is given up", || unsent() >= before + 3000);
    still.still.store(false, SeqCst);
    let there = still.count();
    eventually("the lane is read again", || {
        port.send(Dest::Agent(1), &header(7), Body::None, &mut Nobody);
        still.got()[there..].contains(&(1, 7))
    });
}

/// What its own node serves for it, a requester answers itself.
#[test]
fn a_requester_hears_itself_and_no_other_requester() {
    struct Heard(Vec<u64>);
    impl Receiver for Heard {
        fn receive(&mut self, header: &Header, _: Body<'_>) {
            self.0.push(header.seq.0);
        }
    }
    let hub = Hub::in_process(geometry());
    let member = hub.claim(End::Node(1)).unwrap();
    let mut ports = [(); 2].map(|()| ShmPort::open(&member).unwrap());
    for at in [0, 1] {
        let mut heard = Heard(Vec::new());
        for number in 1..=20 {
            let header = Header {
                reply_port: ports[at].reply_port(),
                ..header(number)
            };
            let to = Dest::Requester(header.requester);
            ports[1 - at].send(to, &header, Body::None, &mut Nobody);
            assert!(!ports[at].wait(Duration::ZERO, &mut heard));
            ports[at].send(to, &header, Body::None, &mut Nobody);
            ports[at].wait(Duration::ZERO, &mut heard);
        }
        assert_eq!(heard.0, (1..=20).collect::<Vec<_>>());
    }
}

#[test]
fn an_agent_that_sends_itself_too_much_does_not_wait_for_itself() {
    /// Answers every packet with two to itself.
    struct Avalanche;
    impl Handler for Avalanche {
        fn handle(&self, net: &dyn Net, header: &Header, body: Body<'_>, _: &mut dyn Receiver) {
            (0..2).for_each(|_| net.send(Dest::Agent(0), header, body, &mut Nobody));
        }
    }
    let hub = Hub::in_process(geometry());
    let place = hub.claim(End::Node(0)).unwrap();
    let service = serve("avalanche", place, Arc::new(Avalanche)).unwrap();
    let member = hub.claim(End::Node(1)).unwrap();
    send(&Outlet::open(&member), 1, 4096);
    // So many waits would be five minutes.
    eventually("three thousand find no room", || {
        of(&service).unsent.load(SeqCst) > 3000
    });
}

#[test]
fn a_place_has_one_process_and_its_successor_gets_nothing_of_the_past() {
    let name = rack("successor");
    // As three processes would: each with a view of its own.
    let hub = || Hub::on_this_host(&name, geometry()).unwrap();
    let sender = hub().claim(End::Node(1)).unwrap();
    let port = ShmPort::open(&sender).unwrap();
    send(&port, 0, 8);
    let (first, service) = start(&hub(), End::Node(0));
    first.still.store(true, SeqCst);
    (1..10).for_each(|number| send(&port, number, 8));
    let second = hub().claim(End::Node(0)).err().map(|error| error.kind());
    assert_eq!(second, Some(ErrorKind::AddrInUse));
    first.still.store(false, SeqCst);
    drop(service);
    send(&port, 100, 8);
    let (next, _service) = start(&hub(), End::Node(0));
    let mut number = 200;
    eventually("the sender finds the successor", || {
        number += 1;
        send(&port, number, 8);
        next.count() > 0
    });
    assert!(next.got().iter().all(|(_, number)| *number > 200));
    assert!(!first.got().contains(&(1, 100)));
}

#[test]
fn what_is_left_of_a_member_sends_nothing_when_its_place_is_given_up() {
    let hub = Hub::in_process(geometry());
    let (agent, _service) = start(&hub, End::Node(0));
    let place = hub.claim(End::Node(1)).unwrap();
    let before = ShmPort::open(&place).unwrap();
    send(&before, 1, 8);
    place.leave();
    let after = ShmPort::open(&place).unwrap();
    (2..50).for_each(|number| {
        [&before, &after]
            .iter()
            .for_each(|port| send(*port, number, 8))
    });
    let next = hub.claim(End::Node(1)).unwrap();
    send(&ShmPort::open(&next).unwrap(), 50, 8);
    eventually("the successor's packet comes", || agent.count() > 1);
    assert_eq!(agent.got(), [(1, 1), (1, 50)]);
}

#[test]
fn ports_end_somewhere_and_are_used_again() {
    let member = Hub::in_process(geometry()).claim(End::Node(2)).unwrap();
    let mut ports = Vec::new();
    while let Ok(port) = ShmPort::open(&member) {
        ports.push(port);
        assert!(ports.len() < 1000);
    }
    assert!(ports.len() >= 64);
    ports.truncate(10);
    assert!(ShmPort::open(&member).is_ok());
}

/// The child: sends until it is killed, from three threads, and says when it has begun.
#[test]
fn child_that_is_killed() {
    let Ok(name) = std::env::var(RACK) else {
        return;
    };
    let hub = Hub::on_this_host(&name, geometry()).unwrap();
    let member: Arc<Member> = hub.claim(End::Node(1)).unwrap();
    std::thread::scope(|scope| {
        for sender in 0..3 {
            let port = ShmPort::open(&member).unwrap();
            scope.spawn(move || {
                for number in 0.. {
                    let most = [4097, 4097, MAX_BODY as u64 + 1][sender as usize];
                    send(&port, number, (number * (sender + 31) % most) as usize);
                }
            });
        }
    });
}

fn child(name: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child_that_is_killed"])
        .env(RACK, name)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

#[test]
fn a_process_that_is_killed_in_the_middle_leaves_nothing_broken() {
    let name = rack("killed");
    let hub = Hub::on_this_host(&name, geometry()).unwrap();
    let (agent, service) = start(&hub, End::Node(0));
    let other = hub.claim(End::Node(2)).unwrap();
    let other = ShmPort::open(&other).unwrap();
    for round in 0..12u64 {
        let mut child = child(&name);
        let before = agent.count();
        // Each time after another number of packets, so that it dies at another instruction.
        eventually("the child sends", || {
            agent.count() > before + 500 + round as usize * 97
        });
        child.kill().unwrap();
        child.wait().unwrap();
        // Live members are not disturbed.
        let mark = 1_000_000 + round;
        let header = Header {
            sender: 2,
            ..header(mark)
        };
        other.send(Dest::Agent(0), &header, Body::None, &mut Nobody);
        eventually("others are heard", || agent.got().contains(&(2, mark)));
    }
    assert_eq!(agent.torn.load(SeqCst), 0);
    let counters = of(&service);
    assert_eq!(counters.malformed.load(SeqCst), 0);
    assert!(counters.received.load(SeqCst) > 6000);
}

#[test]
fn a_receiver_that_is_killed_is_noticed_and_its_successor_found() {
    let name = rack("deaf");
    let hub = Hub::on_this_host(&name, geometry()).unwrap();
    let here = hub.claim(End::Node(0)).unwrap();
    let relay = serve("relay", here, Arc::new(Relay(Dest::Agent(1)))).unwrap();
    let feed = hub.claim(End::Node(2)).unwrap();
    let feed = ShmPort::open(&feed).unwrap();
    // The child has a place, and reads nothing.
    let mut child = child(&name);
    eventually("the child is there", || {
        of(&relay).received.load(SeqCst) > 10
    });
    child.kill().unwrap();
    child.wait().unwrap();
    eventually("nobody is there", || {
        send(&feed, 1, 4096);
        of(&relay).unsent.load(SeqCst) > 100
    });
    let (next, _service) = start(&Hub::on_this_host(&name, geometry()).unwrap(), End::Node(1));
    eventually("its successor hears", || {
        send(&feed, 77, 16);
        next.got().contains(&(1, 77))
    });
}
