//! Rough handling: garbage, slow readers, huge values, many clients, sudden ends.

mod support;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use rackmem_kv::memory::HeapMemory;
use rackmem_kv::{Options, Server, ServerConfig, Store};
use support::{Client, encode};

fn server(workers: usize, max_clients: usize) -> Server {
    let options = Options {
        buckets: 64,
        ..Options::default()
    };
    let store = Store::open(HeapMemory::new(4096, 1 << 30, 1), options).unwrap();
    let addr = SocketAddr::from(([127, 0, 0, 1], 0));
    Server::bind(
        store,
        ServerConfig {
            addr,
            workers,
            max_clients,
            ..ServerConfig::default()
        },
    )
    .unwrap()
}

const WORDS: [&str; 24] = [
    "GET",
    "SET",
    "MSET",
    "INCRBY",
    "SETRANGE",
    "GETRANGE",
    "SCAN",
    "COPY",
    "EXPIRE",
    "MULTI",
    "EXEC",
    "WATCH",
    "CLIENT",
    "CONFIG",
    "COMMAND",
    "OBJECT",
    "HELLO",
    "k",
    "-1",
    "0",
    "99999999999999999999",
    "EX",
    "MATCH",
    "\0\u{ff}",
];

#[test]
fn random_commands_and_random_bytes_do_not_stop_it() {
    let server = server(2, 100);
    let mut rng = fastrand::Rng::with_seed(3);
    for _ in 0..300 {
        let mut stream = TcpStream::connect(server.local_addr()).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_millis(1)))
            .unwrap();
        for _ in 0..20 {
            let words: Vec<&[u8]> = (0..rng.usize(1..6))
                .map(|_| WORDS[rng.usize(..WORDS.len())].as_bytes())
                .collect();
            let mut bytes = encode(&words);
            for _ in 0..rng.usize(..3) {
                let at = rng.usize(..bytes.len());
                bytes[at] = rng.u8(..);
            }
            if stream.write_all(&bytes).is_err() {
                break;
            }
        }
        let _ = stream.read(&mut [0; 1000]);
    }
    let mut client = Client::new(server.local_addr());
    assert_eq!(client.say("PING"), "+PONG");
    server.shutdown();
}

#[test]
fn whoever_does_not_read_is_not_served_further() {
    let server = server(1, 10);
    let mut client = Client::new(server.local_addr());
    assert_eq!(client.call(&[b"SET", b"big", &vec![b'x'; 1 << 20]]), "+OK");
    // Asks for 200 MiB and reads none of it.
    let request = encode(&[b"GET", b"big"]).repeat(200);
    client.stream.write_all(&request).unwrap();
    std::thread::sleep(Duration::from_millis(300));
    let mut other = Client::new(server.local_addr());
    let info = other.say("INFO stats");
    let sent = info.split("total_commands_processed:").nth(1).unwrap();
    let count: u64 = sent.split("\\r").next().unwrap().parse().unwrap();
    assert!(
        count < 50,
        "{count} commands ran though nobody read the replies"
    );
    for _ in 0..200 {
        assert_eq!(client.reply().len(), (1 << 20) + 2);
    }
    server.shutdown();
}

