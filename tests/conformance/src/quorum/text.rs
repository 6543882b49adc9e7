//! Cases as text: the format of `golden/`, with groups in place of a set-up.

use super::{Event, QuorumCase};
use crate::Reply;
use crate::text::{HEAD, hex_packet, packet_line, port_name};
use rackmem_proto::abd::Config;
use rackmem_proto::switch::QuorumRegister;
use std::fmt::Write;

/// A file of cases.
pub fn write(about: &str, cases: &[QuorumCase]) -> String {
    let mut text = format!(
        "{HEAD}\n# {about}\n# Made from the Rust program by `cargo xtask golden`; \
         docs/conformance.md says how to read it.\n"
    );
    for case in cases {
        let QuorumCase {
            name,
            about,
            life,
            lines,
            ..
        } = case;
        let _ = writeln!(
            text,
            "\ncase {name}\n  about {about}\n  switch life={life} lines={lines}\n  packets"
        );
        for event in &case.events {
            match event {
                Event::Group(group, config) => {
                    let _ = writeln!(text, "    {}", group_line(*group, config.as_ref()));
                }
                Event::Packet(bytes, reply) => packet(&mut text, bytes, reply),
            }
        }
        text.push_str("  after\n");
        for register in &case.after {
            let _ = writeln!(text, "    {}", register_line(register));
        }
    }
    text
}

fn packet(text: &mut String, bytes: &[u8], reply: &Reply) {
    let _ = writeln!(text, "    # {}", packet_line(bytes, None));
    let _ = writeln!(text, "    in {}", hex_packet(bytes));
    match reply {
        Reply::ControlPlane => text.push_str("    to the control plane\n"),
        Reply::Sent(packets) => {
            for packet in packets {
                let (port, bytes) = (port_name(packet.port), hex_packet(&packet.bytes));
                let _ = writeln!(
                    text,
                    "      # {}",
                    packet_line(&packet.bytes, Some(packet.port))
                );
                let _ = writeln!(text, "      out {port} {bytes}");
            }
        }
    }
}

/// A group as the control plane tells it: members by place, those in parentheses fill.
fn group_line(group: u16, config: Option<&Config>) -> String {
    let Some(config) = config else {
        return format!("group {group} none");
    };
    let member = |place: usize| match config.node(place) {
        Some(node) if config.counting >> place & 1 == 1 => node.to_string(),
        Some(node) => format!("({node})"),
        None => "-".into(),
    };
    let last = config.members.iter().rposition(Option::is_some);
    let members: Vec<String> = (0..last.map_or(0, |last| last + 1)).map(member).collect();
    let holds = if config.holds_lines {
        " holds lines"
    } else {
        ""
    };
    format!(
        "group {group} config={} members={} quorum={} chooser={}{holds}",
        config.number,
        members.join(","),
        config.quorum(),
        config.chooser
    )
}

/// A register as a file has it.
pub fn register_line(register: &QuorumRegister) -> String {
    let QuorumRegister { field, at, value } = register;
    format!("{} at {at} = {value:016x}", field.name())
}

/// A reply, for a message.
pub fn in_words(reply: &Reply) -> String {
    match reply {
        Reply::ControlPlane => "to the control plane".into(),
        Reply::Sent(packets) if packets.is_empty() => "dropped".into(),
        Reply::Sent(packets) => {
            let line = |packet: &crate::Sent| {
                let (port, bytes) = (port_name(packet.port), hex_packet(&packet.bytes));
                format!(
                    "{} by {port}\n         {bytes}",
                    packet_line(&packet.bytes, Some(packet.port))
                )
            };
            packets
                .iter()
                .map(line)
                .collect::<Vec<_>>()
                .join("\n         ")
        }
    }
}
