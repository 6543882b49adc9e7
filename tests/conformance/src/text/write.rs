//! Cases to text.

use super::HEAD;
use super::lines::{hex_packet, legend, packet_line, port_name, register_line};
use crate::{Case, Reply, Setup, Step};
use rackmem_proto::switch::Register;
use std::fmt::Write;

/// A file of cases about one topic.
pub fn write(topic: &str, cases: &[Case]) -> String {
    let mut text = format!(
        "{HEAD}\n# {topic}\n# Made from the Rust program by `cargo xtask golden`; \
         docs/conformance.md says how to read it.\n# A packet's fields, with their bytes: {}\n",
        legend()
    );
    for case in cases {
        text.push('\n');
        one(&mut text, case);
    }
    text
}

fn one(text: &mut String, case: &Case) {
    let _ = writeln!(text, "case {}\n  about {}", case.name, case.about);
    let _ = writeln!(text, "  switch {}", setup(&case.setup));
    match &case.prefix {
        None => text.push_str("  prefix none\n"),
        Some(packets) if packets.is_empty() => {}
        Some(packets) => {
            text.push_str("  prefix\n");
            steps(text, packets);
        }
    }
    registers(text, "before", &case.before, &case.setup);
    if case.frozen {
        text.push_str("  frozen\n");
    }
    text.push_str("  packets\n");
    steps(text, &case.steps);
    registers(text, "after", &case.after, &case.setup);
}

fn setup(setup: &Setup) -> String {
    let Setup {
        epoch,
        ways,
        sets,
        nodes,
        requesters,
        seed,
        shadow,
        lock_ways,
        lock_sets,
        ports,
    } = setup;
    let shadow = shadow.map_or("none".into(), |node| node.to_string());
    let ports = ports.map_or(String::new(), |ports| format!(" ports={ports}"));
    format!(
        "epoch={epoch} ways={ways} sets={sets} nodes={nodes} requesters={requesters} seed={seed} shadow={shadow} \
         locks={lock_ways}x{lock_sets}{ports}"
    )
}

fn registers(text: &mut String, name: &str, registers: &[Register], setup: &Setup) {
    let _ = writeln!(text, "  {name}");
    for register in registers {
        let _ = writeln!(text, "    {}", register_line(register, setup));
    }
}

fn steps(text: &mut String, steps: &[Step]) {
    for step in steps {
        let _ = writeln!(text, "    # {}", packet_line(&step.packet, None));
        let _ = writeln!(text, "    in {}", hex_packet(&step.packet));
        match &step.reply {
            Reply::ControlPlane => text.push_str("    to the control plane\n"),
            Reply::Sent(packets) => {
                for packet in packets {
                    let _ = writeln!(
                        text,
                        "      # {}",
                        packet_line(&packet.bytes, Some(packet.port))
                    );
                    let (port, bytes) = (port_name(packet.port), hex_packet(&packet.bytes));
                    let _ = writeln!(text, "      out {port} {bytes}");
                }
            }
        }
    }
}
