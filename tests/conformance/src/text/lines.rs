//! Bytes and registers in words.

use crate::layout::FIELDS;
use crate::{Port, Setup};
use rackmem_proto::Dest;
use rackmem_proto::switch::{Field, Register};
use rackmem_proto::wire::{GlobalStatus, PacketLine, Reason, RequesterId, Tag, decode};
use std::fmt::{self, Display};

/// Bytes as hex.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Bytes of a packet as hex, a space between words of four bytes and the body apart.
pub fn hex_packet(bytes: &[u8]) -> String {
    let words: Vec<String> = bytes.chunks(4).map(hex).collect();
    words.join(" ")
}

/// A port as a file names it.
pub fn port_name(port: Port) -> String {
    match port {
        Port::Agent(node) => format!("agent {node}"),
        Port::Requester { node, port } => format!("requester {node}:{port}"),
    }
}

/// A block as `home:offset`.
struct Block(Tag);

impl Display for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{:x}", self.0.home(), self.0.offset())
    }
}

/// A packet in words: the line that traces and captures show as well, or why it is none.
pub fn packet_line(bytes: &[u8], leaves: Option<Port>) -> String {
    match decode(bytes) {
        Err(error) => format!("malformed: {error}"),
        Ok((header, body)) => {
            let to = match leaves {
                None => Dest::Switch,
                Some(Port::Agent(node)) => Dest::Agent(node),
                Some(Port::Requester { node, .. }) => Dest::Requester(RequesterId {
                    node,
                    slot: header.requester.slot,
                }),
            };
            let line = PacketLine {
                to,
                header: &header,
                block: &Block(header.tag),
            };
            let epoch = header.epoch;
            let body = match body.len() {
                0 => String::new(),
                bytes => format!(" and {bytes} bytes"),
            };
            let line = format!("{line} epoch {epoch}{body}");
            line.split_whitespace().collect::<Vec<_>>().join(" ")
        }
    }
}

/// A register as a file has it, and what it says.
pub fn register_line(register: &Register, setup: &Setup) -> String {
    let Register {
        field,
        way,
        at,
        value,
    } = *register;
    let name = field.name();
    let meaning = meaning(register, setup);
    if field.of_a_way() {
        format!(
            "{name} way {way} at {at} = {value:0width$x}  # {meaning}",
            width = width(field)
        )
    } else {
        format!(
            "{name} at {at} = {value:0width$x}  # {meaning}",
            width = width(field)
        )
    }
}

/// Hex digits of an array's items.
fn width(field: Field) -> usize {
    match field {
        Field::Tag | Field::Score | Field::Move => 16,
        Field::LockTag | Field::LockVersion | Field::LockSince => 16,
        Field::Lock => 4,
        Field::Status => 2,
        Field::Copyset | Field::LockWho | Field::LockSharers => 8,
    }
}

fn meaning(register: &Register, setup: &Setup) -> String {
    let (at, value) = (register.at, register.value);
    let seq = value >> 32;
    let status = |bits: u64| match GlobalStatus::from_byte(bits as u8) {
        Some(status) => format!("{status:?}"),
        None => format!("no status: {bits}"),
    };
    match register.field {
        Field::Tag => format!("block {}", Block(Tag(value & !1))),
        Field::LockTag => format!("lock {}", Block(Tag(value & !1))),
        Field::LockVersion | Field::LockSince => {
            let (epoch, count) = (value >> 40, value & ((1 << 40) - 1));
            format!("{count} of epoch {epoch}")
        }
        Field::LockWho => {
            let [reason, shared, keeper, holder] = (value as u32).to_be_bytes();
            let mode = match shared {
                0 => format!("M of {holder}"),
                _ => "S".into(),
            };
            let reason = match Reason::from_byte(reason) {
                Some(Reason::None) => String::new(),
                Some(reason) => format!(", {reason:?}"),
                None => format!(", reason {reason}"),
            };
            format!("{mode}, the data at {keeper}{reason}")
        }
        Field::LockSharers => format!("{value:b}"),
        Field::Lock if value >= 1 << 15 => "a writer".into(),
        Field::Lock => format!("{value} readers"),
        Field::Status => status(value),
        Field::Copyset => format!("{value:b}"),
        Field::Score => {
            let row = at / 2;
            let requesters = u32::from(setup.requesters).max(1);
            let (node, slot) = (row / requesters, row % requesters);
            let outcome = match (value & 1 != 0, value >> 3 & 1 != 0) {
                (true, _) => "granted",
                (false, true) => "passed on",
                (false, false) => "refused or over",
            };
            let route = match (value & 1 != 0, value >> 8 & 0x1ff) {
                (false, _) => String::new(),
                (true, 0) => format!(", it was {}", status(value >> 1 & 3)),
                (true, n) => format!(", it was {}, provider {}", status(value >> 1 & 3), n - 1),
            };
            format!("{node}.{slot}#{seq} {outcome}{route}")
        }
        Field::Move => {
            let slots = rackmem_proto::flowcc::migration::MAX_MOVES as u32;
            let (node, slot) = (at / slots, at % slots);
            let outcome = match value & 0xffff_ffff {
                1 => "under way".into(),
                2 => "done".into(),
                other => match Reason::from_byte(other.wrapping_sub(16) as u8) {
                    Some(reason) => format!("refused: {reason:?}"),
                    None => format!("outcome {other}"),
                },
            };
            format!("move {slot} of home {node}, #{seq}: {outcome}")
        }
    }
}

/// A field's name for a comment that explains the groups of hex.
pub fn legend() -> String {
    let names: Vec<String> = FIELDS
        .iter()
        .map(|field| format!("{}:{}", field.name, field.len))
        .collect();
    names.join(" ")
}