#[test]
fn values_of_up_to_64_mib() {
    let server = server(1, 10);
    let mut client = Client::new(server.local_addr());
    let value: Vec<u8> = (0..64 << 20).map(|i| b'a' + (i % 23) as u8).collect();
    assert_eq!(client.call(&[b"SET", b"huge", &value]), "+OK");
    assert_eq!(client.call(&[b"STRLEN", b"huge"]), ":67108864");
    assert_eq!(
        client.call(&[b"GETRANGE", b"huge", b"67108860", b"-1"]),
        format!(
            "{:?}",
            "onpq".replace("onpq", &String::from_utf8_lossy(&value[67108860..]))
        )
    );
    let got = client.call(&[b"GET", b"huge"]);
    assert_eq!(&got.as_bytes()[1..got.len() - 1], value.as_slice());
    assert_eq!(
        client.call(&[b"APPEND", b"huge", b"x"]),
        "-ERR string exceeds maximum allowed size (64 MiB)"
    );
    for i in 0..4u8 {
        assert_eq!(client.call(&[b"COPY", b"huge", &[b'h', i]]), ":1");
    }
    let too_much = client.call(&[b"MGET", b"huge", b"h\0", b"h\x01", b"h\x02", b"h\x03"]);
    assert!(
        too_much.starts_with("-ERR the answer would be too long"),
        "{}",
        &too_much[..60]
    );
    let mut one_more = value;
    one_more.push(b'!');
    client
        .stream
        .write_all(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$67108865\r\n")
        .unwrap();
    assert_eq!(client.reply(), "-ERR Protocol error: invalid bulk length");
    server.shutdown();
}

#[test]
fn a_long_pipeline_in_small_pieces() {
    let server = server(1, 10);
    let mut client = Client::new(server.local_addr());
    let mut bytes = Vec::new();
    for i in 0..2000 {
        bytes.extend(encode(&[
            b"SET",
            format!("key:{i}").as_bytes(),
            &vec![b'v'; i % 300],
        ]));
        bytes.extend(encode(&[b"STRLEN", format!("key:{i}").as_bytes()]));
    }
    let mut writer = client.stream.try_clone().unwrap();
    let sender = std::thread::spawn(move || {
        for piece in bytes.chunks(777) {
            writer.write_all(piece).unwrap();
        }
    });
    for i in 0..2000 {
        assert_eq!(client.reply(), "+OK");
        assert_eq!(client.reply(), format!(":{}", i % 300));
    }
    sender.join().unwrap();
    server.shutdown();
}

#[test]
fn the_limit_of_clients_holds_and_places_come_back() {
    let server = server(2, 3);
    let mut clients: Vec<_> = (0..3).map(|_| Client::new(server.local_addr())).collect();
    assert!(clients.iter_mut().all(|c| c.say("PING") == "+PONG"));
    let mut fourth = Client::new(server.local_addr());
    assert_eq!(fourth.reply(), "-ERR max number of clients reached");
    clients.pop();
    let again = (0..6000).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        let mut client = Client::new(server.local_addr());
        client.send(&[b"PING"]);
        client.try_reply().as_deref() == Some("+PONG")
    });
    assert!(again);
    server.shutdown();
}

#[test]
fn a_half_sent_command_is_answered_once_its_sender_has_closed_its_side() {
    let server = server(1, 10);
    let mut client = Client::new(server.local_addr());
    client.send(&[b"PING"]);
    client.stream.write_all(b"*2\r\n$3\r\nGET\r\n").unwrap();
    client.stream.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(client.reply(), "+PONG");
    assert!(client.ended());
    server.shutdown();
}

#[test]
fn a_transaction_cannot_grow_without_end() {
    let server = server(1, 10);
    let mut client = Client::new(server.local_addr());
    assert_eq!(client.say("MULTI"), "+OK");
    let value = vec![b'x'; 32 << 20];
    let replies: Vec<_> = (0..5)
        .map(|_| client.call(&[b"SET", b"k", &value]))
        .collect();
    assert_eq!(replies[2], "+QUEUED");
    assert_eq!(replies[4], "-ERR the transaction is too long");
    assert!(client.say("EXEC").starts_with("-EXECABORT"));
    server.shutdown();
}

#[test]
fn the_replies_of_a_transaction_are_bounded_together() {
    let server = server(1, 10);
    let mut client = Client::new(server.local_addr());
    assert_eq!(
        client.call(&[b"SET", b"huge", &vec![b'x'; 60 << 20]]),
        "+OK"
    );
    assert_eq!(client.say("MULTI"), "+OK");
    for _ in 0..6 {
        assert_eq!(client.say("GET huge"), "+QUEUED");
    }
    let reply = client.say("EXEC");
    assert_eq!(
        reply.matches("-ERR the answer would be too long").count(),
        2
    );
    server.shutdown();
}
