//! Sorted sets of any size: random operations beside a model, and operations of several nodes at
//! once.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use rackmem::Rack;
use rackmem_kv::{Options, Server, ServerConfig, Store};

use super::support::Client;
use super::support::talk::server;

/// What a sorted set must be.
#[derive(Default)]
struct Model {
    scores: BTreeMap<String, i64>,
    order: BTreeSet<(i64, String)>,
}

impl Model {
    fn put(&mut self, member: &str, score: i64) -> bool {
        let old = self.remove(member);
        self.scores.insert(member.to_owned(), score);
        self.order.insert((score, member.to_owned()));
        old.is_none()
    }

    fn remove(&mut self, member: &str) -> Option<i64> {
        let old = self.scores.remove(member)?;
        self.order.remove(&(old, member.to_owned()));
        Some(old)
    }

    /// The members at these positions, as a reply shows them.
    fn show(&self, from: usize, count: usize) -> String {
        let shown = self.order.iter().skip(from).take(count);
        let words: Vec<_> = shown
            .map(|(score, m)| format!("{m:?} \"{score}\""))
            .collect();
        format!("[{}]", words.join(" "))
    }

    fn cut(&mut self, from: usize, count: usize) -> usize {
        let gone: Vec<_> = self.order.iter().skip(from).take(count).cloned().collect();
        for (_, member) in &gone {
            self.remove(member);
        }
        gone.len()
    }
}

fn say(client: &mut Client, words: &[String]) -> String {
    let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
    client.call(&words)
}

fn words(words: &[&dyn ToString]) -> Vec<String> {
    words.iter().map(|word| word.to_string()).collect()
}

/// One operation on both; the reply must be the model's.
fn step(client: &mut Client, model: &mut Model, rng: &mut fastrand::Rng, growing: bool) {
    let member = format!("member:{}", rng.u32(..5000));
    let size = model.scores.len();
    let from = rng.usize(..size + 3);
    let (said, want) = match rng.u32(..if growing { 7 } else { 12 }) {
        0..4 => {
            let (mut said, mut new) = (words(&[&"ZADD", &"z"]), 0);
            for _ in 0..rng.usize(1..if growing { 60 } else { 4 }) {
                let (score, member) = (rng.i64(-50..50), format!("member:{}", rng.u32(..5000)));
                new += usize::from(model.put(&member, score));
                said.extend([score.to_string(), member]);
            }
            (said, format!(":{new}"))
        }
        4 => {
            let score = model.scores.get(&member).copied();
            let want = score.map_or("nil".into(), |score| format!("\"{score}\""));
            (words(&[&"ZSCORE", &"z", &member]), want)
        }
        5 => {
            let score = model.scores.get(&member);
            let rank = score.map(|s| model.order.range(..(*s, member.clone())).count());
            let want = rank.map_or("nil".into(), |rank| format!(":{rank}"));
            (words(&[&"ZRANK", &"z", &member]), want)
        }
        6 => {
            let said = words(&[&"ZRANGE", &"z", &from, &(from + 9), &"WITHSCORES"]);
            (said, model.show(from, 10))
        }
        7 => {
            let gone = usize::from(model.remove(&member).is_some());
            (words(&[&"ZREM", &"z", &member]), format!(":{gone}"))
        }
        8 => {
            let count = rng.usize(..30);
            let want = model.show(0, count);
            model.cut(0, count);
            (words(&[&"ZPOPMIN", &"z", &count]), want)
        }
        9 => {
            let count = rng.usize(1..150);
            let said = words(&[&"ZREMRANGEBYRANK", &"z", &from, &(from + count - 1)]);
            (said, format!(":{}", model.cut(from, count)))
        }
        10 => {
            let score = model.scores.get(&member).copied().unwrap_or(0) + 1;
            model.put(&member, score);
            (
                words(&[&"ZINCRBY", &"z", &1, &member]),
                format!("\"{score}\""),
            )
        }
        _ => {
            let low = rng.i64(-60..60);
            let count = model
                .order
                .iter()
                .filter(|(s, _)| (low..low + 9).contains(s))
                .count();
            let high = format!("({}", low + 9);
            (words(&[&"ZCOUNT", &"z", &low, &high]), format!(":{count}"))
        }
    };
    assert_eq!(say(client, &said), want, "{said:?} with {size} members");
}

