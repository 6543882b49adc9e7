//! A home is a process that is killed while commands go to it.

use super::*;
use rackmem::Config;
use rackmem::membership::{self, Role};
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// What the process is told: the text of the rack's file.
const CONFIG: &str = "RACKMEM_TEST_SHIPPING_CONFIG";
/// The node that is killed.
const KILLED: usize = 1;
/// Longer than a keeper can be kept from its processor: an operator says who is dead.
const LEASE: Duration = Duration::from_secs(16);

/// A rack's file, and the folder that its members meet in.
struct Cluster {
    text: String,
    folder: PathBuf,
}

impl Cluster {
    fn new() -> Cluster {
        let name = format!("rackmem-kv-shipping-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        let addresses = rackmem_hosts::addresses(3);
        let addresses: Vec<String> = addresses.iter().map(|at| format!("\"{at}\"")).collect();
        let text = format!(
            "nodes = [{}]\nmembership = \"dir:{}\"\nlease_ms = {}\nmemory = {}\ncache = {}\n\
             patience_ms = {}\n",
            addresses.join(", "),
            folder.display(),
            LEASE.as_millis(),
            128 << 20,
            8 << 20,
            LONG.as_millis(),
        );
        Cluster { text, folder }
    }

    fn config(&self) -> Config {
        Config::parse(&self.text).unwrap()
    }

    /// Says that a node is dead, as `rackmem members remove` does.
    fn bury(&self, node: usize) {
        let settings = self.config().membership;
        let store = settings.source.open(&settings.name).unwrap().unwrap();
        membership::remove(&*store, Role::Node(node as u16), LONG).unwrap();
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// The node that is a process of its own: this binary again, with the test below.
struct Process(Child);

impl Process {
    fn start(cluster: &Cluster) -> Process {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "killed::a_node_of_its_own", "--nocapture"])
            .env(CONFIG, &cluster.text)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        Process(child)
    }

    /// Where it listens, once it does.
    fn addr(&mut self) -> SocketAddr {
        let said = BufReader::new(self.0.stderr.take().unwrap());
        let mut lines = said.lines().map_while(Result::ok);
        let addr = lines.find_map(|line| line.strip_prefix("at ")?.parse().ok());
        addr.expect("where it listens")
    }

    fn signal(&self, signal: &str) {
        let pid = self.0.id().to_string();
        let sent = Command::new("kill").args([signal, &pid]).status();
        assert!(sent.unwrap().success());
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// In a process that a test has started, one node of its rack; nothing in the tests' own.
#[test]
fn a_node_of_its_own() {
    let Ok(text) = std::env::var(CONFIG) else {
        return;
    };
    let config = Config::parse(&text).unwrap();
    let rack = Rack::join(&config, KILLED).unwrap();
    let server = serve(&rack, KILLED);
    eprintln!("at {}", server.local_addr());
    // Who started it ends it.
    loop {
        std::thread::park();
    }
}

fn serve(rack: &Rack, node: usize) -> Server {
    Server::bind(open(&rack.node(node)), config(Ipv4Addr::LOCALHOST)).unwrap()
}

fn client(addr: SocketAddr) -> Client {
    let client = Client::new(addr);
    client.stream.set_read_timeout(Some(LONG)).unwrap();
    client
}

#[test]
fn what_was_acknowledged_is_there_and_what_is_in_doubt_says_so() {
    let cluster = Cluster::new();
    let config = cluster.config();
    let mut process = Process::start(&cluster);
    let racks = [0, 2].map(|node| Rack::join(&config, node).unwrap());
    // The store is there when all nodes are.
    let servers = [serve(&racks[0], 0), serve(&racks[1], 2)];
    let [zero, two] = servers.each_ref().map(Server::local_addr);
    let addrs = [zero, process.addr(), two];
    let mut clients = addrs.map(client);
    let theirs = key_at(&mut clients, KILLED);
    let ours = key_at(&mut clients, 2);
    heat(&mut clients, &theirs);
    let start = number(&clients[0].say(&format!("INCR {ours}")));
    let stayed = std::thread::scope(|scope| {
        let add = |node: usize, key: String| {
            let mut client = client(addrs[node]);
            let (mut done, mut last) = (0, 0);
            move |rounds: usize| {
                for _ in 0..rounds {
                    let reply = client.say(&format!("INCR {key}"));
                    // What no longer answers for a key says so, and nothing else.
                    match reply.starts_with("-NODELOST ") {
                        true => return Err(done),
                        false => assert!(number(&reply) > last, "{reply} after {last}"),
                    }
                    (done, last) = (done + 1, number(&reply));
                }
                Ok(done)
            }
        };
        let [stay, doubt] = [(&ours, 10 * ROUNDS), (&theirs, usize::MAX)].map(|(key, rounds)| {
            [0, 2].map(|node| {
                let mut add = add(node, key.clone());
                scope.spawn(move || add(rounds))
            })
        });
        let before = sent(&mut clients[0]);
        while sent(&mut clients[0]) < before + ROUNDS as u64 {
            std::thread::yield_now();
        }
        // It hears nothing more, takes what is sent, and dies.
        process.signal("-STOP");
        let mut asked: Vec<Client> = (0..20).map(|_| client(addrs[0])).collect();
        for client in &mut asked {
            client.send(&[b"INCR", theirs.as_bytes()]);
        }
        // Whoever is answered comes behind them.
        (0..10).for_each(|_| assert_eq!(clients[0].say("PING"), "+PONG"));
        process.signal("-KILL");
        cluster.bury(KILLED);
        for mut client in asked {
            // The bucket may have been at node 0 until then.
            let reply = client.reply();
            assert!(reply.starts_with("-NODELOST ") || number(&reply) > 0);
        }
        for load in doubt {
            assert!(load.join().unwrap().is_err());
        }
        let stay: Result<Vec<usize>, usize> = (stay.into_iter())
            .map(|load| load.join().unwrap())
            .collect();
        stay.expect("a key whose home lives")
            .into_iter()
            .sum::<usize>()
    });
    let total = clients[2].say(&format!("INCR {ours}"));
    assert_eq!(number(&total), start + stayed as u64 + 1);
    for node in [0, 2] {
        let reply = clients[node].say(&format!("GET {theirs}"));
        assert!(reply.starts_with("-NODELOST "), "{reply}");
    }
}
