//! An arena: memory that all nodes have mapped, in a program's hands.

use super::super::counter::{Deadline, Moment};
use super::counts::ArenaCounters;
use super::emulated::PrivateCache;
use super::file::{MappedFile, no_file, open, reserve};
use super::front::{Front, SLOTS};
use super::instructions::CacheOps;
use super::lines::{BoardLines, LineCache, Lines};
use super::open_sections::OpenSections;
use super::pointer::{ArenaSlot, Pointer};
use super::quiescing::{Quiescing, keep_quiescing};
use super::reading::ArenaSection;
use super::spec::{ArenaSpec, CacheKind};
use super::storing::{ArenaWriter, Storing};
use crate::bytes::value::Value;
use crate::error::ArenaError;
use crate::fences::use_unequal_fences;
use crate::host::arenas::Arenas;
use crate::locked;
use crate::node::Node;
use crate::threads::PLACES;
use rackmem_fabric::Whole;
use rackmem_proto::bi::{BiClock, Board, BoardIn, Bound, Presence, Tick};
use std::fs::OpenOptions;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Bits of a domain's life that count how often its node has attached the arena in a life of its.
pub(super) const ATTACHED: u32 = 8;

/// An arena at a node.
pub(super) struct Attached {
    pub node: Node,
    pub path: PathBuf,
    pub lines: Lines,
    pub front: Front,
    pub all: bool,
    pub me: u8,
    pub life: u32,
    clock: BiClock,
    /// Ticks that the clock has jumped.
    pub ahead: AtomicU64,
    /// What was modified before this tick is not stale here.
    pub modified: AtomicU64,
    /// Until when sections may count on that.
    pub deadline: Deadline,
    /// Others do not wait for this domain any more, or it has left.
    pub over: AtomicBool,
    pub open: OpenSections<PLACES>,
    pub quiescing: Mutex<Quiescing>,
    pub storing: Mutex<Storing>,
    /// Class of each slab as far as it was looked at: 0 is not known.
    pub classes: Box<[AtomicU8]>,
    /// Lines of slots, and the first one of slabs.
    pub slots: Range<u64>,
    pub first: u64,
    /// Young objects that were dropped since the last quiescence: pointer and tick.
    pub dropped_young: Box<[AtomicU64]>,
    pub counters: ArenaCounters,
}

/// Nanoseconds since the machine was started, also those in which it was suspended.
#[inline]
fn nanos() -> u64 {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the place is a `timespec` of this thread.
    unsafe { libc::clock_gettime(libc::CLOCK_BOOTTIME, &raw mut now) };
    (now.tv_sec as u64)
        .wrapping_mul(1_000_000_000)
        .wrapping_add(now.tv_nsec as u64)
}

impl Attached {
    #[inline]
    pub fn now(&self) -> Tick {
        self.clock.tick(nanos()).plus(self.ahead.load(Relaxed))
    }

    /// This moment, and what the clock shows.
    pub fn moment(&self) -> (Moment, Tick) {
        let moment = Moment::now(nanos);
        let ahead = self.ahead.load(Relaxed);
        (moment, self.clock.tick(moment.nanos).plus(ahead))
    }

    /// A quiescence is of this moment.
    pub fn quiesced(&self, moment: Moment) {
        self.deadline
            .set(moment, self.clock.nanos(self.bound().unseen()));
    }

    #[inline]
    pub fn bound(&self) -> Bound {
        self.front.bound
    }

    /// Arenas of its node.
    fn arenas(&self) -> &Arenas {
        &self.node.inner.access.agents.bounded.arenas
    }

    pub fn period(&self) -> Duration {
        Duration::from_nanos(self.front.tick)
    }

