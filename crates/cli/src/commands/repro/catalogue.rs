//! The figures and tables of the five papers, a row each: what models it, what measures it here,
//! what is drawn, and why it differs or is missing.

use super::claims::{self, Statement};
use super::plot::Plot;
use rackmem_bench::run::sim::{self, locks, objects};

/// One of the five.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Paper {
    Concordia,
    Soul,
    Sabres,
    Abd,
    Bi,
}

impl Paper {
    pub const ALL: [Paper; 5] = [
        Paper::Concordia,
        Paper::Soul,
        Paper::Sabres,
        Paper::Abd,
        Paper::Bi,
    ];

    /// Its system, and what its machines were.
    pub fn title(self) -> &'static str {
        match self {
            Paper::Concordia => "Concordia: 8 nodes, 100 Gb/s, a programmable switch",
            Paper::Soul => "Soul (GCP): 8 compute blades, locks in the network, and CXL",
            Paper::Sabres => "SABRes: two chips of 16 cores, one-sided reads of objects",
            Paper::Abd => "ABD consensus for non-volatile main memory: 3 replicas, a switch",
            Paper::Bi => "Bounded Incoherence: 8 sockets that are not coherent",
        }
    }
}

/// What computes a figure with the paper's hardware.
#[derive(Clone, Copy, Debug)]
pub enum Model {
    Micro(sim::Figure),
    Store,
    Transactions,
    Locks(locks::Figure),
    Objects(objects::Figure),
    Failover,
    Pages,
    Sockets,
}

/// What is run on this machine. Figures share it: it runs once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Here {
    Micro,
    Keys,
    Locks,
    Buckets,
    OneLock,
    Transactions,
    Ranks,
    Objects,
    Failover,
    Faults,
    Flushes,
}

/// A figure, or a table, of a paper.
#[derive(Clone, Copy, Debug)]
pub struct Figure {
    /// Its name in commands.
    pub id: &'static str,
    pub paper: Paper,
    /// Where it is in the paper.
    pub place: &'static str,
    pub title: &'static str,
    pub model: Option<Model>,
    pub plots: &'static [Plot],
    pub here: Option<Here>,
    /// What the paper says that can be measured here.
    pub statements: &'static [Statement],
    /// Why verdicts differ, or why there is nothing.
    pub why: &'static str,
}

const BLANK: Figure = Figure {
    id: "",
    paper: Paper::Concordia,
    place: "",
    title: "",
    model: None,
    plots: &[],
    here: None,
    statements: &[],
    why: "",
};

const OPS: Plot = Plot {
    title: "",
    keep: &[],
    x: "",
    x_label: "",
    of: "",
    y_label: "million operations a second",
    divide: 1e6,
};

/// By the size of an object.
const BY_SIZE: Plot = Plot {
    x: "bytes",
    x_label: "bytes of an object",
    ..OPS
};

/// Times by the size of an object.
const LATENCY: Plot = Plot {
    of: "latency",
    y_label: "ns",
    divide: 1.0,
    ..BY_SIZE
};

const TWO_CORES: &str = "Here all nodes share the cores of one machine, and a miss is a function call: ratios of systems that \
     differ in packets are smaller than over a network.";
const COUNTS: &str = "Counts are exact on any machine; times here are those of threads that share this machine's cores.";
const SOFTWARE: &str = "Here no hardware reads for us: a reader copies and checks. So ratios are of copies in a cache, not of transfers.";

