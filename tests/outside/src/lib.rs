//! A small simulation on a rack, as somebody writes it who has read `cargo doc` of `rackmem` and
//! depends on nothing else.

use rackmem::locked::{Condvar, Mutex, RwLock};
use rackmem::membership::MembershipError;
use rackmem::zerocopy::{FromBytes, Immutable, IntoBytes};
use rackmem::{
    AccessError, AllocError, Error, LockError, Node, RackError, RegionError, Result, Shared,
    SharedSlice,
};

/// A particle: a struct of the program's own.
#[derive(Clone, Copy, PartialEq, Debug, FromBytes, IntoBytes, Immutable)]
#[zerocopy(crate = "rackmem::zerocopy")]
#[repr(C)]
pub struct Particle {
    /// Where it is.
    pub place: [f64; 3],
    /// How heavy.
    pub mass: f32,
    /// In how many steps it has been moved.
    pub steps: u32,
}

/// What all nodes agree on.
#[derive(Clone, Copy, PartialEq, Debug, FromBytes, IntoBytes, Immutable)]
#[zerocopy(crate = "rackmem::zerocopy")]
#[repr(C)]
pub struct Plan {
    /// Seconds that a step covers.
    pub step: f64,
    /// Steps to do.
    pub steps: u64,
}

/// The simulation, as one node has it.
#[derive(Debug)]
pub struct Simulation {
    particles: SharedSlice<Particle>,
    plan: RwLock<Plan>,
    arrived: Mutex<u64>,
    all_arrived: Condvar,
    moved: Shared<u64>,
    nodes: u64,
}

impl Simulation {
    /// The simulation of this name: made by the first node that asks.
    ///
    /// # Errors
    /// Those of the rack; [`RegionError::Mismatch`] where the name is of something else.
    pub fn open(node: &Node, name: &str, particles: usize, plan: Plan) -> Result<Self> {
        let named = |what: &str| format!("{name}/{what}");
        // A number without a lock has no name of its own: a lock has its address.
        let moved = Mutex::named(node, &named("moved"), 0u64)?;
        let mut addr = moved.lock()?;
        if *addr == 0 {
            *addr = node.alloc_isolated(0u64)?.addr();
        }
        Ok(Simulation {
            particles: node.named_slice(&named("particles"), particles)?,
            plan: RwLock::named(node, &named("plan"), plan)?,
            arrived: Mutex::named(node, &named("arrived"), 0)?,
            all_arrived: Condvar::named(node, &named("all"))?,
            moved: node.attach(*addr)?,
            nodes: node.nodes() as u64,
        })
    }

    /// Gives all particles a place and a mass.
    ///
    /// # Errors
    /// Those of the rack.
    pub fn place(&self) -> Result<()> {
        let mut part = Vec::new();
        let most = 10_000;
        for first in (0..self.particles.len()).step_by(most) {
            let range = first..self.particles.len().min(first + most);
            part.clear();
            part.extend(range.map(|nth| Particle {
                place: [nth as f64, 0.0, 0.0],
                mass: 1.0,
                steps: 0,
            }));
            self.particles.write_from(first, &part)?;
        }
        Ok(())
    }

    /// Does this node's share of all steps, and waits for the others after each.
    ///
    /// # Errors
    /// Those of the rack.
    pub fn run(&self, node: u16) -> Result<()> {
        let Plan { step, steps } = *self.plan.read()?;
        let share = self.particles.len().div_ceil(self.nodes as usize);
        let first = share * usize::from(node);
        let last = self.particles.len().min(first + share);
        for nth in 1..=steps {
            let mut mine = self.particles.to_vec(first..last)?;
            for particle in &mut mine {
                particle.place[1] += step;
                particle.steps += 1;
            }
            self.particles.write_from(first, &mine)?;
            self.moved.fetch_add(mine.len() as u64)?;
            self.wait_for_all(nth)?;
        }
        Ok(())
    }

    fn wait_for_all(&self, step: u64) -> Result<()> {
        let mut arrived = self.arrived.lock()?;
        *arrived += 1;
        let all = step * self.nodes;
        if *arrived == all {
            self.all_arrived.notify_all()?;
        }
        drop(self.all_arrived.wait_while(arrived, |count| count < all)?);
        Ok(())
    }

    /// The particles.
    pub fn particles(&self) -> &SharedSlice<Particle> {
        &self.particles
    }

    /// How often particles have been moved.
    ///
    /// # Errors
    /// Those of the rack.
    pub fn moved(&self) -> Result<u64> {
        Ok(self.moved.read()?)
    }

    /// Makes the steps shorter, for all nodes.
    ///
    /// # Errors
    /// Those of the rack.
    pub fn refine(&self) -> Result<f64> {
        let mut plan = self.plan.write()?;
        plan.step /= 2.0;
        Ok(plan.step)
    }
}

/// What a program does about an error.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Advice {
    /// Nothing has happened that another attempt would not mend.
    TryAgain,
    /// What was there is gone: make it anew.
    MakeAnew,
    /// This process cannot go on.
    Restart,
    /// The program is wrong.
    Mend,
}

/// Sorts errors by what to do: by family, and within one by cause.
pub fn advice(error: &Error) -> Advice {
    match error {
        Error::Rack(RackError::Fenced | RackError::Closed) => Advice::Restart,
        Error::Rack(RackError::NodeLost { .. }) => Advice::MakeAnew,
        Error::Rack(RackError::NoSuchNode { .. } | RackError::Refused { .. }) => Advice::Mend,
        Error::Rack(_) => Advice::TryAgain,
        Error::Access(AccessError::Lost { .. }) => Advice::MakeAnew,
        Error::Access(AccessError::Interrupted { .. } | AccessError::Busy { .. }) => {
            Advice::TryAgain
        }
        Error::Access(_) => Advice::Mend,
        // What stopped it, whatever it has done before.
        Error::Bulk(bulk) => advice(&bulk.error.into()),
        Error::Alloc(AllocError::OutOfMemory { .. }) => Advice::TryAgain,
        Error::Alloc(_) => Advice::Mend,
        Error::Lock(LockError::Freed { .. } | LockError::FreedInPart { .. }) => Advice::MakeAnew,
        Error::Lock(LockError::Busy { .. } | LockError::TooManyWaiting { .. }) => Advice::TryAgain,
        Error::Lock(_) => Advice::Mend,
        Error::Region(RegionError::NameLost { .. } | RegionError::Removed { .. }) => {
            Advice::MakeAnew
        }
        Error::Region(RegionError::Unfinished { .. }) => Advice::TryAgain,
        Error::Region(_) => Advice::Mend,
        Error::Leave(_) => Advice::Restart,
        // The store may come back.
        Error::Membership(MembershipError::Unreachable { .. } | MembershipError::Late { .. }) => {
            Advice::TryAgain
        }
        Error::Membership(_) | Error::Open(_) => Advice::Mend,
        _ => Advice::Mend,
    }
}

/// The programs of the README and of the tutorial, as documentation tests.
#[cfg(doctest)]
mod documents {
    #[doc = include_str!("../../../README.md")]
    mod readme {}
    #[doc = include_str!("../../../docs/tutorial.md")]
    mod tutorial {}
}
