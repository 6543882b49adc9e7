//! Commands that are sent to where their key is: what clients see is as without, whatever becomes
//! of the links.

#[path = "../support/mod.rs"]
mod support;

mod killed;
mod leaving;
mod scripts;

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use rackmem::{Fabric, Mode, Rack};
use rackmem_kv::{Options, Server, ServerConfig, Store};
use support::Client;

/// Longer than anything here takes on a loaded machine.
const LONG: Duration = Duration::from_secs(60);
/// Rounds after which a bucket that goes round is sent to, with room.
const ROUNDS: usize = 400;

struct World {
    servers: Vec<Option<Server>>,
    stores: Vec<Store<rackmem::Node>>,
    _rack: Rack,
}

fn config(links: Ipv4Addr) -> ServerConfig {
    ServerConfig {
        addr: SocketAddr::from(([127, 0, 0, 1], 0)),
        links: Some(IpAddr::V4(links)),
        ..ServerConfig::default()
    }
}

fn world(nodes: usize) -> World {
    world_at(nodes, Ipv4Addr::LOCALHOST)
}

fn open(node: &rackmem::Node) -> Store<rackmem::Node> {
    let options = Options {
        buckets: 64,
        patience: LONG,
        ..Options::default()
    };
    Store::open(node.clone(), options).unwrap()
}

fn world_at(nodes: usize, links: Ipv4Addr) -> World {
    let builder = Rack::builder(nodes).mode(Mode::Switch).fabric(Fabric::Udp);
    let rack = builder.block_size(1024).cache(4 << 20).memory(1 << 30);
    let rack = rack.build().unwrap();
    let stores: Vec<_> = rack.nodes().iter().map(open).collect();
    let serve = |store: &Store<_>| Some(Server::bind(store.clone(), config(links)).unwrap());
    World {
        servers: stores.iter().map(serve).collect(),
        stores,
        _rack: rack,
    }
}

impl World {
    fn client(&self, node: usize) -> Client {
        let server = self.servers[node].as_ref().expect("a server");
        let client = Client::new(server.local_addr());
        client.stream.set_read_timeout(Some(LONG)).unwrap();
        client
    }

    fn clients(&self) -> Vec<Client> {
        (0..self.servers.len()).map(|n| self.client(n)).collect()
    }
}

/// A count of INFO.
fn count(client: &mut Client, name: &str) -> u64 {
    let info = client.say("INFO stats");
    let (_, rest) = info.split_once(&format!("{name}:")).expect(name);
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().expect("a number")
}

fn sent(client: &mut Client) -> u64 {
    count(client, "shipped_commands")
}

/// Lets all nodes write `keys` in turns until one of them sends commands for each of them. Which
/// nodes do: all but the key's home.
fn heat(clients: &mut [Client], key: &str) -> Vec<usize> {
    let began = Instant::now();
    loop {
        let before: Vec<u64> = clients.iter_mut().map(sent).collect();
        for _ in 0..ROUNDS / 10 {
            for client in clients.iter_mut() {
                assert!(client.say(&format!("INCR {key}")).starts_with(':'));
            }
        }
        let senders: Vec<usize> = (0..clients.len())
            .filter(|n| sent(&mut clients[*n]) > before[*n] + ROUNDS as u64 / 20)
            .collect();
        if senders.len() + 1 >= clients.len() {
            return senders;
        }
        assert!(began.elapsed() < LONG, "nobody sends {key}: {senders:?}");
    }
}

/// A key whose home is this node, and which all others send commands for.
fn key_at(clients: &mut [Client], home: usize) -> String {
    let mut names = (0..100).map(|n| format!("round:{n}"));
    let found = names.find(|key| !heat(clients, key).contains(&home));
    found.expect("each node is the home of some key")
}

/// What INCR has answered.
fn number(reply: &str) -> u64 {
    let digits = reply.strip_prefix(':');
    digits.expect(reply).parse().expect("a number")
}

