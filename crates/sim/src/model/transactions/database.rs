//! Where the rows of TPC-C are, as `rackmem-txn` has them: cells of fixed length,
//! one after the other in a warehouse's blocks, and pages of indexes, which are a block each. A
//! cell is under a lock of its own.

use super::super::BLOCK;

/// Districts of a warehouse.
pub const DISTRICTS: u32 = 10;
/// Items and customers of a district by the specification. The orders of a district are as many as
/// its customers at first, and it has room for as many more.
const ITEMS: u32 = 100_000;
const CUSTOMERS: u32 = 3_000;
/// Lines of an order, on average.
pub const LINES: u32 = 10;
/// Bytes of a row with its version: of WAREHOUSE and DISTRICT each what never changes, takings,
/// and a district's next order; of CUSTOMER, STOCK and ITEM.
const PLACE: u32 = 96;
const TAKINGS: u32 = 16;
const DISTRICT_TAKINGS: u32 = 24;
const NEXT_ORDER: u32 = 16;
const CUSTOMER: u32 = 680;
const STOCK: u32 = 320;
const ITEM: u32 = 104;

/// What a transaction needs the lock of, and where that is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Cell {
    /// Its block.
    pub block: u32,
    /// Its lock.
    pub lock: u32,
}

/// What is under a lock.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum What {
    /// A row.
    Row(Table),
    /// The root of an index.
    Root(Index),
    /// A leaf.
    Leaf(Index),
}

/// The rows of a warehouse that are in no index.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Table {
    /// The warehouse's name, address and tax.
    Place,
    /// What it has taken.
    Takings,
    /// A district's name, address and tax.
    District,
    /// What a district has taken.
    DistrictTakings,
    /// The number of a district's next order.
    NextOrder,
    /// Customers, district by district.
    Customer,
    /// Stocks.
    Stock,
}

/// The indexes of a district.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Index {
    /// Customers by last name.
    Names,
    /// Orders by number.
    Orders,
    /// Orders by customer.
    ByCustomer,
    /// Orders that are not delivered.
    NewOrders,
    /// Lines of orders.
    Lines,
    /// Payments by number.
    History,
}

const TABLES: [Table; 7] = [
    Table::Place,
    Table::Takings,
    Table::District,
    Table::DistrictTakings,
    Table::NextOrder,
    Table::Customer,
    Table::Stock,
];

impl Index {
    const ALL: [Index; 6] = [
        Index::Names,
        Index::Orders,
        Index::ByCustomer,
        Index::NewOrders,
        Index::Lines,
        Index::History,
    ];

    /// Rows of a leaf; of an index whose rows do not come in order,
    /// of one that is three quarters full.
    pub fn rows(self) -> u32 {
        [84, 145, 380, 1014, 63, 63][self as usize]
    }
}

/// A table: the number of its first cell in its warehouse and where that is in bytes,
/// bytes of a row, and rows.
type Space = (u32, u32, u32, u32);

/// How large everything is. All numbers begin at 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Database {
    /// Warehouses.
    pub warehouses: u32,
    /// Items.
    pub items: u32,
    /// Customers of a district.
    pub customers: u32,
    tables: [Space; 7],
    /// Of each index: the page of its first district's root, and leaves.
    indexes: [(u32, u32); 6],
    /// Of a warehouse: blocks of its tables, and all its blocks; cells of its tables,
    /// and all its cells.
    blocks: (u32, u32),
    cells: (u32, u32),
}

impl Database {
    /// So many warehouses, each with the specification's rows by `scale`.
    pub fn new(warehouses: u32, scale: u32) -> Self {
        let items = (ITEMS / scale.max(1)).max(1);
        let customers = (CUSTOMERS / scale.max(1)).max(1);
        let sizes = [
            (PLACE, 1),
            (TAKINGS, 1),
            (PLACE, DISTRICTS),
            (DISTRICT_TAKINGS, DISTRICTS),
            (NEXT_ORDER, DISTRICTS),
            (CUSTOMER, DISTRICTS * customers),
            (STOCK, items),
        ];
        let (mut cells, mut bytes) = (0, 0);
        let tables = sizes.map(|(size, count)| {
            let space = (cells, bytes, size, count);
            cells += count;
            bytes += size * count;
            space
        });
        let blocks = bytes.div_ceil(BLOCK);
        let mut pages = 0;
        let indexes = Index::ALL.map(|index| {
            let rows = match index {
                Index::Names => customers,
                Index::Lines => 2 * customers * LINES,
                _ => 2 * customers,
            };
            let of = (pages, rows.div_ceil(index.rows()));
            pages += DISTRICTS * (1 + of.1);
            of
        });
        Database {
            warehouses,
            items,
            customers,
            tables,
            indexes,
            blocks: (blocks, blocks + pages),
            cells: (cells, cells + pages),
        }
    }

    /// Blocks of a warehouse.
    pub fn blocks_each(&self) -> u32 {
        self.blocks.1
    }