    pub fn board(&self) -> BoardIn<BoardLines<'_>> {
        BoardIn {
            layout: self.front.board,
            me: self.me,
            words: BoardLines(&self.lines),
        }
    }

    /// Compares this clock with one that was published before it is read now. Whether it was behind
    /// and has jumped.
    pub fn compare(&self, theirs: Tick) -> Result<bool, ArenaError> {
        let mut clock = self.clock;
        let by = clock.compare(theirs, self.now()).map_err(|skew| {
            let by = self.ticks(skew.by);
            ArenaError::ClockSkew { by }
        })?;
        if by > 0 {
            self.ahead.fetch_add(by, SeqCst);
            self.counters.jumps.fetch_add(1, Relaxed);
        }
        Ok(by > 0)
    }

    /// Whether a domain's node is a member, in the life in which it has attached the arena.
    pub fn lives(&self, domain: u8, life: u32) -> bool {
        let (node, life) = (u16::from(domain), life >> ATTACHED);
        let known = self.node.incarnation_of(node);
        // One that this process has not heard of yet is younger than what it has heard of.
        life > known || life == known && self.node.is_member(node)
    }

    fn ticks(&self, ticks: u64) -> Duration {
        let ticks = u32::try_from(ticks).unwrap_or(u32::MAX);
        self.period().saturating_mul(ticks)
    }

    pub fn late(&self, ticks: u64) -> ArenaError {
        self.counters.late.fetch_add(1, Relaxed);
        let by = self.ticks(ticks);
        ArenaError::Late { by }
    }

    /// Has a row in the board from now on, and an empty cache.
    fn join(&mut self) -> Result<(), ArenaError> {
        let rows: Vec<_> = (0..self.front.board.domains)
            .map(|domain| self.board().row(domain))
            .collect();
        let latest = rows.iter().map(|row| row.clock).max().unwrap_or_default();
        self.compare(latest)?;
        let node = self.node.id();
        let was = rows[usize::from(self.me)];
        let mine = self.node.incarnation_of(node) << ATTACHED;
        let same_life = was.incarnation >> ATTACHED == mine >> ATTACHED;
        let last = (1 << ATTACHED) - 1;
        let twice =
            same_life && (was.presence != Presence::Absent || was.incarnation & last == last);
        if twice || was.incarnation > mine | last {
            return Err(ArenaError::AttachedTwice { node });
        }
        self.life = if same_life {
            was.incarnation + 1
        } else {
            mine | 1
        };
        self.board().join(self.life, self.now());
        Ok(())
    }
}

/// What all handles of a node have. With the last one its domain leaves: no section is open then,
/// and the thread that quiesces is waited for, so another one may follow at once.
pub(super) struct Held(Arc<Attached>);

impl std::ops::Deref for Held {
    type Target = Attached;

    #[inline]
    fn deref(&self) -> &Attached {
        &self.0
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let _quiescing = self.quiescing.lock().whole();
        let _storing = self.storing.lock().whole();
        if !self.over.swap(true, SeqCst) {
            self.board().set_presence(self.life, Presence::Absent);
        }
        self.arenas().detach(&self.0);
    }
}

/// Memory that all nodes have mapped, of which each reads what is in its processor's cache: objects
/// behind pointers, which are old by a bounded time at most.
///
/// Nothing but this keeps the caches of the nodes coherent: a writer writes lines back, and each
/// node drops what others have modified once a tick, a fifth of the bound. What is freed is used
/// again when no cache can hold it. What a [section](Arena::enter) has read is believed when it
/// [ends](ArenaSection::finish) without an error.
///
/// What it does not promise: an order between stores of different objects; that reads of different
/// objects do not go back; read-modify-write without a lock. Own writes are seen.
///
/// The file is in memory that several machines can map (`/dev/dax`, a file on famfs), or in
/// `/dev/shm` of one host. There all caches are coherent and nothing is ever stale;
/// [`ArenaSpec::emulated`] gives each process a cache of its own, which is not.
///
/// ```
/// # fn main() -> rackmem::Result<()> {
/// use rackmem::Rack;
/// use rackmem::bounded::{Arena, ArenaSpec};
/// use rackmem::locked::Lock;
/// use std::time::Duration;
///
/// # let path = std::env::temp_dir().join(format!("rackmem-doc-arena-{}", std::process::id()));
/// let rack = Rack::local(2)?;
/// let spec = ArenaSpec::new(&path, 2 << 20).bound(Duration::from_secs(1)).emulated();
/// let here = Arena::create(&rack.node(0), &spec)?;
/// let lock: Lock = Lock::create(&rack.node(0), ())?;
/// let mut writer = here.writer(&lock)?;
/// let price = writer.alloc(&250u64)?;
/// writer.assign(here.slot(7)?, price)?;
///
/// let there = Arena::open(&rack.node(1), &spec)?;
/// let section = there.enter()?; // what follows is a second old at most
/// assert_eq!(section.get::<u64>(there.slot(7)?)?, Some(250));
/// section.finish()?; // and was so until now
/// # std::fs::remove_file(&path).unwrap();
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Arena {
    pub(super) at: Arc<Held>,
}

