//! The links of a worker to the servers of other nodes.
//!
//! A link is there for all connections of its worker. What they send in a turn of the worker goes
//! out with one write.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mio::net::TcpStream;
use mio::{Interest, Registry, Token};

use super::frame::Hello;
use super::link::{APART, Calls, Link, State};
use crate::resp::args::Args;
use crate::resp::reply::Protocol;
use crate::server::buffer::Flow;
use crate::server::registry::Client;
use crate::server::shared::Stats;

/// Links of a worker have tokens from here on, by the node that they go to.
const FIRST: usize = usize::MAX - 64;
/// How long a link may take to come, with the look at where the door is.
const COMES: Duration = Duration::from_secs(5);
/// How often that is looked at.
const LOOK: Duration = Duration::from_millis(100);

/// See the module.
pub(super) struct Links {
    registry: Registry,
    all: Vec<Link>,
    looked: Instant,
}

/// The node that an event's link goes to.
pub(crate) fn node_of(token: Token) -> Option<u16> {
    let at = token.0.checked_sub(FIRST)?;
    (at < 32).then_some(at as u16)
}

impl Links {
    pub fn new(registry: Registry, nodes: usize) -> Self {
        Self {
            registry,
            all: (0..nodes).map(|_| Link::new()).collect(),
            looked: Instant::now(),
        }
    }

    fn link(&mut self, node: u16) -> Option<&mut Link> {
        self.all.get_mut(usize::from(node))
    }

    /// Whether a command can be sent.
    pub fn takes(&self, node: u16) -> bool {
        self.all.get(usize::from(node)).is_some_and(Link::takes)
    }

    /// Whether something is under way over one of them, or one is.
    pub fn await_something(&self) -> bool {
        self.all.iter().any(Link::awaits_something)
    }

    /// Whether the caller is to look for the door, and to connect.
    pub fn wants(&mut self, node: u16) -> bool {
        let now = Instant::now();
        let Some(link) = self.link(node) else {
            return false;
        };
        let free = matches!(link.state, State::Apart(until) if until.is_none_or(|at| at <= now));
        if free {
            link.state = State::Looking(now + COMES);
        }
        free
    }

    /// The door is there; `None`: there is none.
    pub fn connect(&mut self, node: u16, door: Option<SocketAddr>, hello: &Hello) {
        let registry = &self.registry;
        let Some(link) = self.all.get_mut(usize::from(node)) else {
            return;
        };
        let State::Looking(until) = link.state else {
            return; // that took too long
        };
        link.state = State::Apart(Some(Instant::now() + APART));
        let Some(mut socket) = door.and_then(|door| TcpStream::connect(door).ok()) else {
            return;
        };
        let interest = Interest::READABLE | Interest::WRITABLE;
        let token = Token(FIRST + usize::from(node));
        if registry.register(&mut socket, token, interest).is_ok() {
            // Only costs time when it fails.
            let _ = socket.set_nodelay(true);
            hello.write(&mut link.output.data);
            link.queued = link.output.data.len() as u64;
            link.state = State::Coming(socket, until);
        }
    }

    /// Sends a command, at the end of the worker's turn.
    pub fn send(&mut self, node: u16, client: &Arc<Client>, how: (u8, Protocol), args: Args<'_>) {
        if let Some(link) = self.link(node) {
            link.send(client, how, args);
        }
    }

    /// Writes what is to be sent, and now and then gives up links that are silent, or whose node is
    /// no member any more.
    pub fn flush(&mut self, stats: &Stats, is_member: impl Fn(u16) -> bool, calls: &mut Calls) {
        let now = Instant::now();
        let looks = now.saturating_duration_since(self.looked) >= LOOK;
        if looks {
            self.looked = now;
        }
        for (node, link) in self.all.iter_mut().enumerate() {
            let open = matches!(link.state, State::Open(_));
            // First: what is not written to it has not run there.
            let gone = looks && (link.is_overdue(now) || open && !is_member(node as u16));
            if gone || open && link.write(stats) == Flow::Ended {
                link.lose(&self.registry, false, calls);
            }
        }
    }

