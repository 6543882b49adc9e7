//! Transactions that write objects with copies: accounts that outlive the node that serves them.

use crate::processes::{Member, patient_config, started};
use crate::transactions::{Account, MONEY, accounts_of, attached, audit, moved, numbers, transfer};
use crate::{FABRICS, LONG, Stop, rack, region};
use rackmem::object::{MAX_TRANSACTION_BYTES_WITH_COPIES, Object, ObjectRef};
use rackmem::{
    AccessError, Changed, Config, Contract, Fabric, Mode, Node, Rack, Region, RegionSpec,
    TransactionError,
};
use rackmem_sim::serial::{self, Deed};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};

/// A region with copies of so many lines.
pub fn bank(node: &Node, name: &str, line: u32, lines: usize) -> Region {
    let spec = RegionSpec::new(name, lines * line as usize).contract(Contract::Object);
    node.create_region(&spec.copies(3).line(line)).unwrap()
}

/// Accounts in regions with copies, so many in all.
pub fn opened(banks: &[Region], count: usize) -> Vec<ObjectRef> {
    let banks = banks.iter().cycle().take(count);
    banks.map(|bank| bank.alloc(MONEY).unwrap().at()).collect()
}

/// So many regions with copies, of eight lines each.
fn banks(node: &Node, count: usize) -> Vec<Region> {
    let lines = [64, 128, 4096].into_iter().enumerate().take(count);
    lines
        .map(|(nth, line)| bank(node, &format!("bank {nth}"), line, 8))
        .collect()
}

/// Accounts in one region with copies, and spread over two and three, between which all money
/// moves.
#[test]
fn no_money_is_lost_or_made_in_regions_with_copies() {
    for (fabric, regions) in FABRICS
        .iter()
        .flat_map(|fabric| [1, 2, 3].map(|n| (*fabric, n)))
    {
        let rack = rack(fabric, Mode::HomeOnly, 3);
        let accounts = opened(&banks(&rack.node(1), regions), 5);
        let count = if fabric == Fabric::Inline { 100 } else { 30 };
        let history = moved(&rack, &accounts, count);
        let writers = history.iter().filter(|deed| !deed.writes.is_empty());
        assert_eq!(writers.count(), 3 * count, "{fabric:?}, {regions}");
        assert_eq!(serial::check(&history), Ok(()), "{fabric:?}, {regions}");
    }
}

/// A transaction reads what has copies and what has none, and writes objects of two regions. Its
/// record takes as many lines as it needs in each of them.
#[test]
fn a_transaction_writes_objects_of_several_regions_with_copies() {
    for fabric in FABRICS {
        let rack = rack(fabric, Mode::HomeOnly, 3);
        let (small, large) = (
            bank(&rack.node(1), "small", 64, 40),
            bank(&rack.node(2), "large", 4096, 20),
        );
        let plain: Object<u64> = region(&rack, 1, "plain").alloc(7).unwrap();
        let other: Object<u64> = large.alloc(5).unwrap();
        let all: Vec<Object<u64>> = (0..32).map(|nth| small.alloc(nth).unwrap()).collect();
        let node = &rack.node(0);
        let plain: Object<u64> = node.attach_object(plain.at()).unwrap();
        let (version, _) = plain.read_versioned().unwrap();
        let (before, _) = all[3].read_versioned().unwrap();
        let read = node.transaction(|t| {
            let sum = t.read(&plain)? + t.read(&other)? + t.read(&all[1])?;
            for (nth, object) in all.iter().enumerate().skip(2) {
                t.write(object, sum * 100 + nth as u64)?;
            }
            t.write(&other, sum)?;
            Ok((sum, t.read(&all[2])?))
        });
        assert_eq!(read, Ok((13, 1302)), "{fabric:?}");
        assert_eq!(other.read(), Ok(13), "{fabric:?}");
        for (nth, object) in all.iter().enumerate() {
            let is = if nth < 2 { 0 } else { 1300 } + nth as u64;
            let there: Object<u64> = rack.node(nth % 3).attach_object(object.at()).unwrap();
            assert_eq!(there.read(), Ok(is), "{fabric:?}");
        }
        assert_eq!(all[3].read_versioned().unwrap().0, before + 2);
        // What was only read has the same version, and nobody has it locked.
        assert_eq!(plain.read_versioned(), Ok((version, 7)));
        plain.write(&8).unwrap();
        // As long as it can be, and the next one after it: in one region, and in two.
        let larger = bank(&rack.node(2), "larger", 4096, 20);
        let long = |region: &Region, count: usize| -> Vec<Object<[u8]>> {
            let all = (0..count).map(|_| region.alloc_bytes(&[], 4064).unwrap());
            all.collect()
        };
        let (mut long, more) = (long(&large, 16), long(&larger, 8));
        let len = MAX_TRANSACTION_BYTES_WITH_COPIES / long.len();
        for with in [1, 2, 3, 4, 5, 6] {
            if with == 4 {
                long.splice(8.., more.iter().cloned());
            }
            let written = node.transaction(|t| {
                let mut all = long.iter();
                all.try_for_each(|object| t.write_bytes(object, &vec![with; len]))
            });
            assert_eq!(written, Ok(()), "{fabric:?}");
            for object in &long {
                assert_eq!(object.read(), Ok(vec![with; len]), "{fabric:?}");
            }
        }
    }
}

