//! The rack as the driver explores it.

use super::layout::Layout;
use super::moves::{ExplorerRack, Move};
use super::scenario::{Budget, Scenario};
use super::state::State;
use crate::driver::{
    self, About, Allowance, Case, Complaint, Explored, Limits, Report, Suite, System,
};
use crate::invariants::liveness;
use crate::world::{Mutation, Owners};

/// FlowCC: coherent blocks.
pub const SUITE: Suite = Suite {
    name: "flowcc",
    scenarios: || super::SCENARIOS.iter().map(|s| s as &dyn Case).collect(),
    defects: || Mutation::explored().map(Mutation::name).collect(),
};

/// Visits every state of a scenario, as far as the limits allow.
/// `Err` says why the scenario makes no rack.
pub fn explore(scenario: &Scenario, limits: &mut Limits<'_>) -> Result<Report, &'static str> {
    Ok(driver::explore(&mut scenario.system(false, None)?, limits))
}

impl System for ExplorerRack {
    type State = State;
    type Move = Move;

    fn first(&self) -> State {
        self.first.clone()
    }

    fn moves(&mut self, state: &State) -> Vec<Move> {
        let mut successors = Vec::new();
        let broken = ExplorerRack::successors(self, state, &mut successors).err();
        let moves = successors.into_iter().map(|(step, _)| step);
        moves.chain(broken.map(|(step, _)| step)).collect()
    }

    fn apply(&mut self, state: &mut State, step: Move) -> Result<(), Complaint> {
        let mut successors = Vec::new();
        let broken = ExplorerRack::successors(self, state, &mut successors).err();
        let found = successors.into_iter().find(|(found, _)| *found == step);
        match (found, broken) {
            (Some((_, next)), _) => *state = next,
            (None, Some((_, complaint))) => return Err(complaint),
            (None, None) => {}
        }
        Ok(())
    }

    fn successors(
        &mut self,
        state: &State,
        into: &mut Vec<(Move, State)>,
    ) -> Result<(), (Move, Complaint)> {
        ExplorerRack::successors(self, state, into)
    }

    fn broken(&mut self, state: &State) -> Option<Complaint> {
        ExplorerRack::broken(self, state)
    }

    fn done(&self, state: &State) -> bool {
        ExplorerRack::done(self, state)
    }

    fn stuck(&self, state: &State) -> Complaint {
        let still = self.unfinished(state);
        let detail = format!("nothing that can happen ends every operation: {still}");
        (liveness::NAME, liveness::SECTION, detail)
    }

    fn tell(&self, _: &State, step: &Move) -> Vec<String> {
        ExplorerRack::tell(self, step)
    }

    fn seen(&self) -> [Vec<String>; 2] {
        let wanted = self.layout.scenario.sometimes.iter();
        let missing = wanted.filter(|witness| !self.seen.has(**witness));
        [
            self.seen.iter().map(|witness| witness.name()).collect(),
            missing.map(|witness| witness.name()).collect(),
        ]
    }

    fn figures(&self) -> Vec<(&'static str, u64)> {
        let (parts, packets, steps) = self.parts.counts();
        let names = ["part_states", "packets", "steps"];
        let counts = [parts, packets, steps].map(|count| count as u64);
        names.into_iter().zip(counts).collect()
    }
}

impl Explored for Scenario {
    type System = ExplorerRack;
    type Defect = Mutation;

    fn about(&self, deep: bool) -> About {
        let Budget {
            losses,
            duplicates,
            early,
            retries,
            moves,
            epochs,
        } = if deep { self.deep } else { self.budget };
        let rows = [
            ("losses", "lost", losses),
            ("duplicates", "doubled", duplicates),
            ("early_timeouts", "early timeout", early),
            ("early_retries", "early retry", retries),
            ("migrations", "migration", moves),
            ("epochs", "new epoch", epochs),
        ];
        About {
            name: self.name,
            shows: self.shows,
            rack: match self.rack {
                Owners::HomeOnly => "home-only".into(),
                Owners::Gather => "directory".into(),
                Owners::Switch { ways, sets } => format!("switch of {sets} sets of {ways}"),
            },
            nodes: self.nodes.into(),
            blocks: self.homes.len(),
            locks: 0,
            threads: self.programs.len(),
            budget: rows
                .map(|(key, words, count)| Allowance {
                    key,
                    words,
                    count: count.into(),
                })
                .to_vec(),
            sometimes: self.sometimes.len(),
        }
    }

    fn defects() -> impl Iterator<Item = (String, Mutation)> {
        Mutation::explored().map(|defect| (defect.name(), defect))
    }

    fn system(&self, deep: bool, defect: Option<Mutation>) -> Result<ExplorerRack, &'static str> {
        let scenario = if deep { self.deepened() } else { *self };
        let mutation = defect.or(self.mutation);
        Ok(ExplorerRack::new(Layout::new(Scenario {
            mutation,
            ..scenario
        })?))
    }
}
