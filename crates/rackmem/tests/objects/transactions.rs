//! Transactions: accounts at several nodes, between which money moves and of which none is lost.

use crate::processes::{Member, patient_config, started};
use crate::{FABRICS, LONG, rack, region};
use rackmem::object::{MAX_TRANSACTION_BYTES, MAX_TRANSACTION_OBJECTS, Object, ObjectRef};
use rackmem::{AccessError, Changed, Config, Mode, Node, Rack, TransactionError};
use rackmem_sim::serial::{self, Deed};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Instant;

pub type Account = Object<u64>;

/// In each account, at first.
pub const MONEY: u64 = 1000;

/// Two accounts, and an amount.
pub fn chosen(accounts: &[Account]) -> (&Account, &Account, u64) {
    let from = fastrand::usize(0..accounts.len());
    let to = (from + fastrand::usize(1..accounts.len())) % accounts.len();
    (&accounts[from], &accounts[to], fastrand::u64(1..20))
}

/// What a transaction that began then has read, with versions; and whether it has written that.
pub fn deed(began: Instant, invoke: u64, reads: &[(u64, u64)], writes: bool) -> Deed<u64> {
    let written = reads.iter().filter(|_| writes);
    Deed {
        invoke,
        returned: Some(began.elapsed().as_nanos() as u64),
        reads: reads.to_vec(),
        writes: written
            .map(|(account, version)| (*account, version + 2))
            .collect(),
    }
}

/// Moves some money between two accounts; what it has read and written, with versions.
pub fn transfer(
    node: &Node,
    accounts: &[Account],
    began: Instant,
) -> Result<Deed<u64>, TransactionError> {
    let (from, to, amount) = chosen(accounts);
    let invoke = began.elapsed().as_nanos() as u64;
    let versions = node.transaction(|t| {
        let (had, has) = (t.read(from)?, t.read(to)?);
        let amount = amount.min(had);
        t.write(from, had - amount)?;
        t.write(to, has + amount)?;
        Ok([from, to].map(|account| (account.addr(), t.version_of(account).unwrap())))
    })?;
    Ok(deed(began, invoke, &versions, true))
}

/// Looks at all accounts at one moment.
pub fn audit(
    node: &Node,
    accounts: &[Account],
    began: Instant,
) -> Result<Deed<u64>, TransactionError> {
    let invoke = began.elapsed().as_nanos() as u64;
    let (sum, reads) = node.transaction(|t| {
        let (mut sum, mut reads) = (0, Vec::new());
        for account in accounts {
            sum += t.read(account)?;
            reads.push((account.addr(), t.version_of(account).unwrap()));
        }
        Ok((sum, reads))
    })?;
    assert_eq!(sum, MONEY * accounts.len() as u64, "money is lost, or made");
    Ok(deed(began, invoke, &reads, false))
}

pub fn attached(node: &Node, accounts: &[ObjectRef]) -> Vec<Account> {
    let attach = |at: &ObjectRef| node.attach_object(*at).unwrap();
    accounts.iter().map(attach).collect()
}

/// A thread of each node moves money so often while another one looks at all accounts.
pub fn moved(rack: &Rack, accounts: &[ObjectRef], count: usize) -> Vec<Deed<u64>> {
    let (began, over) = (Instant::now(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let (over, mut movers, mut auditors) = (&over, Vec::new(), Vec::new());
        for node in rack.nodes() {
            let (mine, audited) = (attached(node, accounts), attached(node, accounts));
            movers.push(scope.spawn(move || {
                let moved = (0..count).map(|_| transfer(node, &mine, began).unwrap());
                moved.collect::<Vec<_>>()
            }));
            auditors.push(scope.spawn(move || {
                let mut seen = vec![audit(node, &audited, began).unwrap()];
                while !over.load(Relaxed) {
                    seen.push(audit(node, &audited, began).unwrap());
                }
                seen
            }));
        }
        let mut all = Vec::new();
        let ended: Vec<_> = movers.into_iter().map(|mover| mover.join()).collect();
        over.store(true, Relaxed);
        ended
            .into_iter()
            .for_each(|moved| all.extend(moved.unwrap()));
        auditors
            .into_iter()
            .for_each(|seen| all.extend(seen.join().unwrap()));
        all
    })
}

