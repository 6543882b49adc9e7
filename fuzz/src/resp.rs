//! Any bytes to the port of a store that runs in this process.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpStream};
use std::sync::OnceLock;
use std::time::Duration;

use rackmem_kv::memory::HeapMemory;
use rackmem_kv::{Options, Server, ServerConfig, Store};
use socket2::SockRef;

use crate::replies;

/// How long the server may take over one input.
const PATIENCE: Duration = Duration::from_secs(10);
/// Bytes of memory under the store: less than an input can ask for.
const MEMORY: usize = 32 << 20;
/// Bytes of an answer that are looked at.
const MAX_ANSWER: u64 = 64 << 20;

/// The server answers well-formed replies, ends the connection when the client has ended it,
/// and then still serves others.
pub fn fuzz(input: &[u8]) {
    static SERVER: OnceLock<Server> = OnceLock::new();
    let address = SERVER.get_or_init(start).local_addr();
    let answer = talk(address, input);
    if let Err(why) = replies::count(&answer) {
        panic!("{why}, in the answer {}", answer.escape_ascii());
    }
    assert_eq!(
        talk(address, b"PING\r\nFLUSHALL\r\n").as_slice(),
        b"+PONG\r\n+OK\r\n"
    );
}

fn start() -> Server {
    let options = Options {
        buckets: 64,
        ..Options::default()
    };
    let store = Store::open(HeapMemory::new(1024, MEMORY, 1), options)
        .expect("the memory holds an empty store");
    let addr = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    Server::bind(
        store,
        ServerConfig {
            addr,
            ..ServerConfig::default()
        },
    )
    .expect("loopback has a free port")
}

/// Says everything, listens to the end.
fn talk(address: SocketAddr, input: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE).expect("the server accepts");
    // Closing with a reset leaves no port waiting: there would soon be none left.
    SockRef::from(&stream)
        .set_linger(Some(Duration::ZERO))
        .expect("sockets linger");
    stream
        .set_read_timeout(Some(PATIENCE))
        .expect("sockets have time limits");
    stream
        .set_write_timeout(Some(PATIENCE))
        .expect("sockets have time limits");
    // The server may hang up in the middle of nonsense: no error of this side is one of the
    // server's.
    let _ = stream
        .write_all(input)
        .and_then(|()| stream.shutdown(Shutdown::Write));
    let mut answer = Vec::new();
    match stream.take(MAX_ANSWER).read_to_end(&mut answer) {
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
            panic!("the server neither answers nor hangs up")
        }
        _ => answer,
    }
}

const COMMANDS: &[&str] = &[
    "PING",
    "ECHO hello",
    "SET key value",
    "SET key value EX 100 NX GET",
    "GET key",
    "GETEX key PERSIST",
    "MSET a 1 b 2 c 3",
    "MGET a b c nothing",
    "INCR a",
    "INCRBYFLOAT a 1.5",
    "DECRBY b 9223372036854775807",
    "APPEND key more",
    "SETRANGE key 5 xx",
    "GETRANGE key 0 -1",
    "STRLEN key",
    "DEL a b",
    "EXISTS c c c",
    "TYPE key",
    "RENAME key other",
    "COPY other key REPLACE",
    "TOUCH a",
    "EXPIRE key 100 NX",
    "PEXPIREAT key 1",
    "TTL key",
    "PERSIST key",
    "KEYS *",
    "SCAN 0 MATCH k* COUNT 10",
    "DBSIZE",
    "RANDOMKEY",
    "SELECT 3",
    "MULTI",
    "EXEC",
    "DISCARD",
    "WATCH key",
    "HELLO 3",
    "INFO",
    "CONFIG GET *",
    "CLIENT LIST",
    "CLIENT SETNAME x",
    "COMMAND COUNT",
    "COMMAND INFO get",
    "OBJECT ENCODING key",
    "MEMORY USAGE key",
    "DUMP key",
    "RESTORE key 0 payload REPLACE",
    "LASTSAVE",
    "FLUSHDB",
    "RESET",
    "QUIT",
];

/// Every command by itself in both notations, and all of them as one pipeline.
pub fn seeds() -> Vec<Vec<u8>> {
    let arrays: Vec<Vec<u8>> = COMMANDS.iter().map(|line| array(line)).collect();
    let typed = COMMANDS
        .iter()
        .map(|line| format!("{line}\r\n").into_bytes());
    let pipeline = arrays.concat();
    let split = arrays
        .chunks(8)
        .map(|some| some.concat())
        .collect::<Vec<_>>();
    arrays
        .iter()
        .cloned()
        .chain(typed)
        .chain(split)
        .chain([pipeline])
        .collect()
}

fn array(line: &str) -> Vec<u8> {
    let words: Vec<&str> = line.split(' ').collect();
    let mut bytes = format!("*{}\r\n", words.len());
    for word in words {
        bytes.push_str(&format!("${}\r\n{word}\r\n", word.len()));
    }
    bytes.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seeds_are_answered() {
        let server = start();
        for seed in seeds() {
            let answer = talk(server.local_addr(), &seed);
            assert!(
                replies::count(&answer).is_ok_and(|n| n > 0),
                "{}",
                seed.escape_ascii()
            );
        }
    }
}
