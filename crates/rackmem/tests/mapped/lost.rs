//! Blocks that are lost with a node: a load has nothing to return.

use super::{BLOCK, LONG, as_a_child, spec};
use rackmem::{AccessError, CoherentPages, Config, FaultMode, OnLost, Rack};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Instant;

/// Where members' machines stand still for longer they are excluded, as they must be.
const LEASE_MS: u32 = 5_000;

/// A rack of three whose last member has died with the only copy of the first block.
struct Story {
    racks: Vec<Rack>,
    pages: CoherentPages,
    addr: u64,
    folder: PathBuf,
}

impl Drop for Story {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl Story {
    fn new(name: &str, mode: FaultMode) -> Story {
        let folder = format!("rackmem-mapped-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(folder);
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        let nodes = rackmem_hosts::addresses(3).into_iter();
        let nodes: Vec<String> = nodes.map(|node| format!("\"{node}\"")).collect();
        let text = format!(
            "fabric = \"udp\"\nmode = \"home-only\"\nnodes = [{}]\nmembership = \"dir:{}\"\n\
             lease_ms = {LEASE_MS}\nmemory = {}\ncache = {}\npatience_ms = {}",
            nodes.join(", "),
            folder.display(),
            64 << 20,
            1 << 20,
            LONG.as_millis(),
        );
        let config = Config::parse(&text).unwrap();
        let join = |id| Rack::join(&config, id).unwrap();
        let mut racks: Vec<Rack> = (0..3).map(join).collect();
        let made = racks[1].node(1).create_region(&spec(2 * BLOCK)).unwrap();
        made.write(0, &7_u64.to_ne_bytes()).unwrap();
        racks[1].node(1).evict(made.addr()).unwrap();
        let open = |id: usize| racks[id].node(id).open_region(&spec(2 * BLOCK)).unwrap();
        let theirs = open(2).map().unwrap();
        theirs.words()[0].store(8, SeqCst);
        let (pages, addr) = (open(0).map_with(mode).unwrap(), made.addr());
        let begun = |rack: &Rack| rack.metrics().nodes[0].rebuilds.done;
        let before = begun(&racks[0]);
        // Its pages must not go home first.
        std::mem::forget(theirs);
        drop(racks.pop());
        while begun(&racks[0]) == before {
            std::thread::sleep(super::A_WHILE);
        }
        Story {
            racks,
            pages,
            addr,
            folder,
        }
    }
}

/// The program is asked, in the thread that loads, and may accept what home had.
#[test]
fn a_handler_says_what_becomes_of_a_lost_block() {
    let story = Story::new("handler", FaultMode::Signal);
    let asked = Arc::new(AtomicU64::new(0));
    let (node, addr, count) = (story.racks[0].node(0), story.addr, asked.clone());
    story.pages.on_lost(move |at, stores, why| {
        count.fetch_add(1, SeqCst);
        match why {
            AccessError::Lost { .. } if at == 0 && !stores => {
                node.accept_loss(addr).unwrap();
                OnLost::Retry
            }
            _ => OnLost::Signal,
        }
    });
    assert_eq!(story.pages.words()[0].load(SeqCst), 7);
    assert_eq!(asked.load(SeqCst), 1);
    story.pages.words()[0].fetch_add(1, SeqCst);
    let region = story.racks[1]
        .node(1)
        .open_region(&spec(2 * BLOCK))
        .unwrap();
    let mut bytes = [0; 8];
    region.read(0, &mut bytes).unwrap();
    assert_eq!(u64::from_ne_bytes(bytes), 8);
}

const AS_A_CHILD: &str = "RACKMEM_TEST_LOST_BLOCK";

/// Without one, and where it says so, the reason is printed, and the signal ends the program. The
/// child is this test again.
#[test]
fn a_lost_block_ends_by_a_message_and_a_signal() {
    let Some(handled) = std::env::var_os(AS_A_CHILD) else {
        for (mode, handled) in FaultMode::ALL.into_iter().zip(["", "signal", ""]) {
            let test = "lost::a_lost_block_ends_by_a_message_and_a_signal";
            let ended = as_a_child(test, (AS_A_CHILD, &format!("{handled} {}", mode.name())));
            let told = String::from_utf8_lossy(&ended.stderr);
            let signal = match mode {
                FaultMode::Mprotect => libc::SIGSEGV,
                _ => libc::SIGBUS,
            };
            assert_eq!(ended.status.signal(), Some(signal), "{mode:?} {told}");
            assert!(
                told.contains("rackmem: a load in mapped memory failed: "),
                "{told}"
            );
            assert!(told.contains("died with a node"), "{told}");
        }
        return;
    };
    let told = handled.into_string().unwrap();
    let (handled, name) = told.split_once(' ').unwrap();
    let mode = FaultMode::ALL.into_iter().find(|mode| mode.name() == name);
    let story = Story::new(name, mode.unwrap());
    if !handled.is_empty() {
        story.pages.on_lost(|_, _, _| OnLost::Signal);
    }
    let _ = std::fs::remove_dir_all(&story.folder);
    story.pages.words()[0].load(SeqCst);
    unreachable!("a load of a lost block");
}

/// What a node has sent home is there when the node is not.
#[test]
fn what_was_brought_home_outlives_its_writer() {
    let rack = super::rack(rackmem::Fabric::Udp, rackmem::Mode::HomeOnly, 1 << 20);
    let all = super::mapped(&rack, 2 * BLOCK);
    let home = rack.node(0);
    all[1].words()[0].store(5, SeqCst);
    all[1].words()[BLOCK / 8].store(6, SeqCst);
    all[1].bring_home().unwrap();
    let addr = home.open_region(&spec(2 * BLOCK)).unwrap().addr();
    for block in [addr, addr + BLOCK as u64] {
        // Home hears last that it is over.
        let began = Instant::now();
        let (status, holders) = loop {
            match home.inspect(block).unwrap() {
                (0, status, holders, _) => break (status, holders),
                _ => assert!(began.elapsed() < LONG, "an entry stays locked"),
            }
            std::thread::yield_now();
        };
        assert_eq!(holders & 0b10, 0, "the writer has it still: {status}");
    }
    assert_eq!(all[2].words()[0].load(SeqCst), 5);
    assert_eq!(all[2].words()[BLOCK / 8].load(SeqCst), 6);
}
