//! Showing one world: as a story, and as a capture.

use crate::failure::{Failure, Result};
use crate::out;
use rackmem_fabric::udp::Peers;
use rackmem_fabric::{Body, End, Packet, Pcap};
use rackmem_sim::world::{Config, Fate, Passing, Scene, Sight, Violation, Watcher, World};
use serde_json::json;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::fs::File;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

/// Lines of a story that end with a violation, at most.
const SHOWN: usize = 120;

/// Which block a story is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Block {
    /// The one with this number, whatever incarnation its home is of.
    Number(u32),
    /// The one that this address is in.
    Address(u64),
}

impl Block {
    /// From a command line.
    pub fn parse(text: &str) -> std::result::Result<Block, String> {
        let parsed = match text.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).map(Block::Address),
            None => text.parse().map(Block::Number),
        };
        parsed.map_err(|_| "a block is a number, or an address such as 0x10000".to_owned())
    }

    /// Whether a scene belongs to its story: what happens to the rack does.
    fn concerns(self, scene: &Scene<'_>) -> bool {
        if matches!(scene.what, Sight::Rack(_)) {
            return true;
        }
        match self {
            Block::Number(number) => scene.block() == Some(number),
            Block::Address(address) => {
                let block = rackmem_sim::world::BLOCK_BYTES;
                scene
                    .tag()
                    .is_some_and(|tag| tag.0 == address / block * block)
            }
        }
    }
}

/// What to show of a world.
#[derive(Default)]
pub struct Views {
    /// A line of standard output for everything that happens.
    pub story: bool,
    /// Only of this block.
    pub block: Option<Block>,
    /// Lines are JSON.
    pub json: bool,
    /// Everything on the wire.
    pub capture: Option<Rc<Pcap>>,
}

/// A capture of a rack of so many nodes.
pub fn capture(path: &Path, nodes: u16) -> Result<Rc<Pcap>> {
    let failure = |error: std::io::Error| {
        let cause = format!("cannot write {}: {error}", path.display());
        Failure::new(cause, "choose another file with --pcap")
    };
    let file = File::create(path).map_err(failure)?;
    let peers = Peers::made_up(usize::from(nodes));
    Ok(Rc::new(Pcap::new(peers, file).map_err(failure)?))
}

impl Views {
    /// Who shows it.
    pub fn watcher(self) -> Watcher {
        Box::new(move |scene| {
            if self.story && self.block.is_none_or(|block| block.concerns(scene)) {
                self.tell(scene);
            }
            if let (Some(capture), Sight::Packet(passing)) = (&self.capture, &scene.what) {
                keep(capture, passing, scene.at);
            }
        })
    }

    fn tell(&self, scene: &Scene<'_>) {
        let text = scene.to_string();
        if self.json {
            let text = text.trim_start();
            let text = text.split_once("  ").map_or(text, |(_, text)| text);
            out::line(json!({"at_ns": scene.at, "block": scene.block(), "text": text}));
        } else {
            out::line(text.trim_end());
        }
    }
}

/// A lost packet is not on the wire, a doubled one is there twice.
fn keep(capture: &Pcap, passing: &Passing<'_>, at: u64) {
    let times = match passing.fate {
        Fate::Sent => 1,
        Fate::Doubled => 2,
        Fate::Lost | Fate::Arrived => return,
    };
    let bytes: Vec<u8> = passing.body.iter().flat_map(|w| w.to_le_bytes()).collect();
    let from = match passing.from {
        rackmem_sim::world::SWITCH => End::Switch,
        node => End::Node(node),
    };
    for _ in 0..times {
        let packet = Packet {
            from,
            from_requester: passing.from_requester,
            to: passing.to,
            header: passing.header,
            body: Body::Bytes(&bytes),
        };
        capture.packet_at(&packet, Duration::from_nanos(at));
    }
}

/// The end of the story that leads to a violation, about its block if it has one.
pub fn end_of_story(config: &Config, violation: &Violation) -> Vec<String> {
    let block = violation.block.map(Block::Number);
    let lines = Rc::new(RefCell::new((VecDeque::new(), 0)));
    let kept = lines.clone();
    let watcher: Watcher = Box::new(move |scene| {
        if block.is_none_or(|block| block.concerns(scene)) {
            let (lines, dropped) = &mut *kept.borrow_mut();
            if lines.len() == SHOWN {
                lines.pop_front();
                *dropped += 1;
            }
            lines.push_back(scene.to_string());
        }
    });
    // What comes of it is known: it is run again for its story.
    let _ = World::watch(violation.seed, config, watcher);
    let (lines, dropped) = lines.take();
    let before = (dropped > 0).then(|| format!("{dropped:9}  lines before this"));
    before.into_iter().chain(lines).collect()
}
