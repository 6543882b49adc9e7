//! Two clients, each at a node of its own, of one store.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use super::interrupted::Interruptions;
use crate::acl::Catalog;
use crate::command::dispatch::{dispatch, run, write_failure};
use crate::command::index::Index;
use crate::command::{Command, Handler};
use crate::memory::HeapMemory;
use crate::resp::args::Args;
use crate::script::running::Scripts;
use crate::server::control::Control;
use crate::server::hub::Hub;
use crate::server::registry::Registry;
use crate::server::session::Session;
use crate::server::shared::{Shared, Stats};
use crate::{Clock, Options, ServerConfig, Store};

/// 2001-09-09, in ms.
const NOW: u64 = 1_000_000_000_000;

/// Words that stand for longer ones.
const LONG: [(&str, u8, usize); 2] = [("LONG", b'l', 700), ("LONGER", b'm', 900)];

/// Commands in another form than the table's.
#[derive(Clone, Default)]
pub(super) struct Overrides(Option<(&'static str, &'static Command<HeapMemory>)>);

impl Overrides {
    /// This command does this.
    pub fn of(name: &'static str, run: Handler<HeapMemory>) -> Self {
        let index = Index::<HeapMemory>::new();
        let shipped = index.at(index.find(name.as_bytes()).expect("a command"));
        // A test's: some bytes for each defect.
        let command = Box::leak(Box::new(Command { run, ..*shipped }));
        Overrides(Some((name, command)))
    }
}

/// What one client says.
pub(super) struct Script {
    pub before: Vec<&'static str>,
    /// The command that is interrupted.
    pub command: &'static str,
    pub after: Vec<&'static str>,
}

impl Script {
    pub fn new(text: &'static str) -> Self {
        let lines: Vec<&str> = text.split("; ").collect();
        let at = lines.iter().position(|line| line.starts_with('!'));
        let at = at.unwrap_or(0);
        Script {
            before: lines[..at].to_vec(),
            command: lines[at].trim_start_matches('!'),
            after: lines[at + 1..].to_vec(),
        }
    }
}

/// What rules of users can be about: the same for all servers.
static CATALOG: OnceLock<Arc<Catalog>> = OnceLock::new();

/// A client of a node.
pub(super) struct Client {
    shared: Arc<Shared<HeapMemory>>,
    stats: Stats,
    session: Session,
    overrides: Overrides,
}

impl Client {
    fn new(store: Store<HeapMemory>, overrides: &Overrides) -> Self {
        let nowhere = SocketAddr::from(([127, 0, 0, 1], 0));
        let registry = Arc::new(Registry::default());
        let rack = Box::new(store.clone());
        let client = registry.add(nowhere, nowhere, 1).expect("the first");
        let (config, commands) = (ServerConfig::default(), Index::new());
        let catalog = CATALOG.get_or_init(|| Arc::new(Catalog::new(&commands)));
        let control = Control::new(&config, catalog.clone());
        let shared = Shared {
            store,
            config,
            addr: nowhere,
            control,
            tls: None,
            commands,
            hub: Hub::new(rack, Arc::default(), registry.clone()),
            registry,
            snapshots: crate::snapshot::Keeper::new(None, 0),
            desks: Arc::default(),
            shipping: None,
            scripts: Scripts::default(),
            stopping: AtomicBool::new(false),
            started: Instant::now(),
        };
        shared.control.users.refresh(&shared.store).expect("users");
        let identity = shared.control.users.newcomer();
        Client {
            shared: Arc::new(shared),
            stats: Stats::default(),
            session: Session::new(client, identity),
            overrides: overrides.clone(),
        }
    }

