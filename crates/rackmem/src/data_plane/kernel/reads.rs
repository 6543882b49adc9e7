//! Reads of a node's memory that a program in the kernel of its host answers, while the node serves
//! in an epoch and may.
//!
//! Which memory that is and when a value in it is whole is the program's and its contract's; here
//! is when it answers. What cannot be told to it is detached: it would answer for a node that does
//! not.

use super::KernelPlace;
use crate::bytes::desk::SharedCache;
use crate::bytes::mirror::LentMirror;
use crate::bytes::shelf::LentShelf;
use crate::bytes::twins::LentTwins;
use crate::config::Config;
use crate::error::OpenError;
use rackmem_fabric::Whole;
use rackmem_fabric::shm::Lent;
use rackmem_proto::wire::NodeId;
use std::sync::{Arc, Mutex, MutexGuard};

/// What became of reads of a node's objects that came to the program in the kernel of its host.
///
/// ```
/// use rackmem::diagnostics::KernelReadCounts;
///
/// let counts = KernelReadCounts { answered: 7, torn: 2, gone: 1, ..KernelReadCounts::default() };
/// assert_eq!(counts.passed(), 3);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct KernelReadCounts {
    /// Whether it answers in the node's epoch at this time.
    pub serves: bool,
    /// Granules of objects that it has sent.
    pub answered: u64,
    /// Reads of what the reader has already, which it has said.
    pub not_modified: u64,
    /// Passed to the node's agent: a writer was in.
    pub locked: u64,
    /// The object moved while it was copied.
    pub torn: u64,
    /// It is another one, or none.
    pub gone: u64,
    /// More than a granule was asked for.
    pub long: u64,
    /// No object's address.
    pub elsewhere: u64,
    /// The packet had no room for the answer, and the driver made none.
    pub no_room: u64,
}

impl KernelReadCounts {
    /// Reads that the agent got.
    pub fn passed(&self) -> u64 {
        self.locked + self.torn + self.gone + self.long + self.elsewhere + self.no_room
    }
}

/// What became of reads of a node's items of bounded memory, and of questions what was modified,
/// that came to the program in the kernel of its host.
///
/// ```
/// use rackmem::diagnostics::KernelItemCounts;
///
/// let counts = KernelItemCounts { answered: 7, news: 2, torn: 1, ..KernelItemCounts::default() };
/// assert_eq!(counts.passed(), 3);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct KernelItemCounts {
    /// Regions that the program has.
    pub regions: u64,
    /// Items that it has sent.
    pub answered: u64,
    /// Questions what was modified, to which it has said that nothing was.
    pub unchanged: u64,
    /// Passed to the node's agent: the item was being written.
    pub locked: u64,
    /// It was written, or its region removed, while it was copied.
    pub torn: u64,
    /// Something was modified, which the agent tells.
    pub news: u64,
    /// A region or an item that the program has not.
    pub elsewhere: u64,
    /// The packet had no room for the answer, and the driver made none.
    pub no_room: u64,
}

impl KernelItemCounts {
    /// Packets that the agent got.
    pub fn passed(&self) -> u64 {
        self.locked + self.torn + self.news + self.elsewhere + self.no_room
    }
}

/// What became of questions for lines of replicated memory that a node keeps copies of, and for
/// their stamps, that came to the program in the kernel of its host.
///
/// ```
/// use rackmem::diagnostics::KernelLineCounts;
///
/// let none = KernelLineCounts::default();
/// let counts = KernelLineCounts { answered: 7, torn: 2, elsewhere: 1, ..none };
/// assert_eq!(counts.passed(), 3);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct KernelLineCounts {
    /// Groups whose lines the program has.
    pub groups: u64,
    /// Lines that it has sent.
    pub answered: u64,
    /// Stamps that it has told without a line.
    pub stamps: u64,
    /// Passed to the node's agent: the line was being written.
    pub locked: u64,
    /// It was written, or its group's members or their way changed, while it was copied.
    pub torn: u64,
    /// A group or a line that the program has not, or has not in the question's config.
    pub elsewhere: u64,
    /// The packet had no room for the answer, and the driver made none.
    pub no_room: u64,
}

impl KernelLineCounts {
    /// Packets that the agent got.
    pub fn passed(&self) -> u64 {
        self.locked + self.torn + self.elsewhere + self.no_room
    }
}

/// What became of requests for blocks of a node's home that the switch had granted,
/// that came to the program in the kernel of its host.
///
/// ```
/// use rackmem::diagnostics::KernelBlockCounts;
///
/// let none = KernelBlockCounts::default();
/// let counts = KernelBlockCounts { answered: 7, torn: 2, elsewhere: 1, ..none };
/// assert_eq!(counts.passed(), 3);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct KernelBlockCounts {
    /// Blocks that the program has at this time.
    pub blocks: u64,
    /// Blocks that it has sent.
    pub answered: u64,
    /// Passed to the node's agent: a block that the program has not.
    pub elsewhere: u64,
    /// The block was being written.
    pub locked: u64,
    /// Of an epoch or a life of a node that is over or has not begun.
    pub not_of_now: u64,
    /// Where the requester's node is reached has not been heard yet.
    pub no_way: u64,
    /// The block was written, or its entry came home, while it was copied.
    pub torn: u64,
    /// There was no memory to put the answer together in.
    pub no_room: u64,
}

