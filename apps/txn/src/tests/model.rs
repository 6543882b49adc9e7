//! What transactions lock is what the cost model of them has them lock, sort by sort.

use super::Unwatched;
use crate::access::{Access, Step};
use crate::layout::{Cell, Layout, Ordered};
use crate::transactions::customer::Who;
use crate::transactions::new_order::{NewOrder, Wanted};
use crate::transactions::{delivery, new_order, order_status, payment, stock_level};
use crate::{Engine, Locks, Scale, load, schema};
use rackmem::Rack;
use rackmem_sim::model::taken::{Index, Kind, Table, Taken, What, taken};
use std::collections::BTreeMap;

/// The specification's rows by this: indexes have a root and leaves, as the model has them.
const BY: u32 = 3;
/// Transactions of the model: enough for orders of all lengths, and a district has as many to be
/// delivered.
const DRAWS: usize = 250;
const SEED: u64 = 5;

fn scale() -> Scale {
    Scale {
        items: 100,
        customers: 3_000 / BY,
        room: 1_000,
        ..Scale::of(1)
    }
}

/// What a cell is, of one warehouse.
fn what(layout: &Layout, cell: Cell) -> Option<What> {
    let is = |other: Option<Cell>| other == Some(cell);
    let any = |count: u32, of: &dyn Fn(u32) -> Option<Cell>| (1..=count).any(|nth| is(of(nth)));
    let scale = layout.scale;
    let rows = [
        (Table::Place, is(layout.place(1))),
        (Table::Takings, is(layout.takings(1))),
        (Table::District, any(10, &|d| layout.district(1, d))),
        (
            Table::DistrictTakings,
            any(10, &|d| layout.district_takings(1, d)),
        ),
        (Table::NextOrder, any(10, &|d| layout.next_order(1, d))),
        (
            Table::Customer,
            (1..=10).any(|d| any(scale.customers, &|c| layout.customer(1, d, c))),
        ),
        (Table::Stock, any(scale.items, &|i| layout.stock(1, i))),
    ];
    if let Some((table, _)) = rows.into_iter().find(|row| row.1) {
        return Some(What::Row(table));
    }
    let of = |ordered: &Ordered| {
        let trees = [
            (Index::Names, ordered.names),
            (Index::Orders, ordered.orders),
            (Index::ByCustomer, ordered.by_customer),
            (Index::NewOrders, ordered.new_orders),
            (Index::Lines, ordered.lines),
            (Index::History, ordered.history),
        ];
        trees.into_iter().find_map(|(index, tree)| {
            let pages = 0..tree.space.count;
            let page = pages.into_iter().find(|nth| is(tree.space.cell(*nth)))?;
            Some(match page {
                0 => What::Root(index),
                _ => What::Leaf(index),
            })
        })
    };
    (1..=10).find_map(|d| of(layout.ordered(1, d)?))
}

/// What a transaction locks, each lock as strongly as it ever is.
fn locked<R>(engine: &Locks, body: &mut dyn FnMut(&mut dyn Access) -> Step<R>) -> Taken {
    engine.taken.lock().unwrap().clear();
    engine.transact(0, body).unwrap();
    let mut cells: BTreeMap<Cell, bool> = BTreeMap::new();
    for (cell, to_write) in engine.taken.lock().unwrap().drain(..) {
        *cells.entry(cell).or_default() |= to_write;
    }
    let mut taken = Taken::new();
    for (cell, to_write) in cells {
        let what = what(engine.layout(), cell).expect("a cell of a table");
        *taken.entry((what, to_write)).or_default() += 1;
    }
    alike(taken)
}

/// What may differ and is not compared: how many leaves some lines are in; and the model has new
/// orders in leaves under a root, which 900 rows and fewer fill one page of: the root is the leaf.
fn alike(taken: Taken) -> Taken {
    let mut alike = Taken::new();
    for ((what, to_write), count) in taken {
        match what {
            What::Leaf(Index::Lines) => drop(alike.insert((what, to_write), 1)),
            What::Leaf(Index::NewOrders) | What::Root(Index::NewOrders) => {
                let (page, other) = ((What::Leaf(Index::NewOrders), to_write), !to_write);
                let to_write = alike.remove(&(page.0, other)).is_some() || to_write;
                alike.insert((page.0, to_write), 1);
            }
            _ => *alike.entry((what, to_write)).or_default() += count,
        }
    }
    alike
}

/// The first parts of transactions of the model in which no leaf begins.
fn of_model(kind: Kind) -> Vec<Taken> {
    let begins = |taken: &Taken| {
        let mut all = taken.keys();
        all.any(|(what, writes)| matches!(what, What::Root(_)) && *writes)
    };
    let drawn = taken(kind, BY, (DRAWS, SEED));
    let parts = drawn.into_iter().filter_map(|mut parts| {
        let first = parts.swap_remove(0);
        (!begins(&first)).then(|| alike(first))
    });
    parts.collect()
}