/// All that ZSCAN shows.
fn scan(client: &mut Client) -> BTreeMap<String, i64> {
    let (mut found, mut cursor) = (BTreeMap::new(), "0".to_owned());
    loop {
        let reply = say(client, &words(&[&"ZSCAN", &"z", &cursor, &"COUNT", &50]));
        let plain = reply.replace(['[', ']', '"'], "");
        let mut parts = plain.split_whitespace();
        cursor = parts.next().unwrap().to_owned();
        while let (Some(member), Some(score)) = (parts.next(), parts.next()) {
            let again = found.insert(member.to_owned(), score.parse().unwrap());
            assert_eq!(again, None, "{member} twice");
        }
        if cursor == "0" {
            return found;
        }
    }
}

#[test]
fn random_operations_do_what_a_model_does() {
    let server = server(|_| {});
    let mut client = Client::new(server.local_addr());
    let mut rng = fastrand::Rng::with_seed(19);
    let (mut model, mut largest) = (Model::default(), 0);
    for _ in 0..6 {
        let goal = *rng.choice(&[10, 100, 150, 2500]).unwrap();
        while model.scores.len() < goal {
            step(&mut client, &mut model, &mut rng, true);
        }
        for _ in 0..300 {
            step(&mut client, &mut model, &mut rng, false);
            largest = largest.max(model.scores.len());
        }
        assert_eq!(scan(&mut client), model.scores);
        assert_eq!(client.say("ZCARD z"), format!(":{}", model.scores.len()));
    }
    assert!(largest > 2000, "{largest}");
    server.shutdown();
}

const MEMBERS: usize = 150;

#[test]
fn a_member_is_popped_once_by_one_node() {
    let rack = Rack::local(3).unwrap();
    let serve = |node: &rackmem::Node| {
        let options = Options {
            buckets: 16,
            ..Options::default()
        };
        let config = ServerConfig {
            addr: SocketAddr::from(([127, 0, 0, 1], 0)),
            ..ServerConfig::default()
        };
        Server::bind(Store::open(node.clone(), options).unwrap(), config).unwrap()
    };
    let servers: Vec<_> = rack.nodes().iter().map(serve).collect();
    let added = std::sync::atomic::AtomicUsize::new(0);
    let popped = std::thread::scope(|scope| {
        let nodes = servers.iter().enumerate();
        let threads: Vec<_> = nodes
            .map(|(node, server)| {
                let added = &added;
                scope.spawn(move || {
                    let mut client = Client::new(server.local_addr());
                    let mut popped = Vec::new();
                    for i in 0..MEMBERS {
                        let score = (i * 7) % 50;
                        let reply = client
                            .say(&format!("ZADD z {score} {node}:{i} {score} {node}:{i}:too"));
                        assert_eq!(reply, ":2");
                        popped.push(client.say("ZPOPMIN z"));
                    }
                    added.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                    loop {
                        let all = added.load(std::sync::atomic::Ordering::SeqCst) == 3;
                        match client.say("ZPOPMAX z") {
                            none if none == "[]" && all => return popped,
                            none if none == "[]" => std::thread::yield_now(),
                            one => popped.push(one),
                        }
                    }
                })
            })
            .collect();
        let joined = threads.into_iter().map(|thread| thread.join().unwrap());
        joined.collect::<Vec<_>>()
    });
    // One finds nothing when others have taken what it has added.
    let all = popped.into_iter().flatten().filter(|one| one != "[]");
    let all: Vec<String> = all.collect();
    assert_eq!(all.len(), 3 * 2 * MEMBERS);
    let different: BTreeSet<_> = all.iter().collect();
    assert_eq!(different.len(), all.len(), "a member was popped twice");
    servers.into_iter().for_each(|server| server.shutdown());
}
