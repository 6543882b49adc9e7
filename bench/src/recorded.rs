//! Histories that benches record while they measure, for the checker of linearizability.

use crate::delegated;
use rackmem::Node;
use rackmem_sim::history::{self, Call, ClientLog, Operation, Recorder, Reply};
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

/// Operations that one client of one case records at most, some 30 MiB; then it stops.
pub const MAX_OPERATIONS: usize = 200_000;
/// Words of a block that recorded clients use. Blocks travel whole,
/// so it makes no difference to the rack, but clients that meet on a block should meet on a word,
/// too, or a stale one would go unnoticed.
pub const WORDS: usize = 2;

/// A recorder with room for one case.
pub fn recorder() -> Recorder {
    Recorder::new(MAX_OPERATIONS)
}

/// A file that takes histories, one case after the other.
pub struct HistoryFile {
    path: PathBuf,
    out: BufWriter<File>,
    operations: usize,
}

impl HistoryFile {
    /// An empty one; what was there is gone.
    pub fn create(path: &Path) -> io::Result<Self> {
        let named =
            |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
        Ok(HistoryFile {
            path: path.to_owned(),
            out: BufWriter::new(File::create(path).map_err(named)?),
            operations: 0,
        })
    }

    /// Adds what was recorded; returns when it is in the file.
    pub fn add(&mut self, history: &[Operation]) -> io::Result<()> {
        self.operations += history.len();
        history::write(&mut self.out, history)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How many operations are in it.
    pub fn operations(&self) -> usize {
        self.operations
    }
}

/// What became of an attempt to do an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Done {
    /// It was done.
    Yes,
    /// It was not tried: there is no room to record it.
    Full,
}

/// Where words are.
enum At {
    /// In the memory of the node's rack.
    Rack(Node),
    /// With the guests of its nodes.
    Guests(Node),
}

impl At {
    fn load(&self, addr: u64) -> rackmem::Result<u64, rackmem::AccessError> {
        match self {
            At::Rack(node) => node.load(addr),
            At::Guests(node) => delegated::load(node, addr),
        }
    }

    fn store(&self, addr: u64, value: u64) -> rackmem::Result<(), rackmem::AccessError> {
        match self {
            At::Rack(node) => node.store(addr, value),
            At::Guests(node) => delegated::store(node, addr, value),
        }
    }
}

/// A client that reads and writes words, and records it if it has a log.
pub struct Words<'a> {
    at: At,
    log: Option<ClientLog<'a>>,
    /// What its keys begin with: words of different racks may have the same address.
    case: &'a str,
    next: u64,
}

impl<'a> Words<'a> {
    /// Client number `client`, below 2^20, at a node.
    pub fn new(node: Node, client: u32, case: &'a str, recorder: Option<&'a Recorder>) -> Self {
        Words {
            at: At::Rack(node),
            log: recorder.map(|recorder| recorder.client(client)),
            case,
            // Every value is written once in a history, and none is zero, which stands for no
            // value.
            next: u64::from(client + 1) << 40,
        }
    }

    /// The same, of words that the guests of a rack have ([`delegated`]).
    pub fn delegated(
        node: Node,
        client: u32,
        case: &'a str,
        recorder: Option<&'a Recorder>,
    ) -> Self {
        Words {
            at: At::Guests(node.clone()),
            ..Words::new(node, client, case, recorder)
        }
    }

    /// How many words of a block to choose from, of so many.
    pub fn choice(&self, words: usize) -> usize {
        match self.log {
            Some(_) => words.min(WORDS),
            None => words,
        }
    }

    /// Reads a word.
    pub fn read(&mut self, addr: u64) -> rackmem::Result<Done, rackmem::AccessError> {
        let Some(log) = &mut self.log else {
            return self.at.load(addr).map(|_| Done::Yes);
        };
        let Ok(ticket) = log.begin(&format!("{}/{addr:x}", self.case), Call::Get) else {
            return Ok(Done::Full);
        };
        // An error leaves the operation one of unknown outcome, which is what is known of it.
        let reply = match self.at.load(addr)? {
            0 => Reply::Nil,
            value => Reply::Text(value.to_string()),
        };
        log.ok(ticket, reply);
        Ok(Done::Yes)
    }

    /// Writes a word.
    pub fn write(&mut self, addr: u64) -> rackmem::Result<Done, rackmem::AccessError> {
        self.next += 1;
        let Some(log) = &mut self.log else {
            return self.at.store(addr, self.next).map(|()| Done::Yes);
        };
        let value = self.next.to_string();
        let call = Call::Set { value };
        let Ok(ticket) = log.begin(&format!("{}/{addr:x}", self.case), call) else {
            return Ok(Done::Full);
        };
        self.at.store(addr, self.next)?;
        log.ok(ticket, Reply::Nil);
        Ok(Done::Yes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rackmem::Rack;
    use rackmem_sim::linear::{Limits, Verdict, check};

    #[test]
    fn what_clients_of_a_rack_record_is_linearizable_and_bounded() {
        let rack = Rack::local(2).unwrap();
        let addr = rack.node(0).alloc_bytes(64).unwrap();
        let recorder = Recorder::new(100);
        std::thread::scope(|scope| {
            for id in 0..2 {
                let mut words = Words::new(rack.node(id), id as u32, "case", Some(&recorder));
                scope.spawn(move || {
                    for _ in 0..50 {
                        assert_eq!(words.read(addr).unwrap(), Done::Yes);
                        assert_eq!(words.write(addr).unwrap(), Done::Yes);
                    }
                    assert_eq!(words.read(addr).unwrap(), Done::Full);
                    assert_eq!(words.write(addr).unwrap(), Done::Full);
                });
            }
        });
        let history = recorder.into_history();
        assert_eq!(history.len(), 200);
        let verdict = check(&history, Limits::default());
        assert!(matches!(verdict, Verdict::Linearizable(_)), "{verdict}");
    }
}
