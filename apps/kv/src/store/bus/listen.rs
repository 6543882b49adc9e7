//! Looking at a node's lanes, in a thread that runs as long as somebody attends.

use std::sync::{Arc, PoisonError, Weak};
use std::time::{Duration, Instant};

use super::lane::{self, State, Taken};
use super::message::Message;
use super::numbers::Arrival;
use crate::error::Result;
use crate::memory::{Memory, MemoryError};
use crate::store::Store;
use crate::store::core::Core;

/// Between two looks at the lanes while there are messages.
const SHORTEST: Duration = Duration::from_micros(100);
/// Between two looks when there have been none for a while.
const LONGEST: Duration = Duration::from_millis(1);
/// A pause after a look in vain is longer by this part.
const LONGER: u32 = 16;
/// How long a node goes on to listen after the last who attended has left.
const LINGER: Duration = Duration::from_secs(2);
/// How often listeners may tidy up.
const TIDY: Duration = Duration::from_secs(1);
/// How often a node asks whether others have died.
const ASK: Duration = Duration::from_millis(10);

/// Who attends.
#[derive(Default)]
pub(super) struct Attending {
    count: usize,
    /// There is a thread.
    listening: bool,
    /// When the last has left.
    since: Option<Instant>,
}

/// As long as this is there, the node listens to the others.
pub(crate) struct Attention<M: Memory>(Arc<Core<M>>);

impl<M: Memory> Drop for Attention<M> {
    fn drop(&mut self) {
        let attending = self.0.bus.attending.lock();
        let mut attending = attending.unwrap_or_else(PoisonError::into_inner);
        attending.count -= 1;
        if attending.count == 0 {
            attending.since = Some(Instant::now());
        }
    }
}

impl<M: Memory> Store<M> {
    /// Returns when this node listens, which it does until the last of these is dropped.
    pub(crate) fn attend(&self) -> Result<Attention<M>> {
        let core = &self.core;
        let attending = core.bus.attending.lock();
        let mut attending = attending.unwrap_or_else(PoisonError::into_inner);
        if !attending.listening {
            core.open_lanes(true)?;
            let ears = Ears::new(core);
            let weak = Arc::downgrade(core);
            std::thread::Builder::new()
                .name(format!("kv-bus-{}", core.memory.id()))
                .spawn(move || ears.listen(&weak))
                .map_err(|error| MemoryError::Other(error.into()))?;
            attending.listening = true;
        }
        attending.count += 1;
        attending.since = None;
        Ok(Attention(core.clone()))
    }
}

impl<M: Memory> Core<M> {
    pub(super) fn others(&self) -> impl Iterator<Item = usize> + use<M> {
        let me = usize::from(self.memory.id());
        (0..self.map.nodes).filter(move |node| *node != me)
    }

    pub(super) fn my_lane(&self, from: usize) -> u64 {
        self.map
            .lane(self.base, usize::from(self.memory.id()), from)
    }

    /// Lets others know whether this node listens.
    fn open_lanes(&self, listens: bool) -> std::result::Result<(), MemoryError> {
        for from in self.others() {
            let (lane, block) = (self.my_lane(from), self.map.block);
            let open = || {
                self.memory
                    .update(lane, block, |view| lane::listen(view, listens))
            };
            open().or_else(|_| {
                self.memory.accept(lane)?;
                open()
            })?;
            // What lay there before is not to come back.
            self.memory.publish(lane)?;
        }
        Ok(())
    }

    /// Whether nobody has attended for a while; the node does not listen any more then.
    fn is_done(&self) -> bool {
        let attending = self.bus.attending.lock();
        let mut attending = attending.unwrap_or_else(PoisonError::into_inner);
        let idle = attending.count == 0;
        let done = idle
            && attending
                .since
                .is_none_or(|since| since.elapsed() >= LINGER);
        if done {
            attending.listening = false;
            // Whoever goes on to send fills a lane, and no more than that.
            let _ = self.open_lanes(false);
        }
        done
    }

    /// The whole of a message that lies in memory of its own, which is freed.
    pub(super) fn fetch(&self, taken: Taken) -> std::result::Result<Message, MemoryError> {
        let (kind, db, addr, first, second) = match taken {
            Taken::Here(message) => return Ok(message),
            Taken::Far {
                kind,
                db,
                addr,
                first,
                second,
            } => (kind, db, addr, first, second),
        };
        let mut bytes = vec![0; first.saturating_add(second).min(2 * crate::MAX_VALUE)];
        self.memory.read(addr, &mut bytes)?;
        self.memory.free(addr, first + second)?;
        let (first, second) = bytes.split_at(first.min(bytes.len()));
        Ok(Message::from_parts(kind, db, first, second))
    }
}