fn stocks(taken: &Taken) -> usize {
    let stock = (What::Row(Table::Stock), true);
    taken.get(&stock).copied().unwrap_or_default()
}

/// A database of one warehouse in which the next rows begin no leaf.
fn database(rack: &Rack) -> Locks {
    let layout = Layout::new(scale(), 1).unwrap();
    let engine = Locks::new(rack.nodes(), layout).unwrap();
    load(&engine, SEED, &Unwatched).unwrap();
    engine
}

fn order(lines: u32) -> NewOrder {
    let line = |item| Wanted {
        item,
        supply_w: 1,
        quantity: 3,
    };
    NewOrder {
        w: 1,
        d: 4,
        c: 77,
        now: 9,
        lines: (1..=lines).map(line).collect(),
    }
}

#[test]
fn new_orders_lock_what_the_model_says() {
    let rack = Rack::local(1).unwrap();
    let engine = database(&rack);
    let layout = engine.layout();
    let model = of_model(Kind::NewOrder);
    let is_begun = |taken: &Taken| {
        taken
            .keys()
            .any(|it| it == &(What::Root(Index::Lines), true))
    };
    let mut compared = 0;
    for lines in 5..=15 {
        // Every seventh order or so begins a leaf of lines.
        let orders =
            (0..3).map(|_| locked(&engine, &mut |it| new_order::run(it, layout, &order(lines))));
        let ours = orders.into_iter().find(|taken| !is_begun(taken)).unwrap();
        let same = model.iter().filter(|taken| {
            let is_placed = taken.contains_key(&(What::Row(Table::NextOrder), true));
            is_placed && stocks(taken) == lines as usize
        });
        for model in same {
            assert_eq!(&ours, model, "{lines} lines");
            compared += 1;
        }
    }
    assert!(compared > 50, "{compared}");
    // One that is taken back has no number.
    let mut wrong = order(7);
    wrong.lines[3].item = layout.scale.items + 1;
    let ours = locked(&engine, &mut |it| new_order::run(it, layout, &wrong));
    assert!(!ours.contains_key(&(What::Row(Table::NextOrder), true)));
}

#[test]
fn the_others_lock_what_the_model_says() {
    let rack = Rack::local(1).unwrap();
    let engine = database(&rack);
    let layout = engine.layout();
    let cell = layout.customer(1, 4, 1).unwrap();
    let bytes = engine.peek(0, cell).unwrap();
    let first: schema::Customer = crate::access::record(&bytes).unwrap();
    for who in [Who::Number(77), Who::Name(first.last)] {
        let payment = payment::Payment {
            w: 1,
            d: 4,
            c_w: 1,
            c_d: 4,
            who,
            amount: 5,
            now: 9,
        };
        let ours = locked(&engine, &mut |it| payment::run(it, layout, &payment));
        compare(Kind::Payment, &ours, &who);
        let asked = order_status::OrderStatus { w: 1, d: 4, who };
        let ours = locked(&engine, &mut |it| order_status::run(it, layout, &asked));
        compare(Kind::OrderStatus, &ours, &who);
    }
    let delivery = delivery::Delivery {
        w: 1,
        carrier: 2,
        now: 9,
    };
    let ours = locked(&engine, &mut |it| delivery::run(it, layout, &delivery, 4));
    compare(Kind::Delivery, &ours, &"a district");
    let ours = locked(&engine, &mut |it| stock_level::items(it, layout, (1, 4)));
    compare(Kind::StockLevel, &ours, &"items");
    // The rest of Stock-Level are stocks, one by one.
    let ours = locked(&engine, &mut |it| {
        stock_level::few(it, layout, (1, 10), &[3, 4])
    });
    let stock = (What::Row(Table::Stock), false);
    assert_eq!(ours, Taken::from([(stock, 2)]));
    for parts in taken(Kind::StockLevel, BY, (3, SEED)) {
        assert!(
            parts[1..]
                .iter()
                .all(|part| *part == Taken::from([(stock, 1)]))
        );
    }
}

/// The model has transactions that lock the same.
fn compare(kind: Kind, ours: &Taken, of: &dyn std::fmt::Debug) {
    let model = of_model(kind);
    let is_by_name = |taken: &Taken| taken.contains_key(&(What::Root(Index::Names), false));
    let same = model
        .iter()
        .filter(|taken| is_by_name(taken) == is_by_name(ours));
    let mut compared = 0;
    for model in same {
        assert_eq!(ours, model, "{kind:?}, {of:?}");
        compared += 1;
    }
    assert!(compared > 20, "{kind:?}, {of:?}: {compared}");
}
