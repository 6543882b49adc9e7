//! What a rack bears: garbage on all its ports, and the death of a node.

use crate::process::Running;
use crate::racks::{Serving, rack_file_with};
use crate::resp::{Answer, Client};
use std::io::Write;
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Keys that are written before something happens, enough that every node is home of some.
const KEYS: usize = 100;

fn key(number: usize) -> String {
    format!("key:{number}")
}

fn write_all(client: &mut Client) {
    for number in 0..KEYS {
        let done = client.call(&["SET", &key(number), "value"]);
        assert_eq!(done, Answer::Text("OK".into()), "key {number}");
    }
}

fn read_all(client: &mut Client) {
    for number in 0..KEYS {
        let found = client.call(&["GET", &key(number)]);
        assert_eq!(found, Answer::Text("value".into()), "key {number}");
    }
}

#[test]
fn garbage_on_every_port_disturbs_nobody() {
    let serving = Serving::processes(2, true);
    let agents = serving.agents();
    assert_eq!(agents.len(), 3);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| throw_datagrams(&agents, &stop));
        scope.spawn(|| throw_streams(&serving.addrs, &stop));
        for _ in 0..5 {
            write_all(&mut Client::connect(serving.addrs[0]));
            read_all(&mut Client::connect(serving.addrs[1]));
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert_eq!(serving.interrupt(), [Some(130); 3]);
}

/// Datagrams of all lengths: pure noise, and noise that begins as the rack's packets may.
fn throw_datagrams(targets: &[SocketAddr], stop: &AtomicBool) {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let mut rng = fastrand::Rng::with_seed(1);
    while !stop.load(Ordering::Relaxed) {
        for target in targets {
            let mut packet = vec![0; rng.usize(..2000)];
            rng.fill(&mut packet);
            if rng.bool() {
                packet.iter_mut().take(16).for_each(|byte| *byte %= 0x20);
            }
            // A full queue at the receiver loses it, which is as good.
            let _ = socket.send_to(&packet, target);
        }
        std::thread::sleep(Duration::from_micros(200));
    }
}

/// Connections that say nonsense, promise what they never send, and hang up.
fn throw_streams(targets: &[SocketAddr], stop: &AtomicBool) {
    let lines: [&[u8]; 6] = [
        b"*1000000000\r\n",
        b"*2\r\n$3\r\nGET\r\n$999999999999\r\n",
        b"*-7\r\n$-1\r\n",
        b"$5\r\nhello\r\n",
        b"\x00\xff\xfe\x01\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    ];
    let mut rng = fastrand::Rng::with_seed(2);
    while !stop.load(Ordering::Relaxed) {
        let target = targets[rng.usize(..targets.len())];
        let mut stream = TcpStream::connect(target).expect("it still accepts");
        // It may have hung up already, as it should.
        let _ = stream.write_all(lines[rng.usize(..lines.len())]);
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Keys in memory that died are answered with an error, when the rack's patience is over (the
/// client waits no longer than 30 s); what a node holds in its own cache, and what lives elsewhere,
/// is served as before.
#[test]
fn the_death_of_a_node_is_an_error_and_not_a_hang() {
    let file = rack_file_with(3, true, "patience_ms = 2000\n");
    let rack = ["--rack", file.path()];
    let start = |words: &[&str]| Running::start(&[words, &rack[..]].concat());
    let switch = start(&["switch"]);
    let survivor = start(&["node", "--node", "1"]);
    let victim = start(&["node", "--node", "2"]);
    let serve = [
        "kv",
        "--node",
        "0",
        "--listen",
        "127.0.0.1:0",
        "--buckets",
        "256",
    ];
    let mut server = start(&serve);
    let mut client = Client::connect(server.listening()[0]);
    write_all(&mut client);
    drop(victim);
    read_all(&mut client);
    let (mut served, mut failed) = (0, 0);
    for number in 0..KEYS {
        match client.call(&["SET", &format!("new:{number}"), "value"]) {
            Answer::Text(ok) if ok == "OK" => served += 1,
            Answer::Error(text) if text.contains("no answer about memory of node 2") => failed += 1,
            other => panic!("{other:?}"),
        }
        if served > 0 && failed > 1 {
            break;
        }
    }
    assert!(served > 0 && failed > 0, "{served} served, {failed} failed");
    for process in [server, survivor, switch] {
        assert_eq!(process.interrupt(), Some(130));
    }
}
