//! The world as a system of the driver.

use super::cached;
use super::catalogue::SCENARIOS;
use super::scenario::{Op, Scenario, Sight};
use super::world::World;
use crate::driver::{self, About, Allowance, Case, Complaint, Explored, Suite, System};
use crate::names::kebab;
use rackmem_proto::bi::Defect;

/// Bounded Incoherence, for the command line.
pub const SUITE: Suite = Suite {
    name: "bi",
    scenarios: || {
        let mapped = SCENARIOS.iter().map(|s| s as &dyn Case);
        let cached = cached::SCENARIOS.iter().map(|s| s as &dyn Case);
        mapped.chain(cached).collect()
    },
    defects: || {
        let cached = rackmem_proto::bi::cached::Defect::ALL.iter().map(kebab);
        Defect::ALL.iter().map(kebab).chain(cached).collect()
    },
};

/// See the module.
pub struct Domains {
    scenario: Scenario,
    first: World,
    seen: Vec<Sight>,
}

/// One thing that happens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Move {
    /// A domain's clock goes on, or all clocks do.
    Tick(Option<usize>),
    /// The writer does its next phase.
    Write,
    /// A reader does its next step.
    Read(usize),
    /// A domain's quiescence does its next act.
    Quiesce(usize),
    /// A line leaves a cache by itself.
    Evict(usize, u64),
    /// A line comes into a cache by itself.
    Fetch(usize, u64),
    /// A domain's process dies.
    Die(usize),
    /// The rack excludes a domain.
    Exclude(usize),
    /// The last domain joins.
    Join,
    /// A domain goes on to leave.
    Leave(usize),
}

impl System for Domains {
    type State = World;
    type Move = Move;

    fn first(&self) -> World {
        self.first.clone()
    }

    fn moves(&mut self, world: &World) -> Vec<Move> {
        let mut world = world.clone();
        let mut moves = Vec::new();
        let count = world.domains.len();
        moves.extend(world.can_write().then_some(Move::Write));
        for reader in 0..world.readers.len() {
            moves.extend(world.can_go(reader).then_some(Move::Read(reader)));
        }
        for domain in 1..count {
            moves.extend(world.can_quiesce(domain).then_some(Move::Quiesce(domain)));
        }
        match world.left.skew {
            true => {
                let all = (0..count).filter(|domain| world.can_tick(*domain));
                moves.extend(all.map(|domain| Move::Tick(Some(domain))));
            }
            false => moves.extend(world.can_tick(0).then_some(Move::Tick(None))),
        }
        if world.left.caches > 0 {
            for domain in 1..count.min(2) {
                for (line, cached) in world.cached(domain) {
                    moves.push(match cached {
                        true => Move::Evict(domain, line),
                        false => Move::Fetch(domain, line),
                    });
                }
            }
        }
        let victim = usize::from(world.left.deaths == 1);
        let dies = world.left.deaths > 0 && world.domains[victim].alive;
        moves.extend(dies.then_some(Move::Die(victim)));
        let dead = world.left.exclusions > 0 && !world.domains[1].alive;
        let excludes = dead && !world.domains[1].excluded;
        moves.extend(excludes.then_some(Move::Exclude(1)));
        moves.extend((world.left.joins > 0).then_some(Move::Join));
        let leaves = world.left.leaves > 0 || world.leaves(1);
        moves.extend(leaves.then_some(Move::Leave(1)));
        moves
    }

    fn apply(&mut self, world: &mut World, step: Move) -> Result<(), Complaint> {
        let seen = &mut self.seen;
        match step {
            Move::Tick(domain) => world.tick(domain, seen)?,
            Move::Write => world.write(seen)?,
            Move::Read(reader) => world.read(reader, seen)?,
            Move::Quiesce(domain) => world.quiesce(domain, seen)?,
            Move::Evict(domain, line) => {
                world.left.caches -= 1;
                world.evict(domain, line)?;
            }
            Move::Fetch(domain, line) => {
                world.left.caches -= 1;
                world.fetch(domain, line);
            }
            Move::Die(domain) => {
                if domain == 0 && world.phase().is_some() {
                    seen.push(Sight::WriterDied);
                }
                world.left.deaths = 0;
                world.die(domain);
            }
            Move::Exclude(domain) => {
                world.left.exclusions -= 1;
                world.domains[domain].excluded = true;
            }
            Move::Join => {
                world.left.joins -= 1;
                world.join();
            }
            Move::Leave(domain) => {
                world.left.leaves = 0;
                world.leave(domain);
            }
        }
        let waits = (0..world.readers.len()).any(|reader| world.waits(reader));
        if waits {
            seen.push(Sight::WaitedToEnter);
        }
        let mut kept: Vec<Sight> = Vec::new();
        for sight in seen.drain(..) {
            if !kept.contains(&sight) {
                kept.push(sight);
            }
        }
        *seen = kept;
        Ok(())
    }

