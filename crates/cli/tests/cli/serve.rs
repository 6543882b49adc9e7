//! Every way to run a store, with the same demands on each.

use crate::process::{Running, TempFile, run, stderr};
use crate::racks::{EMBEDDED, Serving, rack_file};
use crate::resp::{Answer, Client};
use crate::{agreement, clients};
use std::net::SocketAddr;

fn demand_all(addrs: &[SocketAddr]) {
    agreement::concurrent_clients_see_one_memory(addrs);
    agreement::what_one_sets_all_return(addrs);
    agreement::large_values_and_many_keys(addrs);
    clients::redis_cli(addrs);
    clients::redis_benchmark(addrs);
}

#[test]
fn an_embedded_rack_serves_on_every_node() {
    for (name, options) in EMBEDDED {
        println!("{name}");
        let serving = Serving::embedded(3, options);
        assert_eq!(serving.addrs.len(), 3);
        demand_all(&serving.addrs);
        assert_eq!(serving.interrupt(), [Some(130)]);
    }
}

#[test]
fn a_rack_of_processes_with_a_switch_serves_on_every_node() {
    let serving = Serving::processes(3, true);
    demand_all(&serving.addrs);
    assert_eq!(serving.interrupt(), [Some(130); 4]);
}

#[test]
fn a_rack_of_processes_without_a_switch_serves_on_every_node() {
    let serving = Serving::processes(2, false);
    demand_all(&serving.addrs);
    assert_eq!(serving.interrupt(), [Some(130); 2]);
}

#[test]
fn a_rack_of_processes_that_share_memory_serves_on_every_node() {
    let serving = Serving::sharing_memory(3);
    demand_all(&serving.addrs);
    assert_eq!(serving.interrupt(), [Some(130); 4]);
}

#[test]
fn a_rack_of_processes_on_a_bad_network_serves_on_every_node() {
    let serving = Serving::on_a_bad_network(3, true);
    demand_all(&serving.addrs);
    assert_eq!(serving.interrupt(), [Some(130); 4]);
}

/// Packets of a process, in files that others read.
#[test]
fn a_process_keeps_its_packets_when_asked() {
    let (pcap, trace) = (TempFile::new(""), TempFile::new(""));
    let fabric = [
        "--fabric",
        "udp",
        "--pcap",
        pcap.path(),
        "--trace",
        trace.path(),
    ];
    let serving = Serving::embedded(2, &fabric);
    let mut client = Client::connect(serving.addrs[1]);
    assert_eq!(client.call(&["SET", "a", "b"]), Answer::Text("OK".into()));
    // Writes a block of node 0's, which this node has read.
    assert_eq!(client.call(&["FLUSHALL"]), Answer::Text("OK".into()));
    assert_eq!(serving.interrupt(), [Some(130)]);
    let text = trace.text();
    for packet in ["ReadMiss", "WriteShared"] {
        assert!(text.contains(packet), "{packet}: {text}");
    }
    let bytes = std::fs::read(pcap.path()).expect("a capture");
    assert_eq!(bytes[..4], 0xa1b2_3c4d_u32.to_le_bytes());
    assert!(bytes.len() > 1000);
    let error = run(&["kv", "--loss", "0.1", "--port", "0"]);
    let said = stderr(&error);
    assert!(said.contains("--fabric shm or udp"), "{said}");
}

/// A node that only gives memory, beside one that serves.
#[test]
fn a_node_without_clients_gives_its_memory() {
    let file = rack_file(2, false);
    let stats = ["--node", "0", "--stats", "1"];
    let mut giver = Running::start(&[&["node", "--rack", file.path()], &stats[..]].concat());
    assert_eq!(giver.line()["node"], 0);
    let serve = ["--node", "1", "--listen", "127.0.0.1:0", "--buckets", "64"];
    let mut server = Running::start(&[&["kv", "--rack", file.path()], &serve[..]].concat());
    let addrs = server.listening();
    let mut client = Client::connect(addrs[0]);
    for n in 0..200 {
        let done = client.call(&["SET", &format!("key:{n}"), "value"]);
        assert_eq!(done, Answer::Text("OK".into()));
    }
    assert!(giver.line()["received"].is_object());
    assert_eq!(server.interrupt(), Some(130));
    assert_eq!(giver.interrupt(), Some(130));
}

#[test]
fn two_racks_are_not_one_memory() {
    let (one, other) = (Serving::embedded(1, &[]), Serving::embedded(1, &[]));
    agreement::concurrent_clients_see_several_memories(&[one.addrs[0], other.addrs[0]]);
}

#[test]
fn a_password_is_asked_for() {
    let serving = Serving::embedded(1, &["--password", "secret"]);
    let mut client = Client::connect(serving.addrs[0]);
    let refused = client.call(&["GET", "a"]);
    assert!(
        matches!(&refused, Answer::Error(text) if text.starts_with("NOAUTH")),
        "{refused:?}"
    );
    assert_eq!(client.call(&["AUTH", "secret"]), Answer::Text("OK".into()));
    assert_eq!(client.call(&["GET", "a"]), Answer::Nil);
}

/// Two processes that disagree on the store's size must not both serve it.
#[test]
fn nodes_that_disagree_are_told() {
    let file = rack_file(3, false);
    let rack = ["--rack", file.path(), "--node"];
    let member = |node: &'static str, buckets: &'static str| {
        let own = [node, "--listen", "127.0.0.1:0", "--buckets", buckets];
        [&["kv"], &rack[..], &own[..]].concat()
    };
    let _second = Running::start(&[&["node"], &rack[..], &["1"]].concat());
    let _third = Running::start(&[&["node"], &rack[..], &["2"]].concat());
    let mut first = Running::start(&member("0", "64"));
    assert_eq!(first.listening().len(), 1);
    drop(_third);
    let refused = run(&member("2", "128"));
    let text = stderr(&refused);
    assert_eq!(refused.status.code(), Some(1), "{text}");
    assert!(
        text.contains("bucket count 64") && text.contains("--buckets"),
        "{text}"
    );
}
