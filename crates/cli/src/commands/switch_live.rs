//! What a switch in the kernel counts, while it runs: a line that stays in its place on a terminal,
//! a line a second of JSON.

use crate::{figures, out};
use rackmem::diagnostics::{KernelMetrics, KernelPlace, SwitchMetrics};
use serde_json::{Value, json};
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// Between two lines.
pub const PERIOD: Duration = Duration::from_secs(1);

/// Shows what is new since the last time.
pub struct Live {
    json: bool,
    terminal: bool,
    packets: u64,
    at: Instant,
}

impl Live {
    /// Counts from zero.
    pub fn new(json: bool) -> Self {
        Live {
            json,
            terminal: std::io::stderr().is_terminal(),
            packets: 0,
            at: Instant::now(),
        }
    }

    /// Shows a switch's figures. Where nobody looks (a log), nothing.
    pub fn show(&mut self, switch: &SwitchMetrics) {
        let packets = switch.received.total();
        let seconds = self.at.elapsed().as_secs_f64().max(1e-3);
        let rate = packets.saturating_sub(self.packets) as f64 / seconds;
        (self.packets, self.at) = (packets, Instant::now());
        if self.json {
            let mut figures = figures::switch(switch);
            figures["packets_a_second"] = json!(rate.round());
            return out::line(json!({"switch": figures}));
        }
        if self.terminal {
            let mut err = std::io::stderr();
            // A terminal that has gone ends the process in other ways.
            let _ = write!(err, "\r\x1b[K{}", line(switch, rate)).and_then(|()| err.flush());
        }
    }

    /// Leaves the line as it is.
    pub fn end(&self) {
        if self.terminal && !self.json {
            eprintln!();
        }
    }
}

fn line(switch: &SwitchMetrics, rate: f64) -> String {
    let counters = &switch.counters;
    let kernel = switch.kernel.unwrap_or_default();
    let mut line = format!(
        "{} packets ({rate:.0}/s): {} granted, {} refused, {} to homes, {} unlocked; {} entries; {} by the control plane",
        switch.received.total(),
        counters.granted,
        counters.locked + counters.invalid,
        counters.to_home,
        counters.unlocked,
        switch.entries,
        kernel.orders,
    );
    for (count, what) in [
        (switch.locks.served, "for locks"),
        (kernel.lost, "lost on purpose"),
        (kernel.missed, "missed"),
        (kernel.errors, "map errors"),
    ] {
        if count > 0 {
            line.push_str(&format!(", {count} {what}"));
        }
    }
    line
}

/// Where the program is, in a sentence or two.
pub fn place(place: &KernelPlace) -> String {
    let ports = place.interfaces.join(", ");
    let mut text = format!(
        "switch: the program is in the kernel, in {} mode, on {ports}.",
        place.mode
    );
    if let Some((interface, why)) = &place.fell_back {
        text.push_str(&format!(" Native mode was refused by {interface}: {why}."));
    }
    text
}

/// The same for programs.
pub fn place_json(place: &KernelPlace) -> Value {
    let refused = place.fell_back.as_ref();
    let fell_back = refused.map(|(interface, why)| json!({"interface": interface, "why": why}));
    json!({"mode": place.mode, "interfaces": place.interfaces, "fell_back": fell_back})
}

/// What only a switch in the kernel counts.
pub fn kernel_json(kernel: &KernelMetrics) -> Value {
    json!({
        "malformed": kernel.malformed,
        "control": kernel.control,
        "orders": kernel.orders,
        "lost": kernel.lost,
        "missed": kernel.missed,
        "errors": kernel.errors,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_tells_of_trouble_only_if_there_is_any() {
        let mut switch = SwitchMetrics::default();
        assert!(line(&switch, 0.0).ends_with("0 by the control plane"));
        switch.kernel = Some(KernelMetrics {
            missed: 3,
            ..KernelMetrics::default()
        });
        assert!(line(&switch, 0.0).ends_with(", 3 missed"));
    }

    #[test]
    fn a_fallback_is_told_with_its_reason() {
        let at = KernelPlace {
            mode: "generic (skb)".into(),
            fell_back: Some(("eth1".into(), "Operation not supported".into())),
            interfaces: vec!["eth0".into(), "eth1".into()],
            no_blocks: None,
            no_copies: None,
        };
        let text = place(&at);
        assert!(
            text.contains("eth0, eth1") && text.contains("refused by eth1"),
            "{text}"
        );
    }
}