#[test]
fn what_cannot_be_written_is_said_and_nothing_is() {
    for fabric in FABRICS {
        let rack = rack(fabric, Mode::HomeOnly, 3);
        let node = &rack.node(0);
        let one: Object<u64> = bank(node, "one", 4096, 20).alloc(1).unwrap();
        let two: Object<u64> = bank(node, "two", 64, 4).alloc(2).unwrap();
        let bank = bank(node, "one", 4096, 20);
        let long: Vec<Object<[u8]>> = (0..17)
            .map(|_| bank.alloc_bytes(&[], 4064).unwrap())
            .collect();
        let most = MAX_TRANSACTION_BYTES_WITH_COPIES;
        let written = node.transaction(|t| {
            t.write(&one, 9)?;
            let mut all = long.iter();
            all.try_for_each(|object| t.write_bytes(object, &[1; 4064]))
        });
        assert!(
            matches!(written, Err(TransactionError::TooManyBytes { most: m, .. }) if m == most)
        );
        // One that is too long for its line, and one that is gone.
        let (addr, len, is) = (long[0].addr(), 4065, 0);
        let written = node.transaction(|t| {
            t.write(&one, 9)?;
            t.write_bytes(&long[0], &[1; 4065])
        });
        let error = AccessError::OtherSize { addr, len, is };
        assert_eq!(written, Err(TransactionError::Access(error)), "{fabric:?}");
        let gone = long[1].clone();
        let addr = gone.addr();
        gone.clone().free().unwrap();
        let written = node.transaction(|t| {
            t.write(&one, 9)?;
            t.write_bytes(&gone, b"x")
        });
        let error = AccessError::Gone { addr };
        assert_eq!(written, Err(TransactionError::Access(error)), "{fabric:?}");
        let all = [one, two].map(|object| object.read().unwrap());
        assert_eq!(all, [1, 2], "{fabric:?}");
    }
}

