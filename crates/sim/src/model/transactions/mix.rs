//! The five transactions of TPC-C in the standard mix, each as what `rackmem-txn` locks for it,
//! in that order.

use super::database::{Cell, DISTRICTS, Database, Index, LINES, Table};
use crate::world::Random;

/// Percent of customers that are told by their last name.
const BY_NAME: u32 = 60;
/// Of a hundred orders, those that are taken back.
const WRONG: u32 = 1;
/// Orders that Stock-Level looks at.
const LAST: u32 = 20;
/// Numbers by which the specification draws customers and items unevenly, of 3,000 and of 100,000.
const UNEVEN_CUSTOMERS: (u32, u32) = (1023, 3_000);
const UNEVEN_ITEMS: (u32, u32) = (8191, 100_000);

/// Something that a transaction needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Need {
    /// A cell that it reads.
    Read(Cell),
    /// A cell that it changes.
    Write(Cell),
    /// A block that never changes, without a lock.
    Constant(u32),
}

impl Need {
    /// The block.
    pub fn block(self) -> u32 {
        match self {
            Need::Read(cell) | Need::Write(cell) => cell.block,
            Need::Constant(block) => block,
        }
    }

    /// The lock, if there is one, and whether it is to write.
    pub fn lock(self) -> Option<(u32, bool)> {
        match self {
            Need::Read(cell) => Some((cell.lock, false)),
            Need::Write(cell) => Some((cell.lock, true)),
            Need::Constant(_) => None,
        }
    }
}

/// Which of the five.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Order several items.
    NewOrder,
    /// Pay something.
    Payment,
    /// Ask for one's last order.
    OrderStatus,
    /// Deliver the oldest order of each district.
    Delivery,
    /// Count items of which there are few.
    StockLevel,
}

/// What is locked together, from the first lock to the last one.
/// Most transactions are one of these.
pub type Part = Vec<Need>;

/// A district: its next order, the first that is not delivered, and its next payment.
#[derive(Clone, Copy, Debug)]
struct District {
    next: u32,
    oldest: u32,
    payments: u32,
}

/// Who asks for transactions, and has a warehouse.
pub struct Terminal {
    base: Database,
    w: u32,
    /// The one whose stocks it counts.
    d: u32,
    /// Nodes of the rack, over which warehouses go round.
    nodes: u32,
    /// Percent of new orders, with all their lines, and of payments that are of other warehouses.
    remote: u32,
    districts: [District; DISTRICTS as usize],
}

impl Terminal {
    /// One of a warehouse.
    pub fn new(base: Database, w: u32, (nodes, remote): (u32, u32)) -> Self {
        let loaded = District {
            next: base.customers,
            oldest: base.customers - base.customers * 3 / 10,
            payments: base.customers,
        };
        Terminal {
            base,
            w,
            d: w % DISTRICTS,
            nodes: nodes.max(1),
            remote,
            districts: [loaded; DISTRICTS as usize],
        }
    }

    /// The next transaction, by the standard mix: its parts, the first one first.
    pub fn draw(&mut self, random: &mut Random) -> Vec<Part> {
        let kind = match random.below(100) {
            0..45 => Kind::NewOrder,
            45..88 => Kind::Payment,
            88..92 => Kind::OrderStatus,
            92..96 => Kind::Delivery,
            _ => Kind::StockLevel,
        };
        self.of(kind, random)
    }

    /// The parts of a transaction of that kind.
    pub fn of(&mut self, kind: Kind, random: &mut Random) -> Vec<Part> {
        match kind {
            Kind::NewOrder => vec![self.new_order(random)],
            Kind::Payment => vec![self.payment(random)],
            Kind::OrderStatus => vec![self.order_status(random)],
            Kind::Delivery => (0..DISTRICTS).map(|d| self.delivery(d, random)).collect(),
            Kind::StockLevel => self.stock_level(random),
        }
    }

