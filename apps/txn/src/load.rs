//! Loading: each node makes the rows of the warehouses that are at home there, and its items.

use crate::access::{Access, Halt, Step, known};
use crate::engine::{Direct, Engine};
use crate::error::{Result, TxnError};
use crate::generate;
use crate::keys;
use crate::random::{Constants, Random};
use crate::scale::DISTRICTS;
use crate::schema::{DistrictTakings, NextOrder, Takings};
use crate::tally::Deed;
use rackmem::Value;
use zerocopy::IntoBytes;

/// The stream of random numbers of items; those of warehouses have their numbers.
const ITEMS_STREAM: u64 = 0;

/// What can be told while a database is loaded or used, by several threads.
pub trait Watch: Sync {
    /// One of `steps` steps of loading has been done.
    fn loaded(&self, steps: u64) {
        let _ = steps;
    }

    /// A terminal has done one more transaction.
    fn ran(&self) {}

    /// Whether to end.
    fn stop(&self) -> bool {
        false
    }

    /// A transaction of a terminal has committed.
    fn committed(&self, terminal: usize, deed: &Deed) {
        let _ = (terminal, deed);
    }

    /// One is going to commit: it is cut off here if its node dies. It may be told again, of others
    /// versions.
    fn commits(&self, terminal: usize, deed: &Deed) {
        let _ = (terminal, deed);
    }

    /// Whether that is to be told.
    fn wants_open(&self) -> bool {
        false
    }
}

/// Nobody watches.
#[derive(Clone, Copy, Debug)]
pub struct Unwatched;

impl Watch for Unwatched {}

/// Makes the rows of this process's nodes, by a thread for each. If `watch` ends it, rows are
/// missing.
///
/// # Errors
/// Those of the rack.
pub fn load<E: Engine>(engine: &E, seed: u64, watch: &dyn Watch) -> Result<()> {
    let nodes = 0..engine.nodes().len();
    std::thread::scope(|scope| {
        let start = |node| scope.spawn(move || load_at(engine, node, seed, watch));
        let threads: Vec<_> = nodes.map(start).collect();
        let join = |thread: std::thread::ScopedJoinHandle<'_, Result<()>>| match thread.join() {
            Ok(loaded) => loaded,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        threads.into_iter().try_for_each(join)
    })
}

/// Makes the rows that are at home at a node, by the first node of this process:
/// of one that has died while the database was loaded, where it outlives nodes.
/// What that one has made is made again, and is the same.
///
/// # Errors
/// Those of [`load`].
pub fn load_for<E: Engine>(engine: &E, home: usize, seed: u64, watch: &dyn Watch) -> Result<()> {
    load_home(engine, (0, home), seed, watch)
}

fn load_at<E: Engine>(engine: &E, node: usize, seed: u64, watch: &dyn Watch) -> Result<()> {
    let home = usize::from(engine.nodes()[node].id());
    load_home(engine, (node, home), seed, watch)
}

fn load_home<E: Engine>(
    engine: &E,
    (node, home): (usize, usize),
    seed: u64,
    watch: &dyn Watch,
) -> Result<()> {
    let layout = engine.layout();
    let constants = Constants::to_load(seed);
    let steps = u64::from(layout.scale.warehouses * DISTRICTS);
    let mut maker = Maker {
        engine,
        node,
        home,
        random: Random::new(seed, ITEMS_STREAM + ((home as u64) << 32), constants),
    };
    maker.items()?;
    let here = (1..=layout.scale.warehouses).filter(|w| layout.home(*w) == home);
    for w in here {
        maker.random = Random::new(seed, u64::from(w), constants);
        maker.warehouse(w)?;
        for d in 1..=DISTRICTS {
            if watch.stop() {
                return Ok(());
            }
            maker.district(w, d).map_err(failed)?;
            watch.loaded(steps);
        }
    }
    engine.rest(node, home)
}

/// Nobody else is there who could be in the way.
fn failed(halt: Halt) -> TxnError {
    match halt {
        Halt::Failed(error) => error,
        Halt::Abort(_) | Halt::Rollback => TxnError::Broken {
            what: "something else is going on while the database is loaded",
        },
    }
}

