//! What worlds are made of, from the command line and back to it.

use clap::{Args, ValueEnum};
use rackmem_sim::world::{Config, Failures, Faults, Mix, Mutation, Owners, SCENARIOS, Scenario};

/// Owners of directory entries.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum RackKind {
    Switch,
    TinySwitch,
    HomeOnly,
    Gather,
    /// No switch; three nodes have copies of each block but every fourth
    ReplicatedHome,
    /// The same with a switch
    ReplicatedHomeSwitch,
}

/// What the network does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum FaultKind {
    None,
    Loss,
    Duplication,
    Reordering,
    OneWay,
    All,
    Storm,
}

/// What breaks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum FailureKind {
    None,
    Switch,
    Node,
    Shadow,
    Leave,
    Partition,
    Slow,
    Stop,
    All,
}

/// Single things that can be left out of the above, and of what threads do.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Part {
    Loss,
    Duplication,
    Reordering,
    OneWay,
    Switch,
    Node,
    Shadow,
    Leave,
    Partition,
    Slow,
    Stop,
    Holds,
    Fetches,
    Stores,
    Segments,
    History,
}

/// Options that say what a world is made of.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "The worlds")]
pub struct WorldArgs {
    /// Run a scenario that mixes blocks and locks; `--list` shows them
    #[arg(long, value_name = "NAME", value_parser = scenario, conflicts_with_all = ["rack", "faults", "failures"])]
    scenario: Option<&'static Scenario>,
    /// Choose the owner of directory entries
    #[arg(long, value_enum, default_value = "switch")]
    rack: RackKind,
    /// Choose the network's faults
    #[arg(long, value_enum, default_value = "all")]
    faults: FaultKind,
    /// Choose the failures of members
    #[arg(long, value_enum, default_value = "all")]
    failures: FailureKind,
    /// Run N nodes in each rack [4]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(2..=32))]
    nodes: Option<u16>,
    /// Make N nodes homes of blocks [all but one]; the others may leave
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=32))]
    homes: Option<u16>,
    /// Run N threads on each node [2]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    threads: Option<u16>,
    /// Share N blocks among all threads [5]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    blocks: Option<u32>,
    /// Share N locks among all threads [2; with `--failures stop` 0]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=64))]
    locks: Option<u32>,
    /// Read and write long ranges too: whole blocks, at their homes, in packets that hold them
    #[arg(long)]
    long: bool,
    /// Do N operations per thread [60]; every fourth takes a lock
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    operations: Option<u32>,
    /// Remove regions with copies N times in use [0]; needs `--rack replicated-home[-switch]`
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=64))]
    removals: Option<u32>,
    /// Exclude single faults, failures or operations
    #[arg(long, value_enum, value_name = "PART", value_delimiter = ',')]
    without: Vec<Part>,
    /// Exclude failures by their numbers in the plan, as printed in a trace
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = clap::value_parser!(u8).range(0..64))]
    omit: Vec<u8>,
    /// Plant a defect, in worlds with what it is about; an unknown NAME lists them
    #[arg(long, value_name = "NAME", value_parser = defect)]
    defect: Option<Mutation>,
}

/// Removals in a world of a defect of theirs.
const REMOVALS: u32 = 4;

fn defect(name: &str) -> Result<Mutation, String> {
    let found = Mutation::played().find(|mutation| mutation.name() == name);
    found.ok_or_else(|| {
        let names: Vec<String> = Mutation::played().map(Mutation::name).collect();
        format!("the defects are {}", names.join(", "))
    })
}

fn scenario(name: &str) -> Result<&'static Scenario, String> {
    let found = SCENARIOS.iter().find(|scenario| scenario.name == name);
    found.ok_or_else(|| {
        let names: Vec<&str> = SCENARIOS.iter().map(|scenario| scenario.name).collect();
        format!("the scenarios are {}", names.join(", "))
    })
}

impl Part {
    fn leave_out(self, config: &mut Config) {
        let (faults, failures) = (&mut config.faults, &mut config.failures);
        match self {
            Part::Loss => faults.loss = 0,
            Part::Duplication => faults.duplication = 0,
            Part::Reordering => faults.late = 0,
            Part::OneWay => faults.one_way = 0,
            Part::Switch => failures.switch = 0,
            Part::Node => failures.node = 0,
            Part::Shadow => failures.shadow = 0,
            Part::Leave => failures.leave = 0,
            Part::Partition => failures.partition = 0,
            Part::Slow => failures.slow = 0,
            Part::Stop => failures.stop = 0,
            Part::Holds => config.mix.hold = 0,
            Part::Fetches => config.mix.fetch = 0,
            Part::Stores => config.mix.store = 0,
            Part::Segments => config.segment = Config::WHOLE_BLOCKS,
            Part::History => config.history = false,
        }
    }
}

