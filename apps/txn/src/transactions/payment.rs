//! Payment (2.5): a customer, perhaps of another warehouse, pays something.

use super::customer::{self, Who};
use super::ordered;
use super::parts::{Paid, Part, Pay, at_owner};
use crate::access::{Access, Step, get, update};
use crate::keys;
use crate::layout::{Layout, NAME};
use crate::schema::{Customer, DistrictTakings, History, Place, Takings, shown, text};
use crate::tally::Counts;
use zerocopy::IntoBytes;

/// What is paid.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Payment {
    /// To which warehouse.
    pub w: u32,
    /// To which district.
    pub d: u32,
    /// The customer's warehouse.
    pub c_w: u32,
    /// The customer's district.
    pub c_d: u32,
    /// The customer.
    pub who: Who,
    /// How much, in cents.
    pub amount: i64,
    /// When.
    pub now: u64,
}

/// Pays; the customer's balance then.
///
/// # Errors
/// Those of [`Access`].
pub fn run(access: &mut dyn Access, layout: &Layout, payment: &Payment) -> Step<i64> {
    let (w, d, amount) = (payment.w, payment.d, payment.amount);
    let (c_w, c_d) = (payment.c_w, payment.c_d);
    let warehouse: Place = get(access, layout.place(w))?;
    let district: Place = get(access, layout.district(w, d))?;
    let (c, last) = match payment.who {
        Who::Number(c) => (c, [0; NAME]),
        Who::Name(last) => (0, last),
    };
    let pay = Pay {
        amount,
        w,
        d,
        c_w,
        c_d,
        c,
        last,
        pad: [0; 4],
    };
    let Paid { c, balance, .. } = at_owner(access, layout, &pay)?;
    let takings = update(
        access,
        layout.district_takings(w, d),
        |it: &mut DistrictTakings| {
            it.ytd += amount;
            it.payments += 1;
        },
    )?;
    let names = [shown(&warehouse.name), b"    ", shown(&district.name)].concat();
    let row = History {
        date: payment.now,
        amount,
        c_w,
        c_d,
        c_id: c,
        data: text(&names),
        pad: [0; 4],
    };
    let key = keys::payment(takings.payments + 1);
    let history = ordered(layout, w, d)?.history;
    history.insert(access, &key, row.as_bytes())?;
    // All payments of a warehouse go through this number: it is the last thing to be taken.
    update(access, layout.takings(w), |it: &mut Takings| {
        it.ytd += amount;
    })?;
    access.note(Counts {
        payments: 1,
        ..Counts::NONE
    });
    Ok(balance - amount)
}

impl Part for Pay {
    const CODE: u32 = 2;
    type Answer = Paid;

    fn warehouse(&self) -> u32 {
        self.c_w
    }

    fn run(&self, access: &mut dyn Access, layout: &Layout) -> Step<Paid> {
        let c = customer::find(access, layout, (self.c_w, self.c_d), &self.who())?;
        let cell = layout.customer(self.c_w, self.c_d, c);
        let before: Customer = update(access, cell, |customer| pay(customer, self, c))?;
        Ok(Paid {
            balance: before.balance,
            c,
            pad: 0,
        })
    }
}

fn pay(customer: &mut Customer, payment: &Pay, c: u32) {
    customer.balance -= payment.amount;
    customer.ytd_payment += payment.amount;
    customer.payment_cnt += 1;
    if customer.credit != *b"BC" {
        return;
    }
    let (c_w, c_d, w, d) = (payment.c_w, payment.c_d, payment.w, payment.d);
    let head = format!("{c} {c_d} {c_w} {d} {w} {} ", payment.amount);
    let old = (customer.data_len as usize).min(customer.data.len());
    let data = [head.as_bytes(), &customer.data[..old]].concat();
    customer.data_len = data.len().min(customer.data.len()) as u32;
    customer.data = text(&data);
}
