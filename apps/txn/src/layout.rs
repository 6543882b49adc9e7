//! Where everything is: the database is cells of fixed length, and each node's memory has some of
//! them one after the other. A warehouse, with all that belongs to it, is at one node; items are at
//! all of them.

use crate::error::Result;
use crate::scale::{DISTRICTS, Scale};
use crate::schema::{
    Customer, DistrictTakings, History, Item, NextOrder, Order, OrderLine, Place, Stock, Takings,
};
use crate::tree::{Coming, PAGE, Shape, Tree, pages_for};

/// Bytes in front of a cell's content: its version.
pub const VERSION_BYTES: u64 = 8;
/// Pages begin at multiples of this, as blocks do.
const ALIGN: u64 = 4096;
/// Bytes of a last name and of a first name in the index of names.
pub const NAME: usize = 16;

/// Lines for which an order has room; it has ten on average.
const LINES_AN_ORDER: u64 = 11;

/// A piece of the database, which a transaction reads and writes as a whole.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Cell {
    /// At which node.
    pub home: u16,
    /// Its number there.
    pub number: u32,
    /// Where its version is in that node's memory; its content is behind it.
    pub at: u64,
    /// Bytes of its content.
    pub bytes: u32,
}

impl Cell {
    /// A number that no other cell has.
    pub fn key(&self) -> u64 {
        u64::from(self.home) << 32 | u64::from(self.number)
    }
}

/// Cells of one length, one after the other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Space {
    home: u16,
    first: u32,
    at: u64,
    bytes: u32,
    /// How many.
    pub count: u32,
}

impl Space {
    /// The nth, from 0; none behind the last.
    pub fn cell(&self, nth: u32) -> Option<Cell> {
        (nth < self.count).then(|| Cell {
            home: self.home,
            number: self.first + nth,
            at: self.at + u64::from(nth) * stride(self.bytes),
            bytes: self.bytes,
        })
    }
}

fn stride(bytes: u32) -> u64 {
    match bytes as usize == PAGE {
        true => ALIGN,
        false => (VERSION_BYTES + u64::from(bytes)).next_multiple_of(8),
    }
}

/// What a node has of the database.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Part {
    /// Cells.
    pub cells: u32,
    /// Bytes that they take.
    pub bytes: u64,
    /// In order.
    spaces: Vec<Space>,
}

impl Part {
    /// Pages that are all of a node's.
    #[cfg(test)]
    pub(crate) fn of_pages(mut self, count: u32) -> Space {
        self.take(0, PAGE, count)
    }

    fn take(&mut self, home: usize, bytes: usize, count: u32) -> Space {
        let bytes = bytes as u32;
        if bytes as usize == PAGE {
            self.bytes = self.bytes.next_multiple_of(ALIGN);
        }
        let space = Space {
            home: home as u16,
            first: self.cells,
            at: self.bytes,
            bytes,
            count,
        };
        self.cells += count;
        self.bytes += u64::from(count) * stride(bytes);
        self.spaces.push(space);
        space
    }

    /// Bytes of the content of each cell, in order.
    pub fn lengths(&self) -> impl Iterator<Item = usize> {
        let of = |space: &Space| std::iter::repeat_n(space.bytes as usize, space.count as usize);
        self.spaces.iter().flat_map(of)
    }
}

/// The indexes and tables of a district that are ordered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ordered {
    /// Customers by last name, first name and number; no value.
    pub names: Tree,
    /// ORDER, by number.
    pub orders: Tree,
    /// Orders by customer, the newest first; no value.
    pub by_customer: Tree,
    /// NEW-ORDER, by order; no value.
    pub new_orders: Tree,
    /// ORDER-LINE, by order and line.
    pub lines: Tree,
    /// HISTORY, by number of payment.
    pub history: Tree,
}

#[derive(Clone, Debug)]
struct Warehouse {
    place: Space,
    takings: Space,
    districts: Space,
    district_takings: Space,
    next_orders: Space,
    customers: Space,
    stock: Space,
    ordered: Vec<Ordered>,
}

/// Where everything is. All numbers of rows begin at 1, as in the specification.
#[derive(Clone, Debug)]
pub struct Layout {
    /// How large it is.
    pub scale: Scale,
    items: Vec<Space>,
    warehouses: Vec<Warehouse>,
    parts: Vec<Part>,
}

