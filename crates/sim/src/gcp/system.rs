//! The rack as the driver explores it and walks through it.

use super::moves::{Line, Move};
use super::mutation::Mutation;
use super::oracle::{self, at_end};
use super::scenario::{Budget, Place, Scenario};
use super::world::{Cost, LockRack, Witness, World};
use crate::driver::{About, Allowance, Case, Complaint, Explored, Suite, System};
use crate::names::kebab;

/// GCP: locks.
pub const SUITE: Suite = Suite {
    name: "gcp",
    scenarios: || super::SCENARIOS.iter().map(|s| s as &dyn Case).collect(),
    defects: || Mutation::explored().map(Mutation::name).collect(),
};

/// A rack, and what was come across in it.
pub struct Locks {
    pub rack: LockRack,
    first: World,
    seen: u32,
    /// What the first way to the end has cost: a shortest one, if all are visited.
    cost: Option<Cost>,
}

impl Locks {
    pub fn new(rack: LockRack) -> Self {
        Locks {
            first: rack.first(),
            rack,
            seen: 0,
            cost: None,
        }
    }
}

impl System for Locks {
    type State = World;
    type Move = Move;

    fn first(&self) -> World {
        self.first.clone()
    }

    fn moves(&mut self, world: &World) -> Vec<Move> {
        world.moves(&self.rack)
    }

    fn apply(&mut self, world: &mut World, step: Move) -> Result<(), Complaint> {
        world.act(&self.rack, step)?;
        self.seen |= world.seen;
        Ok(())
    }

    fn broken(&mut self, world: &World) -> Option<Complaint> {
        if !world.done(&self.rack) {
            return None;
        }
        self.cost.get_or_insert_with(|| world.cost());
        Some(at_end(world, &self.rack).err()?.into())
    }

    fn done(&self, world: &World) -> bool {
        world.done(&self.rack)
    }

    fn stuck(&self, _: &World) -> Complaint {
        let detail = "nothing that can happen leads to the end".into();
        oracle::Complaint::stuck(detail).into()
    }

    fn tell(&self, before: &World, step: &Move) -> Vec<String> {
        vec![Line(before, *step).to_string()]
    }

    fn seen(&self) -> [Vec<String>; 2] {
        let has = |witness: &&Witness| self.seen & 1 << **witness as u32 != 0;
        let wanted = self.rack.scenario.sometimes.iter();
        let names = |found: Vec<&Witness>| found.into_iter().map(kebab).collect();
        [
            names(Witness::ALL.iter().filter(has).collect()),
            names(wanted.filter(|witness| !has(witness)).collect()),
        ]
    }

    fn figures(&self) -> Vec<(&'static str, u64)> {
        let cost = self.cost.unwrap_or_default();
        vec![
            ("entries_without_a_packet", cost.local),
            ("entries_granted", cost.granted),
            ("requests", cost.requests),
            ("releases", cost.releases),
            ("packets_to_the_end", cost.packets),
        ]
    }
}

impl Scenario {
    /// The same with one more of whatever goes wrong in it, or a lost packet where nothing does.
    #[must_use]
    pub fn deepened(self) -> Self {
        let more = |count: u8| count + u8::from(count > 0);
        let Budget {
            lose,
            double,
            late,
            early,
            dismiss,
            give_up,
            rest,
        } = self.budget;
        let budget = Budget {
            lose: lose + 1,
            double: more(double),
            late: more(late),
            early: more(early),
            dismiss: more(dismiss),
            give_up: more(give_up),
            rest: more(rest),
        };
        Scenario {
            budget,
            states: 0,
            ..self
        }
    }
}

impl Explored for Scenario {
    type System = Locks;
    type Defect = Mutation;
    /// One that waits for its turn takes some KiB.
    const STATES: usize = 3_000_000;

    fn about(&self, deep: bool) -> About {
        let scenario = if deep { self.deepened() } else { *self };
        let Budget {
            lose,
            double,
            late,
            early,
            dismiss,
            give_up,
            rest,
        } = scenario.budget;
        let rows = [
            ("losses", "lost", usize::from(lose)),
            ("duplicates", "doubled", double.into()),
            ("delays", "delayed", late.into()),
            ("early_timeouts", "early timeout", early.into()),
            ("dismissals", "dismissal", dismiss.into()),
            ("given_up", "given up", give_up.into()),
            ("rests", "rest", rest.into()),
            ("epochs", "new epoch", scenario.failures.len()),
        ];
        About {
            name: self.name,
            shows: self.about,
            rack: match self.place {
                Place::Home => "home-only".into(),
                Place::Switch => "switch".into(),
            },
            nodes: self.nodes.into(),
            blocks: 0,
            locks: 1,
            threads: self.threads.len(),
            budget: rows
                .map(|(key, words, count)| Allowance { key, words, count })
                .to_vec(),
            sometimes: self.sometimes.len(),
        }
    }

    fn defects() -> impl Iterator<Item = (String, Mutation)> {
        Mutation::explored().map(|defect| (defect.name(), defect))
    }

    fn system(&self, deep: bool, mutation: Option<Mutation>) -> Result<Locks, &'static str> {
        let scenario = if deep { self.deepened() } else { *self };
        Ok(Locks::new(LockRack {
            scenario,
            mutation,
            loose: false,
        }))
    }
}