/// All of them, in the papers' order.
pub const FIGURES: &[Figure] = &[
    Figure {
        id: "concordia-2",
        place: "§3.1, Fig. 2",
        title: "What sharing does to a directory in software",
        model: Some(Model::Micro(sim::Figure::Fig2)),
        plots: &[Plot {
            title: "GAM's throughput",
            x: "sharing",
            x_label: "sharing, %",
            ..OPS
        }],
        here: Some(Here::Micro),
        statements: claims::CONCORDIA_2,
        why: "At 0% next to nothing leaves a node in a steady state, so the growth of packets is what the warm-up makes it.",
        ..BLANK
    },
    Figure {
        id: "concordia-9",
        place: "§7.2.1, Fig. 9",
        title: "Throughput by sharing ratio",
        model: Some(Model::Micro(sim::Figure::Fig9)),
        plots: &[Plot {
            x: "sharing",
            x_label: "sharing, %",
            ..OPS
        }],
        here: Some(Here::Micro),
        statements: claims::CONCORDIA_9,
        why: TWO_CORES,
        ..BLANK
    },
    Figure {
        id: "concordia-10",
        place: "§7.2.1, Fig. 10",
        title: "Packets at home agents",
        model: Some(Model::Micro(sim::Figure::Fig10)),
        plots: &[Plot {
            x: "sharing",
            x_label: "sharing, %",
            of: "home-agent-packets",
            y_label: "packets an operation",
            divide: 1.0,
            ..OPS
        }],
        here: Some(Here::Micro),
        statements: claims::CONCORDIA_10,
        why: "With uniform draws 14% of accesses can hit at 100% sharing, not 39%; evictions of private data are what home agents \
              see at 0%, and the text does not say what they cost.",
        ..BLANK
    },
    Figure {
        id: "concordia-11",
        place: "§7.2.2, Fig. 11",
        title: "Throughput by read ratio",
        model: Some(Model::Micro(sim::Figure::Fig11)),
        plots: &[
            Plot {
                title: "20% sharing",
                keep: &["sharing-20"],
                x: "reads",
                x_label: "reads, %",
                ..OPS
            },
            Plot {
                title: "60% sharing",
                keep: &["sharing-60"],
                x: "reads",
                x_label: "reads, %",
                ..OPS
            },
        ],
        here: Some(Here::Micro),
        statements: claims::CONCORDIA_11,
        why: "A node's data is 1.24 GB and its cache 1 GB: a steady state must evict, which the paper's run at 100% reads did not. A thread of \
              ours waits for an eviction before it fetches.",
        ..BLANK
    },
    Figure {
        id: "concordia-12",
        place: "§7.2.3, Fig. 12",
        title: "Throughput by locality",
        model: Some(Model::Micro(sim::Figure::Fig12)),
        plots: &[Plot {
            x: "locality",
            x_label: "locality, %",
            ..OPS
        }],
        here: Some(Here::Micro),
        statements: claims::CONCORDIA_12,
        why: TWO_CORES,
        ..BLANK
    },
    Figure {
        id: "concordia-13",
        place: "§7.3, Fig. 13",
        title: "The switch fails",
        model: Some(Model::Failover),
        here: Some(Here::Failover),
        statements: claims::CONCORDIA_13,
        why: "The paper's 1.9 s are for 8 nodes with gigabytes and a controller in Python; here are four small nodes. Only that both are bounded is comparable.",
        ..BLANK
    },
    Figure {
        id: "concordia-14",
        place: "§7.3, Fig. 14",
        title: "A key-value store under Zipf's law",
        model: Some(Model::Store),
        plots: &[
            Plot {
                title: "95% GET",
                keep: &["reads-95"],
                x: "nodes",
                x_label: "nodes",
                ..OPS
            },
            Plot {
                title: "50% GET",
                keep: &["reads-50"],
                x: "nodes",
                x_label: "nodes",
                ..OPS
            },
        ],
        here: Some(Here::Keys),
        statements: claims::CONCORDIA_14,
        why: "Only who is ahead of a directory can be compared: by how much hangs on what a hit costs there. Grappa's place hangs on what is assumed of it, so it is drawn twice: with one operation a \
              thread its wait for other packets bounds it, and with 64 tasks a core it is ahead of both, which the paper's was not. Half of the operations miss even at 95% GET, since popular pairs \
              are spread over more blocks than a cache holds. A directory grows with the nodes there, as their threads do. On this machine a miss is a function call that moves a block of 4 KiB, \
              and delegation one that moves a word, so it is ahead.",
        ..BLANK
    },
    Figure {
        id: "concordia-15",
        place: "§7.4, Fig. 15",
        title: "TPC-C with 32 warehouses",
        model: Some(Model::Transactions),
        plots: &[
            Plot {
                title: "Throughput",
                x: "remote",
                x_label: "of other warehouses, %",
                y_label: "thousand transactions a second",
                divide: 1e3,
                ..OPS
            },
            Plot {
                title: "Aborts",
                x: "remote",
                x_label: "of other warehouses, %",
                of: "aborts",
                y_label: "% of all tries",
                divide: 1.0,
                ..OPS
            },
        ],
        here: Some(Here::Transactions),
        statements: claims::CONCORDIA_15,
        why: "Who aborts less comes out, and equal without sharing does not: all that a terminal needs is in its node's cache then, and Fig. 12 has a look there cost GAM 4 to 6 times as much. If it cost both as much (directory-even), \
              sharing would make Concordia 1.6 to 2.9 times as fast. What a transaction does beside its rows is assumed. On this machine \"GAM\" is a classic directory as GAM has one, under the same engine of ours; nodes share two \
              processors, a miss is a function call, and a lock is waited for, where the paper's engine gives up at once.",
        ..BLANK
    },
    Figure {
        id: "concordia-16",
        place: "§7.4, Fig. 16",
        title: "PageRank beside Grappa and PowerGraph",
        here: Some(Here::Ranks),
        statements: claims::CONCORDIA_16,
        why: "Neither system is here, and what PowerGraph's software costs the text does not say; what stands for it are messages of our own, which have its masters and mirrors and none of its costs. Nothing stands for Grappa. Here \
              a message is a copy in one process's memory, and a coherent block is that and the protocol; there is no model.",
        ..BLANK
    },
    Figure {
        id: "soul-7",
        paper: Paper::Soul,
        place: "§6.1, Fig. 7",
        title: "YCSB on a hash table with a lock a bucket",
        model: Some(Model::Locks(locks::Figure::Fig7)),
        plots: &[
            Plot {
                title: "YCSB-C: 100% reads",
                keep: &["reads-100"],
                x: "nodes",
                x_label: "blades",
                ..OPS
            },
            Plot {
                title: "YCSB-A: 50% reads",
                keep: &["reads-50"],
                x: "nodes",
                x_label: "blades",
                ..OPS
            },
        ],
        here: Some(Here::Buckets),
        statements: claims::SOUL_7,
        why: "Readers of one word pay one transaction in the model, which 80 threads wait for side by side; the text does not say what else its locks pay. On this machine four threads share two processors, so they seldom \
              meet in one of 256 buckets, and a transaction is a function call: whoever takes fewest instructions is ahead.",
    },
    Figure {
        id: "soul-8",
        paper: Paper::Soul,
        place: "§6.1, Fig. 8",
        title: "TPC-C on a database under one lock",
        model: Some(Model::Locks(locks::Figure::Fig8)),
        plots: &[
            Plot {
                title: "One warehouse",
                keep: &["warehouses-1"],
                x: "nodes",
                x_label: "blades",
                y_label: "thousand transactions a second",
                divide: 1e3,
                ..OPS
            },
            Plot {
                title: "Ten warehouses",
                keep: &["warehouses-10"],
                x: "nodes",
                x_label: "blades",
                y_label: "thousand transactions a second",
                divide: 1e3,
                ..OPS
            },
        ],
        here: Some(Here::OneLock),
        statements: claims::SOUL_8,
        why: "The text has no figures, only who is ahead. The model's transaction is assumed: 16 blocks of its warehouse and 20 µs. Under Pthread and \
              Percpu one blade keeps lock and data all the time there, so nothing moves. Here two processors do not hand a lock over when its \
              holder can take it again, and what GCP saves, packets, are function calls: who is ahead changes from run to run. The database is ours, not Kyoto Cabinet.",
    },
    Figure {
        id: "soul-9",
        paper: Paper::Soul,
        place: "§2.2, §6.2, Fig. 9",
        title: "One lock and its data: transactions and time",
        model: Some(Model::Locks(locks::Figure::Fig9)),
        plots: &[
            Plot {
                title: "50% reads: transactions for lock and data",
                keep: &["ethernet", "reads-50"],
                x: "nodes",
                x_label: "blades",
                of: "transactions",
                y_label: "coherence transactions",
                divide: 1.0,
            },
            Plot {
                title: "50% reads: time to lock and data",
                keep: &["ethernet", "reads-50"],
                x: "nodes",
                x_label: "blades",
                of: "wait/remote-mean",
                y_label: "µs",
                divide: 1e3,
            },
        ],
        here: Some(Here::Locks),
        statements: claims::SOUL_9,
        why: COUNTS,
    },
    Figure {
        id: "soul-10",
        paper: Paper::Soul,
        place: "§6.2, Fig. 10",
        title: "What locality and combined data give",
        model: Some(Model::Locks(locks::Figure::Fig10)),
        plots: &[Plot {
            x: "reads",
            x_label: "reads, %",
            of: "wait/mean",
            y_label: "µs",
            divide: 1e3,
            ..OPS
        }],
        here: Some(Here::Locks),
        statements: claims::SOUL_10,
        why: COUNTS,
    },
    Figure {
        id: "soul-11",
        paper: Paper::Soul,
        place: "§6.3, Fig. 11",
        title: "The same at the latency of CXL",
        model: Some(Model::Locks(locks::Figure::Fig11)),
        plots: &[Plot {
            title: "99% reads",
            keep: &["reads-99"],
            x: "nodes",
            x_label: "blades",
            ..OPS
        }],
        why: "On CXL a thread is bound by what it computes with lock and data. No CXL memory of several hosts is on this machine.",
        ..BLANK
    },
    Figure {
        id: "sabres-1",
        paper: Paper::Sabres,
        place: "§2.3, Fig. 1",
        title: "What a check in software costs of a remote read",
        model: Some(Model::Objects(objects::Figure::Fig1)),
        plots: &[LATENCY],
        here: Some(Here::Objects),
        statements: claims::SABRES_1,
        why: SOFTWARE,
    },
    Figure {
        id: "sabres-7",
        paper: Paper::Sabres,
        place: "§7.1, Fig. 7",
        title: "Transfers beside plain remote reads",
        model: Some(Model::Objects(objects::Figure::Fig7)),
        plots: &[Plot {
            keep: &["readers-1"],
            of: "transfer",
            ..LATENCY
        }],
        why: "No controller in hardware is on this machine.",
        ..BLANK
    },
    Figure {
        id: "sabres-8",
        paper: Paper::Sabres,
        place: "§7.2, Fig. 8",
        title: "Readers beside writers",
        model: Some(Model::Objects(objects::Figure::Fig8)),
        plots: &[
            Plot {
                title: "1 KB",
                keep: &["1024"],
                x: "writers",
                x_label: "writers",
                ..OPS
            },
            Plot {
                title: "8 KB",
                keep: &["8192"],
                x: "writers",
                x_label: "writers",
                ..OPS
            },
        ],
        here: Some(Here::Objects),
        statements: claims::SABRES_8,
        why: SOFTWARE,
    },
    Figure {
        id: "sabres-9",
        paper: Paper::Sabres,
        place: "§7.3, Fig. 9",
        title: "A key-value store: latency and throughput",
        model: Some(Model::Objects(objects::Figure::Fig9)),
        plots: &[Plot {
            keep: &["readers-1"],
            ..LATENCY
        }],
        why: "At 15 readers the model is bound by its cores, whose caches and pipelines are modelled coarsely.",
        ..BLANK
    },
    Figure {
        id: "sabres-10",
        paper: Paper::Sabres,
        place: "§7.3, Fig. 10",
        title: "Reads of the own memory, of clean objects",
        model: Some(Model::Objects(objects::Figure::Fig10)),
        plots: &[BY_SIZE],
        here: Some(Here::Objects),
        statements: claims::SABRES_10,
        why: SOFTWARE,
    },
    Figure {
        id: "sabres-sizing",
        paper: Paper::Sabres,
        place: "§5.1",
        title: "How many buffers, and how deep",
        model: Some(Model::Objects(objects::Figure::Sizing)),
        ..BLANK
    },
    Figure {
        id: "abd-3",
        paper: Paper::Abd,
        place: "§V, Fig. 3",
        title: "A page fetched through three replicas, by one from local memory",
        model: Some(Model::Pages),
        here: Some(Here::Faults),
        statements: claims::ABD_FAULTS,
        why: "One constant of the client's host is fitted to the paper's median. Over this machine's loopback a datagram's way is the processor's, and \
              all replicas share its cores.",
        ..BLANK
    },
    Figure {
        id: "bi-8",
        paper: Paper::Bi,
        place: "§5.2, Figs. 8 and 9",
        title: "What periodic invalidation costs",
        here: Some(Here::Flushes),
        statements: claims::BI_8,
        why: "The instructions are real; that caches of cores here are coherent costs other-core rows what it does not cost the paper's.",
        ..BLANK
    },
    Figure {
        id: "bi-10",
        paper: Paper::Bi,
        place: "§5.3, Fig. 10",
        title: "PageRank at eight sockets",
        model: Some(Model::Sockets),
        plots: &[Plot {
            keep: &["side-by-side"],
            x: "sockets",
            x_label: "sockets",
            of: "ms a step",
            y_label: "ms a step",
            divide: 1.0,
            ..OPS
        }],
        why: "Two sockets are fitted; the text does not say what messages of different sockets share, and the model has no steps that old values cost.",
        ..BLANK
    },
];

/// The figure of a name.
pub fn of(id: &str) -> Option<&'static Figure> {
    FIGURES.iter().find(|figure| figure.id == id)
}