impl WorldArgs {
    /// Whether a defect was put in, and its name.
    pub fn defect(&self) -> Option<String> {
        self.defect.map(Mutation::name)
    }

    /// Whether regions with copies are to be removed where there are none.
    pub fn removes_nothing(&self) -> bool {
        let config = self.config();
        config.removals > 0 && config.copies == 0
    }

    /// How many worlds a scenario has.
    pub fn seeds(&self) -> Option<u64> {
        self.scenario.map(|scenario| scenario.seeds)
    }

    /// The worlds' configuration.
    pub fn config(&self) -> Config {
        let base = match self.scenario {
            Some(scenario) => scenario.config,
            None => self.of_options(),
        };
        let nodes = self.nodes.unwrap_or(base.nodes);
        let mut config = Config {
            nodes,
            homes: self.homes.unwrap_or(match self.scenario {
                Some(_) => base.homes,
                None => nodes - 1,
            }),
            threads: self.threads.unwrap_or(base.threads),
            blocks: self.blocks.unwrap_or(base.blocks),
            locks: self.locks.unwrap_or(base.locks),
            operations: self.operations.unwrap_or(base.operations),
            removals: self.removals.unwrap_or(base.removals),
            mutation: self.defect,
            ..base
        };
        config.homes = config.homes.min(nodes);
        if config.copies > 0 && nodes < 3 {
            config.copies = 1;
        }
        if self.long || self.defect.is_some_and(Mutation::is_of_long_ranges) {
            (config.mix.fetch, config.mix.store, config.mix.operate) = (3, 3, 3);
            config.segment = Config::WHOLE_BLOCKS;
        }
        for part in &self.without {
            part.leave_out(&mut config);
        }
        config.failures.omit |= self.omit.iter().fold(0, |set, &number| set | 1 << number);
        config
    }

    /// What single options make of it, in the sizes of worlds without others.
    fn of_options(&self) -> Config {
        let is_of = |what: fn(Mutation) -> bool| self.defect.is_some_and(what);
        Config {
            rack: match self.rack {
                RackKind::Switch => Owners::LARGE_SWITCH,
                RackKind::TinySwitch => Owners::TINY_SWITCH,
                RackKind::HomeOnly | RackKind::ReplicatedHome => Owners::HomeOnly,
                RackKind::ReplicatedHomeSwitch => Owners::LARGE_SWITCH,
                RackKind::Gather => Owners::Gather,
            },
            copies: match self.rack {
                RackKind::ReplicatedHome | RackKind::ReplicatedHomeSwitch => 3,
                _ if is_of(Mutation::is_of_copies) => 3,
                _ => 0,
            },
            removals: if is_of(Mutation::is_of_removals) {
                REMOVALS
            } else {
                0
            },
            faults: match self.faults {
                FaultKind::None => Faults::NONE,
                FaultKind::Loss => Faults::LOSS,
                FaultKind::Duplication => Faults::DUPLICATION,
                FaultKind::Reordering => Faults::REORDERING,
                FaultKind::OneWay => Faults::ONE_WAY,
                FaultKind::All => Faults::ALL,
                FaultKind::Storm => Faults::STORM,
            },
            failures: match self.failures {
                FailureKind::None => Failures::NONE,
                FailureKind::Switch => Failures::SWITCH,
                FailureKind::Node => Failures::NODE,
                FailureKind::Shadow => Failures::SHADOW,
                FailureKind::Leave => Failures::LEAVE,
                FailureKind::Partition => Failures::PARTITION,
                FailureKind::Slow => Failures::SLOW,
                FailureKind::Stop => Failures::STOP,
                FailureKind::All => Failures::ALL,
            },
            nodes: 4,
            threads: 2,
            blocks: 5,
            locks: if self.failures == FailureKind::Stop {
                0
            } else {
                2
            },
            operations: 60,
            history: true,
            mix: Mix {
                hold: u32::from(self.failures != FailureKind::Stop),
                ..Config::default().mix
            },
            ..Config::default()
        }
    }