#[test]
fn every_increment_counts_once_and_the_counts_of_commands_move() {
    let world = world(3);
    let mut clients = world.clients();
    let rounds = 2 * ROUNDS as u64;
    std::thread::scope(|scope| {
        for client in &mut clients {
            scope.spawn(move || {
                let mut last = 0;
                for _ in 0..rounds {
                    let now = client.say("INCR counter");
                    let now: u64 = now.trim_start_matches(':').parse().unwrap();
                    assert!(now > last, "{now} after {last}");
                    last = now;
                }
            });
        }
    });
    heat(&mut clients, "counter");
    let total = clients[0].say("GET counter");
    let all: Vec<u64> = clients
        .iter_mut()
        .map(|client| count(client, "total_error_replies"))
        .collect();
    assert_eq!(all, [0, 0, 0]);
    let total: u64 = total.trim_matches('"').parse().unwrap();
    assert!(total >= 3 * rounds);
    let shipped: u64 = clients.iter_mut().map(sent).sum();
    let served = clients.iter_mut().map(|c| count(c, "shipped_served"));
    assert_eq!(served.sum::<u64>(), shipped);
    // A command is counted where its client is, and nowhere else.
    let called: u64 = clients
        .iter_mut()
        .map(|client| {
            let info = client.say("INFO commandstats");
            let (_, rest) = info.split_once("cmdstat_incr:calls=").expect("counted");
            rest.split(',').next().unwrap().parse::<u64>().unwrap()
        })
        .sum();
    assert_eq!(called, total);
}

#[test]
fn what_a_client_sees_is_as_without() {
    let world = world(2);
    let mut clients = world.clients();
    let sender = heat(&mut clients, "round")[0];
    let client = &mut clients[sender];
    let before = sent(client);
    // Some of what follows is sent, until the home finds that one node uses the bucket. A pipeline
    // is answered in its order, whether a command is sent or runs here.
    let mut all = Vec::new();
    for nth in 0..50 {
        let n = nth.to_string();
        all.extend(support::encode(&[b"SET", b"round", n.as_bytes()]));
        all.extend(support::encode(&[b"PING", n.as_bytes()]));
        all.extend(support::encode(&[b"GET", b"round"]));
    }
    client.stream.write_all(&all).unwrap();
    for nth in 0..50 {
        assert_eq!(client.reply(), "+OK");
        assert_eq!(client.reply(), format!("\"{nth}\""));
        assert_eq!(client.reply(), format!("\"{nth}\""));
    }
    assert!(sent(client) > before);
    heat(&mut clients, "round");
    let client = &mut clients[sender];
    assert_eq!(client.say("SET round 49"), "+OK");
    // Databases are apart.
    assert_eq!(client.say("SELECT 3"), "+OK");
    assert_eq!(client.say("GET round"), "nil");
    assert_eq!(client.say("SET round three"), "+OK");
    assert_eq!(client.say("SELECT 0"), "+OK");
    assert_eq!(client.say("GET round"), "\"49\"");
    heat(&mut clients, "round");
    let client = &mut clients[sender];
    let before = sent(client);
    // So are errors, and both versions of the protocol.
    let wrong = client.say("HSET round f v");
    assert!(wrong.starts_with("-WRONGTYPE "), "{wrong}");
    assert!(
        client
            .say("INCRBY round x")
            .starts_with("-ERR value is not")
    );
    assert_eq!(client.say("DEL round"), ":1");
    assert_eq!(client.say("HSET round f v"), ":1");
    assert_eq!(client.say("HGETALL round"), "[\"f\" \"v\"]");
    client.say("HELLO 3");
    assert_eq!(client.say("HGETALL round"), "{\"f\" \"v\"}");
    assert!(sent(client) > before + 4);
    assert_eq!(client.say("DEL round"), ":1");
    heat(&mut clients, "round");
    let client = &mut clients[sender];
    // A transaction runs here, and sees what was sent before.
    for (said, heard) in [
        ("DEL round", ":1"),
        ("INCR round", ":1"),
        ("MULTI", "+OK"),
        ("INCR round", "+QUEUED"),
        ("EXEC", "[:2]"),
        ("GET round", "\"2\""),
    ] {
        assert_eq!(client.say(said), heard, "{said}");
    }
    // One that has said all closes its side, and gets its replies all the same.
    let mut last = world.client(sender);
    let mut all = Vec::new();
    (0..20).for_each(|_| all.extend(support::encode(&[b"INCR", b"round"])));
    last.stream.write_all(&all).unwrap();
    last.stream.shutdown(std::net::Shutdown::Write).unwrap();
    for nth in 3..23 {
        assert_eq!(last.reply(), format!(":{nth}"));
    }
    assert!(last.ended());
}

