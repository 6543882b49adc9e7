//! A script keeps the worker at the home for long: who has sent a command there is not kept.

use super::*;

const ENDLESS: &str = "while true do end";
/// Commands meanwhile. The home looks at what has come every few milliseconds, if it is run.
const MEANWHILE: u64 = 40;

/// Looks whether the worker is busy, which it tells.
const LOOKS: u32 = 1000;

/// A connection whose script keeps the worker of this node. Where a script has had to wait for
/// anything before it began, another thread has the helm, and it keeps nobody: that one is ended.
fn endless(world: &World, client: &mut Client) -> Client {
    loop {
        let mut slow = world.client(1);
        slow.send(&[b"EVAL", ENDLESS.as_bytes(), b"0"]);
        if (0..LOOKS).any(|_| client.say("PING") != "+PONG") {
            return slow;
        }
        kill(client, &mut slow);
    }
}

fn kill(client: &mut Client, slow: &mut Client) {
    let killed = loop {
        let reply = client.say("SCRIPT KILL");
        if !reply.starts_with("-NOTBUSY") {
            break reply;
        }
    };
    assert_eq!(killed, "+OK");
    assert!(slow.reply().contains("killed by user"));
}

#[test]
fn commands_run_where_they_came_from_while_a_script_keeps_the_home() {
    let world = world(3);
    let mut clients = world.clients();
    let key = key_at(&mut clients, 1);
    let elsewhere = key_at(&mut clients, 2);
    heat(&mut clients, &key);
    assert_eq!(clients[1].say("CONFIG SET busy-reply-threshold 1"), "+OK");
    let before = number(&clients[0].say(&format!("INCR {key}")));
    let mut slow = endless(&world, &mut clients[1]);
    for nth in 1..=MEANWHILE {
        let node = if nth % 2 == 0 { 0 } else { 2 };
        let now = number(&clients[node].say(&format!("INCR {key}")));
        assert_eq!(now, before + nth);
        assert!(
            clients[0]
                .say(&format!("INCR {elsewhere}"))
                .starts_with(':')
        );
    }
    kill(&mut clients[1], &mut slow);
    let now = number(&clients[1].say(&format!("INCR {key}")));
    assert_eq!(now, before + MEANWHILE + 1);
    for client in &mut clients {
        assert_eq!(count(client, "shipped_unknown"), 0);
    }
    heat(&mut clients, &key);
}

#[test]
fn commands_wait_for_a_script_that_nobody_is_told_of() {
    let world = world(2);
    let mut clients = world.clients();
    let sender = heat(&mut clients, "round")[0];
    let mut slow = world.client(1 - sender);
    // Never busy: nothing else happens at that worker before it ends.
    assert_eq!(slow.say("CONFIG SET busy-reply-threshold 0"), "+OK");
    let text = "local n = 0 while n < 100000000 do n = n + 1 end return redis.call('GET', KEYS[1])";
    slow.send(&[b"EVAL", text.as_bytes(), b"1", b"round"]);
    let mut last = 0;
    for _ in 0..ROUNDS / 4 {
        let now = number(&clients[sender].say("INCR round"));
        assert!(now > last, "{now} after {last}");
        last = now;
    }
    assert!(slow.reply().starts_with('"'));
    assert_eq!(count(&mut clients[sender], "shipped_unknown"), 0);
}
