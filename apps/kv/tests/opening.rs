//! Opening a store while members come and go: a home that is away for a moment is waited for, one
//! that stays away costs only its own buckets.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use rackmem_kv::memory::{Events, Fate, HeapMemory, MemoryError, Step};
use rackmem_kv::{BindError, Options, Server, ServerConfig, Store};

const NODES: usize = 3;
const BUCKETS: usize = 16;
/// Longer than anything here takes on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// Of a store whose test waits for its end.
const SHORT: Duration = Duration::from_millis(300);

/// What a node is going through.
#[derive(Clone, Copy)]
struct Home {
    /// Times that it is not reached before it is back.
    refuses: usize,
    /// What is known of its old memory meanwhile, and then.
    fate: (Fate, Fate),
}

const WELL: Home = Home {
    refuses: 0,
    fate: (Fate::Live, Fate::Live),
};

impl Home {
    fn fate(&self) -> Fate {
        match self.refuses {
            0 => self.fate.1,
            _ => self.fate.0,
        }
    }
}

#[derive(Default)]
struct Homes {
    homes: BTreeMap<u16, Home>,
    /// Memory by its address: whose it is, and whether it is of the node as it is now.
    slabs: BTreeMap<u64, (u16, bool)>,
}

impl Homes {
    /// Whether a home can be reached this time.
    fn reach(&mut self, home: u16) -> Result<(), MemoryError> {
        match self.homes.get_mut(&home) {
            Some(Home { refuses, .. }) if *refuses > 0 => {
                *refuses -= 1;
                Err(MemoryError::NodeLost(home))
            }
            _ => Ok(()),
        }
    }
}

/// To a rack whose nodes are not always there.
#[derive(Default)]
struct Absences(Mutex<Homes>);