impl std::fmt::Debug for Arena {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Arena")
            .field("path", &self.at.path)
            .field("bound", &self.bound())
            .field("node", &self.at.me)
            .finish()
    }
}

impl Arena {
    /// Makes one, and attaches it. A file that is not there is made. One that is there, or a
    /// device, must have its first line empty, and only one node may do this at a time.
    ///
    /// # Errors
    /// [`ArenaError::IsThere`], [`ArenaError::BadSpec`], [`ArenaError::NoFile`],
    /// [`ArenaError::NoCacheOperations`].
    pub fn create(node: &Node, spec: &ArenaSpec) -> Result<Arena, ArenaError> {
        let mut front = spec.front(node)?;
        front.number = nanos() ^ u64::from(std::process::id()) << 40;
        let format = |path: &Path| {
            let lines = map(path, spec, &front)?;
            if !Front::is_blank(&lines) {
                return Err(ArenaError::IsThere);
            }
            front.write(&lines);
            Ok(())
        };
        let path = spec.path.as_path();
        if path.exists() {
            format(path)?;
        } else {
            // It has its name when it is whole.
            let mut name = path.as_os_str().to_owned();
            name.push(format!(".{}.new", std::process::id()));
            let new = PathBuf::from(name);
            let made = OpenOptions::new()
                .read(true)
                .write(true)
                .create_new(true)
                .open(&new);
            let made = made.map_err(|error| no_file("create", &error))?;
            let sized = reserve(&made, spec.bytes);
            let linked = sized.and_then(|()| format(&new)).and_then(|()| {
                std::fs::hard_link(&new, path).map_err(|error| match error.kind() {
                    std::io::ErrorKind::AlreadyExists => ArenaError::IsThere,
                    _ => no_file("link", &error),
                })
            });
            let _ = std::fs::remove_file(&new);
            linked?;
        }
        Arena::open(node, spec)
    }

    /// Attaches the one that is there. A node attaches it once at a time; with the last handle it
    /// leaves.
    ///
    /// # Errors
    /// [`ArenaError::NoFile`], [`ArenaError::NoArena`], [`ArenaError::OtherRack`],
    /// [`ArenaError::OtherShape`], [`ArenaError::AttachedTwice`], [`ArenaError::ClockSkew`],
    /// [`ArenaError::NoCacheOperations`].
    pub fn open(node: &Node, spec: &ArenaSpec) -> Result<Arena, ArenaError> {
        use_unequal_fences();
        let mut front = spec.front(node)?;
        let lines = map(&spec.path, spec, &front)?;
        front.number = front.check(&lines)?;
        let me = node.id() as u8;
        let slabs = front.all_slabs();
        let mut attached = Attached {
            node: node.clone(),
            path: spec.path.clone(),
            lines,
            front,
            all: spec.all,
            me,
            life: 0,
            clock: BiClock::new(front.tick),
            ahead: AtomicU64::new(0),
            modified: AtomicU64::new(0),
            deadline: Deadline::default(),
            over: AtomicBool::new(false),
            open: OpenSections::new(),
            quiescing: Mutex::new(Quiescing::new((me, 0))),
            storing: Mutex::new(Storing::new(me, front.bound, slabs)),
            slots: front.slot(0)..front.slot(SLOTS),
            first: front.slab(0, 0),
            classes: (0..slabs).map(|_| AtomicU8::new(0)).collect(),
            dropped_young: (0..super::reading::YOUNG)
                .map(|_| AtomicU64::new(0))
                .collect(),
            counters: ArenaCounters::default(),
        };
        attached.inherit(Attached::join)?;
        attached.quiescing = Mutex::new(Quiescing::new((me, attached.life)));
        let attached = Arc::new(attached);
        let at = Held(attached.clone());
        let weak = Arc::downgrade(&attached);
        attached.arenas().attach(weak.clone());
        // The first one drops everything: another process of this host may have left lines.
        at.quiesce(Vec::new())?;
        let spawned = std::thread::Builder::new().name("rackmem-arena".to_owned());
        let spawned = spawned.spawn(move || keep_quiescing(&weak));
        spawned.map_err(|error| no_file("a thread", &error))?;
        Ok(Arena { at: Arc::new(at) })
    }