    /// Blocks of the items, which come after those of all warehouses.
    pub fn items_blocks(&self) -> u32 {
        (self.items * ITEM).div_ceil(BLOCK)
    }

    /// All blocks.
    pub fn blocks(&self) -> u32 {
        self.warehouses * self.blocks.1 + self.items_blocks()
    }

    /// All locks.
    pub fn locks(&self) -> u32 {
        self.warehouses * self.cells.1
    }

    /// What is under a lock.
    pub fn what(&self, lock: u32) -> What {
        let nth = lock % self.cells.1;
        let Some(page) = nth.checked_sub(self.cells.0) else {
            let is_in = |space: &Space| nth < space.0 + space.3;
            let table = self.tables.iter().position(is_in);
            return What::Row(TABLES[table.unwrap_or_default()]);
        };
        let begins = |index: &&Index| self.indexes[**index as usize].0 <= page;
        let index = Index::ALL.iter().rev().find(begins);
        let index = index.copied().unwrap_or(Index::Names);
        let (first, leaves) = self.indexes[index as usize];
        match (page - first) % (1 + leaves) {
            0 => What::Root(index),
            _ => What::Leaf(index),
        }
    }

    /// The block of an item. Items never change, so there is no lock.
    pub fn item(&self, item: u32) -> u32 {
        self.warehouses * self.blocks.1 + item * ITEM / BLOCK
    }

    /// A row of a warehouse. It is in the block where it begins.
    pub fn row(&self, w: u32, table: Table, nth: u32) -> Cell {
        let (first, at, size, count) = self.tables[table as usize];
        let nth = nth % count;
        Cell {
            block: w * self.blocks.1 + (at + nth * size) / BLOCK,
            lock: w * self.cells.1 + first + nth,
        }
    }

    /// The root of an index of a district.
    pub fn root(&self, (w, d): (u32, u32), index: Index) -> Cell {
        let (first, leaves) = self.indexes[index as usize];
        self.page(w, first + d * (1 + leaves))
    }

    /// The leaf that has a row, and whether that is its first. When there is no more room rows
    /// begin anew.
    pub fn leaf(&self, (w, d): (u32, u32), index: Index, row: u32) -> (Cell, bool) {
        let (first, leaves) = self.indexes[index as usize];
        let nth = row / index.rows() % leaves;
        let page = self.page(w, first + d * (1 + leaves) + 1 + nth);
        (page, row.is_multiple_of(index.rows()))
    }

    fn page(&self, w: u32, nth: u32) -> Cell {
        Cell {
            block: w * self.blocks.1 + self.blocks.0 + nth,
            lock: w * self.cells.1 + self.cells.0 + nth,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn cells_have_locks_of_their_own_and_are_in_their_warehouse() {
        let base = Database::new(3, 128);
        let mut seen = BTreeSet::new();
        for w in 0..3 {
            let all = [Table::Place, Table::Takings];
            let mut cells: Vec<Cell> = all.map(|table| base.row(w, table, 0)).into();
            for d in 0..DISTRICTS {
                let tables = [Table::District, Table::DistrictTakings, Table::NextOrder];
                let rows = tables.map(|table| (table, base.row(w, table, d)));
                let are_told = rows.map(|(table, row)| base.what(row.lock) == What::Row(table));
                assert_eq!(are_told, [true; 3]);
                cells.extend(rows.map(|(_, row)| row));
                for index in Index::ALL {
                    cells.push(base.root((w, d), index));
                    let (root, leaf) = (base.root((w, d), index), base.leaf((w, d), index, 0).0);
                    let both = [What::Root(index), What::Leaf(index)];
                    assert_eq!([root, leaf].map(|cell| base.what(cell.lock)), both);
                    let leaves = base.indexes[index as usize].1;
                    let rows = (0..leaves).map(|nth| nth * index.rows());
                    cells.extend(rows.map(|row| base.leaf((w, d), index, row).0));
                }
            }
            let customers = DISTRICTS * base.customers;
            cells.extend((0..customers).map(|c| base.row(w, Table::Customer, c)));
            cells.extend((0..base.items).map(|i| base.row(w, Table::Stock, i)));
            for cell in cells {
                assert_eq!(cell.block / base.blocks_each(), w);
                assert!(seen.insert(cell.lock), "{cell:?}");
            }
        }
        assert_eq!(seen.len() as u32, base.locks());
        assert_eq!(seen.last(), Some(&(base.locks() - 1)));
        assert_eq!(base.item(base.items - 1), base.blocks() - 1);
    }

    #[test]
    fn a_warehouse_is_as_large_as_one_of_the_database() {
        // 100,000 stocks and 30,000 customers with their orders: 90 MB and more.
        let megabytes = Database::new(1, 1).blocks_each() * 4 / 1024;
        assert!((80..120).contains(&megabytes), "{megabytes}");
    }
}
