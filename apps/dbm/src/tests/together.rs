//! Threads of several nodes on one database under GCP's lock.

use crate::{Called, Database, DbmError, Kind, Mapped, Memory, Section};
use rackmem::locked::RwLock;
use rackmem::{Node, Rack, Region, RegionError, RegionSpec};

const NODES: usize = 3;
const THREADS: u64 = 2;
const ACCOUNTS: u32 = 60;
const OPENED: u64 = 1000;
const ROUNDS: usize = 150;

type Under<M> = Database<M, RwLock<u64>>;

fn balance(section: &mut Section<'_>, account: u32) -> crate::Result<u64> {
    let found = section.get(&account.to_be_bytes())?;
    let digits = found.map(|bytes| String::from_utf8(bytes).unwrap());
    Ok(digits.unwrap().trim_start().parse().unwrap())
}

/// Balances have many lengths, so that records move.
fn put(section: &mut Section<'_>, account: u32, balance: u64) -> crate::Result<bool> {
    let width = 8 + (balance % 200) as usize;
    section.set(
        &account.to_be_bytes(),
        format!("{balance:>width$}").as_bytes(),
    )
}

fn sum(section: &mut Section<'_>) -> crate::Result<u64> {
    let mut sum = 0;
    section.scan(b"", &mut |_, value| {
        let digits = std::str::from_utf8(value).unwrap().trim_start();
        sum += digits.parse::<u64>().unwrap();
        true
    })?;
    Ok(sum)
}

/// Transfers, and records of a thread's own that come and go beside them.
fn work<M: Memory>(database: &Under<M>, thread: u64) {
    let mut rng = fastrand::Rng::with_seed(thread);
    for round in 0..ROUNDS {
        let (from, to) = (rng.u32(0..ACCOUNTS), rng.u32(0..ACCOUNTS));
        let told = database.change(|section| {
            let some = balance(section, from)?.min(rng.u64(0..100));
            let left = balance(section, from)? - some;
            put(section, from, left)?;
            let more = balance(section, to)? + some;
            put(section, to, more)
        });
        told.unwrap();
        if round % 10 == 0 {
            let all = database.view(sum).unwrap();
            assert_eq!(all, u64::from(ACCOUNTS) * OPENED);
        }
    }
}

fn nodes_work_together<M: Memory>(
    kind: Kind,
    memory: impl Fn(&Node, &Region) -> crate::Result<M>,
) -> crate::Result<()> {
    let rack = Rack::local(NODES).unwrap();
    let spec = RegionSpec::new("database", 1 << 20);
    let first = rack.node(0);
    let lock = |node: &Node| RwLock::named(node, "lock", 0);
    let made = memory(&first, &first.create_region(&spec)?)?;
    let made = Database::create(made, lock(&first)?, kind)?;
    made.change(|section| {
        for account in 0..ACCOUNTS {
            put(section, account, OPENED)?;
        }
        Ok(())
    })?;
    let databases = (0..NODES).map(|node| {
        let node = rack.node(node);
        let memory = memory(&node, &node.open_region(&spec)?)?;
        Database::open(memory, lock(&node)?)
    });
    let databases = databases.collect::<crate::Result<Vec<Under<M>>>>()?;
    std::thread::scope(|scope| {
        for (node, database) in databases.iter().enumerate() {
            for thread in 0..THREADS {
                let seed = node as u64 * THREADS + thread;
                scope.spawn(move || work(database, seed));
            }
        }
    });
    for database in &databases {
        assert_eq!(database.check()?.records, u64::from(ACCOUNTS));
        assert_eq!(database.view(sum)?, u64::from(ACCOUNTS) * OPENED);
    }
    Ok(())
}

#[test]
fn no_transfer_is_lost_or_seen_by_half() {
    for (kind, _) in Kind::ALL {
        nodes_work_together(kind, |node, region| Ok(Called::new(node, region))).unwrap();
    }
}

#[test]
fn no_transfer_is_lost_by_loads_and_stores() {
    for (kind, _) in Kind::ALL {
        match nodes_work_together(kind, |_, region| Mapped::new(region)) {
            Err(DbmError::Rack(error)) if is_no_paging(&error) => {
                eprintln!("left out: {error}");
            }
            told => told.unwrap(),
        }
    }
}

fn is_no_paging(error: &rackmem::Error) -> bool {
    matches!(error, rackmem::Error::Region(RegionError::NoPaging { .. }))
}
