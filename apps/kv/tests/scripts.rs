//! Scripts: what they return, word for word as from Redis; that they are one step in the whole
//! rack; that they end.
//!
//! `scripts/*.txt` are conversations with a redis-server 7.0.15, which
//! `tests/e2e/test_scripts.py` holds again.

mod support;

use support::Client;
use support::talk::server;

/// Says what a conversation says, and compares what comes back.
fn compare(client: &mut Client, conversation: &str) {
    let (mut said, mut wrong, mut count) = ("", Vec::new(), 0);
    for line in conversation.lines() {
        match line.split_at(2) {
            ("> ", words) => said = words,
            (_, want) => {
                let got = client.say(said).trim_end().to_owned();
                count += 1;
                if got != want {
                    wrong.push(format!("{said}\n  want {want}\n  got  {got}"));
                }
            }
        }
    }
    let (lines, many) = (wrong.join("\n"), wrong.len());
    assert!(wrong.is_empty(), "{many} of {count} are wrong:\n{lines}");
}

#[test]
fn scripts_answer_as_in_redis() {
    let server = server(|_| {});
    let mut client = Client::new(server.local_addr());
    compare(&mut client, include_str!("scripts/resp2.txt"));
    client.say("HELLO 3");
    compare(&mut client, include_str!("scripts/resp3.txt"));
    server.shutdown();
}
