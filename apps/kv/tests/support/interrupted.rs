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
use std::time::Duration;

use rackmem::window::{Window, WindowMut};
use rackmem_kv::memory::{Access, HeapInside, HeapMemory, HeapPages, Memory, MemoryError, Pages};

type Result<T> = std::result::Result<T, MemoryError>;
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

/// The memory of either node: the one whose operation is interrupted,
/// and the one that interrupts it.
#[derive(Clone)]
pub struct Interrupted {
    pub inner: HeapMemory,
    place: Arc<Place>,
    slow: bool,
}

impl Interrupted {
    /// The same memory at two nodes: the first one's operations are interrupted by the second
    /// one's.
    pub fn pair(memory: HeapMemory) -> (Self, Self) {
        let place = Arc::default();
        let slow = Interrupted {
            inner: memory.node(1),
            place,
            slow: true,
        };
        let other = Interrupted {
            inner: memory,
            place: slow.place.clone(),
            slow: false,
        };
        (slow, other)
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
        let (told, place) = (acted.clone(), self.place.clone());
        let act: Act = Box::new(move || {
            std::thread::spawn(move || {
                let _settles = Settles(place);
                *told.lock().unwrap() = Some(act());
            })
        });
        *self.place.lock() = Meeting {
            act: Some((moment, act)),
            ..Meeting::default()
        };
        let result = f();
        let acting = std::mem::take(&mut *self.place.lock()).acting;
        acting?.join().unwrap();
        let acted = acted.lock().unwrap().take();
        Some((result, acted?))
    }
}

/// A moment of an operation.
fn pass(place: &Place, slow: bool) {
    if !slow {
        return;
    }
    let mut meeting = place.lock();
    match meeting.act.take() {
        Some((0, act)) => {
            meeting.acting = Some(act());
            let settled = place
                .changed
                .wait_while(meeting, |meeting| !meeting.settled);
            drop(settled.unwrap_or_else(PoisonError::into_inner));
        }
        Some((n, act)) => meeting.act = Some((n - 1, act)),
        None => {}
    }
}

pub struct InterruptedPages {
    inner: Arc<HeapPages>,
    addr: u64,
    place: Arc<Place>,
    slow: bool,
}

impl Pages for InterruptedPages {
    type Inside = HeapInside;

    fn enter(&self, page: usize, access: Access, at_most: Duration) -> Result<Option<HeapInside>> {
        pass(&self.place, self.slow);
        let entered = match self.slow {
            true => self.inner.enter(page, access, at_most),
            false => match self.inner.enter(page, access, Duration::ZERO)? {
                None => {
                    self.place.settle(Some((self.addr, page)));
                    self.inner.enter(page, access, at_most)
                }
                entered => Ok(entered),
            },
        };
        pass(&self.place, self.slow);
        entered
    }

    fn leave(&self, inside: HeapInside) {
        let mut meeting = self.place.lock();
        let wakes = self.slow && meeting.before == Some((self.addr, inside.page()));
        if wakes {
            (meeting.settled, meeting.before) = (false, None);
        }
        drop(meeting);
        self.inner.leave(inside);
        if wakes {
            self.place.wait(self.place.lock());
        }
        pass(&self.place, self.slow);
    }

    fn view<'a>(&'a self, inside: &'a HeapInside) -> Window<'a> {
        self.inner.view(inside)
    }

    fn view_mut<'a>(&'a self, inside: &'a mut HeapInside, len: usize) -> Option<WindowMut<'a>> {
        self.inner.view_mut(inside, len)
    }

    fn trim(&self, inside: &mut HeapInside, len: usize) {
        self.inner.trim(inside, len);
    }
}

impl Interrupted {
    fn then_pass<T>(&self, result: Result<T>) -> Result<T> {
        pass(&self.place, self.slow);
        result
    }
}

impl Memory for Interrupted {
    type Pages = InterruptedPages;

    fn block_size(&self) -> usize {
        self.inner.block_size()
    }

    fn id(&self) -> u16 {
        self.inner.id()
    }

    fn nodes(&self) -> usize {
        self.inner.nodes()
    }

    fn snapshot<R>(&self, addr: u64, len: usize, f: impl FnMut(&Window<'_>) -> R) -> Result<R> {
        self.then_pass(self.inner.snapshot(addr, len, f))
    }

    fn update<R>(
        &self,
        addr: u64,
        len: usize,
        f: impl FnOnce(&mut WindowMut<'_>) -> R,
    ) -> Result<R> {
        self.then_pass(self.inner.update(addr, len, f))
    }

    fn read(&self, addr: u64, out: &mut [u8]) -> Result<()> {
        self.then_pass(self.inner.read(addr, out))
    }

    fn write(&self, addr: u64, bytes: &[u8]) -> Result<()> {
        self.then_pass(self.inner.write(addr, bytes))
    }

    fn alloc(&self, len: usize) -> Result<u64> {
        self.inner.alloc(len)
    }

    fn alloc_on(&self, home: u16, len: usize) -> Result<u64> {
        self.inner.alloc_on(home, len)
    }

    fn free(&self, addr: u64, len: usize) -> Result<()> {
        self.then_pass(self.inner.free(addr, len))
    }

    fn region(&self, name: &str, len: usize, type_hash: u64) -> Result<u64> {
        self.inner.region(name, len, type_hash)
    }

    fn pages(&self, addr: u64, count: usize, len: usize) -> Result<InterruptedPages> {
        Ok(InterruptedPages {
            inner: self.inner.pages(addr, count, len)?,
            addr,
            place: self.place.clone(),
            slow: self.slow,
        })
    }
}