/// What the thread remembers from look to look.
struct Ears {
    bytes: Vec<u8>,
    /// Lanes that could not be read the last time.
    failing: Vec<bool>,
    lives: u64,
    /// The nodes that are members.
    members: Vec<bool>,
    asked: Instant,
    tidied: Instant,
}

impl Ears {
    fn new<M: Memory>(core: &Core<M>) -> Self {
        Ears {
            bytes: Vec::new(),
            failing: vec![false; core.map.nodes],
            lives: core.memory.lives(),
            members: members(core),
            asked: Instant::now(),
            tidied: Instant::now(),
        }
    }

    fn listen<M: Memory>(mut self, core: &Weak<Core<M>>) {
        let mut pause = SHORTEST;
        while let Some(core) = core.upgrade() {
            if core.is_done() {
                return;
            }
            pause = match self.look(&core) {
                true => SHORTEST,
                false => (pause + pause / LONGER).min(LONGEST),
            };
            if self.tidied.elapsed() >= TIDY {
                self.tidied = Instant::now();
                core.bus.idle();
                core.catch_up();
            }
            drop(core);
            std::thread::sleep(pause);
        }
    }

    /// Hears what lies in the lanes: whether there was something.
    fn look<M: Memory>(&mut self, core: &Core<M>) -> bool {
        let mut heard = false;
        for from in core.others() {
            match self.look_at(core, from) {
                Ok(some) => {
                    heard |= some;
                    self.failing[from] = false;
                }
                Err(_) => {
                    // What was in there may have died with its sender.
                    let _ = core.memory.accept(core.my_lane(from));
                    if !std::mem::replace(&mut self.failing[from], true) {
                        core.bus.hear(&Message::Everything);
                        core.bus.hear(&Message::Missed);
                    }
                }
            }
        }
        heard | self.mourn(core)
    }

    fn look_at<M: Memory>(
        &mut self,
        core: &Core<M>,
        from: usize,
    ) -> std::result::Result<bool, MemoryError> {
        let (lane, block) = (core.my_lane(from), core.map.block);
        if !core
            .memory
            .snapshot(lane, lane::HEADER, State::load)?
            .is_news()
        {
            return Ok(false);
        }
        let mut bytes = std::mem::take(&mut self.bytes);
        let state = core
            .memory
            .update(lane, block, |view| lane::take(view, &mut bytes))?;
        for (number, taken) in lane::unpack(&bytes) {
            match core.bus.numbers.hear(from, number) {
                Arrival::Next => {}
                Arrival::Behind => {
                    core.bus.hear(&Message::Everything);
                    core.bus.hear(&Message::Missed);
                }
                Arrival::Again => continue,
            }
            match core.fetch(taken) {
                Ok(message) => core.bus.hear(&message),
                Err(_) => core.bus.hear(&Message::Missed),
            }
        }
        self.bytes = bytes;
        // A lane that says that nobody listens here is as it was before that was written.
        if state.lost_notes || !state.listens {
            core.bus.hear(&Message::Everything);
        }
        if state.lost_published || !state.listens {
            core.bus.hear(&Message::Missed);
        }
        Ok(true)
    }

    /// Whether a node has died or come back: it may have changed keys and not got to telling. What
    /// one that died had published may be gone with it, where its pages do not survive.
    fn mourn<M: Memory>(&mut self, core: &Core<M>) -> bool {
        if self.asked.elapsed() < ASK {
            return false;
        }
        self.asked = Instant::now();
        let lives = core.memory.lives();
        let changed = std::mem::replace(&mut self.lives, lives) != lives;
        if !changed {
            return false;
        }
        core.bus.hear(&Message::Everything);
        let now = members(core);
        let before = std::mem::replace(&mut self.members, now);
        // Other lives of the same members: one has died and is back already.
        let gone = before
            .iter()
            .zip(&self.members)
            .any(|(before, now)| before > now);
        if (gone || before == self.members) && !core.memory.pages_survive() {
            core.bus.hear(&Message::Missed);
        }
        true
    }
}

/// The nodes that are members, by number.
fn members<M: Memory>(core: &Core<M>) -> Vec<bool> {
    let nodes = 0..core.map.nodes as u16;
    nodes.map(|node| core.memory.is_member(node)).collect()
}
