//! Which points a figure has.

use rackmem_sim::sabre::soc::{After, Design, Layout, Setup, local, run};
use std::fmt;

/// A figure of the SABRes paper.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Figure {
    /// §2.3: what a read with versions in its lines consists of.
    Fig1,
    /// §7.1: transfers, one at a time and many.
    Fig7,
    /// §7.2: beside writers.
    Fig8,
    /// §7.3: FaRM's store, by the network.
    Fig9,
    /// §7.3: the same, of a core's own memory.
    Fig10,
    /// §5.1: entries and depth of stream buffers.
    Sizing,
}

/// Bytes of objects.
pub const SIZES: [u32; 7] = [128, 256, 512, 1024, 2048, 4096, 8192];
/// Those of Fig. 8.
pub const THREE: [u32; 3] = [128, 1024, 8192];
/// Writers of Fig. 8.
pub const WRITERS: [u8; 5] = [0, 2, 4, 8, 16];
/// Entries, and depths.
pub const ENTRIES: [usize; 5] = [4, 8, 16, 32, 64];
/// See [`ENTRIES`].
pub const DEPTHS: [u16; 5] = [4, 8, 16, 32, 64];
/// Bytes of the objects by which depths are compared.
pub const LONG: u32 = 4096;

/// How objects are read.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Way {
    /// Remote reads, not atomic.
    Plain,
    /// LightSABRes of this design.
    Sabres(Design),
    /// Remote reads of objects with a version in each line.
    Versions,
}

/// The paper's controller.
pub const LIGHT: Way = Way::Sabres(Design::PAPER);
/// The same without speculation.
pub const SERIAL: Way = Way::Sabres(Design {
    speculates: false,
    ..Design::PAPER
});

/// What is varied in a figure.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Point {
    /// Reads of another chip's memory.
    Remote(Way, After, Rest),
    /// Reads of a core's own.
    Local(Layout, u32),
}

/// The rest of a remote point.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Rest {
    /// Bytes of an object.
    pub bytes: u32,
    /// They are in memory.
    pub in_memory: bool,
    /// Threads that read.
    pub readers: u8,
    /// Operations of each at once.
    pub in_flight: u8,
    /// Threads that write.
    pub writers: u8,
}

/// What came of a point.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Outcome {
    /// Operations a microsecond.
    pub rate: f64,
    /// GB/s of objects.
    pub gigabytes: f64,
    /// Nanoseconds of an operation.
    pub latency: f64,
    /// Of that, in transfers.
    pub transfer: f64,
    /// Of that, in checks.
    pub check: f64,
    /// Attempts that found a writer, for each operation.
    pub conflicts: f64,
    /// Packets, about.
    pub packets: u64,
    /// Things that happened in the model.
    pub events: u64,
}

const ALONE: Rest = Rest {
    bytes: 0,
    in_memory: true,
    readers: 1,
    in_flight: 1,
    writers: 0,
};

impl Point {
    /// One thread, one transfer at a time.
    pub fn alone(way: Way, after: After, bytes: u32) -> Self {
        Point::Remote(way, after, Rest { bytes, ..ALONE })
    }

    /// 16 threads, many transfers at once.
    pub fn many(way: Way, bytes: u32) -> Self {
        let rest = Rest {
            bytes,
            readers: 16,
            in_flight: 16,
            ..ALONE
        };
        Point::Remote(way, After::Nothing, rest)
    }

    /// 16 threads beside writers of 100 objects.
    pub fn beside(way: Way, bytes: u32, writers: u8) -> Self {
        let rest = Rest {
            bytes,
            readers: 16,
            writers,
            in_memory: false,
            ..ALONE
        };
        Point::Remote(way, After::Read, rest)
    }

    /// 15 threads of FaRM's store.
    pub fn store(way: Way, bytes: u32) -> Self {
        Point::Remote(
            way,
            After::Store,
            Rest {
                bytes,
                readers: 15,
                ..ALONE
            },
        )
    }

    /// The name of its cases.
    pub fn name(&self) -> String {
        match self {
            Point::Local(layout, bytes) => {
                let layout = if *layout == Layout::Clean {
                    "clean"
                } else {
                    "versions"
                };
                format!("sim/local/{layout}/{bytes}")
            }
            Point::Remote(way, after, rest) => {
                let way = match way {
                    Way::Plain => "plain".to_owned(),
                    Way::Versions => "versions".to_owned(),
                    way if *way == LIGHT => "sabres".to_owned(),
                    way if *way == SERIAL => "sabres-no-speculation".to_owned(),
                    Way::Sabres(design) => format!("sabres-{}x{}", design.entries, design.depth),
                };
                let after = match after {
                    After::Nothing => "transfer",
                    After::Read => "read",
                    After::Store => "store",
                    After::Prefetched => "store-prefetched",
                };
                let place = if rest.in_memory { "memory" } else { "llc" };
                let mut name = format!("sim/{way}/{after}/{place}/readers-{}", rest.readers);
                if rest.in_flight > 1 {
                    name += &format!("x{}", rest.in_flight);
                }
                if !rest.in_memory {
                    name += &format!("/writers-{}", rest.writers);
                }
                format!("{name}/{}", rest.bytes)
            }
        }
    }