#[test]
fn a_pipeline_is_in_order_across_what_is_sent_and_what_runs_here() {
    let world = world(2);
    let mut clients = world.clients();
    let sender = heat(&mut clients, "round")[0];
    // Others keep the key going round.
    let mut others: Vec<Client> = (0..2).map(|node| world.client(node)).collect();
    let before = sent(&mut clients[sender]);
    let client = &mut clients[sender];
    let mut last = 0;
    for nth in 1..=ROUNDS / 20 {
        let echo = nth.to_string();
        let mut all = Vec::new();
        for _ in 0..10 {
            all.extend(support::encode(&[b"INCR", b"round"]));
            all.extend(support::encode(&[b"INCR", b"mine"]));
            all.extend(support::encode(&[b"GET", b"round"]));
            all.extend(support::encode(&[b"ECHO", echo.as_bytes()]));
        }
        client.stream.write_all(&all).unwrap();
        others
            .iter_mut()
            .for_each(|other| _ = other.say("INCR round"));
        for at in 1..=10 {
            let now = number(&client.reply());
            assert!(now > last, "{now} after {last}");
            assert_eq!(client.reply(), format!(":{}", (nth - 1) * 10 + at));
            let seen = client.reply();
            last = seen.trim_matches('"').parse().unwrap();
            assert!(last >= now, "{last} after {now}");
            assert_eq!(client.reply(), format!("\"{nth}\""));
        }
    }
    assert!(sent(&mut clients[sender]) > before);
}

#[test]
fn a_worker_that_hardly_writes_reads_here_at_once_what_was_written_everywhere() {
    let world = world(3);
    let mut clients = world.clients();
    let keys: Vec<String> = (0..20).map(|n| format!("round:{n}")).collect();
    for key in &keys {
        heat(&mut clients, key);
    }
    let read = |clients: &mut [Client], times: usize| {
        for _ in 0..times {
            for key in &keys {
                clients
                    .iter_mut()
                    .for_each(|c| _ = c.say(&format!("GET {key}")));
            }
        }
    };
    // So many commands decide what a worker does: after as many reads it hardly writes.
    read(&mut clients, 2 * 256 / keys.len());
    let before: Vec<u64> = clients.iter_mut().map(sent).collect();
    read(&mut clients, 2);
    let after: Vec<u64> = clients.iter_mut().map(sent).collect();
    assert_eq!(before, after);
    // And writes are sent again when there are some.
    heat(&mut clients, &keys[0]);
}

#[test]
fn a_user_may_no_more_than_here() {
    let world = world(2);
    let mut clients = world.clients();
    let sender = heat(&mut clients, "round")[0];
    let said = clients[sender].say("ACL SETUSER reader on nopass ~round +get +hello +auth");
    assert_eq!(said, "+OK");
    let mut reader = world.client(sender);
    assert_eq!(reader.say("AUTH reader x"), "+OK");
    let before = sent(&mut clients[sender]);
    for _ in 0..3 {
        assert!(reader.say("GET round").starts_with('"'));
        assert!(reader.say("INCR round").starts_with("-NOPERM "));
        assert!(reader.say("GET other").starts_with("-NOPERM "));
    }
    assert!(sent(&mut clients[sender]) > before);
}

#[test]
fn tracking_clients_and_keyspace_events_hear_of_what_is_sent() {
    let world = world(2);
    let mut clients = world.clients();
    let sender = heat(&mut clients, "round")[0];
    let mut ears = world.client(sender);
    ears.say("CONFIG SET notify-keyspace-events KEA");
    ears.say("SUBSCRIBE __keyspace@0__:round");
    let mut tracks = world.client(sender);
    tracks.say("HELLO 3");
    assert_eq!(tracks.say("CLIENT TRACKING ON"), "+OK");
    assert!(tracks.say("GET round").starts_with('"'));
    let before = sent(&mut clients[sender]);
    assert_eq!(clients[sender].say("SET round 5"), "+OK");
    assert_eq!(sent(&mut clients[sender]), before + 1);
    assert_eq!(
        ears.reply(),
        "[\"message\" \"__keyspace@0__:round\" \"set\"]"
    );
    assert!(tracks.reply().starts_with('>'));
}

