//! Commands that took long.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::registry::Client;
use crate::resp::args::Args;

/// Words of a command that are kept, the last of which may say how many are missing.
const MAX_WORDS: usize = 32;
/// Bytes of a word that are kept.
const MAX_WORD: usize = 128;

/// A slow command.
#[derive(Clone, Debug)]
pub(crate) struct Slow {
    pub id: u64,
    /// Unix time in seconds.
    pub at: u64,
    pub took: Duration,
    pub words: Vec<Vec<u8>>,
    pub peer: String,
    pub name: Vec<u8>,
}

#[derive(Debug, Default)]
struct Kept {
    next: u64,
    slow: VecDeque<Slow>,
}

/// The last slow commands, the newest first.
#[derive(Debug, Default)]
pub(crate) struct Slowlog(Mutex<Kept>);

impl Slowlog {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a command, and no more than `len` of them.
    pub fn add(&self, args: Args<'_>, took: Duration, client: &Client, len: usize) {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let (peer, name) = (client.peer.to_string(), client.labels().name.clone());
        let words = words(args);
        let mut kept = self.kept();
        let id = kept.next;
        kept.next += 1;
        kept.slow.push_front(Slow {
            id,
            at: now.as_secs(),
            took,
            words,
            peer,
            name,
        });
        kept.slow.truncate(len);
    }

    pub fn newest(&self, count: usize) -> Vec<Slow> {
        self.kept().slow.iter().take(count).cloned().collect()
    }

    pub fn len(&self) -> usize {
        self.kept().slow.len()
    }

    pub fn clear(&self) {
        self.kept().slow.clear();
    }
}

/// How many words are shown of commands that may hold passwords.
pub(crate) fn secret_from(args: Args<'_>) -> usize {
    match () {
        () if args.is(0, "auth") => 1,
        () if args.is(0, "hello") => 2,
        () if args.is(0, "acl") => 2,
        () if args.is(0, "config")
            && args.is(1, "set")
            && (2..args.len()).any(|i| args.is(i, "requirepass")) =>
        {
            2
        }
        () => usize::MAX,
    }
}

fn words(args: Args<'_>) -> Vec<Vec<u8>> {
    let secret = secret_from(args);
    let shown = match args.len() {
        n if n > MAX_WORDS => MAX_WORDS - 1,
        n => n,
    };
    let word = |(i, word): (usize, &[u8])| match word.len() {
        _ if i >= secret => b"(redacted)".to_vec(),
        len if len > MAX_WORD => {
            let mut cut = word[..MAX_WORD].to_vec();
            cut.extend(format!("... ({} more bytes)", len - MAX_WORD).bytes());
            cut
        }
        _ => word.to_vec(),
    };
    let mut words: Vec<_> = args.from(0).take(shown).enumerate().map(word).collect();
    if shown < args.len() {
        words.push(format!("... ({} more arguments)", args.len() - shown).into_bytes());
    }
    words
}
