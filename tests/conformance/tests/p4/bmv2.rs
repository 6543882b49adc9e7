//! The P4 program on BMv2, as an implementation that golden packets are played to.
//!
//! BMv2 reads and writes capture files in place of interfaces. The one that it reads from is a
//! pipe, so that packets come when the test wants them to; everything comes in by one port, because
//! the program does not ask by which.

use super::carrier::{self, MARK_ADDRESS, SWITCH_ADDRESS};
use super::cli::Cli;
use super::pcap::{self, Growing};
use super::registers;
use super::tools::Tools;
use rackmem_conformance::generate::control;
use rackmem_conformance::{Implementation, Reply, Setup};
use rackmem_proto::switch::Register;
use rackmem_proto::wire::MAX_NODES;
use std::fs::{self, File, OpenOptions};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// BMv2's egress has four threads, port modulo four; a packet to one port of each marks that all
/// before it have left.
const MARKS: [usize; 4] = [60, 61, 62, 63];
const CPU: usize = 64;
const INPUT: usize = 70;
/// Packets between marks: fewer than a queue of BMv2 holds.
const WINDOW: usize = 16;
/// How long a busy machine may take to start a switch, or to take a window.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running BMv2 with the program in it.
pub(super) struct Running {
    child: Child,
    pub(super) cli: Cli,
    input: File,
    outputs: Vec<(usize, Growing)>,
    folder: PathBuf,
    number: u16,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn ports() -> impl Iterator<Item = usize> {
    (1..=MAX_NODES).chain(MARKS).chain([CPU])
}

pub(super) fn io(what: &str) -> impl Fn(std::io::Error) -> String + '_ {
    move |error| format!("{what}: {error}")
}

impl Running {
    pub(super) fn start(tools: &Tools, folder: &Path, program: &Path) -> Result<Self, String> {
        fs::create_dir_all(folder).map_err(io("the folder"))?;
        let at = |port: usize, way: &str| folder.join(format!("p{port}_{way}.pcap"));
        for port in ports() {
            fs::write(at(port, "in"), pcap::head()).map_err(io("a capture"))?;
        }
        let pipe = at(INPUT, "in");
        let made = Command::new("mkfifo").arg(&pipe).status();
        if !made.map_err(io("mkfifo"))?.success() {
            return Err("mkfifo failed".into());
        }
        let both = OpenOptions::new().read(true).write(true).open(&pipe);
        let mut input = both.map_err(io("the pipe"))?;
        std::io::Write::write_all(&mut input, &pcap::head()).map_err(io("the pipe"))?;

        let thrift = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let thrift = thrift.map_err(io("a port"))?.port();
        let mut command = Command::new(&tools.switch);
        command.args(["--use-files", "0", "--thrift-port", &thrift.to_string()]);
        command.args(["--device-id", &thrift.to_string()]);
        for port in ports().chain([INPUT]) {
            let file = folder.join(format!("p{port}"));
            command.arg("-i").arg(format!("{port}@{}", file.display()));
        }
        command
            .arg(program)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let mut child = command.spawn().map_err(io("simple_switch"))?;
        let cli = match wait_for(|| Ok(Cli::connect(&tools.cli, thrift).ok())) {
            Ok(cli) => cli,
            Err(error) => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(error);
            }
        };
        let mut running = Running {
            child,
            cli,
            input,
            outputs: Vec::new(),
            folder: folder.to_owned(),
            number: 0,
        };
        for port in ports() {
            let capture = Growing::open(&at(port, "out")).map_err(io("a capture"))?;
            running.outputs.push((port, capture));
        }
        running.connect_rack()?;
        Ok(running)
    }

    /// Addresses and ports of everybody: what does not change from case to case.
    fn connect_rack(&mut self) -> Result<(), String> {
        let mut commands = control::rack_commands(MAX_NODES as u16);
        for (address, port) in (MARK_ADDRESS..).zip(MARKS) {
            commands.push(format!(
                "table_add RackmemIngress.hosts RackmemIngress.to_port {address} 0&&&0 0&&&0 => {port} 1 2"
            ));
        }
        self.cli.run(&commands).map(drop)
    }

    pub(super) fn window(&mut self, packets: &[&[u8]]) -> Result<Vec<Reply>, String> {
        let first = self.number;
        let mut frames: Vec<Vec<u8>> = Vec::new();
        for packet in packets {
            frames.push(carrier::to_address(SWITCH_ADDRESS, self.number, packet));
            self.number = self.number.wrapping_add(1);
        }
        let mark = self.number;
        self.number = self.number.wrapping_add(1);
        frames.extend(
            (0..)
                .zip(MARKS)
                .map(|(nth, _)| carrier::to_address(MARK_ADDRESS + nth, mark, &[])),
        );
        for frame in &frames {
            pcap::put(&mut self.input, frame).map_err(io("the pipe"))?;
        }
        let mut marks = 0;
        wait_for(|| {
            for (_, capture) in &mut self.outputs[MAX_NODES..MAX_NODES + MARKS.len()] {
                marks += capture.frames().map_err(io("a capture"))?.len();
            }
            Ok((marks == MARKS.len()).then_some(()))
        })?;
        let mut replies = vec![Reply::Sent(Vec::new()); packets.len()];
        for (port, capture) in &mut self.outputs {
            for frame in capture.frames().map_err(io("a capture"))? {
                take(&mut replies, packets, first, *port, &frame)?;
            }
        }
        Ok(replies)
    }
}

