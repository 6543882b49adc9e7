//! Processes that the rack has declared dead: they answer errors, tell nobody what they did
//! meanwhile, and end or join again.

use crate::process::{Running, TempFile, run, stderr, stdout};
use crate::racks::rack_file_with;
use crate::resp::{Answer, Client};
use serde_json::Value;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How long a rack may take to agree on something.
const AGREED: Duration = Duration::from_secs(60);
/// Keys, enough for every node to be home of some.
const KEYS: usize = 64;

/// A rack of processes whose members can die.
struct Processes {
    folder: PathBuf,
    file: TempFile,
}

impl Processes {
    fn new(name: &str, nodes: usize, switch: bool, lease_ms: u64) -> Processes {
        let id = std::process::id();
        let folder = std::env::temp_dir().join(format!("rackmem-fenced-{name}-{id}"));
        let further = format!(
            "membership = \"dir:{}\"\nlease_ms = {lease_ms}\n",
            folder.display()
        );
        let file = rack_file_with(nodes, switch, &further);
        Processes { folder, file }
    }

    fn start(&self, node: usize, more: &[&str]) -> Running {
        let node = node.to_string();
        let rack = ["kv", "--rack", self.file.path(), "--node", &node];
        let serve = ["--listen", "127.0.0.1:0", "--buckets", "64"];
        Running::start(&[&rack[..], &serve[..], more].concat())
    }

    /// All nodes, and where their clients connect.
    fn start_all(&self, nodes: usize, more: &[&str]) -> (Vec<Running>, Vec<SocketAddr>) {
        let mut members: Vec<Running> = (0..nodes).map(|node| self.start(node, more)).collect();
        let addrs = members.iter_mut().flat_map(Running::listening).collect();
        (members, addrs)
    }

    fn members(&self, more: &[&str]) -> Value {
        let output = run(&[&["members", "--json", "--rack", self.file.path()], more].concat());
        serde_json::from_str(&stdout(&output))
            .unwrap_or_else(|error| panic!("{error}: {}", stderr(&output)))
    }

    /// The incarnation of a member, if it is one.
    fn incarnation(&self, member: &str) -> Option<u64> {
        let shown = self.members(&[]);
        let mut members = shown["members"].as_array().expect("a list").iter();
        let found = members.find(|it| it["member"] == member)?;
        found["incarnation"].as_u64()
    }

