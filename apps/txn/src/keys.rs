//! Keys of the ordered indexes: numbers with their highest byte first, so that bytes are in the
//! order of numbers.

use crate::layout::NAME;

/// The key of an order.
pub fn order(o: u32) -> [u8; 4] {
    o.to_be_bytes()
}

/// The order of a key.
pub fn order_of(key: &[u8]) -> u32 {
    key.first_chunk().map_or(0, |it| u32::from_be_bytes(*it))
}

/// The key of two numbers, the first one first.
pub fn pair(first: u32, second: u32) -> [u8; 8] {
    (u64::from(first) << 32 | u64::from(second)).to_be_bytes()
}

/// The second number of a key.
pub fn second_of(key: &[u8]) -> u32 {
    key.last_chunk().map_or(0, |it| u32::from_be_bytes(*it))
}

/// The key of a customer's order: the newest first.
pub fn customers_order(c: u32, o: u32) -> [u8; 8] {
    pair(c, !o)
}

/// The key of a payment.
pub fn payment(nth: u64) -> [u8; 8] {
    nth.to_be_bytes()
}

/// The key of a customer's name.
pub fn name(last: &[u8; NAME], first: &[u8; NAME], c: u32) -> [u8; 2 * NAME + 4] {
    let mut key = [0; 2 * NAME + 4];
    key[..NAME].copy_from_slice(last);
    key[NAME..2 * NAME].copy_from_slice(first);
    key[2 * NAME..].copy_from_slice(&c.to_be_bytes());
    key
}
