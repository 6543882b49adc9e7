//! Which points a figure has.

use super::Outcome;
use rackmem_sim::model::{Algorithm, Experiment, Platform, Scheme, Sections, Workload};
use std::fmt;

/// A figure of the Soul paper.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Figure {
    /// §5.1: a store with a lock over each bucket.
    Fig7,
    /// §5.1: a database under one lock.
    Fig8,
    /// §5.2: one lock that every blade wants.
    Fig9,
    /// §5.3: what each optimization does.
    Fig10,
    /// §6: on CXL.
    Fig11,
}

/// Blades of the racks of all figures.
pub const BLADES: [u16; 4] = [1, 2, 4, 8];
/// The largest rack.
pub const MOST: u16 = 8;
/// YCSB's A, B and C, by their reads in percent.
pub const YCSB: [(u8, &str); 3] = [(50, "A"), (95, "B"), (100, "C")];
/// Warehouses of the database: high and low contention.
pub const WAREHOUSES: [u8; 2] = [1, 10];
/// Reads in percent where one lock is contended; the paper's text does not tell its figure's.
pub const READS: [u8; 5] = [0, 50, 95, 99, 100];
/// Those with writers.
pub const WRITTEN: [u8; 4] = [0, 50, 95, 99];
/// What GCP is compared with, as the paper calls them.
pub const COMPARED: [(Algorithm, &str); 5] = [
    (Algorithm::Mcs, "MCS"),
    (Algorithm::Central, "Pthread"),
    (Algorithm::PerNode, "Percpu"),
    (Algorithm::Cohort, "Cohort"),
    (Algorithm::Service, "Lock-Service"),
];

/// Whether a lock is one blade's all the time, by the share of the one that has it least often;
/// then the others' times are no figures.
pub fn is_alone(outcome: &Outcome) -> bool {
    outcome.fairness < 0.1
}

/// What is varied in a figure.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Point {
    /// Which locks.
    pub scheme: Scheme,
    /// On what.
    pub platform: Platform,
    /// Blades.
    pub blades: u16,
    /// Percent of acquisitions to read.
    pub reads: u8,
    /// What the locks protect.
    pub of: Protected,
}

/// What locks protect.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Protected {
    /// One lock, a block.
    Block,
    /// Buckets of a store.
    Buckets,
    /// One lock, a database of so many warehouses.
    Database(u8),
}

impl Point {
    /// The same on something else.
    pub fn on(self, platform: Platform) -> Self {
        Point { platform, ..self }
    }

    /// One lock on Ethernet.
    pub fn contended(scheme: Scheme, blades: u16, reads: u8) -> Self {
        Point {
            scheme,
            platform: Platform::ETHERNET,
            blades,
            reads,
            of: Protected::Block,
        }
    }

    /// The store on Ethernet.
    pub fn store(scheme: Scheme, blades: u16, reads: u8) -> Self {
        Point {
            of: Protected::Buckets,
            ..Self::contended(scheme, blades, reads)
        }
    }

    /// A database under one lock on Ethernet.
    pub fn database(scheme: Scheme, blades: u16, warehouses: u8) -> Self {
        Point {
            of: Protected::Database(warehouses),
            ..Self::contended(scheme, blades, 0)
        }
    }

    /// The run that it is.
    pub fn experiment(&self, seed: u64) -> Experiment<Sections> {
        let workload = match self.of {
            Protected::Buckets => Workload::store(self.scheme, self.blades, self.reads),
            Protected::Block => Workload::contended(self.scheme, self.blades, self.reads),
            Protected::Database(warehouses) => {
                Workload::database(self.scheme, self.blades, warehouses.into())
            }
        };
        Experiment::<Sections>::new(self.platform, workload, seed)
    }

    /// The name of its cases.
    pub fn name(&self) -> String {
        let (platform, scheme) = (self.platform.name, self.scheme.name());
        let what = match self.of {
            Protected::Block => "one-lock".to_owned(),
            Protected::Buckets => "store".to_owned(),
            Protected::Database(warehouses) => format!("database/warehouses-{warehouses}"),
        };
        let (blades, reads) = (self.blades, self.reads);
        format!("sim/{platform}/{what}/{scheme}/nodes-{blades}/reads-{reads}")
    }
}

impl Figure {
    /// All of them.
    pub const ALL: [Figure; 5] = [
        Figure::Fig7,
        Figure::Fig8,
        Figure::Fig9,
        Figure::Fig10,
        Figure::Fig11,
    ];

    /// The figure of the paper with this number.
    pub fn of_paper(number: u8) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|figure| figure.number() == number)
    }

    /// Its number in the paper.
    pub fn number(self) -> u8 {
        match self {
            Figure::Fig7 => 7,
            Figure::Fig8 => 8,
            Figure::Fig9 => 9,
            Figure::Fig10 => 10,
            Figure::Fig11 => 11,
        }
    }

    /// What it shows.
    pub fn title(self) -> &'static str {
        match self {
            Figure::Fig7 => "a store with a lock over each bucket, 10 threads a blade (§5.1)",
            Figure::Fig8 => "a database under one lock, 10 threads a blade, all write (§5.1)",
            Figure::Fig9 => "one lock over 4 KiB, a thread a blade (§5.2)",
            Figure::Fig10 => "what each optimization does, 8 blades (§5.3)",
            Figure::Fig11 => "the same lock over Ethernet and over CXL (§6)",
        }
    }

    /// What is compared in it.
    pub fn schemes(self) -> Vec<(Scheme, &'static str)> {
        let compared = COMPARED.map(|(algorithm, name)| (Scheme::Compared(algorithm), name));
        match self {
            Figure::Fig7 | Figure::Fig9 => {
                [(Scheme::Gcp, "GCP")].into_iter().chain(compared).collect()
            }
            // The paper's database does without combined data.
            Figure::Fig8 => [(Scheme::Separate, "GCP")]
                .into_iter()
                .chain(compared)
                .collect(),
            Figure::Fig10 => vec![
                (Scheme::Gcp, "GCP"),
                (Scheme::Separate, "w/o combined data"),
                (Scheme::Evicted, "w/o locality"),
            ],
            Figure::Fig11 => vec![(Scheme::Gcp, "GCP")],
        }
    }

    /// What it is simulated on, a table each.
    pub fn platforms(self) -> &'static [Platform] {
        match self {
            Figure::Fig9 => &[Platform::ETHERNET, Platform::GATHERED],
            _ => &[Platform::ETHERNET],
        }
    }

    /// Its points.
    pub fn points(self) -> Vec<Point> {
        let mut points = Vec::new();
        for (scheme, _) in self.schemes() {
            for blades in BLADES {
                match self {
                    Figure::Fig7 => {
                        points.extend(YCSB.map(|(reads, _)| Point::store(scheme, blades, reads)))
                    }
                    Figure::Fig8 => points.extend(
                        WAREHOUSES.map(|warehouses| Point::database(scheme, blades, warehouses)),
                    ),
                    Figure::Fig10 if blades < MOST => {}
                    Figure::Fig9 | Figure::Fig10 | Figure::Fig11 => {
                        points.extend(READS.map(|reads| Point::contended(scheme, blades, reads)))
                    }
                }
            }
        }
        let others = match self {
            Figure::Fig11 => &[Platform::CXL],
            _ => &self.platforms()[1..],
        };
        let also = others.iter().flat_map(|platform| {
            let on = |point: &Point| point.on(*platform);
            points.iter().map(on).collect::<Vec<_>>()
        });
        let also: Vec<Point> = also.collect();
        points.extend(also);
        points
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Soul, Fig. {}: {}", self.number(), self.title())
    }
}