#[test]
fn no_money_is_lost_or_made_between_three_nodes() {
    for fabric in FABRICS {
        let rack = rack(fabric, Mode::HomeOnly, 3);
        let accounts: Vec<ObjectRef> = (0..3)
            .map(|node| region(&rack, node, &format!("bank {node}")))
            .flat_map(|bank| {
                [
                    bank.alloc(MONEY).unwrap().at(),
                    bank.alloc(MONEY).unwrap().at(),
                ]
            })
            .collect();
        let count = match fabric {
            rackmem::Fabric::Inline => 400,
            _ => 40,
        };
        let history = moved(&rack, &accounts, count);
        let writers = history.iter().filter(|deed| !deed.writes.is_empty());
        assert_eq!(writers.count(), 3 * count, "{fabric:?}");
        assert_eq!(serial::check(&history), Ok(()), "{fabric:?}");
    }
}

#[test]
fn what_a_run_reads_is_what_it_has_written() {
    for fabric in FABRICS {
        let rack = rack(fabric, Mode::HomeOnly, 2);
        let near: Account = region(&rack, 0, "near").alloc(1).unwrap();
        let far = region(&rack, 1, "far").alloc_bytes(b"some", 5000).unwrap();
        let far: Object<[u8]> = rack.node(0).attach_object(far.at()).unwrap();
        let (version, _) = near.read_versioned().unwrap();
        let seen = rack.node(0).transaction(|t| {
            t.write(&near, 7)?;
            t.write_bytes(&far, &[3; 4000])?;
            Ok((t.read(&near)?, t.read(&far)?.len(), t.version_of(&near)))
        });
        // What is written and not read is written whatever there is.
        assert_eq!(seen, Ok((7, 4000, None)), "{fabric:?}");
        assert_eq!(near.read_versioned(), Ok((version + 2, 7)));
        assert_eq!(far.read(), Ok(vec![3; 4000]));
        // A program that gives it up, and one that writes too much.
        let none: Result<(), _> = rack.node(0).transaction(|t| {
            t.write(&near, 8)?;
            Err(TransactionError::Cancelled)
        });
        assert_eq!(none, Err(TransactionError::Cancelled));
        let long = rack
            .node(0)
            .transaction(|t| t.write_bytes(&far, &[1; 6000]));
        let addr = far.addr();
        let (len, is) = (6000, 0);
        let error = TransactionError::Access(AccessError::OtherSize { addr, len, is });
        assert_eq!(long, Err(error), "{fabric:?}");
        assert_eq!((error.changed(), near.read()), (Changed::No, Ok(7)));
        // One that is gone.
        let handle = far.clone();
        far.free().unwrap();
        let gone = rack.node(0).transaction(|t| {
            t.write(&near, 9)?;
            t.write_bytes(&handle, b"x")
        });
        let error = AccessError::Gone { addr };
        assert_eq!(gone, Err(TransactionError::Access(error)), "{fabric:?}");
        // Nothing is locked after all this.
        near.write(&10).unwrap();
    }
}

