//! The header's fields by name: for messages, and for the headers that other languages include.

use rackmem_proto::wire::{HEADER_LEN, HeaderView};
use std::mem::offset_of;

/// A field of the header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Field {
    /// Its name.
    pub name: &'static str,
    /// Where it begins, in bytes.
    pub offset: usize,
    /// How long it is, in bytes.
    pub len: usize,
}

macro_rules! fields {
    ($($name:ident: $len:literal,)*) => {
        /// Every field in order, from the view that Rust decodes with.
        pub const FIELDS: &[Field] = &[$(Field {
            name: stringify!($name),
            offset: offset_of!(HeaderView, $name),
            len: $len,
        },)*];
    };
}

fields! {
    magic: 2, version: 1, kind: 1, epoch: 4, tag: 8, seq: 8, incarnation: 4, copyset: 4, node_id: 1, requester: 1, sender: 2,
    offset: 4, global_status: 1, flags: 1, reason: 1, reserved: 1, body_len: 2, reply_port: 2,
}

// The lengths are right if each field ends where the next one begins.
const _: () = {
    let mut end = 0;
    let mut nth = 0;
    while nth < FIELDS.len() {
        assert!(FIELDS[nth].offset == end);
        end += FIELDS[nth].len;
        nth += 1;
    }
    assert!(end == HEADER_LEN);
};
