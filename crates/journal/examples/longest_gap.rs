//! How long a member acknowledges nothing while a checkpoint is written: in pieces, and as a whole.
//!
//! `cargo run --release --example longest_gap -p rackmem-journal -- FOLDER`

#![allow(clippy::print_stdout)]

use rackmem_journal::{Committer, Folder, Limits, Member, Store, StoreError, Wanted};
use rackmem_proto::abd::journal::Entry;
use rackmem_proto::abd::{Layout, Stamp, first_line};
use rackmem_proto::wire::Tag;
use std::path::Path;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

const LINE: usize = 4096;
/// 256 MiB of lines.
const LINES: u64 = 1 << 16;
/// Bytes of journals after which a checkpoint is due.
const REPLAY: u64 = 320 << 20;

/// A member whose lines are all alike.
struct Keeper(Sender<Instant>);

impl Member<()> for Keeper {
    fn durable(&mut self, _: Vec<()>) {
        let _ = self.0.send(Instant::now());
    }

    fn failed(&mut self, error: StoreError) {
        println!("{error}");
    }

    fn no_checkpoint(&mut self, error: &StoreError) {
        println!("{error}");
    }

    fn lines(&mut self, last: Option<Tag>, each: &mut dyn FnMut(Tag, Stamp, &[u8])) {
        let from = last.map_or(0, |last| (last.0 - first_line(0).0) / LINE as u64 + 1);
        for nth in from..LINES.min(from + 64) {
            let tag = Tag(first_line(0).0 + nth * LINE as u64);
            each(tag, Stamp(1), &[7; LINE]);
        }
    }
}

/// The longest times between two batches that are durable, while a thread always has one waiting.
fn run(folder: &Path, piece: u64) -> Result<[Duration; 3], Box<dyn std::error::Error>> {
    let _ = std::fs::remove_dir_all(folder);
    let wanted = Wanted {
        rack: 1,
        group: 0,
        layout: Layout::new(LINE as u32, LINES * LINE as u64).ok_or("no layout")?,
        fresh: 1,
    };
    let limits = Limits {
        replay: REPLAY,
        piece,
        ..Limits::default()
    };
    let (store, _) = Store::open(Folder::open(folder)?, &wanted, limits, |_, _| ())?;
    let (said, hears) = channel();
    let committer = Committer::start(store, Keeper(said))?;
    let (mut gaps, mut last) = (Vec::new(), Instant::now());
    let put = |nth: u64| {
        let tag = Tag(first_line(0).0 + nth % LINES * LINE as u64);
        let (stamp, bytes) = (Stamp(nth + 2), &[9; LINE]);
        committer.put(&Entry::Line { tag, stamp, bytes }, ())
    };
    for nth in 0..8 {
        put(nth)?;
    }
    // Eight a batch, and past the end of one checkpoint.
    for batch in 1..(2 * REPLAY / (8 * LINE as u64)) {
        let at = hears.recv()?;
        gaps.push(at.saturating_duration_since(last));
        last = at;
        for nth in 0..8 {
            put(batch * 8 + nth)?;
        }
    }
    drop(committer);
    std::fs::remove_dir_all(folder)?;
    gaps.sort_unstable();
    let at = |share: f64| gaps[(gaps.len() as f64 * share) as usize];
    Ok([at(0.5), at(0.99), gaps[gaps.len() - 1]])
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args().nth(1).ok_or("name a folder")?;
    let folder = Path::new(&folder).join("longest-gap");
    for (name, piece) in [("whole", u64::MAX), ("pieces of 1 MiB", 1 << 20)] {
        let [middle, rare, longest] = run(&folder, piece)?;
        println!("{name}: between batches {middle:?}, 99% {rare:?}, longest {longest:?}");
    }
    Ok(())
}
