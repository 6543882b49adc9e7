//! Captures hold what was on the wire, in a form that others read.

mod support;

use rackmem_fabric::udp::Peers;
use rackmem_fabric::{Body, FaultControl, Faults, Nobody, Pcap, Port, Tap, Trace, Wrapping};
use rackmem_wire::{Dest, Header, decode};
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, Mutex};
use support::{Keeper, KeeperPort, header};

/// A file's bytes, kept in memory.
#[derive(Clone, Default)]
struct Memory(Arc<Mutex<Vec<u8>>>);

impl Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Memory {
    fn bytes(&self) -> Vec<u8> {
        self.0.lock().unwrap().clone()
    }
}

const BODY: [u8; 9] = *b"nine byte";

/// Sends some packets from node 1 through a tap, some lost or duplicated; those that passed.
fn send_through(tap: Arc<dyn Tap>) -> Vec<support::Got> {
    let faults = Faults {
        loss: 0.2,
        duplication: 0.2,
        ..Faults::NONE
    };
    let faults = Arc::new(FaultControl::new(faults).unwrap());
    let keeper = Arc::new(Keeper::default());
    let wrapping = Wrapping::new(Some(faults), keeper.clone(), vec![tap]).unwrap();
    let port: Box<dyn Port> = wrapping.port(1, Box::new(KeeperPort(keeper.clone())));
    for number in 0..20 {
        let header = header(number);
        port.send(Dest::Switch, &header, Body::None, &mut Nobody);
        let body = Body::Bytes(&BODY);
        port.send(
            Dest::Requester(header.requester),
            &header,
            body,
            &mut Nobody,
        );
        port.send(Dest::Agent(0), &header, body, &mut Nobody);
    }
    keeper.got()
}

fn v6() -> Peers {
    let at = |last: u16| std::net::SocketAddr::from(([0xfd00, 0, 0, 0, 0, 0, 0, last], 7400));
    Peers {
        switch: Some(at(9)),
        agents: vec![at(1), at(2)],
        mtu: 1500,
    }
}

fn capture(peers: Peers) -> (Vec<support::Got>, Vec<u8>) {
    let file = Memory::default();
    let pcap = Arc::new(Pcap::new(peers, file.clone()).unwrap());
    let sent = send_through(pcap.clone());
    assert_eq!(pcap.unwritten(), 0);
    drop(pcap);
    (sent, file.bytes())
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

fn half(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes(bytes[at..at + 2].try_into().unwrap())
}

/// The sum that an Internet checksum makes all ones.
fn sum(parts: &[&[u8]]) -> u32 {
    let bytes = parts.concat();
    let mut sum = 0u32;
    for pair in bytes.chunks(2) {
        sum += u32::from(pair[0]) << 8 | u32::from(pair.get(1).copied().unwrap_or(0));
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum
}

/// The datagrams of a capture, read by the formats' own definitions: destination port, header,
/// body.
fn parse(file: &[u8]) -> Vec<(u16, Header, Vec<u8>)> {
    assert_eq!(word(file, 0), 0xa1b2_3c4d);
    assert_eq!(word(file, 20), 101);
    let (mut found, mut at) = (Vec::new(), 24);
    while at < file.len() {
        assert!(word(file, at + 4) < 1_000_000_000);
        let len = word(file, at + 8) as usize;
        assert_eq!(len, word(file, at + 12) as usize);
        let ip = &file[at + 16..at + 16 + len];
        at += 16 + len;
        let (addresses, udp) = match ip[0] >> 4 {
            4 => {
                assert_eq!((usize::from(half(ip, 2)), ip[9]), (len, 17));
                assert_eq!(sum(&[&ip[..20]]), 0xffff, "the header's checksum");
                (&ip[12..20], &ip[20..])
            }
            6 => {
                assert_eq!((usize::from(half(ip, 4)), ip[6]), (len - 40, 17));
                (&ip[8..40], &ip[40..])
            }
            version => panic!("IP version {version}"),
        };
        assert_eq!(usize::from(half(udp, 4)), udp.len());
        let pseudo = [0, 17, udp[4], udp[5]];
        assert_eq!(sum(&[addresses, &pseudo, udp]), 0xffff, "UDP's checksum");
        let (header, body) = decode(&udp[8..]).unwrap();
        found.push((half(udp, 2), header, body.to_vec()));
    }
    found
}

#[test]
fn a_capture_holds_what_was_on_the_wire() {
    for peers in [Peers::made_up(2), v6()] {
        let (sent, file) = capture(peers);
        let found = parse(&file);
        assert_eq!(found.len(), sent.len());
        for (sent, (port, header, body)) in sent.iter().zip(found) {
            assert_eq!((sent.header, &sent.body), (header, &body));
            let to_requester = matches!(sent.to, Dest::Requester(_));
            assert_eq!(port, if to_requester { 49_155 } else { 7400 });
        }
    }
}

#[test]
fn tcpdump_reads_a_capture() {
    let (sent, file) = capture(Peers::made_up(2));
    let name = format!("rackmem-capture-{}.pcap", std::process::id());
    let path: PathBuf = std::env::temp_dir().join(name);
    std::fs::write(&path, file).unwrap();
    let output = Command::new("tcpdump")
        .args(["-nvv", "-r"])
        .arg(&path)
        .output();
    std::fs::remove_file(&path).unwrap();
    let Ok(output) = output else {
        let _ = writeln!(
            std::io::stdout(),
            "skipped: tcpdump is not installed (apt-get install tcpdump)"
        );
        return;
    };
    let text = String::from_utf8_lossy(&output.stdout);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    assert_eq!(text.matches("udp sum ok").count(), sent.len(), "{text}");
    assert!(
        text.contains("10.82.77.2.49155 > 10.82.77.254.7400"),
        "{text}"
    );
}

#[test]
fn a_trace_has_a_line_a_packet_with_its_fate() {
    let file = Memory::default();
    let trace = Arc::new(Trace::new(file.clone()));
    let sent = send_through(trace.clone());
    assert_eq!(trace.unwritten(), 0);
    drop(trace);
    let text = String::from_utf8(file.bytes()).unwrap();
    let count = |fate: &str| {
        let has = |line: &&str| line.split_whitespace().nth(1) == Some(fate);
        text.lines().filter(has).count()
    };
    assert_eq!(count("Sent") + count("Doubled"), sent.len(), "{text}");
    assert!(count("Lost") > 0 && count("Sent") + count("Lost") == 60);
    assert!(text.contains("ReadMiss"), "{text}");
    assert!(
        text.contains("block 1:0x0 of 1.3#19 from 1 to switch"),
        "{text}"
    );
}

/// A disk that is full.
struct Full;

impl Write for Full {
    fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
        Err(std::io::ErrorKind::StorageFull.into())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_capture_that_cannot_be_written_says_so_at_once() {
    assert!(Pcap::new(Peers::made_up(2), Full).is_err());
}