struct Maker<'e, E> {
    engine: &'e E,
    node: usize,
    home: usize,
    random: Random,
}

impl<E: Engine> Maker<'_, E> {
    fn put<T: Value>(&self, cell: Option<crate::layout::Cell>, record: T) -> Result<()> {
        let cell = known(cell).map_err(failed)?;
        self.engine.poke(self.node, cell, record.as_bytes())
    }

    fn items(&mut self) -> Result<()> {
        let layout = self.engine.layout();
        for i in 1..=layout.scale.items {
            let cell = layout.item(i);
            let is_here = cell.is_some_and(|cell| usize::from(cell.home) == self.home);
            if is_here {
                let item = generate::item(&mut self.random, i);
                self.put(cell, item)?;
            }
        }
        Ok(())
    }

    fn warehouse(&mut self, w: u32) -> Result<()> {
        let layout = self.engine.layout();
        let ytd = generate::PAID * i64::from(layout.scale.customers * DISTRICTS);
        let place = generate::place(&mut self.random);
        self.put(layout.place(w), place)?;
        self.put(layout.takings(w), Takings { ytd })?;
        for i in 1..=layout.scale.items {
            let stock = generate::stock(&mut self.random);
            self.put(layout.stock(w, i), stock)?;
        }
        Ok(())
    }

    fn district(&mut self, w: u32, d: u32) -> Step<()> {
        let layout = self.engine.layout();
        let customers = layout.scale.customers;
        let takings = DistrictTakings {
            ytd: generate::PAID * i64::from(customers),
            payments: u64::from(customers),
        };
        let o_id = u64::from(customers) + 1;
        let place = generate::place(&mut self.random);
        self.put(layout.district(w, d), place)?;
        self.put(layout.district_takings(w, d), takings)?;
        self.put(layout.next_order(w, d), NextOrder { o_id })?;
        let mut pages = Direct::loading(self.engine, self.node);
        self.customers(&mut pages, (w, d))?;
        self.orders(&mut pages, (w, d))?;
        pages.flush()?;
        Ok(())
    }

    fn customers(&mut self, pages: &mut dyn Access, (w, d): (u32, u32)) -> Step<()> {
        let layout = self.engine.layout();
        let ordered = layout.ordered(w, d).ok_or_else(no_district)?;
        for c in 1..=layout.scale.customers {
            let customer = generate::customer(&mut self.random, &layout.scale, c);
            self.put(layout.customer(w, d, c), customer)?;
            let name = keys::name(&customer.last, &customer.first, c);
            ordered.names.insert(pages, &name, &[])?;
            let payment = generate::payment(&mut self.random, (w, d, c));
            let key = keys::payment(u64::from(c));
            ordered.history.insert(pages, &key, payment.as_bytes())?;
        }
        Ok(())
    }

    /// Each customer has one, in a random order.
    fn orders(&mut self, pages: &mut dyn Access, (w, d): (u32, u32)) -> Step<()> {
        let layout = self.engine.layout();
        let scale = &layout.scale;
        let ordered = layout.ordered(w, d).ok_or_else(no_district)?;
        let customers = self.random.permutation(scale.customers);
        for (o, c) in (1..).zip(customers) {
            let order = generate::order(&mut self.random, scale, (o, c));
            let key = keys::order(o);
            ordered.orders.insert(pages, &key, order.as_bytes())?;
            let of_customer = keys::customers_order(c, o);
            ordered.by_customer.insert(pages, &of_customer, &[])?;
            if order.carrier == 0 {
                ordered.new_orders.insert(pages, &key, &[])?;
            }
            for nth in 1..=order.ol_cnt {
                let line = generate::line(&mut self.random, scale, (w, o));
                let key = keys::pair(o, nth);
                ordered.lines.insert(pages, &key, line.as_bytes())?;
            }
        }
        Ok(())
    }
}

fn no_district() -> Halt {
    crate::access::broken("there is no such district")
}
