//! The content of records when the database is loaded (4.3.3).

use crate::last_name::last_name;
use crate::random::Random;
use crate::scale::{MAX_LINES, Scale};
use crate::schema::{Address, Customer, History, Item, Order, OrderLine, Place, Stock, text};

/// What each customer has paid before, in cents.
pub const PAID: i64 = 1_000;
/// When the database was loaded: times are numbers that rise.
pub const LOADED: u64 = 1;

fn address(random: &mut Random) -> Address {
    let zip = [random.digits(4), b"11111".to_vec()].concat();
    Address {
        street_1: text(&random.letters(10, 20)),
        street_2: text(&random.letters(10, 20)),
        city: text(&random.letters(10, 20)),
        state: text(&random.letters(2, 2)),
        zip: text(&zip),
    }
}

/// A warehouse, or a district.
pub fn place(random: &mut Random) -> Place {
    Place {
        tax: random.within(0, 2_000),
        name: text(&random.letters(6, 10)),
        address: address(random),
        pad: [0; 3],
    }
}

/// An item.
pub fn item(random: &mut Random, id: u32) -> Item {
    Item {
        price: i64::from(random.within(100, 10_000)),
        image: random.within(1, 10_000),
        id,
        name: text(&random.letters(14, 24)),
        data: text(&random.brand()),
        pad: [0; 6],
    }
}

/// A warehouse's stock of an item.
pub fn stock(random: &mut Random) -> Stock {
    Stock {
        quantity: random.within(10, 100) as i32,
        ytd: 0,
        order_cnt: 0,
        remote_cnt: 0,
        dist: std::array::from_fn(|_| text(&random.letters(24, 24))),
        data: text(&random.brand()),
        pad: [0; 6],
    }
}

/// A customer. The first thousand of a district have all last names.
pub fn customer(random: &mut Random, scale: &Scale, c: u32) -> Customer {
    let data = random.letters(300, 500);
    let last = match c <= scale.names() {
        true => last_name(c - 1),
        false => random.last_name(scale),
    };
    let credit = if random.percent(10) { b"BC" } else { b"GC" };
    Customer {
        since: LOADED,
        credit_lim: 5_000_000,
        balance: -PAID,
        ytd_payment: PAID,
        discount: random.within(0, 5_000),
        payment_cnt: 1,
        delivery_cnt: 0,
        data_len: data.len() as u32,
        first: text(&random.letters(8, 16)),
        middle: *b"OE",
        last,
        address: address(random),
        phone: text(&random.digits(16)),
        credit: *credit,
        data: text(&data),
        pad: [0; 1],
    }
}

/// What a customer has paid before.
pub fn payment(random: &mut Random, (w, d, c): (u32, u32, u32)) -> History {
    History {
        date: LOADED,
        amount: PAID,
        c_w: w,
        c_d: d,
        c_id: c,
        data: text(&random.letters(12, 24)),
        pad: [0; 4],
    }
}

/// An order of a customer; those before the last three tenths are delivered.
pub fn order(random: &mut Random, scale: &Scale, (o, c): (u32, u32)) -> Order {
    let is_delivered = o <= scale.delivered();
    let carrier = random.within(1, 10);
    Order {
        entry_d: LOADED,
        c_id: c,
        carrier: if is_delivered { carrier } else { 0 },
        ol_cnt: random.within(5, MAX_LINES),
        all_local: 1,
    }
}

/// A line of an order.
pub fn line(random: &mut Random, scale: &Scale, (w, o): (u32, u32)) -> OrderLine {
    let is_delivered = o <= scale.delivered();
    let amount = i64::from(random.within(1, 999_999));
    OrderLine {
        delivery_d: if is_delivered { LOADED } else { 0 },
        amount: if is_delivered { 0 } else { amount },
        i_id: random.within(1, scale.items),
        supply_w: w,
        quantity: 5,
        dist_info: text(&random.letters(24, 24)),
        pad: [0; 4],
    }
}
