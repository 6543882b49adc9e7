//! Clients that wait for an element for the whole of an era, while nodes die around them. At its
//! end one is put in for each, at another node: each gets it, and gets it in time.

use super::super::client::{Answer, Client};
use super::lock;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

/// Between two looks.
const STEP: Duration = Duration::from_millis(50);
/// Pause after a failure.
const PAUSE: Duration = Duration::from_millis(40);
/// How long one may wait while its element is there, on a machine where everything takes long: who
/// waits looks again once a second.
const PATIENCE: Duration = Duration::from_secs(40);

pub struct Waiter<'a> {
    pub node: usize,
    pub addrs: &'a Mutex<Vec<SocketAddr>>,
    pub stop: &'a AtomicBool,
    pub era: usize,
    /// Since when an element is there for each.
    pub given: &'a OnceLock<Instant>,
    /// Those who have theirs.
    pub served: &'a AtomicUsize,
}

/// The key for which the client of a node waits in an era, and how it gets an element there.
pub fn key(era: usize, node: usize) -> String {
    format!("wait:{era}:{node}")
}

/// Puts in the element for which it waits.
pub fn gift(era: usize, node: usize) -> Vec<String> {
    let key = key(era, node);
    let words: &[&str] = match kind(era, node) {
        2 => &["ZADD", &key, "1", "gift"],
        _ => &["LPUSH", &key, "gift"],
    };
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn kind(era: usize, node: usize) -> usize {
    (era + node) % 4
}

impl Waiter<'_> {
    /// Waits; what is wrong, if something is.
    pub fn run(&self) -> Option<String> {
        while !self.stop.load(SeqCst) {
            let addr = lock(self.addrs)[self.node];
            let wrong = match Client::connect(addr) {
                Ok(mut client) => self.wait(&mut client),
                Err(error) => Err(error),
            };
            match wrong {
                Ok(None) => return None,
                Ok(wrong) => return wrong,
                Err(_) => std::thread::sleep(PAUSE),
            }
        }
        None
    }

    fn wait(&self, client: &mut Client) -> io::Result<Option<String>> {
        let (key, to) = (key(self.era, self.node), format!("waited:{}", self.node));
        let words: &[&str] = match kind(self.era, self.node) {
            0 => &["BLPOP", &key, "0"],
            1 => &["BLMOVE", &key, &to, "LEFT", "RIGHT", "0"],
            2 => &["BZPOPMIN", "nothing", &key, "0"],
            _ => &["BLMPOP", "0", "2", "nothing", &key, "RIGHT"],
        };
        client.send([words])?;
        while !self.stop.load(SeqCst) {
            if client.is_told(STEP)? {
                return self.hear(client.answer()?);
            }
            let late = |given: &&Instant| given.elapsed() > PATIENCE;
            if self.given.get().filter(late).is_some() {
                return Ok(Some(format!(
                    "a client of node {} waits for {key} with {}, for {} s after an element was put in",
                    self.node,
                    words[0],
                    PATIENCE.as_secs(),
                )));
            }
        }
        Ok(None)
    }

    fn hear(&self, answer: Answer) -> io::Result<Option<String>> {
        match answer {
            // The bucket is away; it asks again.
            Answer::Error(error) => Err(io::Error::other(error)),
            Answer::Nil => Ok(Some(format!(
                "a client of node {} that waits without end was told that there is nothing",
                self.node,
            ))),
            _ => {
                self.served.fetch_add(1, SeqCst);
                Ok(None)
            }
        }
    }
}