impl Layout {
    /// For so many nodes.
    ///
    /// # Errors
    /// Those of [`Scale::check`].
    pub fn new(scale: Scale, nodes: usize) -> Result<Layout> {
        scale.check()?;
        let nodes = nodes.max(1);
        let mut parts = vec![Part::default(); nodes];
        let a_node = scale.items.div_ceil(nodes as u32);
        let places = parts.iter_mut().enumerate();
        let items = places.map(|(home, part)| part.take(home, size_of::<Item>(), a_node));
        let items = items.collect();
        let warehouses = (0..scale.warehouses as usize).map(|nth| {
            let home = nth % nodes;
            warehouse(&scale, home, &mut parts[home])
        });
        Ok(Layout {
            scale,
            items,
            warehouses: warehouses.collect(),
            parts,
        })
    }

    /// What each node has.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// At which node a warehouse is.
    pub fn home(&self, w: u32) -> usize {
        (w as usize).saturating_sub(1) % self.parts.len()
    }

    /// The item, if there is one.
    pub fn item(&self, i: u32) -> Option<Cell> {
        let nth = i.checked_sub(1).filter(|nth| *nth < self.scale.items)?;
        let nodes = self.parts.len() as u32;
        self.items[(nth % nodes) as usize].cell(nth / nodes)
    }

    /// A warehouse's name, address and tax.
    pub fn place(&self, w: u32) -> Option<Cell> {
        self.of(w)?.place.cell(0)
    }

    /// A warehouse's takings.
    pub fn takings(&self, w: u32) -> Option<Cell> {
        self.of(w)?.takings.cell(0)
    }

    /// A district's name, address and tax.
    pub fn district(&self, w: u32, d: u32) -> Option<Cell> {
        self.of(w)?.districts.cell(d.checked_sub(1)?)
    }

    /// A district's takings.
    pub fn district_takings(&self, w: u32, d: u32) -> Option<Cell> {
        self.of(w)?.district_takings.cell(d.checked_sub(1)?)
    }

    /// The number of a district's next order.
    pub fn next_order(&self, w: u32, d: u32) -> Option<Cell> {
        self.of(w)?.next_orders.cell(d.checked_sub(1)?)
    }

    /// A customer.
    pub fn customer(&self, w: u32, d: u32, c: u32) -> Option<Cell> {
        let nth = c.checked_sub(1).filter(|nth| *nth < self.scale.customers)?;
        let district = d.checked_sub(1).filter(|nth| *nth < DISTRICTS)?;
        (self.of(w)?.customers).cell(district * self.scale.customers + nth)
    }

    /// A warehouse's stock of an item.
    pub fn stock(&self, w: u32, i: u32) -> Option<Cell> {
        self.of(w)?.stock.cell(i.checked_sub(1)?)
    }

    /// What a district has in order.
    pub fn ordered(&self, w: u32, d: u32) -> Option<&Ordered> {
        self.of(w)?.ordered.get(d.checked_sub(1)? as usize)
    }

    fn of(&self, w: u32) -> Option<&Warehouse> {
        self.warehouses.get(w.checked_sub(1)? as usize)
    }
}

fn warehouse(scale: &Scale, home: usize, part: &mut Part) -> Warehouse {
    let mut take = |bytes, count| part.take(home, bytes, count);
    Warehouse {
        place: take(size_of::<Place>(), 1),
        takings: take(size_of::<Takings>(), 1),
        districts: take(size_of::<Place>(), DISTRICTS),
        district_takings: take(size_of::<DistrictTakings>(), DISTRICTS),
        next_orders: take(size_of::<NextOrder>(), DISTRICTS),
        customers: take(size_of::<Customer>(), DISTRICTS * scale.customers),
        stock: take(size_of::<Stock>(), scale.items),
        ordered: (0..DISTRICTS).map(|_| ordered(scale, home, part)).collect(),
    }
}

fn ordered(scale: &Scale, home: usize, part: &mut Part) -> Ordered {
    let orders = u64::from(scale.customers) + u64::from(scale.room);
    let mut tree = |table, key, value, (rows, coming)| {
        let shape = Shape { key, value };
        let space = part.take(home, PAGE, pages_for(shape, rows, coming));
        Tree {
            table,
            space,
            shape,
        }
    };
    let customers = u64::from(scale.customers);
    let in_order = (orders, Coming::InOrder);
    let lines = (orders * LINES_AN_ORDER, Coming::InOrder);
    Ordered {
        names: tree("names", 2 * NAME + 4, 0, (customers, Coming::Anyhow)),
        orders: tree("orders", 4, size_of::<Order>(), in_order),
        by_customer: tree("customers' orders", 8, 0, (orders, Coming::Anyhow)),
        new_orders: tree("new orders", 4, 0, in_order),
        lines: tree("order lines", 8, size_of::<OrderLine>(), lines),
        history: tree("payments", 8, size_of::<History>(), in_order),
    }
}
