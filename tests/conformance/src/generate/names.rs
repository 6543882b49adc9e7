//! What is called the same in C and in P4.

use rackmem_proto::flowcc::tables::Forward;
use rackmem_proto::wire::{Flags, GlobalStatus, Kind, Reason};

/// `ReadMiss` as `READ_MISS`.
pub fn shout(name: &str) -> String {
    let mut shouted = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !shouted.is_empty() {
            shouted.push('_');
        }
        shouted.extend(letter.to_uppercase());
    }
    shouted
}

pub fn kind(kind: Kind) -> String {
    format!("KIND_{}", shout(kind.name()))
}

pub fn status(status: GlobalStatus) -> String {
    format!("STATUS_{}", shout(&format!("{status:?}")))
}

pub fn reason(reason: Reason) -> String {
    format!("REASON_{}", shout(&format!("{reason:?}")))
}

pub const FLAGS: [(&str, Flags); 7] = [
    ("FLAG_PROVIDER", Flags::PROVIDER),
    ("FLAG_IN_SWITCH", Flags::IN_SWITCH),
    ("FLAG_GRANTED", Flags::GRANTED),
    ("FLAG_DATA", Flags::DATA),
    ("FLAG_KEEP", Flags::KEEP),
    ("FLAG_READER", Flags::READER),
    ("FLAG_GATHER", Flags::GATHER),
];

// A flag that is new has a name here.
const _: () = {
    let mut all = 0;
    let mut nth = 0;
    while nth < FLAGS.len() {
        all |= FLAGS[nth].1.0;
        nth += 1;
    }
    assert!(all == Flags::KNOWN);
};

pub fn statuses() -> impl Iterator<Item = GlobalStatus> {
    (0..=u8::MAX).map_while(GlobalStatus::from_byte)
}

pub fn reasons() -> impl Iterator<Item = Reason> {
    (0..=u8::MAX).map_while(Reason::from_byte)
}

/// A row of the forward table in its shortest name.
pub fn forward(forward: Forward) -> &'static str {
    match forward {
        Forward::Home => "HOME",
        Forward::Provider => "PROVIDER",
        Forward::AllWithProvider => "ALL_WITH_PROVIDER",
        Forward::Others => "OTHERS",
        Forward::Requester => "REQUESTER",
    }
}