impl KernelBlockCounts {
    /// Requests that the agent got.
    pub fn passed(&self) -> u64 {
        let not_here = self.elsewhere + self.not_of_now + self.no_way;
        not_here + self.locked + self.torn + self.no_room
    }
}

/// A program that answers reads where memory lies.
pub(crate) trait ReadProgram: Send {
    /// It answers in this epoch, whose memory begins at this offset. Says whether that is so.
    fn serve(&mut self, base: u64, epoch: u32) -> bool;
    /// It answers nothing. Says whether that is so.
    fn stop(&mut self) -> bool;
    /// What it has counted.
    fn counts(&self) -> KernelReadCounts;
    /// What it has counted of items.
    fn item_counts(&self) -> KernelItemCounts;
    /// What it has counted of lines.
    fn line_counts(&self) -> KernelLineCounts;
    /// What it has counted of blocks.
    fn block_counts(&self) -> KernelBlockCounts;
}

/// All that a program has counted.
#[derive(Clone, Copy, Default)]
struct Counts {
    reads: KernelReadCounts,
    items: KernelItemCounts,
    lines: KernelLineCounts,
    blocks: KernelBlockCounts,
}

/// When it answers.
struct When {
    program: Option<Box<dyn ReadProgram>>,
    base: u64,
    /// The epoch that the node serves in; zero: none.
    epoch: u32,
    /// This process may serve.
    open: bool,
    /// What the program has been told last.
    told: u32,
    /// What a program that is gone had counted.
    last: Counts,
}

/// See the module.
pub(crate) struct ReadsInKernel {
    /// The memory that the program reads.
    pub memory: Arc<Lent>,
    pub slabs: u32,
    /// The memory that it reads items in, until their home has it.
    shelf: Mutex<Option<LentShelf>>,
    /// The memory that it reads lines in, until who keeps copies has it.
    mirror: Mutex<Option<LentMirror>>,
    /// The memory that it reads blocks in, until their home has it.
    twins: Mutex<Option<LentTwins>>,
    /// Where the program is.
    pub place: KernelPlace,
    when: Mutex<When>,
}

impl ReadsInKernel {
    #[cfg_attr(
        not(any(feature = "xdp", test)),
        expect(dead_code, reason = "only a build with the feature `xdp` has programs")
    )]
    pub fn new(
        program: Box<dyn ReadProgram>,
        (memory, slabs): (Lent, u32),
        (items, item_slabs): (Lent, usize),
        (lines, line_slabs): (Lent, usize),
        twins: Option<LentTwins>,
        place: KernelPlace,
    ) -> Self {
        ReadsInKernel {
            memory: Arc::new(memory),
            slabs,
            shelf: Mutex::new(Some(LentShelf::new(item_slabs, items))),
            mirror: Mutex::new(Some(LentMirror::new(line_slabs, lines))),
            twins: Mutex::new(twins),
            place,
            when: Mutex::new(When {
                program: Some(program),
                base: 0,
                epoch: 0,
                open: true,
                told: 0,
                last: Counts::default(),
            }),
        }
    }

    fn change(&self, change: impl FnOnce(&mut When)) {
        let mut when = self.when();
        change(&mut when);
        let wanted = if when.open { when.epoch } else { 0 };
        let (base, told) = (when.base, when.told);
        let Some(program) = when.program.as_mut().filter(|_| wanted != told) else {
            return;
        };
        let done = match wanted {
            0 => program.stop(),
            epoch => program.serve(base, epoch),
        };
        when.told = wanted;
        if !done {
            when.detach();
        }
    }

    fn when(&self) -> MutexGuard<'_, When> {
        self.when.lock().whole()
    }

    /// The memory is that of a home whose objects begin at this offset.
    pub fn begin(&self, base: u64) {
        self.change(|when| when.base = base);
    }

    /// The node serves in this epoch, or in none.
    pub fn live_in(&self, epoch: Option<u32>) {
        self.change(|when| when.epoch = epoch.unwrap_or(0));
    }

    /// This process may serve, or may not: its lease has run out.
    pub fn open(&self, open: bool) {
        self.change(|when| when.open = open);
    }

    /// It answers nothing, ever.
    pub fn end(&self) {
        self.when().detach();
    }

    /// What it has counted.
    pub fn counts(&self) -> KernelReadCounts {
        let when = self.when();
        match &when.program {
            Some(program) => KernelReadCounts {
                serves: when.told != 0,
                ..program.counts()
            },
            None => when.last.reads,
        }
    }

    /// What it has counted of items; their home knows how many regions there are.
    pub fn item_counts(&self) -> KernelItemCounts {
        let when = self.when();
        let program = when.program.as_ref();
        program.map_or(when.last.items, |program| program.item_counts())
    }

    /// What it has counted of lines; who keeps them knows of how many groups they are.
    pub fn line_counts(&self) -> KernelLineCounts {
        let when = self.when();
        let program = when.program.as_ref();
        program.map_or(when.last.lines, |program| program.line_counts())
    }

    /// What it has counted of blocks; their home knows how many it has.
    pub fn block_counts(&self) -> KernelBlockCounts {
        let when = self.when();
        let program = when.program.as_ref();
        program.map_or(when.last.blocks, |program| program.block_counts())
    }

    /// The memory of blocks, for their home: once.
    pub fn take_twins(&self) -> Option<LentTwins> {
        self.twins.lock().whole().take()
    }

    /// The memory of lines, for who keeps copies: once.
    pub fn take_mirror(&self) -> Option<LentMirror> {
        self.mirror.lock().whole().take()
    }

    /// The memory of items, for their home: once.
    pub fn take_shelf(&self) -> Option<LentShelf> {
        self.shelf.lock().whole().take()
    }
}

