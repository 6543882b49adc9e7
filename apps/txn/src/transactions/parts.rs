//! Parts of transactions that need nothing but one warehouse: who delegates has them run where that
//! is, and others run them where the transaction runs. A part changes nothing, or is whole.

use super::{customer, no_row};
use crate::access::{Access, Step, broken, record};
use crate::layout::{Layout, NAME};
use customer::Who;
use rackmem::Value;
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// A part of a transaction, as bytes that can be sent.
pub trait Part: Value {
    /// Which one.
    const CODE: u32;
    /// What it returns, as bytes.
    type Answer: Value;

    /// The warehouse that it needs.
    fn warehouse(&self) -> u32;

    /// Runs it.
    ///
    /// # Errors
    /// Those of [`Access`].
    fn run(&self, access: &mut dyn Access, layout: &Layout) -> Step<Self::Answer>;
}

/// Takes an item out of a warehouse's stock.
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub struct Take {
    /// Whose stock.
    pub supply_w: u32,
    /// Of which item.
    pub item: u32,
    /// How many.
    pub quantity: u32,
    /// The district of the order.
    pub d: u32,
    /// 1: the order is of another warehouse.
    pub is_remote: u32,
}

/// What is known of a stock that was taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub struct Taken {
    /// What the stock says of the order's district.
    pub dist_info: [u8; 24],
    /// 1: it is of a brand.
    pub is_brand: u32,
}

/// A customer pays something.
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub struct Pay {
    /// How much, in cents.
    pub amount: i64,
    /// To which warehouse.
    pub w: u32,
    /// To which district.
    pub d: u32,
    /// The customer's warehouse.
    pub c_w: u32,
    /// The customer's district.
    pub c_d: u32,
    /// The customer; 0: the last name tells.
    pub c: u32,
    /// The customer's last name.
    pub last: [u8; NAME],
    /// Fills it up.
    pub pad: [u8; 4],
}

impl Pay {
    /// Who pays.
    pub fn who(&self) -> Who {
        match self.c {
            0 => Who::Name(self.last),
            c => Who::Number(c),
        }
    }
}

/// Who has paid.
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub struct Paid {
    /// The balance before.
    pub balance: i64,
    /// The customer's number.
    pub c: u32,
    /// Fills it up.
    pub pad: u32,
}

/// Runs a part where its warehouse is, if the engine delegates, or here.
///
/// # Errors
/// Those of [`Access`].
pub fn at_owner<P: Part>(access: &mut dyn Access, layout: &Layout, part: &P) -> Step<P::Answer> {
    if layout.place(part.warehouse()).is_none() {
        return Err(no_row());
    }
    let home = layout.home(part.warehouse());
    match access.delegate(home, (P::CODE, part.as_bytes()))? {
        Some(answer) => record(&answer),
        None => part.run(access, layout),
    }
}

/// Runs the part that has come as bytes; its answer as bytes.
///
/// # Errors
/// Those of [`Access`]; that it is none.
pub fn run_bytes(
    access: &mut dyn Access,
    layout: &Layout,
    (code, bytes): (u32, &[u8]),
) -> Step<Vec<u8>> {
    fn run<P: Part>(access: &mut dyn Access, layout: &Layout, bytes: &[u8]) -> Step<Vec<u8>> {
        let part: P = record(bytes)?;
        Ok(part.run(access, layout)?.as_bytes().to_vec())
    }
    match code {
        Take::CODE => run::<Take>(access, layout, bytes),
        Pay::CODE => run::<Pay>(access, layout, bytes),
        _ => Err(broken("there is no such part of a transaction")),
    }
}
