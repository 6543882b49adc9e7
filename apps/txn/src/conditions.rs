//! The specification's conditions of consistency (3.3.2), and some of our own, on a database that
//! nobody uses meanwhile. All rows are read.

use crate::access::{Access, Halt, Step, broken, get, record};
use crate::engine::{Direct, Engine, nearest};
use crate::error::{Result, TxnError};
use crate::keys;
use crate::layout::{Layout, Ordered};
use crate::scale::DISTRICTS;
use crate::schema::{
    Customer, DistrictTakings, History, NextOrder, Order, OrderLine, Stock, Takings,
};
use crate::tally::Counts;
use crate::tree::Tree;
use rackmem::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Declares conditions: what they are called, and what they say.
macro_rules! conditions {
    ($($name:ident, $number:literal, $text:literal;)*) => {
        /// A condition.
        #[allow(missing_docs)]
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Condition { $($name,)* }

        impl Condition {
            /// All of them; their number in the specification, or their own name; what they say.
            pub const ALL: &'static [(Condition, &'static str, &'static str)] =
                &[$((Condition::$name, $number, $text),)*];
        }
    };
}

conditions! {
    WarehouseYtd, "1", "W_YTD is the sum of D_YTD";
    LastOrder, "2", "D_NEXT_O_ID - 1 is the last order and the last new order";
    NewOrdersRow, "3", "new orders have consecutive numbers";
    LinesOfDistrict, "4", "the sum of O_OL_CNT is the number of order lines of the district";
    Carrier, "5", "an order has a carrier unless it is a new order";
    LinesOfOrder, "6", "O_OL_CNT is the number of the order's lines";
    DeliveredLines, "7", "a line is delivered if its order has a carrier";
    WarehouseHistory, "8", "W_YTD is the sum of H_AMOUNT";
    DistrictHistory, "9", "D_YTD is the sum of H_AMOUNT";
    Balance, "10", "C_BALANCE is what was delivered less what was paid";
    Counted, "11", "orders, new orders and payments are those of loading and those that committed";
    BalanceAndPaid, "12", "C_BALANCE and C_YTD_PAYMENT are what was delivered";
    StockTaken, "stock", "S_YTD and S_ORDER_CNT are what the new order lines have taken";
    Indexes, "index", "indexes of names and of customers' orders have all rows, and no others";
}

/// What was found of one condition.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Finding {
    /// Where it does not hold.
    pub broken: u64,
    /// The first of these.
    pub first: Option<String>,
}

/// What was found of all conditions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Report {
    findings: Vec<Finding>,
}

impl Report {
    /// What another process has found: in the order of [`Condition::ALL`]; nothing is found where
    /// there are fewer.
    pub fn of_findings(mut findings: Vec<Finding>) -> Report {
        findings.resize(Condition::ALL.len(), Finding::default());
        Report { findings }
    }

    /// Of all conditions, in the order of [`Condition::ALL`].
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// Of one condition.
    pub fn of(&self, condition: Condition) -> &Finding {
        &self.findings[condition as usize]
    }

    /// Whether all hold.
    pub fn holds(&self) -> bool {
        self.findings.iter().all(|finding| finding.broken == 0)
    }

    fn expect(&mut self, condition: Condition, holds: bool, place: impl FnOnce() -> String) {
        if !holds {
            let finding = &mut self.findings[condition as usize];
            finding.broken += 1;
            finding.first.get_or_insert_with(place);
        }
    }

    /// That two numbers are the same.
    fn same(&mut self, condition: Condition, place: &str, (one, other): (i64, i64)) {
        self.expect(condition, one == other, || {
            format!("{place}: {one}, {other}")
        });
    }
}

/// Checks all conditions, after what terminals have done since the database was loaded.
///
/// # Errors
/// Those of the rack, and [`TxnError::Broken`] where an index cannot be read.
pub fn check<E: Engine>(engine: &E, done: &Counts) -> Result<Report> {
    let scale = engine.layout().scale;
    let mut audit = Audit {
        engine,
        report: Report::of_findings(Vec::new()),
        paid: BTreeMap::new(),
        delivered: BTreeMap::new(),
        taken: BTreeMap::new(),
        counted: [0; 3],
    };
    let audited = (1..=scale.warehouses).try_for_each(|w| audit.warehouse(w));
    let audited = audited.and_then(|()| {
        audit.counts(done);
        (1..=scale.warehouses).try_for_each(|w| audit.customers_and_stock(w))
    });
    match audited {
        Ok(()) => Ok(audit.report),
        Err(Halt::Failed(error)) => Err(error),
        Err(Halt::Abort(_) | Halt::Rollback) => Err(TxnError::Broken {
            what: "something else is going on while the database is checked",
        }),
    }
}

/// Who: warehouse, district, customer.
type Who = (u32, u32, u32);