    /// Says a command; the reply.
    pub fn say(&mut self, line: &str) -> String {
        let (mut bytes, mut spans) = (Vec::new(), Vec::new());
        for word in line.split(' ') {
            let start = bytes.len() as u32;
            match LONG.iter().find(|(name, ..)| *name == word) {
                Some(&(_, byte, len)) => bytes.extend(std::iter::repeat_n(byte, len)),
                None => bytes.extend_from_slice(word.as_bytes()),
            }
            spans.push((start, bytes.len() as u32));
        }
        let (args, mut out) = (Args::new(&bytes, &spans), Vec::new());
        let planted = self.overrides.0.filter(|(name, _)| args.is(0, name));
        let (shared, stats, session) = (&*self.shared, &self.stats, &mut self.session);
        match planted {
            None => dispatch(shared, stats, session, args, &mut out),
            Some((_, command)) => {
                let db = shared.store.db(session.db).expect("a database");
                if let Err(failure) = run(shared, stats, session, db, command, args, &mut out) {
                    out.clear();
                    write_failure(&failure, session, stats, &mut out);
                }
            }
        }
        String::from_utf8_lossy(&out)
            .trim_end()
            .replace("\r\n", " ")
    }

    /// Says several.
    pub fn say_all(&mut self, lines: &[&str]) -> Vec<String> {
        lines.iter().map(|line| self.say(line)).collect()
    }
}

/// The two.
pub(super) struct World {
    interruptions: Interruptions,
    /// Its commands are interrupted.
    pub slow: Client,
    /// By this one's. None while it speaks in the middle of the first one's command.
    other: Option<Client>,
}

impl World {
    /// A store of so many buckets in which `before` has been said. The same one every time.
    pub fn new(buckets: usize, before: &[&str], overrides: &Overrides) -> Self {
        fastrand::seed(SEED);
        let memory = HeapMemory::new(256, 1 << 20, 2);
        let (interruptions, slow, other) = Interruptions::of(&memory);
        let options = Options {
            buckets,
            clock: Clock::manual(Arc::new(AtomicU64::new(NOW))),
            ..Options::default()
        };
        let open = |memory| Store::open(memory, options.clone()).expect("a store");
        let (other, slow) = (open(other), open(slow));
        let mut world = World {
            interruptions,
            slow: Client::new(slow, overrides),
            other: Some(Client::new(other, &Overrides::default())),
        };
        world.other().say_all(before);
        world
    }

    pub fn other(&mut self) -> &mut Client {
        self.other.as_mut().expect("it does not speak just now")
    }

    /// Lets the other client say `others` at a moment of the command: what both were told. `None`:
    /// it has fewer moments.
    pub fn during(
        &mut self,
        moment: usize,
        command: &str,
        others: &'static [&'static str],
    ) -> Option<(String, Vec<String>)> {
        let mut other = self.other.take()?;
        let (reply, (told, other)) = self.interruptions.during(
            moment,
            || self.slow.say(command),
            move || (other.say_all(others), other),
        )?;
        self.other = Some(other);
        Some((reply, told))
    }

    /// What is there in the end.
    pub fn left(&mut self) -> Vec<String> {
        let look = [
            "DBSIZE",
            "MGET a b",
            "LRANGE a 0 -1",
            "LRANGE b 0 -1",
            "ZRANGE a 0 -1 WITHSCORES",
            "ZRANGE b 0 -1 WITHSCORES",
            "PTTL a",
            "PTTL b",
            "SELECT 1",
            "MGET a b",
            "DBSIZE",
        ];
        let left = self.other().say_all(&look);
        self.other().say("SELECT 0");
        left
    }
}

/// With this seed the keys `a` and `b` of a store of four buckets are in different ones.
const SEED: u64 = 3;

#[test]
fn keys_lie_apart_where_there_are_several_buckets() {
    for buckets in super::BUCKETS {
        let mut world = World::new(buckets, &["SET a 1", "SET b 2"], &Overrides::default());
        let db = world.other().shared.store.first();
        let mut keys = crate::Keys::default();
        db.scan(0, 1, &mut keys).expect("a scan");
        let apart = keys.len() == 1;
        assert_eq!(apart, buckets > 1, "choose another SEED");
    }
}