/// Not a test but a process that others start: it serves until it is killed, or with accounts moves
/// money between them. The last account of these has no copies, and is only read.
#[test]
fn member() {
    let Some((config, node, argument)) = started("together::member") else {
        return;
    };
    let rack = Rack::join(&config, node).unwrap();
    eprintln!("is there");
    if argument.is_empty() {
        std::thread::sleep(Duration::from_secs(3600));
    }
    let node = rack.node(node);
    let accounts = attached(&node, &accounts_of(&argument));
    let (rate, accounts) = accounts.split_last().unwrap();
    let (mut done, mut last) = (0u64, Instant::now());
    loop {
        let moved = node.transaction(|t| {
            let amount = t.read(rate)?.min(t.read(&accounts[0])?);
            let [from, to] = [t.read(&accounts[0])?, t.read(&accounts[1])?];
            t.write(&accounts[0], from - amount)?;
            t.write(&accounts[1], to + amount)
        });
        match moved.and_then(|()| transfer(&node, accounts, Instant::now())) {
            Ok(_) => {
                (done, last) = (done + 1, Instant::now());
                if done == 5 {
                    eprintln!("moves");
                }
            }
            Err(error) if last.elapsed() > LONG => {
                eprintln!("moves nothing any more: {error}");
                return;
            }
            // An epoch is beginning, or this process has been given up.
            Err(error) => {
                assert!(error.changed() != Changed::Yes, "{error}");
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    }
}

/// Of whoever moves money: the accounts, and a counter that he counts up for each time.
pub struct Moves<'a> {
    pub node: &'a Node,
    pub accounts: Vec<Account>,
    pub counted: Object<u64>,
    pub began: Instant,
    pub over: &'a AtomicBool,
    /// Times that money was moved and counted.
    pub done: &'a AtomicU64,
}

fn moves(all: &Moves<'_>) -> Vec<Deed<u64>> {
    let mut moved = Vec::new();
    while !all.over.load(SeqCst) {
        moved.push(transfer(all.node, &all.accounts, all.began).unwrap());
        // Counts each of these once, whatever there was.
        let count = all.node.transaction(|t| {
            let next = t.read(&all.counted)? + 1;
            t.write(&all.counted, next)
        });
        count.unwrap();
        all.done.fetch_add(1, SeqCst);
    }
    moved
}

/// Those who move money go on when this member is killed, and whoever counts it: what all of them
/// have done until it was over. They count `done`.
pub fn outlived(
    (fabric, member): (&str, &Member),
    (over, done): (&AtomicBool, &AtomicU64),
    (movers, auditor): (Vec<Doing<'_>>, Doing<'_>),
) -> Vec<Deed<u64>> {
    let goes_on = |what: &str| {
        let (before, end) = (done.load(SeqCst), Instant::now() + LONG);
        while done.load(SeqCst) < before + 30 {
            assert!(Instant::now() < end, "{fabric}: never: {what}");
            assert!(!auditor.is_finished(), "{fabric}: an audit failed");
            std::thread::sleep(Duration::from_millis(2));
        }
    };
    goes_on("they move money");
    member.signal("-KILL");
    goes_on("they go on");
    over.store(true, SeqCst);
    let moved = movers.into_iter().map(|mover| mover.join().unwrap());
    let mut all: Vec<Deed<u64>> = moved.flatten().collect();
    all.extend(auditor.join().unwrap());
    all
}

/// A thread that does something to accounts.
type Doing<'scope> = ScopedJoinHandle<'scope, Vec<Deed<u64>>>;

/// The process that serves the accounts, of so many regions, is killed while so many threads move
/// money and count that.
pub fn killed_keepers(
    fabric: &str,
    (regions, threads): (usize, usize),
    moves: fn(&Moves<'_>) -> Vec<Deed<u64>>,
) {
    let (text, _folder) = patient_config(fabric, 4);
    let mut members = [0, 1, 2].map(|node| Member::start("together::member", &text, node, ""));
    for member in &mut members {
        assert_eq!(member.line(), "is there");
    }
    let rack = Rack::join(&Config::parse(&text).unwrap(), 3).unwrap();
    let node = &rack.node(3);
    let banks = banks(node, regions);
    let (accounts, counted) = (opened(&banks, 4), banks[0].alloc(0u64).unwrap().at());
    let (began, over, done) = (Instant::now(), AtomicBool::new(false), AtomicU64::new(0));
    let history: Vec<Deed<u64>> = std::thread::scope(|scope| {
        let (over, done, accounts) = (&over, &done, &accounts);
        let _stop = Stop(over);
        let movers: Vec<_> = (0..threads)
            .map(|_| {
                scope.spawn(move || {
                    moves(&Moves {
                        node,
                        accounts: attached(node, accounts),
                        counted: node.attach_object(counted).unwrap(),
                        began,
                        over,
                        done,
                    })
                })
            })
            .collect();
        let auditor = scope.spawn(move || {
            let (mine, mut all) = (attached(node, accounts), Vec::new());
            while !over.load(SeqCst) {
                all.push(audit(node, &mine, began).unwrap());
            }
            all
        });
        outlived((fabric, &members[0]), (over, done), (movers, auditor))
    });
    let counted: Object<u64> = node.attach_object(counted).unwrap();
    assert_eq!(counted.read(), Ok(done.load(SeqCst)), "{fabric}");
    assert_eq!(serial::check(&history), Ok(()), "{fabric}");
}

#[test]
fn money_outlives_a_killed_keeper_over_shared_memory() {
    killed_keepers("shm", (1, 3), moves);
}

#[test]
fn money_of_several_regions_outlives_a_killed_keeper_over_shared_memory() {
    killed_keepers("shm", (3, 3), moves);
}

#[test]
fn money_outlives_a_killed_keeper_over_udp() {
    killed_keepers("udp", (1, 3), moves);
}

#[test]
fn money_of_several_regions_outlives_a_killed_keeper_over_udp() {
    killed_keepers("udp", (2, 3), moves);
}

/// Coordinators are killed in the middle, one after the other. What they had read of another home,
/// and locked meanwhile, is free again.
fn killed_coordinators(fabric: &str) {
    let (text, _folder) = patient_config(fabric, 4);
    let serves = |node| Member::start("together::member", &text, node, "");
    let mut home = serves(1);
    assert_eq!(home.line(), "is there");
    let rack = Rack::join(&Config::parse(&text).unwrap(), 0).unwrap();
    let node = &rack.node(0);
    let rate: Object<u64> = region(&rack, 0, "rate").alloc(3).unwrap();
    let mut third = serves(2);
    assert_eq!(third.line(), "is there");
    let accounts = opened(&banks(node, 2), 3);
    let with_rate = [&accounts[..], &[rate.at()]].concat();
    let with_rate: Vec<String> = with_rate.iter().map(numbers).collect();
    let (mine, began) = (attached(node, &accounts), Instant::now());
    for round in 0..2u64 {
        let mut mover = Member::start("together::member", &text, 3, &with_rate.join(" "));
        assert_eq!(mover.line(), "is there", "{fabric}, round {round}");
        assert_eq!(mover.line(), "moves", "{fabric}, round {round}");
        std::thread::sleep(Duration::from_millis(20 + 17 * round));
        mover.signal("-KILL");
        drop(mover);
        audit(node, &mine, began).unwrap();
        rate.update(|_| ()).unwrap();
        for _ in 0..5 {
            transfer(node, &mine, began).unwrap();
        }
    }
    assert!(began.elapsed() < 4 * LONG, "it is stuck in every round");
}

#[test]
fn coordinators_of_copies_that_are_killed_leave_nothing_locked_over_shared_memory() {
    killed_coordinators("shm");
}

#[test]
fn coordinators_of_copies_that_are_killed_leave_nothing_locked_over_udp() {
    killed_coordinators("udp");
}