    fn new_order(&mut self, random: &mut Random) -> Part {
        let (w, d) = (self.w, random.below(DISTRICTS.into()) as u32);
        let base = self.base;
        let customer = self.customer(random);
        let mut part = vec![
            Need::Read(base.row(w, Table::Place, 0)),
            Need::Read(base.row(w, Table::District, d)),
            Need::Read(base.row(w, Table::Customer, d * base.customers + customer)),
        ];
        let is_remote = percent(random, self.remote);
        let count = 5 + random.below(11) as u32;
        let lines = (0..count).map(|_| {
            let from = if is_remote { self.elsewhere(random) } else { w };
            (from, uneven(random, UNEVEN_ITEMS, base.items))
        });
        let mut lines: Vec<(u32, u32)> = lines.collect();
        // In the order of stocks, which is the same for all.
        lines.sort_by_key(|(from, item)| (from % self.nodes, *from, *item));
        for (from, item) in lines {
            part.push(Need::Constant(base.item(item)));
            part.push(Need::Write(base.row(from, Table::Stock, item)));
        }
        if percent(random, WRONG) {
            return once(part);
        }
        let district = &mut self.districts[d as usize];
        let order = district.next;
        district.next += 1;
        part.push(Need::Write(base.row(w, Table::NextOrder, d)));
        let of_customer = 2 * customer;
        self.insert(&mut part, d, Index::Orders, order..order + 1);
        self.insert(&mut part, d, Index::NewOrders, order..order + 1);
        self.insert(
            &mut part,
            d,
            Index::ByCustomer,
            of_customer..of_customer + 1,
        );
        let first = order * LINES;
        self.insert(&mut part, d, Index::Lines, first..first + count);
        once(part)
    }

    fn payment(&mut self, random: &mut Random) -> Part {
        let (w, d) = (self.w, random.below(DISTRICTS.into()) as u32);
        let base = self.base;
        let mut part = vec![
            Need::Read(base.row(w, Table::Place, 0)),
            Need::Read(base.row(w, Table::District, d)),
        ];
        let of = match percent(random, self.remote) {
            true => (
                self.elsewhere(random),
                random.below(DISTRICTS.into()) as u32,
            ),
            false => (w, d),
        };
        let customer = self.who(&mut part, of, random);
        part.push(Need::Write(customer));
        part.push(Need::Write(base.row(w, Table::DistrictTakings, d)));
        let payments = &mut self.districts[d as usize].payments;
        let payment = *payments;
        *payments += 1;
        self.insert(&mut part, d, Index::History, payment..payment + 1);
        part.push(Need::Write(base.row(w, Table::Takings, 0)));
        once(part)
    }

    fn order_status(&mut self, random: &mut Random) -> Part {
        let at = (self.w, random.below(DISTRICTS.into()) as u32);
        let mut part = Part::new();
        let customer = self.who(&mut part, at, random);
        part.push(Need::Read(customer));
        let order = self.known(at.1, random);
        self.look(&mut part, at, Index::ByCustomer, order..order + 1);
        self.look(&mut part, at, Index::Orders, order..order + 1);
        self.look(
            &mut part,
            at,
            Index::Lines,
            order * LINES..(order + 1) * LINES,
        );
        once(part)
    }

    /// The oldest order of a district; without one it has only looked.
    fn delivery(&mut self, d: u32, random: &mut Random) -> Part {
        let mut part = Part::new();
        let district = &mut self.districts[d as usize];
        let order = district.oldest;
        if order == district.next {
            self.look(&mut part, (self.w, d), Index::NewOrders, order..order + 1);
            return part;
        }
        district.oldest += 1;
        self.change(&mut part, d, Index::NewOrders, order..order + 1);
        self.change(&mut part, d, Index::Orders, order..order + 1);
        self.change(
            &mut part,
            d,
            Index::Lines,
            order * LINES..(order + 1) * LINES,
        );
        let customer = d * self.base.customers + self.customer(random);
        part.push(Need::Write(self.base.row(
            self.w,
            Table::Customer,
            customer,
        )));
        once(part)
    }

