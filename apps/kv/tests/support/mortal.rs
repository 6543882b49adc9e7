//! Memory that outlives its nodes, one of which dies at one exact moment of an operation:
//! when it is about to enter a lock or to leave one, or has just looked at the memory or changed
//! it.
//!
//! As memory with copies does it (`memory/copied.rs`): who is inside of a lock has the page for
//! itself, and writes it when it leaves. So a page is as somebody left it, the lock of one who has
//! died is free, and what was freed inside is handed out again after the page is written.
#![allow(dead_code, reason = "every test takes what it needs")]

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rackmem::window::{Window, WindowMut};
use rackmem_kv::memory::{
    Access, Fate, HeapInside, HeapMemory, HeapPages, Memory, MemoryError, Pages,
};

type Result<T> = std::result::Result<T, MemoryError>;

/// The life of a node.
#[derive(Default)]
struct Life {
    /// Moments until it dies; at 0 it is dead.
    left: AtomicUsize,
    /// Who dies in its place.
    takes: Mutex<Option<Arc<Life>>>,
    /// The locks that it is inside of, and what it has freed there.
    inside: Mutex<(usize, Vec<(u64, usize)>)>,
}

impl Life {
    fn lives(&self) -> bool {
        self.left.load(SeqCst) != 0
    }

    /// A moment passes.
    fn pass(&self) -> Result<()> {
        let less = |left: usize| left.checked_sub(1);
        match self.left.fetch_update(SeqCst, SeqCst, less) {
            Ok(2..) => Ok(()),
            Ok(_) | Err(_) => {
                let other = self
                    .takes
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .take();
                let Some(other) = other else {
                    return Err(MemoryError::Fenced);
                };
                other.left.store(0, SeqCst);
                self.left.store(usize::MAX, SeqCst);
                Ok(())
            }
        }
    }
}

/// The memory as one node sees it.
#[derive(Clone)]
pub struct Mortal {
    inner: HeapMemory,
    life: Arc<Life>,
    /// The lives of all nodes, of which each has memory that dies with it; none: nothing dies.
    all: Option<Arc<[Arc<Life>]>>,
}

impl Mortal {
    /// A node that lives on.
    pub fn new(inner: HeapMemory) -> Self {
        let life = Arc::new(Life::default());
        life.left.store(usize::MAX, SeqCst);
        Mortal {
            inner,
            life,
            all: None,
        }
    }

    /// Nodes that live on, each with memory of its own, which dies with it.
    pub fn with_homes(inner: &HeapMemory, nodes: u16) -> Vec<Self> {
        let each = (0..nodes).map(|id| Mortal::new(inner.node(id)));
        let mut each: Vec<Mortal> = each.collect();
        let all: Arc<[Arc<Life>]> = each.iter().map(|node| node.life.clone()).collect();
        each.iter_mut()
            .for_each(|node| node.all = Some(all.clone()));
        each
    }

    /// It lives on, and when so many moments of it are over, another one dies.
    pub fn outlives(&self, other: &Mortal, moments: usize) {
        *self.life.takes.lock().unwrap() = Some(other.life.clone());
        self.dies_after(moments);
    }

    /// Whether the node that has an address is dead.
    fn lost(&self, addr: u64) -> Option<u16> {
        let all = self.all.as_ref()?;
        let home = self.inner.home_of(addr)?;
        (!all[usize::from(home)].lives()).then_some(home)
    }

    fn there(&self, addr: u64) -> Result<()> {
        match self.lost(addr) {
            Some(node) => Err(MemoryError::NodeLost(node)),
            None => Ok(()),
        }
    }

    /// From now on it lives for so many moments.
    pub fn dies_after(&self, moments: usize) {
        self.life.left.store(moments + 1, SeqCst);
    }

    pub fn lives(&self) -> bool {
        self.life.lives()
    }

    fn then<T>(&self, result: Result<T>) -> Result<T> {
        self.life.pass()?;
        result
    }

    /// What is done while it lives, and then a moment passes.
    fn alive<T>(&self, f: impl FnOnce() -> Result<T>) -> Result<T> {
        match self.lives() {
            true => self.then(f()),
            false => Err(MemoryError::Fenced),
        }
    }
}

pub struct MortalPages {
    inner: HeapPages,
    memory: Mortal,
    addr: u64,
    len: usize,
}

pub struct MortalInside {
    inner: HeapInside,
    /// The page as it was found, if it was changed.
    before: Option<Vec<u64>>,
}

impl MortalPages {
    fn remember(&self, inside: &mut MortalInside) {
        if inside.before.is_none() {
            let view = self.inner.view(&inside.inner);
            let words = (0..self.len / 8).map(|at| view.u64(at * 8));
            inside.before = Some(words.collect());
        }
    }
}

impl Pages for MortalPages {
    type Inside = MortalInside;