impl Events for Absences {
    fn happens(&self, step: Step) -> Result<(), MemoryError> {
        let mut rack = self.0.lock().unwrap();
        match step {
            Step::Give(home) => rack.reach(home)?,
            Step::Given(home, addr) => _ = rack.slabs.insert(addr, (home, true)),
            Step::TakeBack(addr) => _ = rack.slabs.remove(&addr),
            Step::Enter(addr, _) => {
                if let Some((home, new)) = rack.slabs.get(&addr).copied() {
                    rack.reach(home)?;
                    let fate = rack.homes.get(&home).copied().unwrap_or(WELL).fate();
                    if !new && fate != Fate::Live {
                        return Err(MemoryError::NodeLost(home));
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn fate(&self, addr: u64) -> Fate {
        let rack = self.0.lock().unwrap();
        match rack.slabs.get(&addr) {
            Some((home, false)) => rack.homes.get(home).copied().unwrap_or(WELL).fate(),
            _ => Fate::Live,
        }
    }

    fn undisturbed(&self) -> bool {
        false
    }
}

/// Memory of such a rack.
struct Moody {
    memory: HeapMemory,
    absences: Arc<Absences>,
}

impl Moody {
    fn new() -> Self {
        let absences = Arc::<Absences>::default();
        let memory = HeapMemory::new(256, 1 << 20, NODES);
        Moody {
            memory: memory.with_events(absences.clone()),
            absences,
        }
    }

    fn rack(&self) -> MutexGuard<'_, Homes> {
        self.absences.0.lock().unwrap()
    }

    /// From now on a node is like this, and memory that it gave is of before.
    fn begins(&self, node: u16, home: Home) {
        let mut rack = self.rack();
        rack.homes.insert(node, home);
        if home.fate.1 != Fate::Live {
            let of_it = rack.slabs.values_mut().filter(|slab| slab.0 == node);
            of_it.for_each(|slab| slab.1 = false);
        }
    }

    fn open(&self) -> rackmem_kv::Result<Store<HeapMemory>> {
        self.open_within(PATIENCE)
    }

    fn open_within(&self, patience: Duration) -> rackmem_kv::Result<Store<HeapMemory>> {
        let options = Options {
            buckets: BUCKETS,
            patience,
            ..Options::default()
        };
        Store::open(self.memory.clone(), options)
    }
}

/// All nodes are away, for so many attempts of anybody to reach them.
fn all_are_away(memory: &Moody, refuses: usize) {
    let away = Home {
        refuses,
        fate: (Fate::Away, Fate::Live),
    };
    (0..NODES as u16).for_each(|node| memory.begins(node, away));
    // It is known of their memory that they are.
    let mut rack = memory.rack();
    rack.slabs.values_mut().for_each(|slab| slab.1 = false);
}

fn config() -> ServerConfig {
    ServerConfig {
        addr: (Ipv4Addr::LOCALHOST, 0).into(),
        links: Some(IpAddr::V4(Ipv4Addr::LOCALHOST)),
        ..ServerConfig::default()
    }
}

/// Keys enough for every node to have some.
fn keys() -> impl Iterator<Item = Vec<u8>> {
    (0..60).map(|key| format!("key:{key}").into_bytes())
}

/// What every key answers: there, absent, or away.
fn answers(store: &Store<HeapMemory>) -> [usize; 3] {
    let mut counts = [0; 3];
    for key in keys() {
        let mut value = Vec::new();
        match store.get(&key, &mut value) {
            Ok(true) => counts[0] += 1,
            Ok(false) => counts[1] += 1,
            Err(error) => {
                assert_eq!(error.code(), "NODELOST", "{error}");
                counts[2] += 1;
            }
        }
    }
    counts
}

fn filled(memory: &Moody) -> Store<HeapMemory> {
    let store = memory.open().unwrap();
    keys().for_each(|key| store.set(&key, b"v").unwrap());
    assert_eq!(answers(&store), [60, 0, 0]);
    store
}

#[test]
fn setting_up_waits_for_a_node_that_is_away_for_a_moment_and_leaks_nothing() {
    let calm = Moody::new();
    calm.open().unwrap();
    for refuses in 1..6 {
        let memory = Moody::new();
        memory.begins(2, Home { refuses, ..WELL });
        let store = memory.open().unwrap();
        store.set(b"k", b"v").unwrap();
        assert_eq!(memory.memory.live_bytes(), calm.memory.live_bytes());
    }
}

#[test]
fn setting_up_without_a_node_says_which_one_is_missing() {
    let memory = Moody::new();
    let refuses = usize::MAX;
    memory.begins(1, Home { refuses, ..WELL });
    let Err(error) = memory.open_within(SHORT) else {
        panic!("a store without the memory of node 1");
    };
    assert_eq!(error.code(), "NODELOST");
    assert!(error.to_string().contains("node 1"), "{error}");
    // Who opens it next goes on where this one has ended.
    memory.begins(1, WELL);
    let (calm, store) = (Moody::new(), memory.open().unwrap());
    calm.open().unwrap();
    store.set(b"k", b"v").unwrap();
    assert_eq!(memory.memory.live_bytes(), calm.memory.live_bytes());
}

#[test]
fn a_store_opens_while_a_node_is_still_coming_back() {
    for refuses in 0..4 {
        let memory = Moody::new();
        let old = filled(&memory);
        let fate = (Fate::Gone, Fate::Gone);
        memory.begins(1, Home { refuses, fate });
        let store = memory.open().unwrap();
        let [there, absent, away] = answers(&store);
        assert!(there > 0 && absent > 0 && away == 0, "{refuses}: {there}");
        assert_eq!(answers(&old), [there, absent, 0], "{refuses}");
        assert_eq!(store.buckets_away(), 0);
    }
}

#[test]
fn a_node_that_dies_once_more_costs_only_its_own_keys() {
    let memory = Moody::new();
    filled(&memory);
    // Its memory is to be replaced; it is not reached, and then nobody is there.
    let (refuses, fate) = (1, (Fate::Gone, Fate::Away));
    memory.begins(1, Home { refuses, fate });
    let store = memory.open().unwrap();
    let [there, absent, away] = answers(&store);
    assert!(
        there > 0 && absent == 0 && away > 0,
        "{there} {absent} {away}"
    );
    assert!(store.buckets_away() > 0 && store.buckets_away() < store.buckets());
}

#[test]
fn an_operation_goes_on_when_the_node_that_it_missed_is_a_member_again() {
    let memory = Moody::new();
    let store = filled(&memory);
    for node in 0..NODES as u16 {
        memory.begins(node, Home { refuses: 3, ..WELL });
    }
    assert_eq!(answers(&store), [60, 0, 0]);
    let plenty = keys().collect::<Vec<_>>();
    memory.begins(1, Home { refuses: 3, ..WELL });
    let plenty: Vec<&[u8]> = plenty.iter().map(Vec::as_slice).collect();
    assert_eq!(store.first().count_present(&plenty).unwrap(), 60);
}

#[test]
fn a_server_begins_though_those_who_keep_where_its_door_is_are_away() {
    let memory = Moody::new();
    let store = memory.open().unwrap();
    all_are_away(&memory, usize::MAX);
    let server = Server::bind(store.clone(), config()).unwrap();
    assert_ne!(server.local_addr().port(), 0);
}

#[test]
fn what_a_server_has_to_tell_the_rack_first_waits_for_the_rack() {
    let file = std::env::temp_dir().join(format!("kv-opening-{}", std::process::id()));
    std::fs::write(&file, "user bob on nopass ~* +get\n").unwrap();
    let limited = || ServerConfig {
        max_memory: Some(1 << 20),
        ..config()
    };
    let with_users = || ServerConfig {
        acl_file: Some(file.clone()),
        ..config()
    };
    let kinds: [(&str, &dyn Fn() -> ServerConfig); 2] =
        [("limit", &limited), ("users", &with_users)];
    for (what, config) in kinds {
        let memory = Moody::new();
        let store = memory.open_within(SHORT).unwrap();
        all_are_away(&memory, usize::MAX);
        match Server::bind(store, config()) {
            Err(BindError::Rack(said, error)) => {
                assert!(said.contains(what), "{said}");
                assert!(error.is_node_lost(), "{error}");
            }
            other => panic!("{what}: {:?}", other.map(|_| "it began")),
        }
        let store = memory.open().unwrap();
        all_are_away(&memory, 3);
        Server::bind(store, config()).unwrap();
    }
    std::fs::remove_file(file).unwrap();
}
