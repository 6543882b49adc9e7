//! `switch/generated/wire.h`.

use super::names::{self, FLAGS, kind, reason, reasons, status, statuses};
use crate::layout::FIELDS;
use rackmem_proto::flowcc::migration::MAX_MOVES;
use rackmem_proto::flowcc::tables::{CHECK, Check, FORWARD};
use rackmem_proto::switch::{SWITCH, numbers};
use rackmem_proto::wire::{
    Flags, HEADER_LEN, Kind, MAGIC, MAX_BODY, MAX_HOMES, MAX_NODES, MAX_REQUESTERS, OWN_LEN,
    VERSION,
};
use std::fmt::Write;

const HEAD: &str = "\
// What is in a packet, for C: made from crates/wire and crates/proto by `cargo xtask golden`. Not written by hand.
//
// The including file has __u8 and the __be types (linux/types.h). All fields are big-endian; docs/wire.md draws them.
#ifndef RACKMEM_WIRE_H
#define RACKMEM_WIRE_H

";

pub fn header() -> String {
    let mut text = String::from(HEAD);
    limits(&mut text);
    layout(&mut text);
    values(&mut text);
    tables(&mut text);
    text.push_str("#endif\n");
    text
}

fn limits(text: &mut String) {
    let limits: [(&str, String); 12] = [
        ("WIRE_MAGIC", format!("{MAGIC:#06x}")),
        ("WIRE_VERSION", VERSION.to_string()),
        ("WIRE_HEADER_LEN", HEADER_LEN.to_string()),
        ("MAX_NODES", MAX_NODES.to_string()),
        ("MAX_HOMES", MAX_HOMES.to_string()),
        ("MAX_REQUESTERS", MAX_REQUESTERS.to_string()),
        ("MAX_MOVES", MAX_MOVES.to_string()),
        ("MAX_BODY", MAX_BODY.to_string()),
        ("OWN_LEN", OWN_LEN.to_string()),
        ("FIRST_WITH_OWN", format!("{:#04x}", Kind::FIRST_WITH_OWN)),
        ("SEQ_WINDOW", format!("(1u << {})", numbers::WINDOW.ilog2())),
        ("SENDER_SWITCH", format!("{SWITCH:#06x}")),
    ];
    for (name, value) in limits {
        let _ = writeln!(text, "#define {name} {value}");
    }
}

/// Shorter than the names on the wire, where those are long.
fn member(name: &str) -> &str {
    match name {
        "node_id" => "node",
        "requester" => "slot",
        "global_status" => "status",
        other => other,
    }
}

fn layout(text: &mut String) {
    text.push_str("\nstruct wire_header {\n");
    for field in FIELDS {
        let of = match field.len {
            1 => "__u8",
            2 => "__be16",
            4 => "__be32",
            _ => "__be64",
        };
        let _ = writeln!(text, "\t{of} {};", member(field.name));
    }
    text.push_str("};\n");
    let _ = writeln!(
        text,
        "_Static_assert(sizeof(struct wire_header) == WIRE_HEADER_LEN, \"the header's length\");"
    );
    for field in FIELDS {
        let (name, offset) = (member(field.name), field.offset);
        let _ = writeln!(
            text,
            "_Static_assert(__builtin_offsetof(struct wire_header, {name}) == {offset}, \"where {name} is\");"
        );
    }
}

fn values(text: &mut String) {
    text.push_str("\nenum kind {\n");
    for &k in Kind::ALL {
        let _ = writeln!(text, "\t{} = {:#04x},", kind(k), k as u8);
    }
    text.push_str("};\n\n// A bit for every kind there is, in four words of 64.\n");
    let mut words = [0u64; 4];
    for &k in Kind::ALL {
        words[usize::from(k as u8 >> 6)] |= 1 << (k as u8 & 63);
    }
    let words = words.map(|word| format!("{word:#x}ull"));
    let _ = writeln!(text, "#define KNOWN_KINDS_WORDS {{ {} }}", words.join(", "));
    text.push_str("\nenum flag {\n");
    for (name, flag) in FLAGS {
        let _ = writeln!(text, "\t{name} = {:#04x},", flag.0);
    }
    let _ = writeln!(text, "\tFLAGS_KNOWN = {:#04x},\n}};", Flags::KNOWN);
    text.push_str("\nenum status {\n");
    for s in statuses() {
        let _ = writeln!(text, "\t{} = {},", status(s), s as u8);
    }
    text.push_str("};\n\nenum reason {\n");
    let mut last = 0;
    for r in reasons() {
        last = r as u8;
        let _ = writeln!(text, "\t{} = {last},", reason(r));
    }
    let _ = writeln!(text, "\tREASON_LAST = {last},\n}};");
}

fn tables(text: &mut String) {
    let kinds = |wanted: fn(Kind) -> bool| {
        let here = Kind::ALL.iter().copied().filter(move |&k| wanted(k));
        here.map(|k| format!("ROW({})", kind(k)))
            .collect::<Vec<_>>()
    };
    text.push_str("\n// Lists: ROW is a macro of the including file.\n");
    list(text, "REQUESTS(ROW)", &kinds(Kind::is_request));
    list(
        text,
        "SHARED_REQUESTS(ROW)",
        &kinds(|k| k.is_request() && k.locks_shared()),
    );
    list(text, "DATA_PLANE_KINDS(ROW)", &kinds(Kind::in_data_plane));
    list(text, "LOCK_KINDS(ROW)", &kinds(Kind::asks_lock_switch));
    text.push_str(
        "\n// The paper's Table 2: ABSENT(kind), HOLDS(kind, status) and ALWAYS(kind).\n",
    );
    let rows: Vec<String> = CHECK
        .iter()
        .map(|&(k, check)| match check {
            Check::Absent => format!("ABSENT({})", kind(k)),
            Check::Holds(s) => format!("HOLDS({}, {})", kind(k), status(s)),
            Check::Always => format!("ALWAYS({})", kind(k)),
        })
        .collect();
    list(text, "CHECK_TABLE(ABSENT, HOLDS, ALWAYS)", &rows);
    text.push_str("\n// The paper's Table 3: ROW(kind, status, where to). A pair that is not here goes nowhere.\n");
    let rows: Vec<String> = FORWARD
        .iter()
        .map(|&(k, s, to)| format!("ROW({}, {}, {})", kind(k), status(s), names::forward(to)))
        .collect();
    list(text, "FORWARD_TABLE(ROW)", &rows);
    text.push('\n');
}

fn list(text: &mut String, name: &str, rows: &[String]) {
    let _ = writeln!(text, "#define {name} \\\n\t{}", rows.join(" \\\n\t"));
}