    fn enter(
        &self,
        page: usize,
        access: Access,
        at_most: Duration,
    ) -> Result<Option<MortalInside>> {
        let life = &self.memory.life;
        if !life.lives() {
            return Err(MemoryError::Fenced);
        }
        self.memory.there(self.addr)?;
        let Some(inner) = self.inner.enter(page, access, at_most)? else {
            return Ok(None);
        };
        if let Err(dead) = life.pass() {
            self.inner.leave(inner);
            return Err(dead);
        }
        life.inside.lock().unwrap_or_else(PoisonError::into_inner).0 += 1;
        Ok(Some(MortalInside {
            inner,
            before: None,
        }))
    }

    fn leave(&self, mut inside: MortalInside) {
        let Mortal { inner, life, .. } = &self.memory;
        let written = life.pass().is_ok();
        if let Some(before) = inside.before.filter(|_| !written)
            && let Some(mut page) = self.inner.view_mut(&mut inside.inner, self.len)
        {
            for (at, word) in before.iter().enumerate() {
                page.set_u64(at * 8, *word);
            }
        }
        self.inner.leave(inside.inner);
        let mut held = life.inside.lock().unwrap_or_else(PoisonError::into_inner);
        held.0 -= 1;
        if held.0 == 0 && life.pass().is_ok() {
            for (addr, len) in held.1.drain(..) {
                inner.free(addr, len).expect("it was handed out");
            }
        }
    }

    fn view<'a>(&'a self, inside: &'a MortalInside) -> Window<'a> {
        self.inner.view(&inside.inner)
    }

    fn view_mut<'a>(&'a self, inside: &'a mut MortalInside, len: usize) -> Option<WindowMut<'a>> {
        self.remember(inside);
        self.inner.view_mut(&mut inside.inner, len)
    }

    fn trim(&self, inside: &mut MortalInside, len: usize) {
        self.remember(inside);
        self.inner.trim(&mut inside.inner, len);
    }
}

impl Memory for Mortal {
    type Pages = MortalPages;

    fn block_size(&self) -> usize {
        self.inner.block_size()
    }

    fn id(&self) -> u16 {
        self.inner.id()
    }

    fn nodes(&self) -> usize {
        self.inner.nodes()
    }

    fn pages_survive(&self) -> bool {
        self.all.is_none()
    }

    fn home_of(&self, addr: u64) -> Option<u16> {
        self.all.as_ref().and_then(|_| self.inner.home_of(addr))
    }

    fn withhold(&self, yes: bool) {
        self.inner.withhold(yes);
    }

    fn given_bytes(&self) -> usize {
        self.inner.given_bytes()
    }

    fn is_member(&self, node: u16) -> bool {
        let all = self.all.as_ref();
        all.is_none_or(|all| all[usize::from(node)].lives())
    }

    fn fate(&self, addr: u64) -> Fate {
        match self.lost(addr) {
            Some(_) => Fate::Away,
            None => Fate::Live,
        }
    }

    fn snapshot<R>(&self, addr: u64, len: usize, f: impl FnMut(&Window<'_>) -> R) -> Result<R> {
        self.there(addr)?;
        self.alive(|| self.inner.snapshot(addr, len, f))
    }

    fn update<R>(
        &self,
        addr: u64,
        len: usize,
        f: impl FnOnce(&mut WindowMut<'_>) -> R,
    ) -> Result<R> {
        self.there(addr)?;
        self.alive(|| self.inner.update(addr, len, f))
    }

    fn read(&self, addr: u64, out: &mut [u8]) -> Result<()> {
        self.there(addr)?;
        self.alive(|| self.inner.read(addr, out))
    }

    fn write(&self, addr: u64, bytes: &[u8]) -> Result<()> {
        self.there(addr)?;
        self.alive(|| self.inner.write(addr, bytes))
    }

    fn alloc(&self, len: usize) -> Result<u64> {
        self.alive(|| self.inner.alloc(len))
    }

    fn alloc_on(&self, home: u16, len: usize) -> Result<u64> {
        if !self.is_member(home) {
            return Err(MemoryError::NodeLost(home));
        }
        self.alive(|| self.inner.alloc_on(home, len))
    }

    fn free(&self, addr: u64, len: usize) -> Result<()> {
        if self.lost(addr).is_some() {
            return Ok(());
        }
        let mut held = self
            .life
            .inside
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        match held.0 {
            0 => self.alive(|| self.inner.free(addr, len)),
            _ => {
                held.1.push((addr, len));
                Ok(())
            }
        }
    }

    fn region(&self, name: &str, len: usize, type_hash: u64) -> Result<u64> {
        self.alive(|| self.inner.region(name, len, type_hash))
    }

    fn pages(&self, addr: u64, count: usize, len: usize) -> Result<MortalPages> {
        Ok(MortalPages {
            inner: self.inner.pages(addr, count, len)?,
            memory: self.clone(),
            addr,
            len,
        })
    }
}
