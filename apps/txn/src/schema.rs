//! The records of the database: plain bytes of fixed length. Money is in cents, taxes and discounts
//! in parts of 10,000; text is filled up with zeros.
//!
//! A record that different transactions change for different reasons is in pieces: Payment adds to
//! the year's takings of a warehouse and of a district, New-Order counts a district's orders, and
//! names, addresses and taxes never change.

use zerocopy::{FromBytes, Immutable, IntoBytes};

/// Declares records.
macro_rules! records {
    ($($(#[$text:meta])* $name:ident { $($(#[$of:meta])* $field:ident: $type:ty,)* })*) => {
        $(
            $(#[$text])*
            #[derive(Clone, Copy, PartialEq, Debug, FromBytes, IntoBytes, Immutable)]
            #[repr(C)]
            pub struct $name { $($(#[$of])* pub $field: $type,)* }
        )*
    };
}

records! {
    /// Where somebody is.
    Address {
        /// Street, first line.
        street_1: [u8; 20],
        /// Street, second line.
        street_2: [u8; 20],
        /// City.
        city: [u8; 20],
        /// State.
        state: [u8; 2],
        /// Zip code.
        zip: [u8; 9],
    }

    /// WAREHOUSE, what never changes; and of DISTRICT.
    Place {
        /// Sales tax.
        tax: u32,
        /// Name.
        name: [u8; 10],
        /// Where it is.
        address: Address,
        /// Fills the record up.
        pad: [u8; 3],
    }

    /// W_YTD.
    Takings {
        /// Of this year.
        ytd: i64,
    }

    /// D_YTD, and how many payments the district's HISTORY has.
    DistrictTakings {
        /// Of this year.
        ytd: i64,
        /// Rows of HISTORY.
        payments: u64,
    }

    /// D_NEXT_O_ID.
    NextOrder {
        /// The number of the next order.
        o_id: u64,
    }

    /// CUSTOMER.
    Customer {
        /// Since when.
        since: u64,
        /// How much credit there may be.
        credit_lim: i64,
        /// What is owed, if negative: what was paid too much.
        balance: i64,
        /// What was paid this year.
        ytd_payment: i64,
        /// Discount.
        discount: u32,
        /// Payments.
        payment_cnt: u32,
        /// Deliveries.
        delivery_cnt: u32,
        /// Bytes of `data`.
        data_len: u32,
        /// First name.
        first: [u8; 16],
        /// Middle name.
        middle: [u8; 2],
        /// Last name.
        last: [u8; 16],
        /// Where the customer lives.
        address: Address,
        /// Phone number.
        phone: [u8; 16],
        /// `GC` or `BC`.
        credit: [u8; 2],
        /// Whatever is known.
        data: [u8; 500],
        /// Fills the record up.
        pad: [u8; 1],
    }

    /// ITEM.
    Item {
        /// Price.
        price: i64,
        /// Number of its image.
        image: u32,
        /// Its own number.
        id: u32,
        /// Name.
        name: [u8; 24],
        /// Brand information.
        data: [u8; 50],
        /// Fills the record up.
        pad: [u8; 6],
    }

    /// STOCK.
    Stock {
        /// How many there are.
        quantity: i32,
        /// How many were ordered this year.
        ytd: u32,
        /// By how many lines.
        order_cnt: u32,
        /// By how many lines of other warehouses.
        remote_cnt: u32,
        /// A text for each district.
        dist: [[u8; 24]; 10],
        /// Brand information.
        data: [u8; 50],
        /// Fills the record up.
        pad: [u8; 6],
    }

    /// ORDER; its key is the order's number.
    Order {
        /// When it came.
        entry_d: u64,
        /// Of which customer.
        c_id: u32,
        /// Who has carried it; 0: nobody.
        carrier: u32,
        /// Its lines.
        ol_cnt: u32,
        /// 1 if all is of the own warehouse.
        all_local: u32,
    }

    /// ORDER-LINE; its key is the numbers of the order and of the line.
    OrderLine {
        /// When it was delivered; 0: it was not.
        delivery_d: u64,
        /// What it costs.
        amount: i64,
        /// Of which item.
        i_id: u32,
        /// Of which warehouse.
        supply_w: u32,
        /// How many.
        quantity: u32,
        /// The stock's text.
        dist_info: [u8; 24],
        /// Fills the record up.
        pad: [u8; 4],
    }

    /// HISTORY; its key is the payment's number in its district.
    History {
        /// When.
        date: u64,
        /// How much.
        amount: i64,
        /// Whose warehouse.
        c_w: u32,
        /// Whose district.
        c_d: u32,
        /// Who has paid.
        c_id: u32,
        /// Both names of the place.
        data: [u8; 24],
        /// Fills the record up.
        pad: [u8; 4],
    }
}

/// Text in a field: cut off, or filled up with zeros.
pub fn text<const N: usize>(from: &[u8]) -> [u8; N] {
    let mut field = [0; N];
    let len = from.len().min(N);
    field[..len].copy_from_slice(&from[..len]);
    field
}

/// Text of a field, without what fills it up.
pub fn shown(field: &[u8]) -> &[u8] {
    let end = field.iter().position(|byte| *byte == 0);
    &field[..end.unwrap_or(field.len())]
}
