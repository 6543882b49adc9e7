//! Which points a figure has.

use super::Workload;
use rackmem_sim::model::{Accesses, System};
use std::fmt;

/// A figure of the paper, or of ours.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Figure {
    /// §3.1: what sharing does to GAM.
    Fig2,
    /// §7.2.1: sharing.
    Fig9,
    /// §7.2.1: packets at home agents.
    Fig10,
    /// §7.2.2: reads.
    Fig11,
    /// §7.2.3: locality.
    Fig12,
    /// Not in the paper: the same workload on more nodes.
    Nodes,
    /// Not in the paper: switches with less and less room.
    Places,
    /// Not in the paper: blocks leave full sets before their room is needed.
    Ahead,
}

/// Percent of operations on shared data in Fig. 12, which the paper does not tell.
pub const FIG12_SHARING: u8 = 20;
/// The sharing of light and heavy sharing (§7.2.2).
pub const LIGHT: u8 = 20;
/// See [`LIGHT`].
pub const HEAVY: u8 = 60;

/// A workload of Fig. 12.
pub fn located(base: Workload, locality: u8) -> Workload {
    Workload {
        program: Accesses {
            sharing: FIG12_SHARING,
            locality,
            ..base.program
        },
        ..base
    }
}

impl Figure {
    /// All of them.
    pub const ALL: [Figure; 8] = [
        Figure::Fig2,
        Figure::Fig9,
        Figure::Fig10,
        Figure::Fig11,
        Figure::Fig12,
        Figure::Nodes,
        Figure::Places,
        Figure::Ahead,
    ];

    /// The figure of the paper with this number.
    pub fn of_paper(number: u8) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|figure| figure.number() == Some(number))
    }

    /// Its number in the paper.
    pub fn number(self) -> Option<u8> {
        match self {
            Figure::Fig2 => Some(2),
            Figure::Fig9 => Some(9),
            Figure::Fig10 => Some(10),
            Figure::Fig11 => Some(11),
            Figure::Fig12 => Some(12),
            Figure::Nodes | Figure::Places | Figure::Ahead => None,
        }
    }

    /// What it shows.
    pub fn title(self) -> &'static str {
        match self {
            Figure::Fig2 => "what sharing does to a directory (§3.1)",
            Figure::Fig9 => "sharing ratio (§7.2.1)",
            Figure::Fig10 => "packets at home agents (§7.2.1)",
            Figure::Fig11 => "read ratio (§7.2.2)",
            Figure::Fig12 => "locality (§7.2.3)",
            Figure::Nodes => "nodes (not in the paper)",
            Figure::Places => {
                "places in the switch, for 8 nodes and 60% sharing (not in the paper)"
            }
            Figure::Ahead => "blocks that leave ahead of need, of private data (not in the paper)",
        }
    }

    /// Its points: for every workload, the systems.
    pub fn points(self, base: Workload, nodes: &[u16]) -> Vec<(System, Workload)> {
        let sharing = |list: &[u8]| {
            let list = list.iter();
            list.map(|&sharing| base.sharing(sharing)).collect()
        };
        let light_and_heavy = [LIGHT, HEAVY].into_iter();
        let workloads: Vec<Workload> = match self {
            Figure::Fig2 => sharing(&[0, 5, 10, 15, 20]),
            Figure::Fig9 | Figure::Fig10 => sharing(&[0, 20, 40, 60, 80, 100]),
            Figure::Fig11 => light_and_heavy
                .flat_map(|sharing| {
                    [0, 25, 50, 75, 100].map(|reads| Workload {
                        reads,
                        ..base.sharing(sharing)
                    })
                })
                .collect(),
            Figure::Fig12 => [0, 25, 50, 75, 100]
                .map(|locality| located(base, locality))
                .into(),
            Figure::Places => (0..=5)
                .map(|halvings| Workload {
                    program: Accesses {
                        sharing: HEAVY,
                        halvings,
                        ..base.program
                    },
                    ..base
                })
                .collect(),
            Figure::Ahead => [0, 3]
                .into_iter()
                .flat_map(|cache_halvings| [100, 0].map(|reads| (cache_halvings, reads)))
                .flat_map(|(cache_halvings, reads)| {
                    [false, true].map(|evicts_ahead| Workload {
                        reads,
                        program: Accesses {
                            cache_halvings,
                            evicts_ahead,
                            ..base.program
                        },
                        ..base
                    })
                })
                .collect(),
            Figure::Nodes => light_and_heavy
                .flat_map(|sharing| {
                    nodes.iter().map(move |&nodes| Workload {
                        nodes,
                        ..base.sharing(sharing)
                    })
                })
                .collect(),
        };
        let systems = |workload: Workload| {
            // The strongest baseline first, so that the others are ratios to it.
            let order = [
                System::HomeOnly,
                System::Switch,
                System::Directory,
                System::Delegate,
            ];
            order
                .into_iter()
                .filter(move |&system| match self {
                    Figure::Fig2 => system == System::Directory,
                    Figure::Places | Figure::Ahead => {
                        matches!(system, System::HomeOnly | System::Switch)
                    }
                    _ => true,
                })
                .map(move |system| (system, workload))
        };
        workloads.into_iter().flat_map(systems).collect()
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.number() {
            Some(number) => write!(f, "Fig. {number}: {}", self.title()),
            None => f.write_str(self.title()),
        }
    }
}
