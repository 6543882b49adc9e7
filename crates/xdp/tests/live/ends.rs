//! The parts that processes of the test play, each in a network namespace of its own,
//! and their strings.

use rackmem_hosts::{Hosts, Place, address};
use rackmem_wire::{Header, decode, encode};
use rackmem_xdp::{Address, Mode, Switch};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddrV4, UdpSocket};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::Duration;

pub const AGENT_PORT: u16 = 7401;
const SWITCH_PORT: u16 = 7400;

pub fn switch_address() -> SocketAddrV4 {
    SocketAddrV4::new(address(Place::Switch), SWITCH_PORT)
}

fn agent_address(host: usize) -> SocketAddrV4 {
    SocketAddrV4::new(address(Place::Host(host)), AGENT_PORT)
}

/// Plays the part that the arguments name, if they do.
pub fn play(arguments: &[String]) -> bool {
    match arguments {
        [part, mode, epoch, ports @ ..] if part == "play-switch" => {
            play_switch(
                mode.parse().expect("a mode"),
                epoch.parse().expect("a number"),
                ports,
            );
        }
        [part, host] if part == "play-host" => play_host(host.parse().expect("a number")),
        _ => return false,
    }
    true
}

/// Attaches the program, and says what it has counted at every line it reads,
/// until there are no more.
fn play_switch(mode: Mode, epoch: u32, ports: &[String]) {
    let config = rackmem_proto::switch::SwitchConfig {
        epoch,
        sets: 64,
        shadow: Some(0),
        ..Default::default()
    };
    let mut switch = Switch::load(config).expect("a kernel that takes it");
    let agents = (0..ports.len()).map(agent_address).collect();
    let switch_at = switch_address();
    switch
        .serve(&Address {
            switch: switch_at,
            agents,
        })
        .expect("maps");
    let attached = match switch.attach(ports, mode) {
        Ok(attached) => attached,
        Err(error) => return say(format!("refused {}", error.code())),
    };
    // What the program passes on comes here: a port that nobody listens at would answer that it is
    // closed.
    let _control = UdpSocket::bind(switch_at).expect("the switch's address");
    say(format!("ready {}", attached.mode));
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        if let Some(epoch) = line.strip_prefix("epoch ") {
            let epoch = epoch.parse().expect("a number");
            switch.reset(epoch, None).expect("maps");
            let had = switch.next_locks(epoch).expect("maps");
            assert_eq!(had.len(), 1, "{had:?}");
        }
        let counters = switch.counters().expect("maps");
        let entries = switch.entries().expect("maps");
        let (granted, orders) = (counters.switch.granted, counters.orders);
        say(format!("{granted} {orders} {} {entries}", counters.control));
    }
}

/// Sends what it is told, as its agents (`A`) or its requester (`R`), and tells what either hears.
fn play_host(host: usize) {
    let agent = UdpSocket::bind(agent_address(host)).expect("the host's address");
    let requester = UdpSocket::bind((address(Place::Host(host)), 0)).expect("a port");
    say(format!(
        "ready {}",
        requester.local_addr().expect("bound").port()
    ));
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let words: Vec<&str> = line.split(' ').collect();
        let socket = if words[1] == "A" { &agent } else { &requester };
        match words[0] {
            "send" => {
                let packet = bytes(words[2]);
                socket
                    .send_to(&packet, switch_address())
                    .expect("the network");
                say("sent".into());
            }
            _ => {
                let patience = Duration::from_millis(words[2].parse().expect("a number"));
                socket.set_read_timeout(Some(patience)).expect("a socket");
                let mut buffer = [0; 2048];
                let heard = socket.recv_from(&mut buffer);
                say(heard.map_or("-".into(), |(len, from)| {
                    let ours = from == switch_address().into();
                    format!("{} {}", u8::from(ours), hex(&buffer[..len]))
                }));
            }
        }
    }
}

fn say(line: String) {
    let mut out = std::io::stdout();
    writeln!(out, "{line}")
        .and_then(|()| out.flush())
        .expect("somebody who listens");
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits = (0..hex.len()).step_by(2);
    digits
        .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hex"))
        .collect()
}

/// A process that plays a part. It ends when the value is dropped.
pub struct Player {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    /// What it said first, after `ready`.
    pub ready: String,
}

impl Player {
    fn start(hosts: &Hosts, place: Place, part: &[String]) -> Result<Player, String> {
        let own = std::env::current_exe().expect("this program");
        let mut child = hosts
            .command(place, own)
            .args(part)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| error.to_string())?;
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().expect("piped"));
        let mut player = Player {
            child,
            stdin,
            stdout,
            ready: String::new(),
        };
        let line = player.line();
        match line.strip_prefix("ready ") {
            Some(rest) => player.ready = rest.to_owned(),
            None => return Err(line),
        }
        Ok(player)
    }

    pub fn switch(hosts: &Hosts, mode: &str, epoch: u32) -> Result<Player, String> {
        let part = ["play-switch".into(), mode.into(), epoch.to_string()];
        Player::start(hosts, Place::Switch, &[&part[..], &hosts.ports()].concat())
    }

    pub fn host(hosts: &Hosts, host: usize) -> Player {
        let part = ["play-host".into(), host.to_string()];
        Player::start(hosts, Place::Host(host), &part).expect("a host")
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        let _ = self.stdout.read_line(&mut line);
        line.trim_end().to_owned()
    }

    pub fn ask(&mut self, question: &str) -> String {
        let stdin = self.stdin.as_mut().expect("open until it is dropped");
        writeln!(stdin, "{question}").expect("a player that lives");
        self.line()
    }

    /// Sends a packet to the switch.
    pub fn send(&mut self, socket: char, header: &Header) {
        let packet = hex(&encode(header, 0));
        assert_eq!(self.ask(&format!("send {socket} {packet}")), "sent");
    }

    /// The next packet from the switch, if one comes within so many milliseconds.
    pub fn hear(&mut self, socket: char, ms: u32) -> Option<Header> {
        let heard = self.ask(&format!("hear {socket} {ms}"));
        let packet = heard.strip_prefix("1 ")?;
        let packet = bytes(packet);
        let (header, body) = decode(&packet).expect("a packet");
        assert!(body.is_empty());
        Some(header)
    }
}

impl Drop for Player {
    fn drop(&mut self) {
        drop(self.stdin.take());
        let mut rest = String::new();
        let _ = self.stdout.read_to_string(&mut rest);
        let _ = self.child.wait();
    }
}