    fn broken(&mut self, world: &World) -> Option<Complaint> {
        world.lost()
    }

    fn done(&self, world: &World) -> bool {
        let readers = (0..world.readers.len()).all(|reader| world.op(reader).is_none());
        readers && !world.writes() && world.left.joins == 0
    }

    fn stuck(&self, world: &World) -> Complaint {
        let readers = (0..world.readers.len()).map(|reader| world.op(reader).is_some());
        driver::endless("BI §3.4", std::iter::once(world.writes()).chain(readers))
    }

    fn tell(&self, before: &World, step: &Move) -> Vec<String> {
        let clock = |domain: usize| before.domains[domain].clock.0;
        vec![match *step {
            Move::Tick(Some(domain)) => format!("domain {domain}: {}", clock(domain) + 1),
            Move::Tick(None) => format!("all clocks: {}", clock(0) + 1),
            Move::Write => match before.phase() {
                Some(phase) => format!("the writer: {phase:?}"),
                None => "the writer looks for memory".into(),
            },
            Move::Read(reader) => format!(
                "reader {reader} of domain {} goes on: {:?}",
                before.readers[reader].domain,
                before.op(reader)
            ),
            Move::Quiesce(domain) => before.act(domain),
            Move::Evict(domain, line) => format!("line {line} leaves domain {domain}"),
            Move::Fetch(domain, line) => format!("domain {domain} fetches line {line}"),
            Move::Die(domain) => format!("domain {domain} dies"),
            Move::Exclude(domain) => format!("the rack excludes domain {domain}"),
            Move::Join => "the last domain joins".into(),
            Move::Leave(domain) => format!("domain {domain} leaves"),
        }]
    }

    fn seen(&self) -> [Vec<String>; 2] {
        let missing = self.scenario.shows.iter();
        let missing = missing.filter(|sight| !self.seen.contains(sight));
        [
            self.seen.iter().map(kebab).collect(),
            missing.map(kebab).collect(),
        ]
    }
}

impl Explored for Scenario {
    type System = Domains;
    type Defect = Defect;
    /// One that waits for its turn takes some KiB.
    const STATES: usize = 3_000_000;

    fn about(&self, deep: bool) -> About {
        let scenario = self.deeper(deep);
        let events = scenario.events;
        let rows = [
            ("fetches", "lines by themselves", events.caches),
            ("deaths", "deaths", events.deaths.min(1)),
            ("exclusions", "exclusions", events.exclusions),
            ("joins", "joins", events.joins),
            ("leaves", "leaves", events.leaves),
        ];
        let rows = rows.map(|(key, words, count)| Allowance {
            key,
            words,
            count: count.into(),
        });
        let threads: usize = scenario.readers.iter().map(|domain| domain.len()).sum();
        About {
            name: self.name,
            shows: self.about,
            rack: "domains".into(),
            nodes: scenario.readers.len() + 1 + usize::from(events.joins),
            blocks: 0,
            locks: 0,
            threads: threads + 1 + usize::from(events.joins),
            budget: rows.to_vec(),
            sometimes: scenario.shows.len(),
        }
    }

    fn defects() -> impl Iterator<Item = (String, Defect)> {
        Defect::ALL.iter().map(|defect| (kebab(defect), *defect))
    }

    fn system(&self, deep: bool, defect: Option<Defect>) -> Result<Domains, &'static str> {
        let scenario = self.deeper(deep);
        Ok(Domains {
            scenario,
            first: World::new(&scenario, defect),
            seen: Vec::new(),
        })
    }
}

impl Scenario {
    /// Whether some thread does this.
    pub(super) fn has(&self, op: Op) -> bool {
        let threads = self.readers.iter().copied().flatten();
        threads.copied().flatten().any(|done| *done == op)
    }

    /// `deep`: with one more change.
    fn deeper(&self, deep: bool) -> Self {
        let mut scenario = *self;
        scenario.changes += u8::from(deep);
        scenario
    }
}
