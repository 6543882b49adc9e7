//! `switch/generated/wire.p4`.

use super::names::{self, FLAGS, kind, reason, reasons, status, statuses};
use crate::layout::FIELDS;
use rackmem_proto::flowcc::migration::MAX_MOVES;
use rackmem_proto::flowcc::tables::{CHECK, Check, FORWARD};
use rackmem_proto::switch::{SWITCH, numbers};
use rackmem_proto::wire::{
    Flags, HEADER_LEN, Kind, MAGIC, MAX_BODY, MAX_NODES, MAX_REQUESTERS, OWN_LEN, VERSION,
};
use std::fmt::Write;

const HEAD: &str = "\
// What is in a packet, for P4: made from crates/wire and crates/proto by `cargo xtask golden`. Not written by hand.
#ifndef RACKMEM_WIRE
#define RACKMEM_WIRE

";

pub fn header() -> String {
    let mut text = String::from(HEAD);
    let limits: [(u32, &str, String); 11] = [
        (16, "MAGIC", format!("{MAGIC:#06x}")),
        (8, "VERSION", VERSION.to_string()),
        (32, "HEADER_LEN", HEADER_LEN.to_string()),
        (16, "MAX_BODY", MAX_BODY.to_string()),
        (16, "OWN_LEN", OWN_LEN.to_string()),
        (
            8,
            "FIRST_WITH_OWN",
            format!("{:#04x}", Kind::FIRST_WITH_OWN),
        ),
        (8, "MAX_NODES", MAX_NODES.to_string()),
        (8, "MAX_REQUESTERS", MAX_REQUESTERS.to_string()),
        (8, "MAX_MOVES", MAX_MOVES.to_string()),
        (32, "SEQ_WINDOW", format!("{:#x}", numbers::WINDOW)),
        (16, "SWITCH_SENDER", format!("{SWITCH:#06x}")),
    ];
    for (bits, name, value) in limits {
        constant(&mut text, bits, name, &value);
    }
    text.push_str("\nheader rackmem_t {\n");
    for field in FIELDS {
        // The program computes with halves of it, which is what its registers have room for.
        if field.name == "seq" {
            text.push_str("    bit<32> seq_high;\n    bit<32> seq_low;\n");
            continue;
        }
        let of = format!("bit<{}>", field.len * 8);
        let _ = writeln!(text, "    {of:<7} {};", field.name);
    }
    text.push_str("}\n\n");
    for &k in Kind::ALL {
        constant(&mut text, 8, &kind(k), &format!("{:#04x}", k as u8));
    }
    text.push('\n');
    for (name, flag) in FLAGS {
        constant(&mut text, 8, name, &format!("{:#04x}", flag.0));
    }
    constant(
        &mut text,
        8,
        "FLAGS_KNOWN",
        &format!("{:#04x}", Flags::KNOWN),
    );
    text.push('\n');
    for s in statuses() {
        constant(&mut text, 8, &status(s), &(s as u8).to_string());
    }
    text.push('\n');
    for r in reasons() {
        constant(&mut text, 8, &reason(r), &(r as u8).to_string());
    }
    tables(&mut text);
    text.push_str("\n#endif\n");
    text
}

fn constant(text: &mut String, bits: u32, name: &str, value: &str) {
    let _ = writeln!(text, "const bit<{bits}> {name} = {value};");
}

fn tables(text: &mut String) {
    text.push_str(
        "\n// The paper's Table 2 as entries of a table with the keys kind (exact), status and whether the node holds a copy\n\
         // (ternary): zero is no. The default is `invalid`.\n#define CHECK_ENTRIES",
    );
    for (k, check) in CHECK {
        let k = kind(k);
        let rows = match check {
            Check::Absent => vec![format!("({k}, _, 0): valid();")],
            Check::Holds(s) => vec![
                format!("({k}, _, 0): invalid();"),
                format!("({k}, {}, _): valid();", status(s)),
            ],
            Check::Always => vec![format!("({k}, _, _): valid();")],
        };
        for row in rows {
            let _ = write!(text, " \\\n    {row}");
        }
    }
    text.push_str(
        "\n\n// The paper's Table 3 as entries of a table with the keys kind and status\n\
         // (exact). A pair that is not here goes nowhere.\n#define FORWARD_ENTRIES",
    );
    for (k, s, to) in FORWARD {
        let (k, s, to) = (kind(k), status(s), names::forward(to));
        let _ = write!(text, " \\\n    ({k}, {s}): to({to});");
    }
    text.push_str(
        "\n\n// Kinds that are for the control plane, as entries of the table of `admit.p4`.\n#define CONTROL_PLANE_ENTRIES",
    );
    for k in Kind::ALL.iter().filter(|k| !k.in_data_plane()) {
        let k = kind(*k);
        let _ = write!(text, " \\\n    (STEP_FRESH, {k}, _): control_plane();");
    }
    text.push('\n');
}
