//! How large a database is.

use crate::error::{Result, TxnError};

/// Districts of a warehouse.
pub const DISTRICTS: u32 = 10;
/// Lines of an order, at most.
pub const MAX_LINES: u32 = 15;
/// Warehouses of a database, at most.
pub const MAX_WAREHOUSES: u32 = 1024;
/// Items of the catalogue by the specification.
pub const ITEMS: u32 = 100_000;
/// Customers of a district by the specification.
pub const CUSTOMERS: u32 = 3_000;
/// Orders that a district has room for beside those that are loaded, unless a program says
/// otherwise.
pub const ROOM: u32 = 12_000;
/// Such orders, at most.
pub const MAX_ROOM: u32 = 10_000_000;
/// Last names that there are.
pub const NAMES: u32 = 1_000;

/// How large a database is. The specification's scale is [`Scale::of`]; smaller numbers of items
/// and customers make another benchmark, for tests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Scale {
    /// Warehouses.
    pub warehouses: u32,
    /// Items, each with a stock in every warehouse.
    pub items: u32,
    /// Customers of a district, and its orders at first.
    pub customers: u32,
    /// Orders that a district has room for beside those; as many payments.
    pub room: u32,
}

impl Scale {
    /// That of the specification, with so many warehouses.
    pub fn of(warehouses: u32) -> Scale {
        Scale {
            warehouses,
            items: ITEMS,
            customers: CUSTOMERS,
            room: ROOM,
        }
    }

    /// Whether such a database can be.
    ///
    /// # Errors
    /// [`TxnError::OutOfRange`].
    pub fn check(&self) -> Result<()> {
        let all = [
            ("warehouses", self.warehouses, MAX_WAREHOUSES),
            ("items", self.items, ITEMS),
            ("customers", self.customers, CUSTOMERS),
            ("orders to make room for", self.room, MAX_ROOM),
        ];
        let wrong = all.iter().find(|(_, is, most)| !(1..=*most).contains(is));
        wrong.map_or(Ok(()), |(what, _, most)| {
            let most = u64::from(*most);
            Err(TxnError::OutOfRange { what, most })
        })
    }

    /// Whether items and customers are as many as the specification has.
    pub fn is_full(&self) -> bool {
        (self.items, self.customers) == (ITEMS, CUSTOMERS)
    }

    /// Of the orders that are loaded, those of a district that are delivered: the first ones.
    pub fn delivered(&self) -> u32 {
        self.customers - self.customers * 3 / 10
    }

    /// Last names that customers have: each of these some customer of every district.
    pub fn names(&self) -> u32 {
        self.customers.min(NAMES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scale_of_the_specification() {
        let scale = Scale::of(4);
        assert!(scale.check().is_ok() && scale.is_full());
        assert_eq!((scale.delivered(), scale.names()), (2_100, 1_000));
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let none = Scale::of(0).check();
        let is = |error| matches!(error, TxnError::OutOfRange { what, .. } if what == "warehouses");
        assert!(none.is_err_and(is));
    }
}
