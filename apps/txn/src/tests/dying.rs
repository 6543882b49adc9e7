//! A node dies at every step of a commit in a database that has copies, and the others settle its
//! log: the transaction is there, or nothing of it.

use super::Defect;
use crate::inputs::{Remote, Terminal};
use crate::random::{Constants, Random};
use crate::transactions::{Kind, delivery, new_order, payment};
use crate::{
    Condition, Copies, Counts, Engine, Layout, Locks, Report, Result, Scale, TxnError, Unwatched,
    check, load,
};
use rackmem::Rack;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

/// More steps than a commit or settling has.
const MOST: usize = 200;
/// Who dies.
pub(super) const DEAD: usize = 2;
/// Who settles its logs.
pub(super) const LIVES: usize = 0;

/// At which step a node dies.
#[derive(Debug)]
pub(crate) struct Dying {
    node: usize,
    left: AtomicUsize,
    /// Its threads keep the locks that they have, as those of a dead process do. Otherwise it only
    /// seems to be dead.
    pub stays_inside: bool,
}

impl Dying {
    /// After so many steps.
    pub fn after(steps: usize, node: usize) -> Dying {
        Dying {
            node,
            left: AtomicUsize::new(steps),
            stays_inside: false,
        }
    }

    pub fn moment(&self, node: usize) -> Result<()> {
        let less = |left: usize| left.checked_sub(1);
        match node == self.node && self.left.fetch_update(SeqCst, SeqCst, less).is_err() {
            true => Err(TxnError::Broken {
                what: "its node is dead",
            }),
            false => Ok(()),
        }
    }
}

/// Whose records are of several blocks of 256 bytes.
pub(super) fn database(rack: &Rack) -> Locks {
    let scale = Scale {
        items: 30,
        customers: 10,
        room: 300,
        ..Scale::of(2)
    };
    let layout = Layout::new(scale, rack.nodes().len()).unwrap();
    let copies = Copies {
        copies: 3,
        terminals: 2 * MOST,
    };
    let engine = Locks::with_copies(rack.nodes(), layout, &copies).unwrap();
    load(&engine, 5, &Unwatched).unwrap();
    engine
}

fn terminal(engine: &Locks) -> Terminal {
    Terminal {
        w: 1,
        d: 1,
        scale: engine.layout().scale,
        remote: Remote::Share(50),
        random: Random::new(5, 77, Constants::to_run(5)),
    }
}

/// A transaction of the node that dies.
fn ask(engine: &Locks, terminal: &mut Terminal, kind: Kind) -> Result<()> {
    let layout = engine.layout();
    match kind {
        Kind::NewOrder => {
            let mut order = terminal.new_order(7);
            order.lines.retain(|line| line.item <= layout.scale.items);
            let run = &mut |it: &mut dyn crate::Access| new_order::run(it, layout, &order);
            engine.transact(DEAD, run).map(drop)
        }
        Kind::Delivery => {
            let delivery = terminal.delivery(7);
            let d = terminal.d;
            terminal.d = d % 10 + 1;
            let run = &mut |it: &mut dyn crate::Access| delivery::run(it, layout, &delivery, d);
            engine.transact(DEAD, run).map(drop)
        }
        _ => {
            let payment = terminal.payment(7);
            let run = &mut |it: &mut dyn crate::Access| payment::run(it, layout, &payment);
            engine.transact(DEAD, run).map(drop)
        }
    }
}

fn counted(engine: &Locks) -> Counts {
    engine.counted(LIVES).unwrap().unwrap()
}

/// What is found when a node dies at this step of a transaction: whether it has died, whether the
/// transaction is there, and the conditions.
fn dies_at(
    engine: &mut Locks,
    terminal: &mut Terminal,
    (kind, step): (Kind, usize),
) -> (bool, bool, Report) {
    let before = counted(engine);
    engine.dying = Some(Dying::after(step, DEAD));
    let has_died = ask(engine, terminal, kind).is_err();
    engine.dying = None;
    engine.bury(LIVES, DEAD as u16).unwrap();
    let after = counted(engine);
    let report = check(engine, &after).unwrap();
    (has_died, after != before, report)
}

const KINDS: [Kind; 3] = [Kind::NewOrder, Kind::Payment, Kind::Delivery];

pub(super) fn rack() -> Rack {
    Rack::builder(3).block_size(256).build().unwrap()
}

#[test]
fn a_commit_that_a_death_cuts_off_is_there_or_nothing_of_it() {
    let rack = rack();
    let mut engine = database(&rack);
    let mut terminal = terminal(&engine);
    for kind in KINDS {
        let (mut absent, mut there) = (0, 0);
        for step in 0.. {
            assert!(step < MOST, "{kind:?} has more steps");
            let (has_died, is_there, report) = dies_at(&mut engine, &mut terminal, (kind, step));
            assert!(report.holds(), "{kind:?}, step {step}: {report:?}");
            if !has_died {
                assert!(is_there, "{kind:?} has returned");
                break;
            }
            absent += u64::from(!is_there);
            there += u64::from(is_there);
        }
        assert!(absent > 0 && there > 1, "{kind:?}: {absent}, {there}");
    }
}

/// Who settles dies as well, at every step of it, and the next one settles the same log.
#[test]
fn a_settler_may_die_too() {
    let rack = rack();
    let mut engine = database(&rack);
    let mut terminal = terminal(&engine);
    for kind in KINDS {
        for step in 0.. {
            assert!(step < MOST, "{kind:?} has more steps");
            // It has committed, and written some of its cells.
            engine.dying = Some(Dying::after(12, DEAD));
            let _ = ask(&engine, &mut terminal, kind);
            engine.dying = Some(Dying::after(step, 1));
            let has_died = engine.bury(1, DEAD as u16).is_err();
            engine.dying = None;
            engine.bury(LIVES, DEAD as u16).unwrap();
            let report = check(&engine, &counted(&engine)).unwrap();
            assert!(report.holds(), "{kind:?}, step {step}: {report:?}");
            if !has_died {
                break;
            }
        }
    }
}

/// A log that is settled late, when others have changed its cells, changes nothing.
#[test]
fn what_was_done_long_ago_is_not_done_again() {
    let rack = rack();
    let engine = database(&rack);
    let mut terminal = terminal(&engine);
    for kind in KINDS {
        ask(&engine, &mut terminal, kind).unwrap();
    }
    let layout = engine.layout();
    for _ in 0..30 {
        let (order, payment) = (terminal.new_order(8), terminal.payment(8));
        let order = &mut |it: &mut dyn crate::Access| new_order::run(it, layout, &order);
        engine.transact(1, order).unwrap();
        let payment = &mut |it: &mut dyn crate::Access| payment::run(it, layout, &payment);
        engine.transact(LIVES, payment).unwrap();
    }
    engine.bury(LIVES, DEAD as u16).unwrap();
    let report = check(&engine, &counted(&engine)).unwrap();
    assert!(report.holds(), "{report:?}");
}

#[test]
fn a_commit_without_a_log_is_noticed() {
    let rack = rack();
    let mut engine = database(&rack);
    engine.defect = Some(Defect::Unlogged);
    let mut terminal = terminal(&engine);
    let (has_died, _, report) = dies_at(&mut engine, &mut terminal, (Kind::Payment, 2));
    assert!(has_died);
    let sums = [
        Condition::WarehouseYtd,
        Condition::DistrictHistory,
        Condition::Balance,
    ];
    let broken = sums.iter().any(|it| report.of(*it).broken > 0);
    assert!(broken, "{report:?}");
}