    /// Runs it.
    pub fn simulate(&self, seed: u64) -> Outcome {
        let (way, after, rest) = match *self {
            Point::Remote(way, after, rest) => (way, after, rest),
            Point::Local(layout, bytes) => {
                let rate = local(layout, bytes, 15, 400);
                let gigabytes = rate * f64::from(bytes) / 1e3;
                return Outcome {
                    rate,
                    gigabytes,
                    ..Outcome::default()
                };
            }
        };
        let (sabres, layout) = match way {
            Way::Plain => (None, Layout::Clean),
            Way::Sabres(design) => (Some(design), Layout::Clean),
            Way::Versions => (None, Layout::Versions),
        };
        // Enough that the slowest case has met its steady state: 200 of a thread at least.
        let each = if rest.writers > 0 { 400 } else { 200 };
        let setup = Setup {
            sabres,
            layout,
            bytes: rest.bytes,
            objects: if rest.in_memory { 1000 } else { 100 },
            in_memory: rest.in_memory,
            readers: rest.readers,
            in_flight: rest.in_flight,
            writers: rest.writers,
            after,
            operations: each * u32::from(rest.readers),
            seed,
        };
        let outcome = run(&setup);
        let operations = f64::from(outcome.operations.max(1));
        let blocks = u64::from(layout.blocks(rest.bytes));
        Outcome {
            rate: outcome.rate(),
            gigabytes: outcome.gigabytes(rest.bytes),
            latency: outcome.latency / 1e3,
            transfer: outcome.transfer / 1e3,
            check: outcome.check / 1e3,
            conflicts: f64::from(outcome.conflicts) / operations,
            packets: u64::from(outcome.operations + outcome.conflicts) * 2 * (blocks + 1),
            events: outcome.events,
        }
    }
}

impl Figure {
    /// All of them.
    pub const ALL: [Figure; 6] = [
        Figure::Fig1,
        Figure::Fig7,
        Figure::Fig8,
        Figure::Fig9,
        Figure::Fig10,
        Figure::Sizing,
    ];

    /// Their names on a command line.
    pub const NAMES: [&str; 6] = ["1", "7", "8", "9", "10", "sizing"];

    /// The figure of this name.
    pub fn named(name: &str) -> Option<Self> {
        let at = Self::NAMES.iter().position(|known| *known == name)?;
        Some(Self::ALL[at])
    }

    /// What it shows.
    pub fn title(self) -> &'static str {
        match self {
            Figure::Fig1 => "Fig. 1: what a read with versions in its lines consists of (§2.3)",
            Figure::Fig7 => "Fig. 7: transfers, one at a time and many (§7.1)",
            Figure::Fig8 => "Fig. 8: 16 readers beside writers of 100 objects (§7.2)",
            Figure::Fig9 => "Fig. 9: FaRM's store by the network (§7.3)",
            Figure::Fig10 => "Fig. 10: FaRM's store, a core's own memory, 15 threads (§7.3)",
            Figure::Sizing => "§5.1: how many stream buffers, and how deep",
        }
    }

    /// Its points.
    pub fn points(self) -> Vec<Point> {
        let mut points = Vec::new();
        match self {
            Figure::Fig1 => {
                points.extend(SIZES.map(|size| Point::alone(Way::Versions, After::Store, size)));
            }
            Figure::Fig7 => {
                for size in [64].into_iter().chain(SIZES) {
                    let alone = |way| Point::alone(way, After::Nothing, size);
                    points.extend([Way::Plain, LIGHT, SERIAL].map(alone));
                    points.extend([Way::Plain, LIGHT, SERIAL].map(|way| Point::many(way, size)));
                }
            }
            Figure::Fig8 => {
                for size in THREE {
                    for writers in WRITERS {
                        let beside = |way| Point::beside(way, size, writers);
                        points.extend([Way::Versions, LIGHT].map(beside));
                    }
                }
            }
            Figure::Fig9 => {
                for way in [Way::Versions, LIGHT] {
                    points.extend(SIZES.map(|size| Point::alone(way, After::Store, size)));
                    points.push(Point::alone(way, After::Prefetched, 8192));
                    points.extend(SIZES.map(|size| Point::store(way, size)));
                }
            }
            Figure::Fig10 => {
                for layout in [Layout::Versions, Layout::Clean] {
                    points.extend(SIZES.map(|size| Point::Local(layout, size)));
                }
            }
            Figure::Sizing => {
                points.extend(ENTRIES.map(|entries| Point::many(entries_of(entries), 128)));
                let deep = |depth| Point::alone(depth_of(depth), After::Nothing, LONG);
                points.extend(DEPTHS.map(deep));
            }
        }
        points
    }
}

/// The paper's controller with so many entries.
pub fn entries_of(entries: usize) -> Way {
    Way::Sabres(Design {
        entries,
        ..Design::PAPER
    })
}

/// The paper's controller with buffers of this depth.
pub fn depth_of(depth: u16) -> Way {
    Way::Sabres(Design {
        depth,
        ..Design::PAPER
    })
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SABRes, {}", self.title())
    }
}
