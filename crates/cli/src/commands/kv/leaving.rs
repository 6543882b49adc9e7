//! What a node of a rack does with its part of the store when its process is told to end:
//! it goes to the nodes that stay.

use clap::Args;
use rackmem_kv::memory::Memory;
use rackmem_kv::{CannotLeave, Moved, Store};
use std::time::{Duration, Instant};

/// Between two words of progress.
const PROGRESS: Duration = Duration::from_secs(2);

/// How long to try.
#[derive(Clone, Copy, Debug, Args)]
pub struct LeaveArgs {
    /// When told to end, move keys to other nodes for so long at most and end then; 0: do not
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    leave_timeout: u64,
}

/// What comes next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// The process ends, and [`finish`] moves the rest.
    Finish,
    /// It ends, with what it has of the store.
    End,
    /// It goes on to serve: it has keys for which there is no room elsewhere.
    Stay,
}

/// Tells of progress, now and then, and when time is over.
struct Progress {
    node: usize,
    limit: Duration,
    began: Instant,
    told: Instant,
}

impl Progress {
    fn new(node: usize, args: LeaveArgs) -> Self {
        Progress {
            node,
            limit: Duration::from_secs(args.leave_timeout),
            began: Instant::now(),
            told: Instant::now(),
        }
    }

    fn goes_on(&mut self, moved: &Moved) -> bool {
        if self.told.elapsed() >= PROGRESS {
            self.told = Instant::now();
            eprintln!("node {}: has moved {}", self.node, what(moved));
        }
        self.began.elapsed() < self.limit
    }
}

fn what(moved: &Moved) -> String {
    let Moved {
        buckets, values, ..
    } = moved;
    format!("{buckets} buckets and {values} long values and collections")
}

/// Moves the node's keys to the nodes that stay, while its clients go on.
pub fn move_away<M: Memory>(store: &Store<M>, node: usize, args: LeaveArgs) -> Next {
    if args.leave_timeout == 0 {
        return Next::End;
    }
    let mut progress = Progress::new(node, args);
    match store.leave(&mut |moved| progress.goes_on(moved)) {
        Ok(moved) => {
            if moved != Moved::default() {
                eprintln!("node {node}: has moved {} to other nodes", what(&moved));
            }
            if moved.skipped != 0 {
                let skipped = moved.skipped;
                eprintln!(
                    "node {node}: {skipped} buckets could not be read, since a node of theirs is away"
                );
            }
            Next::Finish
        }
        // The rack ends.
        Err(CannotLeave::Alone) => Next::End,
        Err(full) if full.is_full() => match store.stay() {
            Ok(()) => {
                eprintln!(
                    "node {node}: stays, for {full}; a second signal ends it, and its keys are lost"
                );
                Next::Stay
            }
            Err(error) => {
                eprintln!("node {node}: ends with its keys: {error}");
                Next::End
            }
        },
        Err(why) => {
            eprintln!("node {node}: ends with its keys: {why}");
            Next::End
        }
    }
}

/// Moves what clients have left at the end, when there are none any more.
pub fn finish<M: Memory>(store: &Store<M>, node: usize, args: LeaveArgs) {
    let mut progress = Progress::new(node, args);
    match store.finish_leaving(&mut |moved| progress.goes_on(moved)) {
        Ok(0) => {}
        Ok(bytes) => eprintln!(
            "node {node}: {bytes} bytes of its memory are nobody's: they died with nodes while they were in use"
        ),
        Err(error) => eprintln!("node {node}: some of its keys are lost: {error}"),
    }
}
