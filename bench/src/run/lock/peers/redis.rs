//! Locks of Redis, in two usual ways.
//!
//! - *poll*: `SET key token NX PX ttl`, tried again and again without a pause; released by a script
//!   that deletes the key if it holds the token. There is no order of service.
//! - *blpop*: a list with one element, taken by `BLPOP`, which serves the longest waiter,
//!   and put back by `RPUSH`. Does not end by itself when its holder dies.

use super::super::super::resp;
use super::super::super::{BenchError, Result};
use super::Client;
use std::net::SocketAddr;

/// A holder that is silent for so many milliseconds has lost the lock.
const LEASE: &str = "10000";
const KEY: &[u8] = b"rackmem-bench-lock";
const LIST: &[u8] = b"rackmem-bench-lock-list";
const RELEASE: &[u8] = b"if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end";

struct Polling {
    client: resp::Client,
    token: String,
}

struct Blocking(resp::Client);

pub(super) fn polling(addr: SocketAddr) -> Result<Box<dyn Client>> {
    let client = resp::Client::connect(addr)?;
    let token = format!("{:016x}", fastrand::u64(..));
    Ok(Box::new(Polling { client, token }))
}

/// The first client puts the element there.
pub(super) fn blocking(addr: SocketAddr) -> Result<Box<dyn Client>> {
    let mut client = resp::Client::connect(addr)?;
    let script = b"if redis.call('setnx', KEYS[2], '1') == 1 then redis.call('rpush', KEYS[1], 'x') end return 1";
    let made = [LIST, b"-made"].concat();
    client.command(&[b"EVAL", script, b"2", LIST, &made]);
    client.flush(|_| ())?;
    Ok(Box::new(Blocking(client)))
}

impl Client for Polling {
    fn acquire(&mut self, waits: &dyn Fn()) -> Result<()> {
        loop {
            let token = self.token.as_bytes();
            let set: [&[u8]; 6] = [b"SET", KEY, token, b"NX", b"PX", LEASE.as_bytes()];
            self.client.command(&set);
            let mut taken = true;
            self.client.flush(|answer| taken = answer.is_some())?;
            if taken {
                return Ok(());
            }
            waits();
        }
    }

    fn release(&mut self) -> Result<()> {
        let token = self.token.as_bytes();
        self.client.command(&[b"EVAL", RELEASE, b"1", KEY, token]);
        let mut mine = false;
        self.client.flush(|answer| mine = answer == Some(b"1"))?;
        match mine {
            true => Ok(()),
            false => Err(BenchError::Missing(
                "a lock of Redis ended before it was released".into(),
            )),
        }
    }
}

impl Client for Blocking {
    fn acquire(&mut self, waits: &dyn Fn()) -> Result<()> {
        waits();
        self.0.command(&[b"BLPOP", LIST, b"0"]);
        self.0.flush(|_| ())?;
        Ok(())
    }

    fn release(&mut self) -> Result<()> {
        self.0.command(&[b"RPUSH", LIST, b"x"]);
        self.0.flush(|_| ())?;
        Ok(())
    }
}
