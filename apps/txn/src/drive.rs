//! Terminals at work: each is a thread of a node, has a warehouse, and asks for one transaction
//! after the other, without a pause.

use crate::access::{Access, Step};
use crate::engine::{Engine, Outcome};
use crate::error::{Result, TxnError};
use crate::inputs::{Remote, Terminal};
use crate::load::Watch;
use crate::random::{Constants, Random};
use crate::scale::DISTRICTS;
use crate::tally::{Deed, Tally};
use crate::transactions::{Kind, delivery, new_order, order_status, payment, stock_level};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// The streams of random numbers of terminals begin here; those before are the loader's.
const FIRST_STREAM: u64 = 1 << 40;

/// When a run is over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Limit {
    /// After this time.
    Time(Duration),
    /// When each terminal has asked for so many.
    Transactions(u64),
}

/// What terminals are to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Plan {
    /// Terminals of each node.
    pub threads: usize,
    /// When they end.
    pub limit: Limit,
    /// How often they want something of another warehouse.
    pub remote: Remote,
    /// Another seed is other orders.
    pub seed: u64,
    /// Transactions of each terminal that are remembered, to be judged.
    pub deeds: usize,
}

/// What a run has come to.
#[derive(Clone, Debug)]
pub struct Done {
    /// Transactions.
    pub tally: Tally,
    /// How long it took.
    pub time: Duration,
}

impl Done {
    /// New orders a minute that have committed.
    pub fn tpm_c(&self) -> f64 {
        let orders = self.tally.of(Kind::NewOrder).committed;
        orders as f64 * 60.0 / self.time.as_secs_f64().max(f64::MIN_POSITIVE)
    }
}

/// Runs all terminals of this process's nodes.
///
/// # Errors
/// The first of a terminal; the others are stopped.
pub fn drive<E: Engine>(engine: &E, plan: &Plan, watch: &dyn Watch) -> Result<Done> {
    let (done, error) = drive_since(engine, plan, watch, Instant::now());
    error.map_or(Ok(done), Err)
}

/// The same, as a run that began then: deeds of several engines have one time. What terminals have
/// done before an error is there, too.
pub fn drive_since<E: Engine>(
    engine: &E,
    plan: &Plan,
    watch: &dyn Watch,
    began: Instant,
) -> (Done, Option<TxnError>) {
    let nodes = engine.nodes().len();
    let run = Run {
        engine,
        plan,
        watch,
        began,
        has_failed: AtomicBool::new(false),
    };
    let tallies: Vec<(Tally, Option<TxnError>)> = std::thread::scope(|scope| {
        let all = (0..nodes).flat_map(|node| (0..plan.threads).map(move |nth| (node, nth)));
        let run = &run;
        let threads: Vec<_> = all
            .map(|(node, nth)| scope.spawn(move || run.terminal(node, nth)))
            .collect();
        let joined = threads.into_iter().map(|thread| thread.join());
        joined
            .map(|it| it.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    });
    let time = run.began.elapsed();
    let (mut tally, mut first) = (Tally::default(), None);
    for (one, error) in tallies {
        tally.add(one);
        first = first.or(error);
    }
    (Done { tally, time }, first)
}

struct Run<'a, E> {
    engine: &'a E,
    plan: &'a Plan,
    watch: &'a dyn Watch,
    began: Instant,
    has_failed: AtomicBool,
}

impl<E: Engine> Run<'_, E> {
    fn is_over(&self, asked: u64) -> bool {
        let at_limit = match self.plan.limit {
            Limit::Time(time) => self.began.elapsed() >= time,
            Limit::Transactions(most) => asked >= most,
        };
        at_limit || self.has_failed.load(Relaxed) || self.watch.stop()
    }

    /// The nth terminal of a node has a warehouse of that node, if there is one.
    fn terminal(&self, node: usize, nth: usize) -> (Tally, Option<TxnError>) {
        let layout = self.engine.layout();
        let scale = layout.scale;
        let home = usize::from(self.engine.nodes()[node].id());
        let all = 1..=scale.warehouses;
        let here: Vec<u32> = all.filter(|w| layout.home(*w) == home).collect();
        let place = home * self.plan.threads + nth;
        let w = match here.is_empty() {
            true => place as u32 % scale.warehouses + 1,
            false => here[nth % here.len()],
        };
        let (seed, stream) = (self.plan.seed, FIRST_STREAM + place as u64);
        let mut desk = Desk {
            run: self,
            node,
            place,
            terminal: Terminal {
                w,
                d: place as u32 % DISTRICTS + 1,
                scale,
                remote: self.plan.remote,
                random: Random::new(seed, stream, Constants::to_run(seed)),
            },
            tally: Tally::default(),
        };
        let mut asked = 0;
        while !self.is_over(asked) {
            asked += 1;
            if let Err(error) = desk.serve() {
                self.has_failed.store(true, Relaxed);
                return (desk.tally, Some(error));
            }
            self.watch.ran();
        }
        (desk.tally, None)
    }
}

