//! One seeded way through an arena of many nodes, with more threads, changes and ticks than can be
//! visited whole.

use super::scenario::{Events, Op, Scenario};
use super::system::{Domains, Move};
use super::world::World;
use crate::driver::{self, Complaint, Explored, Guide};
use crate::world::Random;
use rackmem_proto::bi::{Bound, Defect};

/// Moves after which a walk is given up.
const LONGEST: u64 = 100_000;
/// Domains beside the writer's, at most.
const READERS: usize = 31;

use Op::{Demand, Read, ReadLazily, SetBeside};

/// What threads of domains do.
const LONG: &[Op] = &[
    Read, Read, ReadLazily, Read, Demand, Read, Read, Read, ReadLazily, Read, Read, Demand,
];
const READS: &[Op] = &[Read; 16];
const STORES: &[Op] = &[Read, SetBeside, Read, Demand, SetBeside, Read];
/// Nobody else is told of what is the program's own.
const DEMANDS: &[Op] = &[Demand; 8];
const OWN: [&[&[Op]]; READERS] = [&[DEMANDS, DEMANDS]; READERS];
const PLAIN: [&[&[Op]]; READERS] = [&[READS, LONG]; READERS];
const BESIDE: [&[&[Op]]; READERS] = {
    let mut all = PLAIN;
    all[1] = &[STORES, READS];
    all[2] = &[STORES];
    all
};

/// The arena of a seed: 8 to 32 nodes.
pub fn of(seed: u64) -> Scenario {
    let mut random = Random::new(seed ^ 0xa7e4a);
    let mut one = |all: &[u64]| all[random.below(all.len() as u64) as usize];
    let readers = one(&[7, 8, 11, 15, 23, 31]) as usize;
    let bound = Bound {
        lag: one(&[1, 3, 6]),
        section: one(&[1, 2, 5]),
    };
    let own = one(&[0, 0, 0, 1]) == 1;
    let readers = match one(&[0, 1]) {
        _ if own => &OWN[..readers],
        0 => &PLAIN[..readers],
        _ => &BESIDE[..readers],
    };
    Scenario {
        name: "bi-walk",
        about: "an arena of many nodes",
        changes: one(&[8, 20, 40]) as u8,
        own,
        lines: one(&[2, 3, 8]) as u8,
        room: one(&[4, 8, 64]),
        lag: one(&[2, 5, 12]),
        bound,
        readers,
        events: Events {
            caches: one(&[0, 20, 200]) as u8,
            skew: one(&[0, 1]) == 1,
            deaths: one(&[0, 0, 1]) as u8,
            exclusions: one(&[1, 2]) as u8,
            joins: one(&[0, 1]) as u8,
            leaves: 0,
        },
        shows: &[],
    }
}

/// Which of the moves is next. A clock goes on seldom: others do much in a tick.
struct Chance(Random);

impl Guide<Domains> for Chance {
    fn choose(&mut self, _: &World, moves: &[Move]) -> Option<Move> {
        let is_tick = |step: &Move| matches!(step, Move::Tick(_));
        let ticks = self.0.below(6) == 0;
        let likely: Vec<Move> = moves
            .iter()
            .copied()
            .filter(|step| is_tick(step) == ticks)
            .collect();
        let from = if likely.is_empty() { moves } else { &likely };
        from.get(self.0.below(from.len() as u64) as usize).copied()
    }
}

/// What a walk has broken, and how.
#[derive(Debug)]
pub struct Broken {
    /// The promise, where it is made, and what was seen.
    pub complaint: Complaint,
    /// What happened at last.
    pub story: Vec<String>,
}

impl std::fmt::Display for Broken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (promise, section, seen) = &self.complaint;
        writeln!(f, "{promise} ({section}): {seen}")?;
        f.write_str(&self.story.join("\n"))
    }
}

impl std::error::Error for Broken {}

/// What a walk has come across.
#[derive(Clone, Debug, Default)]
pub struct Walked {
    /// Moves.
    pub moves: usize,
    /// Sights, by name.
    pub seen: Vec<String>,
}

/// Goes one way.
///
/// # Errors
/// [`Broken`].
pub fn walk(scenario: &Scenario, seed: u64, defect: Option<Defect>) -> Result<Walked, Broken> {
    let no_system = |why: &'static str| Broken {
        complaint: (why, why, String::new()),
        story: Vec::new(),
    };
    let mut system = scenario.system(false, defect).map_err(no_system)?;
    let (way, _, broken) = driver::walk(&mut system, &mut Chance(Random::new(seed)), LONGEST);
    match broken {
        None => Ok(Walked {
            moves: way.len(),
            seen: driver::System::seen(&system)[0].clone(),
        }),
        Some(complaint) => Err(Broken {
            complaint,
            story: driver::story(&mut system, &way, 80),
        }),
    }
}
