//! Golden cases as data for `switch/p4/tests/ptf/rackmem.py`.

use super::control;
use crate::carrier::{CONTROL_PLANE, coming, leaving};
use crate::text::hex;
use crate::{Case, Reply, Step};
use std::fmt::Write;

/// All cases whose registers packets bring about and whose nodes share no port, a line each.
pub fn write(cases: &[Case]) -> String {
    let possible = |case: &&Case| case.prefix.is_some() && !case.setup.shares_ports();
    let possible: Vec<&Case> = cases.iter().filter(possible).collect();
    let nodes = possible.iter().map(|case| case.setup.nodes).max();
    let mut text = String::from("{\n \"rack\": ");
    text += &strings(control::rack_commands(nodes.unwrap_or_default()));
    let _ = write!(
        text,
        ",\n \"freeze\": {:?},\n \"cases\": [",
        control::FREEZE
    );
    for (nth, case) in possible.into_iter().enumerate() {
        text.push_str(if nth == 0 { "\n" } else { ",\n" });
        one(&mut text, case);
    }
    text.push_str("\n ]\n}\n");
    text
}

/// Names and sentences have no character that Rust and JSON escape differently.
fn strings(lines: Vec<String>) -> String {
    let quoted: Vec<String> = lines.iter().map(|line| format!("{line:?}")).collect();
    format!("[{}]", quoted.join(", "))
}

fn one(text: &mut String, case: &Case) {
    let _ = write!(
        text,
        "  {{\"name\": {:?}, \"about\": {:?}",
        case.name, case.about
    );
    let _ = write!(text, ", \"frozen\": {}", case.frozen);
    let commands = strings(control::case_commands(&case.setup));
    let _ = write!(text, ", \"commands\": {commands}");
    let prefix: Vec<&Step> = case.prefix.iter().flatten().collect();
    let _ = write!(text, ", \"prefix\": {}", steps(1, &prefix));
    let packets: Vec<&Step> = case.steps.iter().collect();
    let first = prefix.len() as u16 + 1;
    let _ = write!(text, ", \"packets\": {}}}", steps(first, &packets));
}

/// `[frame, [[port, frame], …]]` for each packet.
fn steps(first: u16, steps: &[&Step]) -> String {
    let step = |(number, step): (u16, &&Step)| {
        let frame = coming(number, &step.packet);
        let out: Vec<String> = match &step.reply {
            Reply::ControlPlane => vec![format!("[{CONTROL_PLANE}, {:?}]", hex(&frame))],
            Reply::Sent(packets) => packets
                .iter()
                .map(|sent| leaving(number, sent))
                .map(|(port, frame)| format!("[{port}, {:?}]", hex(&frame)))
                .collect(),
        };
        format!("[{:?}, [{}]]", hex(&frame), out.join(", "))
    };
    let all: Vec<String> = (first..).zip(steps).map(step).collect();
    format!("[{}]", all.join(", "))
}