    /// Something has happened to a link.
    pub fn event(&mut self, node: u16, stats: &Stats, calls: &mut Calls) {
        let Some(link) = self.all.get_mut(usize::from(node)) else {
            return;
        };
        if let State::Coming(socket, _) = &link.state
            && !matches!(socket.take_error(), Ok(None))
        {
            return link.lose(&self.registry, false, calls);
        }
        // Before it is connected it cannot be written to, and that is no end.
        let coming = match &link.state {
            State::Coming(socket, _) => socket.peer_addr().is_err(),
            _ => false,
        };
        if coming {
            return;
        }
        let ended = link.write(stats) == Flow::Ended;
        // What has come before the end counts.
        let over = link.read(stats, calls).or(ended.then_some(false));
        if let Some(said_bye) = over {
            link.lose(&self.registry, said_bye, calls);
        }
    }
}

impl Drop for Links {
    fn drop(&mut self) {
        let mut calls = Calls::new();
        for link in &mut self.all {
            link.lose(&self.registry, false, &mut calls);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{Shutdown, TcpListener};

    use mio::{Events, Poll};

    use super::super::frame::{self, Flags, Request};
    use super::super::link::Answer;
    use super::*;
    use crate::resp::args::OwnedArgs;
    use crate::server::registry::Registry as Clients;

    const LONG: Duration = Duration::from_secs(60);
    const HELLO: Hello = Hello {
        store: 1,
        from: 0,
        to: 1,
        token: 2,
    };

    /// A worker with a link to node 1, and who plays the server there.
    struct World {
        poll: Poll,
        links: Links,
        stats: Stats,
        clients: Clients,
        home: std::net::TcpStream,
    }

    impl World {
        fn new() -> Self {
            let poll = Poll::new().unwrap();
            let mut links = Links::new(poll.registry().try_clone().unwrap(), 2);
            let door = TcpListener::bind("127.0.0.1:0").unwrap();
            assert!(links.wants(1) && !links.wants(1));
            links.connect(1, Some(door.local_addr().unwrap()), &HELLO);
            let (mut home, _) = door.accept().unwrap();
            home.set_read_timeout(Some(LONG)).unwrap();
            let mut world = World {
                poll,
                links,
                stats: Stats::default(),
                clients: Clients::default(),
                home: home.try_clone().unwrap(),
            };
            world.turn();
            let mut said = [0; frame::HELLO];
            home.read_exact(&mut said).unwrap();
            assert_eq!(Hello::read(&said), Ok(Some(HELLO)));
            world
        }

        /// Takes events.
        fn turn(&mut self) -> Calls {
            let (mut events, mut calls) = (Events::with_capacity(8), Calls::new());
            self.poll.poll(&mut events, Some(LONG)).unwrap();
            for event in &events {
                let node = node_of(event.token()).expect("a link");
                self.links.event(node, &self.stats, &mut calls);
            }
            calls
        }

        fn welcomed() -> Self {
            let mut world = World::new();
            assert!(!world.links.takes(1));
            let mut welcome = Vec::new();
            frame::welcome(&mut welcome);
            world.home.write_all(&welcome).unwrap();
            while !world.links.takes(1) {
                world.turn();
            }
            world
        }

        fn send(&mut self) -> Arc<Client> {
            let nowhere = SocketAddr::from(([127, 0, 0, 1], 0));
            let client = self.clients.unlisted(nowhere, nowhere);
            client.seat.set((0, client.id as usize)).unwrap();
            let args = OwnedArgs::of(&[b"INCR", b"key"]);
            let how = (0, Protocol::Resp2);
            self.links.send(1, &client, how, args.args());
            client
        }

        fn flush(&mut self, member: bool) -> Calls {
            let mut calls = Calls::new();
            self.links.flush(&self.stats, |_| member, &mut calls);
            calls
        }

        /// What has arrived of one command.
        fn hear(&mut self) {
            let mut all = Vec::new();
            while Request::read(&all).unwrap().is_none() {
                let mut byte = [0];
                self.home.read_exact(&mut byte).unwrap();
                all.push(byte[0]);
            }
        }

        /// Until the link is over, or somebody is called.
        fn until_called(&mut self) -> Calls {
            loop {
                let calls = self.turn();
                if !calls.is_empty() {
                    return calls;
                }
            }
        }
    }

    fn answer(client: &Client) -> Answer {
        client.mail.take_answer().expect("an answer")
    }

    #[test]
    fn replies_go_to_those_who_asked_in_their_order_and_what_ended_in_between_is_unknown() {
        let mut world = World::welcomed();
        let (first, second) = (world.send(), world.send());
        assert!(world.flush(true).is_empty());
        world.hear();
        world.hear();
        let mut reply = Vec::new();
        let start = frame::begin_reply(&mut reply);
        reply.extend_from_slice(b":1\r\n");
        frame::end_reply(&mut reply, start, Flags::BRING);
        world.home.write_all(&reply).unwrap();
        assert_eq!(world.until_called(), [(first.id as usize, first.id)]);
        let Answer::Said(flags, said) = answer(&first) else {
            panic!("no reply");
        };
        assert!(flags.has(Flags::BRING) && said == b":1\r\n");
        // It dies. The second may have run, and what was never written has not.
        let third = world.send();
        world.home.shutdown(Shutdown::Both).unwrap();
        let calls = world.links_lost();
        assert_eq!(calls.len(), 2);
        assert!(matches!(answer(&second), Answer::Unknown));
        assert!(matches!(answer(&third), Answer::NotRun | Answer::Unknown));
        assert!(!world.links.takes(1) && !world.links.wants(1));
    }

    impl World {
        fn links_lost(&mut self) -> Calls {
            let mut calls = Calls::new();
            while self.links.takes(1) {
                calls.extend(self.turn());
            }
            calls
        }
    }

    #[test]
    fn nothing_is_in_doubt_when_the_other_side_says_bye() {
        let mut world = World::welcomed();
        let clients = [world.send(), world.send()];
        world.flush(true);
        world.hear();
        let mut bye = Vec::new();
        frame::bye(&mut bye);
        world.home.write_all(&bye).unwrap();
        assert_eq!(world.until_called().len(), 2);
        let told = clients.each_ref().map(|client| answer(client));
        assert!(matches!(told, [Answer::NotRun, Answer::NotRun]));
    }

    #[test]
    fn what_was_not_written_has_not_run_when_the_node_is_no_member_any_more() {
        let mut world = World::welcomed();
        let sent = world.send();
        assert!(world.flush(true).is_empty());
        world.links.looked = Instant::now() - LOOK;
        let before = world.links.all[1].written;
        let unsent = world.send();
        // As if the system took nothing.
        world.links.all[1].state =
            match std::mem::replace(&mut world.links.all[1].state, State::Apart(None)) {
                State::Open(socket) => State::Coming(socket, Instant::now() - LOOK),
                _ => panic!("not open"),
            };
        let calls = world.flush(false);
        assert_eq!((calls.len(), before > 0), (2, true));
        assert!(matches!(answer(&sent), Answer::Unknown));
        assert!(matches!(answer(&unsent), Answer::NotRun));

        let mut world = World::welcomed();
        let sent = world.send();
        world.flush(true);
        world.links.looked = Instant::now() - LOOK;
        assert_eq!(world.flush(false).len(), 1);
        assert!(matches!(answer(&sent), Answer::Unknown));
    }

    #[test]
    fn who_gives_no_welcome_or_replies_that_nobody_asked_for_is_left() {
        let mut world = World::new();
        world.home.write_all(b"-ERR who are you\r\n").unwrap();
        while matches!(world.links.all[1].state, State::Coming(..)) {
            world.turn();
        }
        assert!(!world.links.takes(1));

        let mut world = World::welcomed();
        let mut reply = Vec::new();
        let start = frame::begin_reply(&mut reply);
        frame::end_reply(&mut reply, start, Flags::default());
        world.home.write_all(&reply).unwrap();
        assert!(world.links_lost().is_empty());

        let mut world = World::welcomed();
        let client = world.send();
        world.flush(true);
        world.home.write_all(&[0xfe; 4]).unwrap();
        assert_eq!(world.until_called().len(), 1);
        assert!(matches!(answer(&client), Answer::Unknown));
    }
}