    /// How old what is read may be when its section begins.
    pub fn bound(&self) -> Duration {
        self.at.period() * self.at.bound().ticks() as u32
    }

    /// How long a section may last.
    pub fn longest_section(&self) -> Duration {
        self.at.period() * self.at.bound().section as u32
    }

    /// A place for a pointer that programs find by its number.
    ///
    /// # Errors
    /// [`ArenaError::BadPointer`] for a number from 64 on.
    pub fn slot<T: ?Sized>(&self, nth: u64) -> Result<ArenaSlot<T>, ArenaError> {
        let line = self.at.front.slot(nth.min(SLOTS));
        match nth < SLOTS {
            true => Ok(ArenaSlot::new(line * super::lines::WORDS as u64)),
            false => Err(ArenaError::BadPointer { line, len: 8 }),
        }
    }

    /// Begins a section (`bi_enter`). If this node is late, it quiesces first.
    ///
    /// # Errors
    /// [`ArenaError::Late`] when that has taken longer than the bound allows,
    /// [`ArenaError::Expelled`], [`ArenaError::ClockSkew`], and those of [`Node::confirm`].
    #[inline(always)]
    pub fn enter(&self) -> Result<ArenaSection<'_>, ArenaError> {
        ArenaSection::enter(&self.at)
    }

    /// Waits for a lock of the rack, and writes under it. All who write one object, or one slot, do
    /// so under one lock.
    ///
    /// # Errors
    /// Those of [`locked::Mutex::lock`].
    pub fn writer<'a, T: Value>(
        &'a self,
        lock: &'a locked::Mutex<T>,
    ) -> Result<ArenaWriter<'a, T>, ArenaError> {
        let guard = lock.lock()?;
        Ok(ArenaWriter::new(&self.at, guard))
    }

    /// Drops what others have modified until now: what was assigned before this call is seen by
    /// sections that begin after it.
    ///
    /// # Errors
    /// [`ArenaError::Expelled`], [`ArenaError::ClockSkew`], and those of [`Node::confirm`].
    pub fn quiesce(&self) -> Result<(), ArenaError> {
        self.at.quiesce(Vec::new())
    }

    /// The same, and drops these objects, whose modifications nobody is told of
    /// ([`Tracking::Own`](super::Tracking::Own)).
    ///
    /// # Errors
    /// Those of [`Arena::quiesce`].
    pub fn quiesce_stale<T>(&self, own: &[Pointer<T>]) -> Result<(), ArenaError> {
        self.at
            .quiesce(own.iter().map(|pointer| pointer.extent()).collect())
    }

    /// Since when all live nodes have dropped what was modified (`synchronize_bi`). Never waits.
    pub fn synchronize(&self) -> Tick {
        self.at.horizon()[0]
    }

    /// Makes memory that was freed free, as far as no cache can hold it (`bi_reclaim`); the objects
    /// of which it did so. A thread does the same at each tick.
    pub fn reclaim(&self) -> usize {
        self.at.reclaim()
    }
}

fn map(path: &Path, spec: &ArenaSpec, front: &Front) -> Result<Lines, ArenaError> {
    let bytes = usize::try_from(front.bytes).unwrap_or(usize::MAX);
    let file = MappedFile::shared(&open(path)?, bytes)?;
    let cache = match spec.cache {
        CacheKind::Processor => LineCache::Processor(CacheOps::detect()?),
        CacheKind::Emulated => LineCache::Emulated(PrivateCache::new(file.words().len())?),
    };
    Ok(Lines { file, cache })
}