    /// Items of a district's last orders in one part, and then their stocks, each by itself.
    fn stock_level(&mut self, random: &mut Random) -> Vec<Part> {
        let (w, d) = (self.w, self.d);
        let next = self.districts[d as usize].next;
        let mut part = vec![Need::Read(self.base.row(w, Table::NextOrder, d))];
        let lines = next.saturating_sub(LAST) * LINES..next * LINES;
        let mut items: Vec<u32> = lines
            .clone()
            .map(|_| uneven(random, UNEVEN_ITEMS, self.base.items))
            .collect();
        self.look(&mut part, (w, d), Index::Lines, lines);
        items.sort_unstable();
        items.dedup();
        let stock = |item: &u32| vec![Need::Read(self.base.row(w, Table::Stock, *item))];
        let stocks = items.iter().map(stock);
        std::iter::once(once(part)).chain(stocks).collect()
    }

    /// A customer by number, or by last name through the index of names.
    fn who(&self, part: &mut Part, (w, d): (u32, u32), random: &mut Random) -> Cell {
        let customer = self.customer(random);
        if percent(random, BY_NAME) {
            self.look(part, (w, d), Index::Names, customer..customer + 1);
        }
        let nth = d * self.base.customers + customer;
        self.base.row(w, Table::Customer, nth)
    }

    fn customer(&self, random: &mut Random) -> u32 {
        uneven(random, UNEVEN_CUSTOMERS, self.base.customers)
    }

    /// An order of a district that there is.
    fn known(&self, d: u32, random: &mut Random) -> u32 {
        random.below(self.districts[d as usize].next.into()) as u32
    }

    /// Another warehouse; the own one where there is no other.
    fn elsewhere(&self, random: &mut Random) -> u32 {
        let others = u64::from(self.base.warehouses - 1);
        match others {
            0 => self.w,
            _ => (self.w + 1 + random.below(others) as u32) % self.base.warehouses,
        }
    }

    /// Rows that are looked at: the root to read, and each leaf.
    fn look(&self, part: &mut Part, at: (u32, u32), index: Index, rows: std::ops::Range<u32>) {
        part.push(Need::Read(self.base.root(at, index)));
        part.extend(rows.map(|row| Need::Read(self.base.leaf(at, index, row).0)));
    }

    /// Rows that are changed: the root to read, and each leaf to write.
    fn change(&self, part: &mut Part, d: u32, index: Index, rows: std::ops::Range<u32>) {
        let at = (self.w, d);
        part.push(Need::Read(self.base.root(at, index)));
        part.extend(rows.map(|row| Need::Write(self.base.leaf(at, index, row).0)));
    }

    /// Rows that are added. A leaf that begins is told to the root.
    fn insert(&self, part: &mut Part, d: u32, index: Index, rows: std::ops::Range<u32>) {
        let at = (self.w, d);
        let begins = rows.clone().any(|row| self.base.leaf(at, index, row).1);
        let root = self.base.root(at, index);
        let in_order = index != Index::ByCustomer;
        part.push(match begins && in_order {
            true => Need::Write(root),
            false => Need::Read(root),
        });
        part.extend(rows.map(|row| Need::Write(self.base.leaf(at, index, row).0)));
    }
}

/// Each lock once, where it is first needed, as strongly as it ever is:
/// an index's page that is read and then changed is its terminal's alone, so that it costs no more
/// to lock it to write at once.
fn once(part: Part) -> Part {
    let mut all = Part::with_capacity(part.len());
    for need in part {
        let same = |known: &&mut Need| {
            known
                .lock()
                .is_some_and(|(lock, _)| Some(lock) == need.lock().map(|it| it.0))
        };
        match all.iter_mut().find(same) {
            None => all.push(need),
            Some(known) if matches!(need, Need::Write(_)) => *known = need,
            Some(_) => {}
        }
    }
    all
}

fn percent(random: &mut Random, share: u32) -> bool {
    random.per_mille(share * 10)
}

