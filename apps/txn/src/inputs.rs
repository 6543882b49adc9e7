//! What terminals ask for (2.4.1, 2.5.1, 2.6.1, 2.7.1, 2.8.1).

use crate::random::Random;
use crate::scale::{DISTRICTS, MAX_LINES, Scale};
use crate::transactions::customer::Who;
use crate::transactions::delivery::Delivery;
use crate::transactions::new_order::{NewOrder, Wanted};
use crate::transactions::order_status::OrderStatus;
use crate::transactions::payment::Payment;

/// How often a transaction has to do with another warehouse than its terminal's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Remote {
    /// As the specification has it: 1% of the lines of orders and 15% of payments.
    Specification,
    /// This share of new orders, in percent, with all their lines, and of payments.
    Share(u32),
}

/// A terminal: it has a warehouse, and a district of it for Stock-Level.
#[derive(Debug)]
pub struct Terminal {
    /// Its warehouse.
    pub w: u32,
    /// Its district.
    pub d: u32,
    /// Of how many warehouses, items and customers.
    pub scale: Scale,
    /// How often another warehouse.
    pub remote: Remote,
    /// Its random numbers.
    pub random: Random,
}

impl Terminal {
    fn district(&mut self) -> u32 {
        self.random.within(1, DISTRICTS)
    }

    /// Another warehouse; the own one where there is no other.
    fn elsewhere(&mut self) -> u32 {
        if self.scale.warehouses == 1 {
            return self.w;
        }
        let other = self.random.within(1, self.scale.warehouses - 1);
        other + u32::from(other >= self.w)
    }

    fn who(&mut self) -> Who {
        match self.random.percent(60) {
            true => Who::Name(self.random.last_name(&self.scale)),
            false => Who::Number(self.random.customer(&self.scale)),
        }
    }

    /// A new order; one of a hundred names an item that there is not.
    pub fn new_order(&mut self, now: u64) -> NewOrder {
        let (w, d) = (self.w, self.district());
        let c = self.random.customer(&self.scale);
        let count = self.random.within(5, MAX_LINES);
        let is_wrong = self.random.percent(1);
        let each = match self.remote {
            Remote::Specification => 1,
            Remote::Share(share) if self.random.percent(share) => 100,
            Remote::Share(_) => 0,
        };
        let lines = (1..=count).map(|nth| Wanted {
            item: match is_wrong && nth == count {
                true => self.scale.items + 1,
                false => self.random.item(&self.scale),
            },
            supply_w: match self.random.percent(each) {
                true => self.elsewhere(),
                false => w,
            },
            quantity: self.random.within(1, 10),
        });
        let lines = lines.collect();
        NewOrder {
            w,
            d,
            c,
            now,
            lines,
        }
    }

    /// A payment.
    pub fn payment(&mut self, now: u64) -> Payment {
        let (w, d) = (self.w, self.district());
        let share = match self.remote {
            Remote::Specification => 15,
            Remote::Share(share) => share,
        };
        let (c_w, c_d) = match self.random.percent(share) {
            true => (self.elsewhere(), self.district()),
            false => (w, d),
        };
        Payment {
            w,
            d,
            c_w,
            c_d,
            who: self.who(),
            amount: i64::from(self.random.within(100, 500_000)),
            now,
        }
    }

    /// A question for a customer's last order.
    pub fn order_status(&mut self) -> OrderStatus {
        OrderStatus {
            w: self.w,
            d: self.district(),
            who: self.who(),
        }
    }

    /// A delivery.
    pub fn delivery(&mut self, now: u64) -> Delivery {
        Delivery {
            w: self.w,
            carrier: self.random.within(1, 10),
            now,
        }
    }

    /// A threshold of stocks.
    pub fn threshold(&mut self) -> u32 {
        self.random.within(10, 20)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Constants;

    fn terminal(remote: Remote) -> Terminal {
        Terminal {
            w: 2,
            d: 3,
            scale: Scale::of(4),
            remote,
            random: Random::new(1, 2, Constants::to_run(1)),
        }
    }

    #[test]
    fn a_share_of_all_is_of_other_warehouses() {
        for (share, low, high) in [(0, 0, 0), (30, 500, 700), (100, 2000, 2000)] {
            let mut terminal = terminal(Remote::Share(share));
            let orders = (0..2000).map(|_| terminal.new_order(1));
            let away = |order: &NewOrder| order.lines.iter().all(|line| line.supply_w != 2);
            let count = orders.filter(away).count();
            assert!((low..=high).contains(&count), "{share}% {count}");
        }
    }

    #[test]
    fn shares_of_the_specification() {
        let mut terminal = terminal(Remote::Specification);
        let orders: Vec<_> = (0..5000).map(|_| terminal.new_order(1)).collect();
        let wrong = orders.iter().filter(|order| {
            let last = order.lines.last();
            last.is_some_and(|line| line.item > terminal.scale.items)
        });
        assert!((25..=85).contains(&wrong.count()));
        let lines = orders.iter().flat_map(|order| &order.lines);
        let (all, away) = lines.fold((0, 0), |(all, away), line| {
            (all + 1, away + usize::from(line.supply_w != 2))
        });
        assert!((all / 150..all / 70).contains(&away), "{away} of {all}");
        let payments = (0..5000).map(|_| terminal.payment(1));
        let away = payments.filter(|payment| payment.c_w != 2).count();
        assert!((600..=900).contains(&away), "{away}");
    }
}
