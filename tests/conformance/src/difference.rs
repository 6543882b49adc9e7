//! How a form of the program differs from the golden packets, in words.

use crate::layout::FIELDS;
use crate::text::{hex, packet_line, port_name, register_line};
use crate::{Case, Reply, Sent, Step};
use rackmem_proto::switch::Register;
use std::fmt::{self, Display, Write};

/// A difference, ready to print.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Difference {
    /// The packet of `steps` that showed it, from zero; none if the registers did.
    pub packet: Option<usize>,
    text: String,
}

impl Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Difference {}

impl Difference {
    pub(crate) fn failed(case: &Case, error: String) -> Self {
        let text = format!("case {}: it could not be played: {error}", case.name);
        Difference { packet: None, text }
    }

    pub(crate) fn of_replies(
        case: &Case,
        (prefix, at): (bool, usize),
        step: &Step,
        found: Reply,
    ) -> Result<(), Self> {
        if step.reply == found {
            return Ok(());
        }
        let mut text = format!(
            "case {}: {}\n  packet {}{}: {}\n",
            case.name,
            case.about,
            at + 1,
            if prefix { " of its prefix" } else { "" },
            packet_line(&step.packet, None)
        );
        match (&step.reply, &found) {
            (Reply::Sent(wanted), Reply::Sent(found)) => packets(&mut text, wanted, found),
            (wanted, found) => {
                let _ = writeln!(text, "  expected {}", in_words(wanted));
                let _ = writeln!(text, "  found    {}", in_words(found));
            }
        }
        Err(Difference {
            packet: (!prefix).then_some(at),
            text,
        })
    }

    pub(crate) fn of_registers(
        case: &Case,
        when: &str,
        wanted: &[Register],
        mut found: Vec<Register>,
    ) -> Result<(), Self> {
        let mut wanted = wanted.to_vec();
        wanted.sort();
        found.sort();
        found.retain(|register| register.value != 0);
        if wanted == found {
            return Ok(());
        }
        let mut text = format!(
            "case {}: {}\n  registers differ {when}\n",
            case.name, case.about
        );
        for register in wanted.iter().filter(|r| !found.contains(r)) {
            let _ = writeln!(text, "  expected {}", register_line(register, &case.setup));
        }
        for register in found.iter().filter(|r| !wanted.contains(r)) {
            let _ = writeln!(text, "  found    {}", register_line(register, &case.setup));
        }
        Err(Difference { packet: None, text })
    }
}

fn in_words(reply: &Reply) -> String {
    match reply {
        Reply::ControlPlane => "it goes to the control plane".into(),
        Reply::Sent(packets) if packets.is_empty() => "it is dropped".into(),
        Reply::Sent(packets) => format!("{} packets leave", packets.len()),
    }
}

fn packets(text: &mut String, wanted: &[Sent], found: &[Sent]) {
    let missing: Vec<&Sent> = wanted.iter().filter(|p| !found.contains(p)).collect();
    let extra: Vec<&Sent> = found.iter().filter(|p| !wanted.contains(p)).collect();
    if missing.is_empty() && extra.is_empty() {
        let _ = writeln!(
            text,
            "  expected {} packets, found {}: one is there twice",
            wanted.len(),
            found.len()
        );
    }
    for packet in &missing {
        let line = packet_line(&packet.bytes, Some(packet.port));
        let _ = writeln!(text, "  expected {}: {line}", port_name(packet.port));
    }
    for packet in &extra {
        let line = packet_line(&packet.bytes, Some(packet.port));
        let _ = writeln!(text, "  found    {}: {line}", port_name(packet.port));
        // The packet that it should have been, most likely: the one for the same port,
        // else the first.
        let meant = missing.iter().find(|p| p.port == packet.port);
        if let Some(meant) = meant.or(missing.first()) {
            fields(text, &meant.bytes, &packet.bytes);
        }
    }
}

fn fields(text: &mut String, wanted: &[u8], found: &[u8]) {
    for field in FIELDS {
        let range = field.offset..field.offset + field.len;
        if let (Some(wanted), Some(found)) = (wanted.get(range.clone()), found.get(range))
            && wanted != found
        {
            let (name, wanted, found) = (field.name, hex(wanted), hex(found));
            let _ = writeln!(text, "      {name}: expected {wanted}, found {found}");
        }
    }
    if wanted.len() != found.len() {
        let (wanted, found) = (wanted.len(), found.len());
        let _ = writeln!(text, "      length: expected {wanted} bytes, found {found}");
    }
}
