//! A node that the rack may have declared dead: what a server answers then, at every moment at
//! which its lease can end.

mod support;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use rackmem_kv::memory::{Events, HeapMemory, MemoryError, Step};
use rackmem_kv::{Options, Server, ServerConfig, Store};
use support::{Client, encode};

type Result<T> = std::result::Result<T, MemoryError>;

/// The process is stopped in the middle of something, and goes on when its lease is over:
/// after so many steps.
#[derive(Clone, Default)]
struct Lease(Arc<AtomicUsize>);

const ENDLESS: usize = usize::MAX;

impl Lease {
    fn endless() -> Lease {
        Lease(Arc::new(AtomicUsize::new(ENDLESS)))
    }

    fn ends_after(&self, steps: usize) {
        self.0.store(steps, SeqCst);
    }

    fn step(&self) {
        let _ = self.0.fetch_update(SeqCst, SeqCst, |left| {
            (left != ENDLESS && left > 0).then(|| left - 1)
        });
    }
}

/// To a process whose other threads have not run since it was stopped: nothing but the clock says
/// that it may not serve.
impl Events for Lease {
    fn happens(&self, step: Step) -> Result<()> {
        match step {
            Step::Read(..) | Step::Write(..) | Step::Update(..) => self.step(),
            Step::Enter(..) | Step::Entered(..) | Step::Left(..) => self.step(),
            _ => {}
        }
        Ok(())
    }

    fn confirm(&self) -> Result<()> {
        match self.0.load(SeqCst) {
            0 => Err(MemoryError::Fenced),
            _ => Ok(()),
        }
    }
}

fn server() -> (Server, Lease) {
    let lease = Lease::endless();
    let memory = HeapMemory::new(4096, 64 << 20, 1).with_events(Arc::new(lease.clone()));
    let options = Options {
        buckets: 16,
        ..Options::default()
    };
    let config = ServerConfig {
        addr: SocketAddr::from(([127, 0, 0, 1], 0)),
        ..ServerConfig::default()
    };
    let store = Store::open(memory, options).unwrap();
    (Server::bind(store, config).unwrap(), lease)
}

/// Runs a command with a lease that ends after 0, 1, 2, ... of its steps, until one ends late
/// enough for an answer. Every other time the answer is an error, whatever has been done by then.
fn at_every_moment(words: &[&[u8]], answer: &str) {
    let (server, lease) = server();
    let mut client = Client::new(server.local_addr());
    assert_eq!(client.call(&[b"SET", b"k", b"1"]), "+OK");
    for steps in 0..1000 {
        lease.ends_after(steps);
        let reply = client.call(words);
        let over = lease.0.load(SeqCst) == 0;
        lease.ends_after(ENDLESS);
        if !over {
            assert_eq!(reply, answer);
            assert!(steps >= 2, "before, and at least once in the middle");
            return server.shutdown();
        }
        assert!(
            reply.starts_with("-MASTERDOWN "),
            "{reply} after {steps} steps"
        );
        assert_eq!(client.call(&[b"SET", b"k", b"1"]), "+OK");
    }
    panic!("it never ends");
}

#[test]
fn no_write_is_acknowledged_after_the_lease() {
    at_every_moment(&[b"SET", b"k", b"2"], "+OK");
}

#[test]
fn nothing_is_read_after_the_lease() {
    at_every_moment(&[b"GET", b"k"], "\"1\"");
}

#[test]
fn a_batch_of_commands_gets_as_many_errors() {
    let (server, lease) = server();
    let mut client = Client::new(server.local_addr());
    let batch = [
        encode(&[b"SET", b"a", b"1"]),
        encode(&[b"GET", b"a"]),
        encode(&[b"PING"]),
        encode(&[b"CLIENT", b"REPLY", b"SKIP"]),
        encode(&[b"PING"]),
        encode(&[b"INCR", b"a"]),
    ];
    lease.ends_after(1);
    std::io::Write::write_all(&mut client.stream, &batch.concat()).unwrap();
    for _ in 0..4 {
        let reply = client.reply();
        assert!(reply.starts_with("-MASTERDOWN "), "{reply}");
    }
    lease.ends_after(ENDLESS);
    assert_eq!(client.call(&[b"ECHO", b"end"]), "\"end\"");
    server.shutdown();
}

#[test]
fn a_transaction_that_was_being_told_does_not_run_in_part() {
    let (server, lease) = server();
    let mut client = Client::new(server.local_addr());
    assert_eq!(client.call(&[b"MULTI"]), "+OK");
    lease.ends_after(0);
    assert!(
        client
            .call(&[b"SET", b"a", b"1"])
            .starts_with("-MASTERDOWN ")
    );
    lease.ends_after(ENDLESS);
    assert_eq!(client.call(&[b"SET", b"b", b"1"]), "+QUEUED");
    assert!(client.call(&[b"EXEC"]).starts_with("-EXECABORT "));
    assert_eq!(client.call(&[b"GET", b"b"]), "nil");
    server.shutdown();
}