/// As uneven as the specification's draw of `whole` (2.1.6), of so many.
fn uneven(random: &mut Random, (a, whole): (u32, u32), count: u32) -> u32 {
    // The constant is a power of two less one, about as much smaller as there is less to draw from.
    let scaled = u64::from(a + 1) * u64::from(count) / u64::from(whole);
    let a = scaled.max(1).next_power_of_two();
    let both = random.below(a) | random.below(count.into());
    (both % u64::from(count.max(1))) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn terminal(remote: u32) -> Terminal {
        of_scale(32, remote)
    }

    fn of_scale(scale: u32, remote: u32) -> Terminal {
        Terminal::new(Database::new(4, scale), 1, (2, remote))
    }

    fn locks(part: &Part) -> Vec<(u32, bool)> {
        part.iter().filter_map(|need| need.lock()).collect()
    }

    #[test]
    fn a_lock_is_taken_once_and_remote_is_a_share() {
        let mut random = Random::new(1);
        for (remote, low, high) in [(0, 0, 0), (30, 400, 760), (100, 1_900, 2_000)] {
            // Orders of a small catalogue have the same item twice.
            let mut terminal = of_scale(512, remote);
            let (w, mut away) = (terminal.w, 0);
            for _ in 0..2_000 {
                let order = terminal.new_order(&mut random);
                let taken = locks(&order);
                let distinct: BTreeSet<u32> = taken.iter().map(|lock| lock.0).collect();
                assert_eq!(distinct.len(), taken.len());
                let each = terminal.base.locks() / terminal.base.warehouses;
                away += u32::from(distinct.iter().any(|lock| lock / each != w));
            }
            assert!((low..=high).contains(&away), "{remote}% {away}");
        }
    }

    #[test]
    fn transactions_are_as_long_as_the_database_has_them() {
        let (mut random, mut terminal) = (Random::new(2), terminal(0));
        let mut mean = |draw: fn(&mut Terminal, &mut Random) -> Part| {
            let count = |_| locks(&draw(&mut terminal, &mut random)).len();
            (0..1_000).map(count).sum::<usize>() as f64 / 1e3
        };
        // Places, customer, ten stocks, the counter, four roots and four leaves or a little more.
        let order = mean(Terminal::new_order);
        assert!((21.0..23.5).contains(&order), "{order}");
        // Places, customer, takings, a root and a leaf; a root and a leaf of names for 60%.
        let payment = mean(Terminal::payment);
        assert!((8.0..8.5).contains(&payment), "{payment}");
        let status = mean(Terminal::order_status);
        assert!((8.0..9.5).contains(&status), "{status}");
    }

    #[test]
    fn orders_are_delivered_in_turn_until_there_are_none() {
        let (mut random, mut terminal) = (Random::new(3), terminal(0));
        let open = terminal.districts[4].next - terminal.districts[4].oldest;
        for _ in 0..open {
            let part = terminal.delivery(4, &mut random);
            assert!(locks(&part).iter().any(|(_, writes)| *writes));
        }
        let part = terminal.delivery(4, &mut random);
        assert!(locks(&part).iter().all(|(_, writes)| !writes));
        let _ = terminal.new_order(&mut random);
    }

    #[test]
    fn stocks_are_counted_one_by_one() {
        let (mut random, mut terminal) = (Random::new(4), terminal(0));
        let parts = terminal.stock_level(&mut random);
        assert!(parts.len() > 100);
        assert!(parts[1..].iter().all(|part| part.len() == 1));
    }

    #[test]
    fn the_popular_are_drawn_more_often() {
        let mut random = Random::new(5);
        let mut seen = vec![0_u32; 1000];
        (0..100_000).for_each(|_| seen[uneven(&mut random, (1023, 3_000), 1000) as usize] += 1);
        let (least, most) = (seen.iter().min(), seen.iter().max());
        assert!(most.copied() > least.map(|it| it * 4), "{least:?} {most:?}");
    }
}
