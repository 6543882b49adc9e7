//! The five transactions of TPC-C (2.4 to 2.8), written once for all engines.

pub mod customer;
pub mod delivery;
pub mod new_order;
pub mod order_status;
pub mod parts;
pub mod payment;
pub mod stock_level;

use crate::access::{Halt, Step, broken};
use crate::layout::{Layout, Ordered};

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

impl Kind {
    /// All of them, with their shares of a hundred in the standard mix and their names.
    pub const ALL: [(Kind, u32, &'static str); 5] = [
        (Kind::NewOrder, 45, "new-order"),
        (Kind::Payment, 43, "payment"),
        (Kind::OrderStatus, 4, "order-status"),
        (Kind::Delivery, 4, "delivery"),
        (Kind::StockLevel, 4, "stock-level"),
    ];

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        Kind::ALL[self as usize].2
    }

    /// That of a number below 100, by the standard mix.
    pub fn drawn(number: u32) -> Kind {
        let mut sum = 0;
        let found = Kind::ALL.iter().find(|(_, share, _)| {
            sum += share;
            number < sum
        });
        found.map_or(Kind::NewOrder, |row| row.0)
    }
}

/// What a district has in order.
fn ordered(layout: &Layout, w: u32, d: u32) -> Step<&Ordered> {
    layout.ordered(w, d).ok_or_else(no_row)
}

pub(crate) fn no_row() -> Halt {
    broken("there is no such row")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_standard_mix() {
        let count = |kind| (0..100).filter(|it| Kind::drawn(*it) == kind).count();
        assert_eq!(Kind::ALL.map(|row| count(row.0)), [45, 43, 4, 4, 4]);
        assert!(Kind::ALL.iter().all(|row| row.0.name() == row.2));
    }
}