/// Notes a packet that has left by a port.
fn take(
    replies: &mut [Reply],
    packets: &[&[u8]],
    first: u16,
    port: usize,
    frame: &[u8],
) -> Result<(), String> {
    let (number, packet) = if port == CPU {
        let (number, payload) = carrier::unwrap(frame)?;
        let unchanged = packets.get(usize::from(number.wrapping_sub(first)));
        if unchanged != Some(&payload) {
            return Err("the control plane has got a packet that is not as it came".into());
        }
        (number, None)
    } else {
        let (number, sent) = carrier::sent((port - 1) as u16, frame)?;
        (number, Some(sent))
    };
    let reply = replies.get_mut(usize::from(number.wrapping_sub(first)));
    match (reply, packet) {
        (Some(Reply::Sent(sent)), Some(packet)) => sent.push(packet),
        (Some(reply), None) if *reply == Reply::Sent(Vec::new()) => *reply = Reply::ControlPlane,
        _ => return Err(format!("a packet by port {port} that nothing asked for")),
    }
    Ok(())
}

fn wait_for<T>(mut look: impl FnMut() -> Result<Option<T>, String>) -> Result<T, String> {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look()? {
            return Ok(found);
        }
        if Instant::now() > end {
            return Err("BMv2 does not answer".into());
        }
        std::thread::sleep(Duration::from_micros(200));
    }
}

/// The program, compiled for a geometry and with a planted difference, if any.
pub struct Bmv2<'a> {
    tools: &'a Tools,
    folder: PathBuf,
    plant: Option<u32>,
    geometry: Option<(u8, u32, u8, u32)>,
    setup: Setup,
    running: Option<Running>,
}

impl<'a> Bmv2<'a> {
    /// Nothing is compiled or started before the first case. The folder is made,
    /// and removed in the end.
    pub fn new(tools: &'a Tools, folder: PathBuf, plant: Option<u32>) -> Self {
        Bmv2 {
            tools,
            folder,
            plant,
            geometry: None,
            setup: Setup::default(),
            running: None,
        }
    }

    fn running(&mut self) -> Result<&mut Running, String> {
        self.running
            .as_mut()
            .ok_or_else(|| "it is not configured".into())
    }
}

impl Drop for Bmv2<'_> {
    fn drop(&mut self) {
        self.running = None;
        let _ = fs::remove_dir_all(&self.folder);
    }
}

impl Implementation for Bmv2<'_> {
    fn name(&self) -> String {
        "P4 on BMv2".into()
    }

    fn configure(&mut self, setup: &Setup) -> Result<(), String> {
        let geometry = Some((setup.ways, setup.sets, setup.lock_ways, setup.lock_sets));
        if self.geometry != geometry {
            self.running = None;
            fs::create_dir_all(&self.folder).map_err(io("the folder"))?;
            let program = self.folder.join("rackmem.json");
            let mut defines = vec![
                format!("WAYS={}", setup.ways),
                format!("SETS={}", setup.sets),
                format!("LOCK_WAYS={}", setup.lock_ways),
                format!("LOCK_SETS={}", setup.lock_sets),
            ];
            defines.extend(self.plant.map(|plant| format!("PLANT={plant}")));
            self.tools.compile(&defines, &program)?;
            let files = self.folder.join("ports");
            self.running = Some(Running::start(self.tools, &files, &program)?);
            self.geometry = geometry;
        }
        self.setup = *setup;
        let commands = control::case_commands(setup);
        self.running()?.cli.run(&commands).map(drop)
    }

    fn load(&mut self, registers: &[Register]) -> Result<(), String> {
        let commands = registers::write(&self.setup, registers)?;
        self.running()?.cli.run(&commands).map(drop)
    }

    fn freeze(&mut self) -> Result<(), String> {
        let commands = [control::FREEZE.into()];
        self.running()?.cli.run(&commands).map(drop)
    }

    fn packet(&mut self, bytes: &[u8]) -> Result<Reply, String> {
        self.packets(&[bytes])?
            .pop()
            .ok_or_else(|| "no reply".into())
    }

    fn packets(&mut self, packets: &[&[u8]]) -> Result<Vec<Reply>, String> {
        let mut replies = Vec::with_capacity(packets.len());
        for window in packets.chunks(WINDOW) {
            match self.running()?.window(window) {
                Ok(some) => replies.extend(some),
                Err(error) => {
                    // What of the window is still on its way would be taken for the next case's.
                    (self.running, self.geometry) = (None, None);
                    return Err(error);
                }
            }
        }
        Ok(replies)
    }

    fn registers(&mut self) -> Result<Vec<Register>, String> {
        let setup = self.setup;
        let answers = self.running()?.cli.run(&registers::read(&setup))?;
        registers::found(&setup, &answers)
    }
}