/// A terminal, and what it has done.
struct Desk<'r, 'a, E> {
    run: &'r Run<'a, E>,
    node: usize,
    /// Its number among the terminals of the rack.
    place: usize,
    terminal: Terminal,
    tally: Tally,
}

impl<E: Engine> Desk<'_, '_, E> {
    /// A time, for records: it rises.
    fn now(&self) -> u64 {
        crate::generate::LOADED + 1 + self.run.began.elapsed().as_millis() as u64
    }

    fn serve(&mut self) -> Result<()> {
        let kind = Kind::drawn(self.terminal.random.within(0, 99));
        let (began, now) = (Instant::now(), self.now());
        match kind {
            Kind::NewOrder => self.new_order(now)?,
            Kind::Payment => self.payment(now)?,
            Kind::OrderStatus => self.order_status()?,
            Kind::Delivery => self.delivery(now)?,
            Kind::StockLevel => self.stock_level()?,
        }
        self.tally.row(kind).took(began.elapsed());
        Ok(())
    }

    /// Runs a part of a transaction of the five.
    fn transact<R>(
        &mut self,
        kind: Kind,
        body: &mut dyn FnMut(&mut dyn Access) -> Step<R>,
    ) -> Result<Option<R>> {
        let since = |it: Instant| it.elapsed().as_nanos() as u64;
        let invoke = since(self.run.began);
        let (watch, place) = (self.run.watch, self.place);
        let wants_open = watch.wants_open();
        let mut told = |access: &mut dyn Access| {
            let value = body(access)?;
            if wants_open {
                let (returned, footprint) = (None, access.footprint());
                watch.commits(
                    place,
                    &Deed {
                        invoke,
                        returned,
                        footprint,
                    },
                );
            }
            Ok(value)
        };
        let outcome: Outcome<R> = self.run.engine.transact(self.node, &mut told)?;
        let row = self.tally.row(kind);
        for (sum, more) in row.aborts.iter_mut().zip(outcome.aborts) {
            *sum += more;
        }
        if outcome.value.is_some() {
            let deed = Deed {
                invoke,
                returned: Some(since(self.run.began)),
                footprint: outcome.footprint,
            };
            watch.committed(place, &deed);
            if self.tally.deeds.len() < self.run.plan.deeds {
                self.tally.deeds.push(deed);
            }
        }
        Ok(outcome.value)
    }

    fn new_order(&mut self, now: u64) -> Result<()> {
        let (kind, order) = (Kind::NewOrder, self.terminal.new_order(now));
        let layout = self.run.engine.layout();
        let placed = self.transact(kind, &mut |it| new_order::run(it, layout, &order))?;
        let row = self.tally.row(kind);
        match placed {
            Some(_) => row.committed += 1,
            None => row.rolled_back += 1,
        }
        Ok(())
    }

    fn payment(&mut self, now: u64) -> Result<()> {
        let (kind, payment) = (Kind::Payment, self.terminal.payment(now));
        let layout = self.run.engine.layout();
        self.transact(kind, &mut |it| payment::run(it, layout, &payment))?;
        self.tally.row(kind).committed += 1;
        Ok(())
    }

    fn order_status(&mut self) -> Result<()> {
        let (kind, asked) = (Kind::OrderStatus, self.terminal.order_status());
        let layout = self.run.engine.layout();
        self.transact(kind, &mut |it| order_status::run(it, layout, &asked))?;
        self.tally.row(kind).committed += 1;
        Ok(())
    }

    fn delivery(&mut self, now: u64) -> Result<()> {
        let (kind, delivery) = (Kind::Delivery, self.terminal.delivery(now));
        let layout = self.run.engine.layout();
        for d in 1..=DISTRICTS {
            let order = self.transact(kind, &mut |it| delivery::run(it, layout, &delivery, d))?;
            match order.flatten() {
                Some(_) => self.tally.delivered += 1,
                None => self.tally.row(kind).skipped += 1,
            }
        }
        self.tally.row(kind).committed += 1;
        Ok(())
    }

    fn stock_level(&mut self) -> Result<()> {
        let (kind, threshold) = (Kind::StockLevel, self.terminal.threshold());
        let (w, d) = (self.terminal.w, self.terminal.d);
        let layout = self.run.engine.layout();
        let items = self.transact(kind, &mut |it| stock_level::items(it, layout, (w, d)))?;
        let items = items.unwrap_or_default();
        self.transact(kind, &mut |it| {
            stock_level::few(it, layout, (w, threshold), &items)
        })?;
        self.tally.row(kind).committed += 1;
        Ok(())
    }
}
