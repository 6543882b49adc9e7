//! Cases as text: the format of `golden/`, with objects in place of registers.

use super::{Became, Event, Put, ReadsCase};
use crate::Port;
use crate::text::{HEAD, hex_packet, packet_line, port_name};
use rackmem_proto::sabre::class_bytes;
use rackmem_proto::wire::{NodeId, decode};
use std::fmt::Write;

/// A file of cases.
pub fn write(about: &str, cases: &[ReadsCase]) -> String {
    let mut text = format!(
        "{HEAD}\n# {about}\n# Made from the Rust program by `cargo xtask golden`; \
         docs/conformance.md says how to read it.\n"
    );
    for case in cases {
        let ReadsCase {
            name, about, home, ..
        } = case;
        let bytes = |class: &u8| class_bytes(*class).unwrap_or(0).to_string();
        let slabs: Vec<String> = home.classes.iter().map(bytes).collect();
        let _ = writeln!(
            text,
            "\ncase {name}\n  about {about}\n  home node={} base={:x} slabs={}\n  packets",
            home.node,
            home.base,
            slabs.join(",")
        );
        for event in &case.events {
            line(&mut text, event, home.node);
        }
    }
    text
}

fn line(text: &mut String, event: &Event, home: NodeId) {
    let _ = match event {
        Event::Serve(0) => writeln!(text, "    serves no epoch"),
        Event::Serve(epoch) => writeln!(text, "    serves epoch {epoch}"),
        Event::Put(put) => writeln!(text, "    {}", put_line(put)),
        Event::Packet(bytes, became) => {
            let (line, hex) = (request_line(bytes, home), hex_packet(bytes));
            let _ = writeln!(text, "    # {line}\n    in {hex}");
            match became {
                Became::Agents => writeln!(text, "    to the agent"),
                Became::Answer(bytes) => {
                    let port = reader(bytes);
                    let (line, hex) = (packet_line(bytes, port), hex_packet(bytes));
                    let port = port.map_or(String::new(), port_name);
                    writeln!(text, "      # {line}\n      out {port} {hex}")
                }
            }
        }
    };
}

/// An object as it is written.
fn put_line(put: &Put) -> String {
    let Put {
        slab,
        within,
        version,
        meta,
        seed,
    } = put;
    let (generation, len) = (meta.generation, meta.len);
    let live = if meta.live { "live" } else { "freed" };
    format!(
        "object slab={slab} at={within} version={version} generation={generation} {live} len={len} content={seed}"
    )
}

/// A packet that comes, for people.
pub fn request_line(bytes: &[u8], home: NodeId) -> String {
    packet_line(bytes, Some(Port::Agent(home)))
}

/// Where an answer goes.
fn reader(bytes: &[u8]) -> Option<Port> {
    let (header, _) = decode(bytes).ok()?;
    Some(Port::Requester {
        node: header.requester.node,
        port: header.reply_port,
    })
}

/// What becomes of a packet, for a message.
pub fn in_words(became: &Became) -> String {
    match became {
        Became::Agents => "to the agent".into(),
        Became::Answer(bytes) => {
            let line = packet_line(bytes, reader(bytes));
            format!("{line}\n         {}", hex_packet(bytes))
        }
    }
}