    /// The options that make this world, which [`shrinking`](rackmem_sim::world::shrink) has made
    /// of theirs.
    pub fn again(&self, small: &Config) -> String {
        let whole = WorldArgs {
            without: Vec::new(),
            omit: Vec::new(),
            ..self.clone()
        };
        let full = whole.config();
        let mut words = match self.scenario {
            Some(scenario) => vec![format!("--scenario {}", scenario.name)],
            None => vec![
                format!("--rack {}", name(self.rack)),
                format!("--faults {}", name(self.faults)),
                format!("--failures {}", name(self.failures)),
            ],
        };
        words.extend(self.long.then(|| "--long".to_owned()));
        words.extend([
            format!("--nodes {} --homes {}", small.nodes, small.homes()),
            format!("--threads {} --blocks {}", small.threads, small.blocks),
            format!("--locks {} --operations {}", small.locks, small.operations),
        ]);
        // A part that is there in full and not in what it was made of is left out.
        let without = Part::value_variants().iter().filter(|part| {
            let (mut less, mut as_small) = (full, *small);
            part.leave_out(&mut less);
            part.leave_out(&mut as_small);
            less != full && as_small == *small
        });
        let without: Vec<String> = without.map(|&part| name(part)).collect();
        let omit = (0..64).filter(|number| small.failures.omit >> number & 1 == 1);
        let omit: Vec<String> = omit.map(|number: u32| number.to_string()).collect();
        for (option, list) in [("--without", without), ("--omit", omit)] {
            if !list.is_empty() {
                words.push(format!("{option} {}", list.join(",")));
            }
        }
        if small.removals > 0 {
            words.push(format!("--removals {}", small.removals));
        }
        if let Some(defect) = small.mutation {
            words.push(format!("--defect {}", defect.name()));
        }
        words.join(" ")
    }
}

fn name(value: impl ValueEnum) -> String {
    let value = value.to_possible_value();
    value.map_or(String::new(), |value| value.get_name().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        world: WorldArgs,
    }

    fn parse(line: &str) -> WorldArgs {
        let words = std::iter::once("sim").chain(line.split_whitespace());
        Line::try_parse_from(words).expect("good options").world
    }

    #[test]
    fn a_shrunken_world_has_options_that_make_it_again() {
        let args = parse("--rack tiny-switch --nodes 5 --defect forget-reader");
        let mut small = args.config();
        (small.nodes, small.homes, small.threads) = (2, 1, 1);
        (small.blocks, small.operations, small.locks) = (1, 7, 1);
        small.segment = Config::WHOLE_BLOCKS;
        small.mix.hold = 0;
        small.faults.loss = 0;
        small.failures.leave = 0;
        small.failures.omit = 0b1010;
        assert_eq!(parse(&args.again(&small)).config(), small);
        assert_eq!(parse(&args.again(&args.config())).config(), args.config());
    }

    #[test]
    fn worlds_of_long_ranges_have_options_that_make_them_again() {
        let args = parse("--long --defect store-anew");
        let mut small = args.config();
        assert!(small.mix.fetch > 0 && small.mix.store > 0);
        assert_eq!(parse(&args.again(&small)).config(), small);
        small.mix.fetch = 0;
        assert_eq!(parse(&args.again(&small)).config(), small);
    }

    #[test]
    fn worlds_with_removals_have_options_that_make_them_again() {
        let args = parse("--rack replicated-home --removals 4 --defect forget-reader");
        let config = args.config();
        assert!(config.removals == 4 && !args.removes_nothing());
        assert_eq!(parse(&args.again(&config)).config(), config);
        assert!(parse("--removals 1").removes_nothing());
        // A defect brings what it is about.
        let args = parse("--defect keep-removed");
        let config = args.config();
        assert!(config.removals == REMOVALS && !args.removes_nothing());
        assert_eq!(parse(&args.again(&config)).config(), config);
        assert_eq!(parse("--defect say-home-early").config().copies, 3);
    }

    #[test]
    fn a_scenario_has_its_own_worlds_and_single_options_still_count() {
        let args = parse("--scenario both-told --locks 1 --defect ack-inside");
        let config = args.config();
        assert_eq!((config.locks, config.homes), (1, 3));
        assert_eq!(config.faults, Faults::LOSS);
        assert_eq!(parse(&args.again(&config)).config(), config);
        assert!(args.seeds().is_some());
    }

    #[test]
    fn everything_can_be_left_out() {
        let args = parse("");
        let mut small = args.config();
        small.faults = Faults {
            late_by: small.faults.late_by,
            ..Faults::NONE
        };
        small.failures = Failures {
            together: small.failures.together,
            ..Failures::NONE
        };
        small.history = false;
        assert_eq!(parse(&args.again(&small)).config(), small);
    }
}
