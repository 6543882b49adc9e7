//! The database with copies: what goes with it, and the rack that it takes.

use super::{EngineArg, TxnArgs, failure};
use crate::failure::{Failure, Result};
use crate::rack_args::ModeArg;
use rackmem::Node;
use rackmem_txn::{Copies, Layout, Locks};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Copies that a region may have, of which a majority is there when fewer than half are dead.
const COPIES: [u8; 3] = [3, 5, 7];
/// How long nodes may take until all are members.
const JOINING: Duration = Duration::from_secs(60);
/// Between two looks.
const STEP: Duration = Duration::from_millis(5);
/// Lines of the rack's file: a death is noticed after so long.
const LEASE: &str = "lease = \"2s\"\nreplace_after = \"500ms\"\n";

/// Whether options go together.
pub fn check(args: &TxnArgs) -> Result<()> {
    let Some(copies) = args.copies else {
        return Ok(());
    };
    let no = |cause: String, next: &str| Err(Failure::new(cause, next.to_owned()));
    let nodes = args.rack.nodes;
    if !COPIES.contains(&copies) {
        return no(
            format!("--copies is 3, 5 or 7, not {copies}"),
            "choose one of these",
        );
    }
    if args.engine != EngineArg::Locks {
        let next = "the other engines have no copies of their objects: choose --engine locks";
        return no("--copies goes with --engine locks".into(), next);
    }
    if args.rack.mode == ModeArg::Directory {
        let next = "choose --mode switch or home-only";
        return no("a classic directory has no memory with copies".into(), next);
    }
    if usize::from(copies) > nodes {
        let cause = format!("{copies} copies take as many nodes, and there are {nodes}");
        return no(cause, "give more --nodes");
    }
    let most = usize::from(copies / 2);
    match args.kill {
        Some(kill) if kill > most => no(
            format!("{kill} nodes are killed, and a majority of {copies} copies is to live"),
            "give fewer to --kill, or more --copies",
        ),
        _ => Ok(()),
    }
}

/// The engine `locks`, as these nodes have it.
pub fn locks(args: &TxnArgs, nodes: &[Node], layout: Layout) -> Result<Locks> {
    let locks = match args.copies {
        None => Locks::new(nodes, layout),
        Some(copies) => {
            let terminals = args.threads as usize;
            Locks::with_copies(nodes, layout, &Copies { copies, terminals })
        }
    };
    locks.map_err(failure)
}

/// A folder that nobody else has; gone with the value.
pub struct Folder(PathBuf);

impl Folder {
    /// An empty one.
    pub fn new() -> Result<Folder> {
        let name = format!("rackmem-txn-{:016x}", fastrand::u64(..));
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder)?;
        Ok(Folder(folder))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What cannot be removed is in the system's folder for such things.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Lines of the file of a rack whose members find each other in a folder.
pub fn lines(members: &Folder) -> String {
    format!("membership = \"dir:{}\"\n{LEASE}", members.path().display())
}

/// Waits until all nodes are members: there are no copies before.
pub fn await_members(node: &Node) -> Result<()> {
    let end = Instant::now() + JOINING;
    while !(0..node.nodes() as u16).all(|other| node.is_member(other)) {
        if Instant::now() > end {
            return Err(Failure::new(
                "not all nodes have become members",
                "see the messages of the others",
            ));
        }
        std::thread::sleep(STEP);
    }
    Ok(())
}