impl When {
    fn detach(&mut self) {
        if let Some(program) = self.program.take() {
            self.last = Counts {
                reads: program.counts(),
                items: program.item_counts(),
                lines: program.line_counts(),
                blocks: program.block_counts(),
            };
        }
    }
}

/// A program, and what it shares of the node's cache, if the node wants that.
pub(crate) type Attached = (ReadsInKernel, Option<SharedCache>);

/// Loads the program and attaches it for a node, of which it answers nothing yet.
#[cfg(feature = "xdp")]
pub(crate) fn attach(config: &Config, node: NodeId) -> Result<Option<Attached>, OpenError> {
    let reads = config.kernel_reads();
    reads
        .map(|reads| super::objects::attach(reads, config, node))
        .transpose()
}

/// Why this build has no such program.
#[cfg(not(feature = "xdp"))]
pub(crate) fn attach(config: &Config, _: NodeId) -> Result<Option<Attached>, OpenError> {
    match config.kernel_reads() {
        None => Ok(None),
        Some(_) => Err(OpenError::Kernel {
            code: "not-built",
            why: "this rackmem was built without reads in the kernel".into(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU32;
    use std::sync::atomic::Ordering::Relaxed;

    /// Writes down what it is told.
    struct Program(Arc<AtomicU32>, bool);

    const DETACHED: u32 = u32::MAX;

    impl ReadProgram for Program {
        fn serve(&mut self, base: u64, epoch: u32) -> bool {
            assert_eq!(base, 7);
            self.0.store(epoch, Relaxed);
            true
        }

        fn stop(&mut self) -> bool {
            self.0.store(0, Relaxed);
            self.1
        }

        fn counts(&self) -> KernelReadCounts {
            KernelReadCounts::default()
        }

        fn item_counts(&self) -> KernelItemCounts {
            KernelItemCounts::default()
        }

        fn line_counts(&self) -> KernelLineCounts {
            KernelLineCounts::default()
        }

        fn block_counts(&self) -> KernelBlockCounts {
            KernelBlockCounts::default()
        }
    }

    impl Drop for Program {
        fn drop(&mut self) {
            self.0.store(DETACHED, Relaxed);
        }
    }

    fn reads(stops: bool) -> (ReadsInKernel, Arc<AtomicU32>) {
        let told = Arc::new(AtomicU32::new(0));
        let lent = || {
            let options = std::fs::File::options().read(true).write(true).to_owned();
            Lent::map(options.open("/dev/zero").unwrap(), 512).unwrap()
        };
        let place = KernelPlace {
            mode: String::new(),
            fell_back: None,
            interfaces: Vec::new(),
            no_blocks: None,
            no_copies: None,
        };
        let program = Box::new(Program(told.clone(), stops));
        let lines = (lent(), 0);
        let reads = ReadsInKernel::new(program, (lent(), 1), (lent(), 0), lines, None, place);
        reads.begin(7);
        (reads, told)
    }

    #[test]
    fn it_answers_in_the_epoch_of_a_node_that_may_serve() {
        let (reads, told) = reads(true);
        let said = || told.load(Relaxed);
        assert_eq!(said(), 0);
        reads.live_in(Some(3));
        assert_eq!((said(), reads.counts().serves), (3, true));
        reads.open(false);
        assert_eq!((said(), reads.counts().serves), (0, false));
        // An epoch that begins while it may not is none of its own.
        reads.live_in(Some(4));
        assert_eq!(said(), 0);
        reads.open(true);
        assert_eq!(said(), 4);
        reads.live_in(None);
        assert_eq!(said(), 0);
        reads.live_in(Some(5));
        reads.end();
        assert_eq!((said(), reads.counts().serves), (DETACHED, false));
        reads.live_in(Some(6));
        assert_eq!(said(), DETACHED);
    }

    #[test]
    fn a_program_that_does_not_stop_is_detached() {
        let (reads, told) = reads(false);
        reads.live_in(Some(3));
        reads.open(false);
        assert_eq!(told.load(Relaxed), DETACHED);
    }
}
