//! Running the program on a frame without a network (`BPF_PROG_TEST_RUN`):
//! conformance tests and benches.

use crate::carrier::Frame;
use crate::error::{Error, Result};
use crate::layout::Place;
use crate::load::{MAIN, PROBE, Switch};
use aya::programs::{SchedClassifier, TestRun, TestRunOptions, Xdp};
use rackmem_wire::MAX_BODY;
use std::net::SocketAddrV4;
use std::time::Duration;

/// What a program decides about a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It is dropped.
    Drop,
    /// The network stack gets it.
    Pass,
    /// Back by the port where it came from.
    Back,
    /// By another port, or by several.
    Redirect,
    /// The program failed, which is a defect.
    Aborted,
}

/// A run of a program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ran {
    /// What it decided.
    pub verdict: Verdict,
    /// The frame as it left it.
    pub frame: Vec<u8>,
    /// How long one run took on average.
    pub time: Duration,
}

/// Bytes by which programs make frames longer, at most.
const LONGER: usize = 2048;

/// Runs a program so often on the same frame: what it has changed the first time it sees the second
/// time, too.
pub(crate) fn run(program: &Xdp, frame: &[u8], times: u32) -> Result<Ran> {
    // A program may make a frame longer by a granule and its headers.
    let mut out = vec![0; frame.len() + LONGER];
    let result = program
        .test_run(TestRunOptions {
            data_in: Some(frame),
            data_out: Some(&mut out),
            repeat: times,
            ..TestRunOptions::default()
        })
        .map_err(|error| Error::Kernel(error.to_string()))?;
    out.truncate(result.data_size_out as usize);
    Ok(Ran {
        verdict: match result.return_value {
            1 => Verdict::Drop,
            2 => Verdict::Pass,
            3 => Verdict::Back,
            4 => Verdict::Redirect,
            _ => Verdict::Aborted,
        },
        frame: out,
        time: result.duration,
    })
}

/// Where a program behind a driver is told by which interface a packet came (`struct __sk_buff`).
const IFINDEX_AT: usize = 40;

/// Runs a program once on a frame that is behind an interface's driver.
pub(crate) fn run_behind_driver(
    program: &SchedClassifier,
    frame: &[u8],
    ifindex: u32,
) -> Result<Ran> {
    let mut context = [0; IFINDEX_AT + 4];
    context[IFINDEX_AT..].copy_from_slice(&ifindex.to_ne_bytes());
    let mut out = vec![0; frame.len() + MAX_BODY];
    let result = program
        .test_run(TestRunOptions {
            data_in: Some(frame),
            data_out: Some(&mut out),
            ctx_in: Some(&context),
            ..TestRunOptions::default()
        })
        .map_err(|error| Error::Kernel(error.to_string()))?;
    out.truncate(result.data_size_out as usize);
    Ok(Ran {
        verdict: match result.return_value as i32 {
            // Whatever comes next, or the stack.
            -1 | 0 => Verdict::Pass,
            2 => Verdict::Drop,
            7 => Verdict::Redirect,
            _ => Verdict::Aborted,
        },
        frame: out,
        time: result.duration,
    })
}

/// Numbers of ports in test runs, which no interface has.
const PORTS: u32 = 1000;

impl Switch {
    /// Puts every agent behind the port of this number, without any interface.
    /// Not for a program that is attached.
    ///
    /// # Errors
    /// [`Error::Map`].
    pub fn pretend_ports(
        &mut self,
        switch: SocketAddrV4,
        agents: &[(SocketAddrV4, u16)],
    ) -> Result<()> {
        let places: Vec<Place> = (0..)
            .zip(agents)
            .map(|(node, &(agent, port))| Place {
                node,
                agent,
                mac: [2, 0, 0, 0, 0, node as u8],
                ifindex: PORTS + u32::from(port),
            })
            .collect();
        self.place(&places)?;
        self.config.can_multicast = true;
        self.config.address = Some(switch);
        self.write_config()
    }

    /// Runs the program on a frame, so often, without sending anything.
    ///
    /// # Errors
    /// [`Error::Kernel`].
    pub fn run(&self, frame: &[u8], times: u32) -> Result<Ran> {
        run(loaded(self, MAIN)?, frame, times)
    }

    /// The copies that the first `ports` ports make of a frame that [`run`](Switch::run)
    /// redirected: one, or those of a multicast, with the port that has made it. Each port is
    /// asked; those that drop it are left out.
    ///
    /// # Errors
    /// [`Error::Kernel`], [`Error::Map`].
    pub fn copies(&mut self, frame: &[u8], ports: u16) -> Result<Vec<(Option<u16>, Vec<u8>)>> {
        let is_multicast = frame.get(30..34) == Some(&[0; 4]);
        if !is_multicast {
            return Ok(vec![(None, frame.to_vec())]);
        }
        let mut copies = Vec::new();
        for port in 0..ports {
            self.probe.set(0, PORTS + u32::from(port), 0)?;
            let ran = run(loaded(self, PROBE)?, frame, 1)?;
            if ran.verdict == Verdict::Pass {
                copies.push((Some(port), ran.frame));
            }
        }
        Ok(copies)
    }
}

fn loaded<'a>(switch: &'a Switch, name: &str) -> Result<&'a Xdp> {
    let program = switch.ebpf.program(name);
    let program = program.ok_or_else(|| Error::Kernel(format!("the object has no `{name}`")))?;
    program.try_into().map_err(Error::of_load)
}

/// A frame that carries a packet from a neighbour to the switch.
pub fn to_switch(switch: SocketAddrV4, from: SocketAddrV4, packet: &[u8]) -> Vec<u8> {
    Frame {
        macs: [[2, 0, 0, 0, 1, 0], [2, 0, 0, 0, 0, 0xff]],
        from,
        to: switch,
        payload: packet.to_vec(),
    }
    .to_bytes()
}
