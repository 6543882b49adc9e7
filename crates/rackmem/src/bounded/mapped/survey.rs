//! What stands in an arena's file, for those who look at it without being of its rack.

use super::arena::ATTACHED;
use super::file::{MappedFile, no_file};
use super::front::Front;
use super::instructions::CacheOps;
use super::lines::{BoardLines, LineCache, Lines, WORDS};
use crate::error::ArenaError;
use rackmem_proto::bi::{Board, BoardIn, LINE, MAX_DOMAINS, Presence, Queue};
use std::fs::File;
use std::path::Path;
use std::time::Duration;

/// An arena as its file has it.
///
/// ```
/// # fn main() -> rackmem::Result<()> {
/// use rackmem::Rack;
/// use rackmem::bounded::{Arena, ArenaReport, ArenaSpec};
///
/// # let path = std::env::temp_dir().join(format!("rackmem-doc-survey-{}", std::process::id()));
/// let rack = Rack::local(2)?;
/// let spec = ArenaSpec::new(&path, 1 << 20);
/// let arena = Arena::create(&rack.node(0), &spec)?;
/// let report: ArenaReport = ArenaReport::of(&path)?;
/// assert_eq!((report.bound, report.domains.len()), (arena.bound(), 1));
/// # std::fs::remove_file(&path).unwrap();
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct ArenaReport {
    /// The number of its rack.
    pub rack: u64,
    /// Its bytes.
    pub bytes: u64,
    /// Nodes that it is divided between.
    pub nodes: u16,
    /// How old what is read may be when a section begins.
    pub bound: Duration,
    /// Entries that a ring has room for.
    pub ring: u64,
    /// Nodes that have it attached, or have died with it.
    pub domains: Vec<DomainReport>,
}

/// A node's part in an arena, beside the latest clock of any node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct DomainReport {
    /// The node.
    pub node: u16,
    /// In which life of its it has attached the arena.
    pub incarnation: u32,
    /// Whether it has quiesced since.
    pub runs: bool,
    /// How long ago it has dropped what was modified.
    pub modified: Duration,
    /// How long ago it has dropped what was freed: memory waits for the longest.
    pub freed: Duration,
    /// Objects that it has freed and that others may read.
    pub waiting: u64,
    /// Whether another node does not wait for it any more.
    pub excluded: bool,
}

impl ArenaReport {
    /// Of the arena in this file or device. Changes nothing.
    ///
    /// # Errors
    /// [`ArenaError::NoFile`], [`ArenaError::NoArena`].
    pub fn of(path: impl AsRef<Path>) -> Result<Self, ArenaError> {
        let file = File::open(path).map_err(|error| no_file("open", &error))?;
        let first = look(&file, LINE)?;
        let front = Front::read(&first)?;
        let lines = look(&file, front.board.words() * 8)?;
        let board = BoardIn {
            layout: front.board,
            me: 0,
            words: BoardLines(&lines),
        };
        let rows = (0..front.board.domains).map(|domain| (domain, board.row(domain)));
        let rows: Vec<_> = rows
            .filter(|(_, row)| row.presence != Presence::Absent)
            .collect();
        let now = rows.iter().map(|(_, row)| row.clock).max();
        let now = now.unwrap_or_default();
        let tick = Duration::from_nanos(front.tick);
        let ago = |then| {
            let ticks = u32::try_from(now.since(then)).unwrap_or(u32::MAX);
            tick.saturating_mul(ticks)
        };
        let domains = rows.iter().map(|(domain, row)| {
            let (tail, head) = board.ends(*domain, Queue::Freed);
            let mut others = 0..front.board.domains;
            DomainReport {
                node: u16::from(*domain),
                incarnation: row.incarnation >> ATTACHED,
                runs: row.presence == Presence::Running,
                modified: ago(row.modified),
                freed: ago(row.freed),
                waiting: head - tail,
                excluded: others.any(|by| board.excluded(by, *domain) == row.incarnation),
            }
        });
        Ok(ArenaReport {
            rack: front.rack,
            bytes: front.bytes,
            nodes: front.board.domains.into(),
            bound: tick * front.bound.ticks() as u32,
            ring: front.board.room,
            domains: domains.collect(),
        })
    }

    /// The node that memory waits for: that has dropped what was freed least lately, and is waited
    /// for.
    pub fn slowest(&self) -> Option<u16> {
        let counted = self.domains.iter().filter(|domain| !domain.excluded);
        counted
            .max_by_key(|domain| domain.freed)
            .map(|domain| domain.node)
    }
}

/// Lines of memory. Without cache operations they are what this processor has.
fn look(file: &File, bytes: u64) -> Result<Lines, ArenaError> {
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    let file = MappedFile::read_only(file, bytes)?;
    let cache = LineCache::Processor(CacheOps::detect()?);
    Ok(Lines { file, cache })
}

const _: () = assert!(MAX_DOMAINS <= 1 << 8 && WORDS == 8);