    fn wait(&self, what: &str, done: impl Fn() -> bool) {
        let began = Instant::now();
        while !done() {
            assert!(
                began.elapsed() < AGREED,
                "{what}: not in {AGREED:?}: {}",
                self.members(&[])
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn key(number: usize) -> String {
    format!("key:{number}")
}

fn is_refusal(answer: &Answer) -> bool {
    matches!(answer, Answer::Error(text) if text.starts_with("MASTERDOWN"))
}

/// Until a line with this field.
fn hears(process: &mut Running, field: &str) -> Value {
    loop {
        let line = process.line();
        if !line[field].is_null() {
            return line;
        }
    }
}

#[test]
fn one_that_was_stopped_for_too_long_tells_nobody_what_it_does_then() {
    let rack = Processes::new("stopped", 3, false, 300);
    let (mut members, addrs) = rack.start_all(3, &["--rejoin=false"]);
    for round in 0..3 {
        let mut near = Client::connect(addrs[0]);
        let addr = match round {
            0 => addrs[1],
            _ => {
                members[1] = rack.start(1, &["--rejoin=false"]);
                members[1].listening()[0]
            }
        };
        let mut paused: Vec<Client> = (0..4).map(|_| Client::connect(addr)).collect();
        for number in 0..KEYS {
            let (key, value) = (key(number), format!("old-{round}"));
            // Half of the locks stay there to write, the other half to read.
            let writer = if number % 2 == 0 {
                &mut near
            } else {
                &mut paused[0]
            };
            while writer.call(&["SET", &key, &value]) != Answer::Text("OK".into()) {}
            while paused[0].call(&["GET", &key]) != Answer::Text(value.clone()) {}
        }
        members[1].send("STOP");
        rack.wait("exclusion", || rack.incarnation("node 1").is_none());
        for number in 0..KEYS {
            // Those whose home it was are out of reach until it is back.
            let _ = near.call(&["SET", &key(number), &format!("new-{round}")]);
        }
        for client in &mut paused {
            for number in 0..KEYS {
                client.ask(&["GET", &key(number)]);
                client.ask(&["SET", &key(number), "late"]);
            }
            client.ask(&["PING"]);
        }
        members[1].send("CONT");
        for client in &mut paused {
            for said in 0..=2 * KEYS {
                let answer = client.heard();
                assert!(is_refusal(&answer), "{answer:?} to {said} in {round}");
            }
        }
        let told = hears(&mut members[1], "fenced");
        assert_eq!(told["next"], "exit", "{told}");
        assert_eq!(members[1].ended(), Some(3));
    }
}

#[test]
fn one_that_waits_for_an_answer_hears_that_it_is_fenced() {
    let rack = Processes::new("waits", 3, false, 4000);
    let (mut members, addrs) = rack.start_all(3, &["--rejoin=false"]);
    let mut clients: Vec<Client> = (0..KEYS).map(|_| Client::connect(addrs[1])).collect();
    // Nobody answers for the keys of node 2, and for a lease nobody knows why.
    members[2].send("STOP");
    for (number, client) in clients.iter_mut().enumerate() {
        client.ask(&["SET", &key(number), "1"]);
    }
    let removed = rack.members(&["remove", "1"]);
    assert!(removed["version"].is_u64(), "{removed}");
    // The process ends a second after it has found out; who still waited then would hear nothing.
    let answers: Vec<Answer> = clients.iter_mut().map(Client::heard).collect();
    assert!(answers.iter().any(is_refusal), "{answers:?}");
    assert!(
        answers
            .iter()
            .all(|answer| is_refusal(answer) || *answer == Answer::Text("OK".into())),
        "{answers:?}"
    );
    let ping = clients[0].call(&["PING"]);
    assert!(is_refusal(&ping), "{ping:?}");
    assert_eq!(hears(&mut members[1], "fenced")["fenced"], "node 1");
    assert_eq!(members[1].ended(), Some(3));
    members[2].send("CONT");
}

#[test]
fn one_that_is_removed_joins_again_where_its_clients_find_it() {
    let rack = Processes::new("rejoins", 2, true, 500);
    let mut switch = Running::start(&["switch", "--rack", rack.file.path()]);
    hears(&mut switch, "nodes");
    let (mut members, addrs) = rack.start_all(2, &[]);
    rack.members(&["remove", "1"]);
    let told = hears(&mut members[1], "fenced");
    assert_eq!(
        (&told["fenced"], &told["next"]),
        (&"node 1".into(), &"rejoin".into())
    );
    let again: Vec<SocketAddr> = members[1].listening_again();
    assert_eq!(again, addrs[1..]);
    assert_eq!(rack.incarnation("node 1"), Some(2));
    let mut client = Client::connect(addrs[1]);
    let set = |client: &mut Client| client.call(&["SET", "a", "1"]) == Answer::Text("OK".into());
    rack.wait("a write", || set(&mut Client::connect(addrs[1])));
    assert_eq!(client.call(&["GET", "a"]), Answer::Text("1".into()));

    let before = rack.incarnation("switch");
    rack.members(&["remove", "switch"]);
    assert_eq!(hears(&mut switch, "fenced")["next"], "rejoin");
    hears(&mut switch, "nodes");
    assert!(rack.incarnation("switch") > before);
    rack.wait("a write", || set(&mut Client::connect(addrs[0])));
}

#[test]
fn an_address_in_use_is_named_with_the_next_step() {
    let rack = Processes::new("in-use", 1, false, 500);
    let (_members, _) = rack.start_all(1, &[]);
    let file = rack.file.text();
    let addr = file.split('"').nth(1).expect("an address");
    let second = run(&[
        "kv",
        "--rack",
        rack.file.path(),
        "--node",
        "0",
        "--listen",
        "127.0.0.1:0",
    ]);
    let text = stderr(&second);
    assert_eq!(second.status.code(), Some(1));
    assert!(
        text.contains(&format!("node 0: its address {addr} is in use")),
        "{text}"
    );
    assert!(text.contains("next: end the process that has it"), "{text}");
}
