//! Golden cases as STF, the format of p4c's own tests: a file a case,
//! since STF cannot empty a switch between two.

use super::control;
use crate::carrier::{CONTROL_PLANE, coming, leaving, port_of, stray};
use crate::text::{hex, packet_line};
use crate::{Case, Reply, Step};
use std::fmt::Write;

/// Packets all come in by one port: between several, STF does not say which comes first.
const INPUT: u16 = 70;

/// Whether STF can say it: registers are brought about by packets,
/// nobody freezes the switch in between, and every node is behind a port of its own,
/// as the program in P4 takes them.
pub fn can_say(case: &Case) -> bool {
    case.prefix.is_some() && !case.frozen && !case.setup.shares_ports()
}

/// A case as a file.
pub fn write(topic: &str, case: &Case) -> String {
    let mut text = format!(
        "# {topic}/{}: {}\n# Made by `cargo xtask golden` for -DWAYS={} -DSETS={}; docs/conformance.md tells how to run it.\n",
        case.name, case.about, case.setup.ways, case.setup.sets
    );
    for line in control::stf(&case.setup) {
        let _ = writeln!(text, "{line}");
    }
    let ports = (0..case.setup.nodes).map(port_of).chain([CONTROL_PLANE]);
    text.push_str("# Datagrams for nobody, which are dropped: a port that is named is watched.\n");
    for port in ports {
        let _ = writeln!(text, "packet {port} {}", hex(&stray()));
    }
    let prefix = case.prefix.iter().flatten();
    for (number, step) in (1..).zip(prefix.chain(&case.steps)) {
        one(&mut text, number, step);
    }
    text
}

fn one(text: &mut String, number: u16, step: &Step) {
    let _ = writeln!(text, "# {}", packet_line(&step.packet, None));
    let frame = coming(number, &step.packet);
    let _ = writeln!(text, "packet {INPUT} {}", hex(&frame));
    match &step.reply {
        Reply::ControlPlane => {
            let _ = writeln!(text, "expect {CONTROL_PLANE} {}$", hex(&frame));
        }
        Reply::Sent(packets) => {
            for sent in packets {
                let (port, frame) = leaving(number, sent);
                let _ = writeln!(text, "expect {port} {}$", hex(&frame));
            }
        }
    }
}
