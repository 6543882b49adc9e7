//! The fuzz targets of rackmem as plain functions: bytes in, a panic when something is wrong.
//!
//! A target is a row of [`TARGETS`]. Two drivers call it: libFuzzer (`fuzz_targets/`) and the one
//! in `src/bin/stable`, which needs nothing installed.

pub mod agents;
pub mod bounded;
mod dice;
pub mod echoes;
pub mod journal;
mod node;
pub mod objects;
pub mod rdb;
pub mod rebuild;
pub mod replicated;
mod replies;
pub mod resp;
pub mod switch_program;
pub mod texts;
pub mod udp_ports;
pub mod wire_header;

pub use dice::Dice;

/// Something that reads bytes from strangers.
#[derive(Clone, Copy)]
pub struct Target {
    /// Its name, also that of its libFuzzer binary.
    pub name: &'static str,
    /// What is checked.
    pub about: &'static str,
    /// Valid inputs to start from.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// Runs one input.
    pub run: fn(&[u8]),
}

/// Every target.
pub const TARGETS: &[Target] = &[
    Target {
        name: "wire_header",
        about: "a packet that decodes encodes to the same bytes; no other is accepted",
        seeds: wire_header::seeds,
        run: wire_header::fuzz,
    },
    Target {
        name: "switch_program",
        about: "any sequence of packets obeys the pipeline and yields packets that decode",
        seeds: switch_program::seeds,
        run: switch_program::fuzz,
    },
    Target {
        name: "agents",
        about: "a node and its requester take any sequence of packets and timeouts",
        seeds: agents::seeds,
        run: agents::fuzz,
    },
    Target {
        name: "echoes",
        about: "one packet to a small rack causes boundedly many, whoever answers whom",
        seeds: echoes::seeds,
        run: echoes::fuzz,
    },
    Target {
        name: "rebuild",
        about: "a node that makes its directory anew, epoch after epoch, takes any sequence of packets",
        seeds: rebuild::seeds,
        run: rebuild::fuzz,
    },
    Target {
        name: "replicated",
        about: "nodes of replicated memory and their switch take any sequence of packets",
        seeds: replicated::seeds,
        run: replicated::fuzz,
    },
    Target {
        name: "objects",
        about: "nodes of objects take any sequence of packets, and what is in their memory stays whole",
        seeds: objects::seeds,
        run: objects::fuzz,
    },
    Target {
        name: "bounded",
        about: "nodes of bounded memory take any sequence of packets, and no item is of two writes",
        seeds: bounded::seeds,
        run: bounded::fuzz,
    },
    Target {
        name: "journal",
        about: "the files of a durable member are read or refused, and nothing acknowledged is lost",
        seeds: journal::seeds,
        run: journal::fuzz,
    },
    Target {
        name: "udp_ports",
        about: "a rack's UDP ports survive any datagram, and strangers' datagrams change nothing",
        seeds: udp_ports::seeds,
        run: udp_ports::fuzz,
    },
    Target {
        name: "resp",
        about: "a store's port answers any bytes with well-formed replies and goes on serving",
        seeds: resp::seeds,
        run: resp::fuzz,
    },
    Target {
        name: "rdb",
        about: "files of Redis and dumped values: read and written again the same, or refused with a typed error",
        seeds: rdb::seeds,
        run: rdb::fuzz,
    },
    Target {
        name: "texts",
        about: "configurations and histories: read, or refused with a typed error",
        seeds: texts::seeds,
        run: texts::fuzz,
    },
];
