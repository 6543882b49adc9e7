//! What processes remember of their terminals' transactions, so that another one can judge the
//! history of all: a file for each process, of records that are whole or were cut off.
//!
//! ```text
//! record   terminal: u32, reads: u32, writes: u32, is_open: u32, invoke: u64, returned: u64;
//!          keys and versions: u64 × 2 × (reads + writes)
//! ```
//!
//! Times are of one clock that all processes see: histories are those of one host.

use crate::access::Footprint;
use crate::load::Watch;
use crate::tally::Deed;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, BufWriter, ErrorKind, Read, Result, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// Keys with versions of a record at most: more than any transaction has.
const MOST: u32 = 1 << 20;

#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
struct Head {
    terminal: u32,
    reads: u32,
    writes: u32,
    /// 1: it is going to commit, and nobody knows yet whether it has.
    is_open: u32,
    invoke: u64,
    returned: u64,
}

/// How much of a history is remembered, and how.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Remember {
    /// Transactions of each terminal at most.
    pub deeds: usize,
    /// Also what outlives the process: what is going to commit, and all of it at once.
    pub outlives: bool,
}

/// Writes down what terminals of this process do.
pub struct Recorder<'w> {
    inner: &'w dyn Watch,
    remember: Remember,
    began: Instant,
    /// The clock of all processes just before and just after `began`.
    clock: (u64, u64),
    state: Mutex<State>,
}

struct State {
    file: BufWriter<File>,
    /// Of each terminal.
    deeds: BTreeMap<usize, usize>,
    failed: Option<std::io::Error>,
}

impl<'w> Recorder<'w> {
    /// Into a new file. `clock` is one that all processes see, in nanoseconds; `inner` is told what
    /// else is to be told.
    ///
    /// # Errors
    /// Those of making the file.
    pub fn create(
        file: &Path,
        remember: Remember,
        clock: &dyn Fn() -> u64,
        inner: &'w dyn Watch,
    ) -> Result<Self> {
        let file = BufWriter::new(File::create_new(file)?);
        let before = clock();
        let began = Instant::now();
        Ok(Recorder {
            inner,
            remember,
            began,
            clock: (before, clock()),
            state: Mutex::new(State {
                file,
                deeds: BTreeMap::new(),
                failed: None,
            }),
        })
    }

    /// When times begin: for [`crate::drive_since`].
    pub fn began(&self) -> Instant {
        self.began
    }

    /// All is in the file.
    ///
    /// # Errors
    /// The first of writing to it.
    pub fn finish(self) -> Result<()> {
        let state = self.state.into_inner();
        let mut state = state.unwrap_or_else(PoisonError::into_inner);
        match state.failed.take() {
            Some(error) => Err(error),
            None => state.file.flush(),
        }
    }

    fn write(&self, terminal: usize, deed: &Deed) {
        let state = self.state.lock();
        let mut state = state.unwrap_or_else(PoisonError::into_inner);
        let known = state.deeds.entry(terminal).or_default();
        if *known >= self.remember.deeds {
            return;
        }
        *known += usize::from(deed.returned.is_some());
        let (before, after) = self.clock;
        let Footprint { reads, writes } = &deed.footprint;
        let head = Head {
            terminal: terminal as u32,
            reads: reads.len() as u32,
            writes: writes.len() as u32,
            is_open: u32::from(deed.returned.is_none()),
            invoke: before + deed.invoke,
            returned: deed.returned.map_or(0, |at| after + at),
        };
        let pairs = reads.iter().chain(writes);
        let words = pairs.flat_map(|(key, version)| [*key, *version]);
        let body: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
        let mut written = state.file.write_all(&[head.as_bytes(), &body].concat());
        if self.remember.outlives {
            // The system has it then, whatever becomes of this process.
            written = written.and_then(|()| state.file.flush());
        }
        if let Err(error) = written {
            state.failed.get_or_insert(error);
        }
    }
}

impl Watch for Recorder<'_> {
    fn loaded(&self, steps: u64) {
        self.inner.loaded(steps);
    }

    fn ran(&self) {
        self.inner.ran();
    }

    fn stop(&self) -> bool {
        self.inner.stop()
    }

    fn wants_open(&self) -> bool {
        self.remember.outlives
    }

    fn commits(&self, terminal: usize, deed: &Deed) {
        self.write(terminal, deed);
    }

    fn committed(&self, terminal: usize, deed: &Deed) {
        self.write(terminal, deed);
    }
}

/// What a process has remembered.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct History {
    /// Transactions that have committed.
    pub deeds: Vec<Deed>,
    /// Those of which that is not known: at most one of each terminal.
    pub open: Vec<Deed>,
}

impl History {
    /// From a file. What was cut off at its end is left out.
    ///
    /// # Errors
    /// Those of reading it; [`ErrorKind::InvalidData`].
    pub fn read(file: &Path) -> Result<History> {
        let mut file = BufReader::new(File::open(file)?);
        let (mut history, mut open) = (History::default(), BTreeMap::new());
        while let Some((terminal, deed)) = record(&mut file)? {
            match deed.returned {
                Some(_) => {
                    open.remove(&terminal);
                    history.deeds.push(deed);
                }
                None => drop(open.insert(terminal, deed)),
            }
        }
        history.open.extend(open.into_values());
        Ok(history)
    }

    /// Adds another process's.
    pub fn add(&mut self, other: History) {
        self.deeds.extend(other.deeds);
        self.open.extend(other.open);
    }
}

/// The next record, if it is whole.
fn record(file: &mut impl Read) -> Result<Option<(u32, Deed)>> {
    let mut head = [0; size_of::<Head>()];
    if !fill(file, &mut head)? {
        return Ok(None);
    }
    let head = Head::read_from_bytes(&head).map_err(|_| ErrorKind::InvalidData)?;
    if head.reads > MOST || head.writes > MOST {
        return Err(ErrorKind::InvalidData.into());
    }
    let mut body = vec![0; (head.reads + head.writes) as usize * 16];
    if !fill(file, &mut body)? {
        return Ok(None);
    }
    let (words, _) = body.as_chunks::<8>();
    let (pairs, _) = words.as_chunks::<2>();
    let word = u64::from_le_bytes;
    let mut reads: Vec<_> = pairs.iter().map(|it| (word(it[0]), word(it[1]))).collect();
    let writes = reads.split_off(head.reads as usize);
    let deed = Deed {
        invoke: head.invoke,
        returned: (head.is_open == 0).then_some(head.returned),
        footprint: Footprint { reads, writes },
    };
    Ok(Some((head.terminal, deed)))
}

/// Fills bytes; false: there are no more so many.
fn fill(file: &mut impl Read, bytes: &mut [u8]) -> Result<bool> {
    match file.read_exact(bytes) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}