/// As many objects and bytes as there can be, in windows, and one more of each.
#[test]
fn transactions_have_bounds() {
    for fabric in FABRICS {
        let rack = rack(fabric, Mode::HomeOnly, 2);
        let spec = rackmem::RegionSpec::new("large", 16 << 20)
            .contract(rackmem::Contract::Object)
            .on(1);
        let large = rack.node(0).create_region(&spec).unwrap();
        let len = MAX_TRANSACTION_BYTES / MAX_TRANSACTION_OBJECTS;
        let objects: Vec<Object<[u8]>> = (0..=MAX_TRANSACTION_OBJECTS)
            .map(|_| large.alloc_bytes(&[], len + 1).unwrap())
            .collect();
        let write = |count: usize, len: usize, with: u8| {
            rack.node(0).transaction(|t| {
                let mut all = objects[..count].iter();
                all.try_for_each(|object| t.write_bytes(object, &vec![with; len]))
            })
        };
        assert_eq!(write(MAX_TRANSACTION_OBJECTS, len, 1), Ok(()), "{fabric:?}");
        let most = MAX_TRANSACTION_OBJECTS;
        let error = TransactionError::TooManyObjects { most };
        assert_eq!(write(MAX_TRANSACTION_OBJECTS + 1, 1, 2), Err(error));
        let error = write(MAX_TRANSACTION_OBJECTS, len + 1, 3).unwrap_err();
        assert!(
            matches!(error, TransactionError::TooManyBytes { .. }),
            "{error}"
        );
        for object in &objects[..MAX_TRANSACTION_OBJECTS] {
            assert_eq!(object.read(), Ok(vec![1; len]));
        }
    }
}

pub fn numbers(at: &ObjectRef) -> String {
    format!("{} {}", at.addr(), at.generation())
}

pub fn accounts_of(text: &str) -> Vec<ObjectRef> {
    let mut numbers = text.split_whitespace().map(|n| n.parse::<u64>().unwrap());
    std::iter::from_fn(|| Some(ObjectRef::new(numbers.next()?, numbers.next()? as u32))).collect()
}

/// Not a test but a process that others start: with nothing to do it makes an account and serves;
/// with accounts it moves money between them until it is killed.
#[test]
fn member() {
    let Some((config, node, argument)) = started("transactions::member") else {
        return;
    };
    let rack = Rack::join(&config, node).unwrap();
    if argument.is_empty() {
        let bank = region(&rack, node, &format!("bank {node}"));
        eprintln!("{}", numbers(&bank.alloc(MONEY).unwrap().at()));
        std::thread::sleep(std::time::Duration::from_secs(3600));
    }
    let node = rack.node(node);
    let accounts = attached(&node, &accounts_of(&argument));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for nth in 0.. {
                    match transfer(&node, &accounts, Instant::now()) {
                        Ok(_) if nth == 5 => eprintln!("moves"),
                        Ok(_) => {}
                        // An epoch is beginning, or this process has been given up.
                        Err(error) => assert!(error.changed() != Changed::Yes, "{error}"),
                    }
                }
            });
        }
    });
}

/// Coordinators are killed in the middle, one after the other; the homes live.
fn killed_coordinators(fabric: &str) {
    let (text, _folder) = patient_config(fabric, 4);
    let mut home = Member::start("transactions::member", &text, 1, "");
    let rack = Rack::join(&Config::parse(&text).unwrap(), 0).unwrap();
    let mut accounts: Vec<ObjectRef> = accounts_of(&home.line());
    let bank = region(&rack, 0, "bank 0");
    accounts.push(bank.alloc(MONEY).unwrap().at());
    let all: String = accounts.iter().map(|at| numbers(at) + " ").collect();
    let node = rack.node(0);
    let mine = attached(&node, &accounts);
    let began = Instant::now();
    for round in 0..2u64 {
        let mut movers =
            [2, 3].map(|node| Member::start("transactions::member", &text, node, &all));
        for mover in &mut movers {
            assert_eq!(mover.line(), "moves");
        }
        for _ in 0..10 + 7 * round {
            let _ = audit(&node, &mine, began).unwrap();
        }
        movers.iter().for_each(|mover| mover.signal("-KILL"));
        drop(movers);
        // What they have locked is free again, and nothing is lost.
        audit(&node, &mine, began).unwrap();
        for account in &mine {
            account.update(|_| ()).unwrap();
        }
        for _ in 0..5 {
            transfer(&node, &mine, began).unwrap();
        }
    }
    assert!(began.elapsed() < 4 * LONG, "it is stuck in every round");
}

#[test]
fn coordinators_that_are_killed_leave_nothing_locked_over_shared_memory() {
    killed_coordinators("shm");
}

#[test]
fn coordinators_that_are_killed_leave_nothing_locked_over_udp() {
    killed_coordinators("udp");
}