struct Audit<'e, E> {
    engine: &'e E,
    report: Report,
    paid: BTreeMap<Who, i64>,
    delivered: BTreeMap<Who, i64>,
    /// By warehouse and item: how many, by how many lines.
    taken: BTreeMap<(u32, u32), (u64, u64)>,
    /// Orders, new orders, payments.
    counted: [u64; 3],
}

/// Rows of a district, as far as conditions are about them.
#[derive(Default)]
struct Rows {
    orders: BTreeMap<u32, Order>,
    new_orders: BTreeSet<u32>,
    /// Lines of each order.
    lines: BTreeMap<u32, u32>,
}

/// What is done with a row: its key and its value.
type EachRow<'a> = dyn FnMut(&[u8], &[u8]) -> Step<()> + 'a;

/// All rows of an index.
fn rows(access: &mut dyn Access, tree: &Tree, each: &mut EachRow<'_>) -> Step<()> {
    let (from, to) = (vec![0; tree.shape.key], vec![u8::MAX; tree.shape.key]);
    let mut result = Ok(());
    tree.scan(access, (&from, &to), &mut |key, value| {
        result = each(key, value);
        result.is_ok()
    })?;
    result
}

impl<E: Engine> Audit<'_, E> {
    fn layout(&self) -> &Layout {
        self.engine.layout()
    }

    fn warehouse(&mut self, w: u32) -> Step<()> {
        let engine = self.engine;
        let mut direct = Direct::new(engine, nearest(engine, self.layout().home(w)));
        let takings: Takings = get(&mut direct, self.layout().takings(w))?;
        let (mut of_districts, mut of_history) = (0, 0);
        for d in 1..=DISTRICTS {
            let (ytd, history) = self.district(w, d)?;
            of_districts += ytd;
            of_history += history;
        }
        let (place, report) = (format!("warehouse {w}"), &mut self.report);
        report.same(Condition::WarehouseYtd, &place, (takings.ytd, of_districts));
        report.same(
            Condition::WarehouseHistory,
            &place,
            (takings.ytd, of_history),
        );
        Ok(())
    }

    /// The district's takings, by its own record and by its history.
    fn district(&mut self, w: u32, d: u32) -> Step<(i64, i64)> {
        let (engine, place) = (self.engine, format!("warehouse {w} district {d}"));
        let layout = engine.layout();
        let mut direct = Direct::new(engine, nearest(engine, layout.home(w)));
        let of = layout.ordered(w, d);
        let of = of.ok_or_else(|| broken("there is no such district"))?;
        let takings: DistrictTakings = get(&mut direct, layout.district_takings(w, d))?;
        let next: NextOrder = get(&mut direct, layout.next_order(w, d))?;
        let found = self.orders(&mut direct, of, (w, d))?;
        let history = self.history(&mut direct, of)?;
        self.numbers(&place, &found, next.o_id);
        self.indexes(&mut direct, of, (&found, &place))?;
        let both = (takings.ytd, history);
        self.report.same(Condition::DistrictHistory, &place, both);
        Ok((takings.ytd, history))
    }

    /// Orders, new orders and lines.
    fn orders(&mut self, access: &mut dyn Access, of: &Ordered, (w, d): (u32, u32)) -> Step<Rows> {
        let (mut found, loaded) = (Rows::default(), self.layout().scale.customers);
        rows(access, &of.orders, &mut |key, value| {
            found.orders.insert(keys::order_of(key), record(value)?);
            Ok(())
        })?;
        rows(access, &of.new_orders, &mut |key, _| {
            found.new_orders.insert(keys::order_of(key));
            Ok(())
        })?;
        rows(access, &of.lines, &mut |key, value| {
            let (o, line): (u32, OrderLine) = (keys::order_of(key), record(value)?);
            *found.lines.entry(o).or_default() += 1;
            let order = found.orders.get(&o);
            let is_delivered = order.is_some_and(|order| order.carrier > 0);
            let agrees = is_delivered == (line.delivery_d > 0);
            let place = || format!("warehouse {w} district {d} order {o}");
            self.report.expect(Condition::DeliveredLines, agrees, place);
            if let Some(order) = order.filter(|_| line.delivery_d > 0) {
                let who = (w, d, order.c_id);
                *self.delivered.entry(who).or_default() += line.amount;
            }
            if o > loaded {
                let taken = self.taken.entry((line.supply_w, line.i_id)).or_default();
                *taken = (taken.0 + u64::from(line.quantity), taken.1 + 1);
            }
            Ok(())
        })?;
        self.counted[0] += found.orders.len() as u64;
        self.counted[1] += found.new_orders.len() as u64;
        Ok(found)
    }

    fn history(&mut self, access: &mut dyn Access, of: &Ordered) -> Step<i64> {
        let mut sum = 0;
        rows(access, &of.history, &mut |_, value| {
            let row: History = record(value)?;
            sum += row.amount;
            self.counted[2] += 1;
            *self.paid.entry((row.c_w, row.c_d, row.c_id)).or_default() += row.amount;
            Ok(())
        })?;
        Ok(sum)
    }

    /// Numbers of orders and of their lines.
    fn numbers(&mut self, place: &str, found: &Rows, next: u64) {
        let report = &mut self.report;
        let last = next as i64 - 1;
        let newest = found.orders.keys().next_back();
        let newest = newest.map_or(0, |o| i64::from(*o));
        report.same(Condition::LastOrder, place, (last, newest));
        if let (Some(first), Some(end)) = (found.new_orders.first(), found.new_orders.last()) {
            report.same(Condition::LastOrder, place, (last, i64::from(*end)));
            let count = found.new_orders.len() as i64;
            let range = i64::from(end - first) + 1;
            report.same(Condition::NewOrdersRow, place, (range, count));
        }
        let wanted: i64 = found.orders.values().map(|it| i64::from(it.ol_cnt)).sum();
        let there: i64 = found.lines.values().map(|it| i64::from(*it)).sum();
        report.same(Condition::LinesOfDistrict, place, (wanted, there));
        for (o, order) in &found.orders {
            let is_new = found.new_orders.contains(o);
            let place = || format!("{place} order {o}");
            report.expect(Condition::Carrier, is_new == (order.carrier == 0), place);
            let lines = found.lines.get(o).copied().unwrap_or_default();
            report.expect(Condition::LinesOfOrder, lines == order.ol_cnt, place);
        }
    }

    fn indexes(
        &mut self,
        access: &mut dyn Access,
        of: &Ordered,
        (found, place): (&Rows, &str),
    ) -> Step<()> {
        let (mut orders, mut names) = (0, 0);
        rows(access, &of.by_customer, &mut |key, _| {
            let (c, o) = (keys::order_of(key), !keys::second_of(key));
            let order = found.orders.get(&o);
            orders += i64::from(order.is_some_and(|order| order.c_id == c));
            Ok(())
        })?;
        rows(access, &of.names, &mut |_, _| {
            names += 1;
            Ok(())
        })?;
        let customers = i64::from(self.layout().scale.customers);
        let report = &mut self.report;
        let both = (found.orders.len() as i64, orders);
        report.same(Condition::Indexes, place, both);
        report.same(Condition::Indexes, place, (customers, names));
        Ok(())
    }

    /// What is there beside what terminals know to have done.
    fn counts(&mut self, done: &Counts) {
        let scale = self.layout().scale;
        let districts = u64::from(scale.warehouses * DISTRICTS);
        let loaded = districts * u64::from(scale.customers);
        let undelivered = districts * u64::from(scale.customers - scale.delivered());
        let wanted = [
            ("orders", loaded + done.orders),
            (
                "new orders",
                (undelivered + done.orders).saturating_sub(done.delivered),
            ),
            ("payments", loaded + done.payments),
        ];
        for ((what, wanted), is) in wanted.into_iter().zip(self.counted) {
            let both = (wanted as i64, is as i64);
            self.report.same(Condition::Counted, what, both);
        }
    }

    fn customers_and_stock(&mut self, w: u32) -> Step<()> {
        let (engine, scale) = (self.engine, self.layout().scale);
        let (layout, home) = (engine.layout(), nearest(engine, self.layout().home(w)));
        for (d, c) in (1..=DISTRICTS).flat_map(|d| (1..=scale.customers).map(move |c| (d, c))) {
            let row: Customer = look(engine, home, layout.customer(w, d, c))?;
            let paid = self.paid.get(&(w, d, c)).copied().unwrap_or_default();
            let owed = self.delivered.get(&(w, d, c)).copied().unwrap_or_default();
            let place = || format!("warehouse {w} district {d} customer {c}");
            let holds = row.balance == owed - paid;
            self.report.expect(Condition::Balance, holds, place);
            let holds = row.balance + row.ytd_payment == owed;
            self.report.expect(Condition::BalanceAndPaid, holds, place);
        }
        for i in 1..=scale.items {
            let row: Stock = look(engine, home, layout.stock(w, i))?;
            let taken = self.taken.get(&(w, i)).copied().unwrap_or_default();
            let holds = taken == (u64::from(row.ytd), u64::from(row.order_cnt));
            let place = || format!("warehouse {w} item {i}");
            self.report.expect(Condition::StockTaken, holds, place);
        }
        Ok(())
    }
}

fn look<T: Value>(engine: &impl Engine, node: usize, cell: Option<crate::layout::Cell>) -> Step<T> {
    record(&engine.peek(node, crate::access::known(cell)?)?)
}
