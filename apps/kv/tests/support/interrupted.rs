//! Memory that lets another node act at one exact moment of an operation: when the operation is
//! about to enter a lock, has just entered or left one, or has just looked at the memory or changed
//! it.
//!
//! The operation then waits until the other has done what it does, or stands before a lock that the
//! operation is inside of; in that case it waits again when it has left that lock. One of the two
//! runs at a time: which moment it was decides what happens, and neither a clock nor a scheduler
//! does.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use rackmem_kv::memory::{Events, HeapMemory, MemoryError, Step};

type Act = Box<dyn FnOnce() -> JoinHandle<()> + Send>;

/// When the other acts, and how far it is.
#[derive(Default)]
struct Meeting {
    /// How many moments to let pass, and what then happens.
    act: Option<(usize, Act)>,
    acting: Option<JoinHandle<()>>,
    /// The other has done what it does, or cannot go on before the operation does.
    settled: bool,
    /// The page before whose lock it stands.
    before: Option<Page>,
    /// The operation leaves that one.
    wakes: bool,
}

/// A page: the address of its array, and its number there.
type Page = (u64, usize);

#[derive(Default)]
struct Place {
    meeting: Mutex<Meeting>,
    changed: Condvar,
}

impl Place {
    fn lock(&self) -> MutexGuard<'_, Meeting> {
        self.meeting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn settle(&self, before: Option<Page>) {
        let mut meeting = self.lock();
        (meeting.settled, meeting.before) = (true, before);
        self.changed.notify_all();
    }

    fn wait(&self, meeting: MutexGuard<'_, Meeting>) {
        let settled = self.changed.wait_while(meeting, |meeting| !meeting.settled);
        drop(settled.unwrap_or_else(PoisonError::into_inner));
    }
}

/// Says that the other has settled, also if it fails.
struct Settles(Arc<Place>);

impl Drop for Settles {
    fn drop(&mut self) {
        self.0.settle(None);
    }
}

/// Interrupts operations of one node by what another one does.
#[derive(Clone)]
pub struct Interruptions(Arc<Place>);

impl Interruptions {
    /// The same memory at two nodes: the first one's operations are interrupted by the second
    /// one's.
    pub fn of(memory: &HeapMemory) -> (Self, HeapMemory, HeapMemory) {
        let place = Arc::<Place>::default();
        let slow = memory.node(1).with_events(Arc::new(Slow(place.clone())));
        let other = memory.with_events(Arc::new(Other(place.clone())));
        (Interruptions(place), slow, other)
    }

    /// Does `f`, which uses the first node, and `act` in a thread of its own when so many moments
    /// of it have passed. `None`: `f` has fewer moments.
    pub fn during<R, A: Send + 'static>(
        &self,
        moment: usize,
        f: impl FnOnce() -> R,
        act: impl FnOnce() -> A + Send + 'static,
    ) -> Option<(R, A)> {
        let acted = Arc::new(Mutex::new(None));
        let (told, place) = (acted.clone(), self.0.clone());
        let act: Act = Box::new(move || {
            std::thread::spawn(move || {
                let _settles = Settles(place);
                *told.lock().unwrap() = Some(act());
            })
        });
        *self.0.lock() = Meeting {
            act: Some((moment, act)),
            ..Meeting::default()
        };
        let result = f();
        let acting = std::mem::take(&mut *self.0.lock()).acting;
        acting?.join().unwrap();
        let acted = acted.lock().unwrap().take();
        Some((result, acted?))
    }
}

/// What happens to the node whose operations are interrupted.
struct Slow(Arc<Place>);

impl Slow {
    /// A moment of an operation.
    fn pass(&self) {
        let mut meeting = self.0.lock();
        match meeting.act.take() {
            Some((0, act)) => {
                meeting.acting = Some(act());
                self.0.wait(meeting);
            }
            Some((n, act)) => meeting.act = Some((n - 1, act)),
            None => {}
        }
    }
}

impl Events for Slow {
    fn happens(&self, step: Step) -> Result<(), MemoryError> {
        match step {
            Step::Enter(..) | Step::Entered(..) | Step::Done => self.pass(),
            Step::Leave(addr, page) => {
                let mut meeting = self.0.lock();
                meeting.wakes = meeting.before == Some((addr, page));
                if meeting.wakes {
                    (meeting.settled, meeting.before) = (false, None);
                }
            }
            Step::Left(..) => {
                let mut meeting = self.0.lock();
                match std::mem::take(&mut meeting.wakes) {
                    true => self.0.wait(meeting),
                    false => drop(meeting),
                }
                self.pass();
            }
            _ => {}
        }
        Ok(())
    }
}

/// To the one that interrupts: it cannot go on where the other is inside.
struct Other(Arc<Place>);

impl Events for Other {
    fn happens(&self, step: Step) -> Result<(), MemoryError> {
        if let Step::Wait(addr, page) = step {
            self.0.settle(Some((addr, page)));
        }
        Ok(())
    }
}