#[test]
fn a_bucket_that_one_node_uses_comes_home_and_so_does_one_that_is_only_read() {
    let world = world(2);
    let mut clients = world.clients();
    let sender = heat(&mut clients, "round")[0];
    for _ in 0..2 * ROUNDS {
        clients[sender].say("INCR round");
    }
    let before = sent(&mut clients[sender]);
    for _ in 0..ROUNDS {
        clients[sender].say("INCR round");
    }
    assert_eq!(sent(&mut clients[sender]), before);

    heat(&mut clients, "round");
    let read = |clients: &mut [Client]| {
        for _ in 0..ROUNDS {
            clients.iter_mut().for_each(|c| _ = c.say("GET round"));
        }
    };
    read(&mut clients);
    let before = sent(&mut clients[sender]);
    read(&mut clients);
    assert_eq!(sent(&mut clients[sender]), before);
}

#[test]
fn a_home_whose_server_ends_says_so_and_commands_run_here() {
    let mut world = world(2);
    let mut clients = world.clients();
    let sender = heat(&mut clients, "round")[0];
    let mut client = clients.swap_remove(sender);
    drop(clients);
    let before: u64 = client.say("INCR round")[1..].parse().unwrap();
    let server = world.servers[1 - sender].take().expect("a server");
    std::thread::scope(|scope| {
        scope.spawn(move || server.shutdown());
        for nth in 1..=ROUNDS as u64 {
            assert_eq!(client.say("INCR round"), format!(":{}", before + nth));
        }
    });
    assert_eq!(count(&mut client, "shipped_unknown"), 0);
    // One that is back has another door.
    let store = world.stores[1 - sender].clone();
    world.servers[1 - sender] = Some(Server::bind(store, config(Ipv4Addr::LOCALHOST)).unwrap());
    let mut clients = world.clients();
    assert_eq!(heat(&mut clients, "round").len(), 1);
}

#[test]
fn who_has_not_the_word_of_the_door_is_not_let_in() {
    let links = Ipv4Addr::new(127, 0, 0, 77);
    let world = world_at(2, links);
    let mut clients = world.clients();
    let sender = heat(&mut clients, "round")[0];
    let home = 1 - sender;
    let rejected = count(&mut clients[home], "rejected_connections");
    let mut refused = 0;
    let hello = |version: u16| {
        let mut hello = b"rmlk".to_vec();
        hello.extend(version.to_le_bytes());
        hello.extend(16u16.to_le_bytes());
        hello.extend([7; 28]);
        hello
    };
    for port in listening(links) {
        for said in [hello(1), hello(2), b"*1\r\n$4\r\nPING\r\n".to_vec()] {
            let mut stranger = TcpStream::connect((links, port)).unwrap();
            stranger.set_read_timeout(Some(LONG)).unwrap();
            stranger.write_all(&said).unwrap();
            let mut heard = Vec::new();
            // It may be ended with what it has sent unread.
            let _ = stranger.read_to_end(&mut heard);
            assert_eq!(heard, b"", "port {port}");
            refused += 1;
        }
    }
    assert_eq!(refused, 6, "two doors");
    let now = count(&mut clients[home], "rejected_connections");
    assert_eq!(now, rejected + 3);
    assert!(clients[sender].say("INCR round").starts_with(':'));
}

/// Ports of an address of IPv4 on which somebody listens.
fn listening(at: Ipv4Addr) -> Vec<u16> {
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let at = format!("{:08X}", u32::from_ne_bytes(at.octets()));
    let row = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (addr, port) = words.get(1)?.split_once(':')?;
        let listens = addr == at && words.get(3) == Some(&"0A");
        listens.then(|| u16::from_str_radix(port, 16).ok())?
    };
    table.lines().skip(1).filter_map(row).collect()
}
