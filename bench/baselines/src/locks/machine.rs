//! One thread's part in a lock.

use super::Access;
use super::central::{self, Central};
use super::cohort::{self, Cohort};
use super::mcs::{self, Mcs};
use super::op::{Home, Op, Shape, Step, ThreadPlace};
use super::per_node::{self, PerNode};
use super::service::Client;

/// Which lock.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Algorithm {
    /// The queue of Mellor-Crummey and Scott.
    Mcs,
    /// One word, readers first.
    Central,
    /// An indicator of readers at each node.
    PerNode,
    /// C-RW-WP.
    Cohort,
    /// A manager that is asked.
    Service,
}

impl Algorithm {
    /// All of them, with the names used in files, commands and reports.
    pub const ALL: [(Algorithm, &'static str); 5] = [
        (Algorithm::Mcs, "mcs"),
        (Algorithm::Central, "central"),
        (Algorithm::PerNode, "per-node"),
        (Algorithm::Cohort, "cohort"),
        (Algorithm::Service, "service"),
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        let row = Self::ALL.iter().find(|row| row.0 == self);
        row.map_or("", |row| row.1)
    }

    /// Whether readers are inside together.
    pub const fn shares(self) -> bool {
        !matches!(self, Algorithm::Mcs)
    }

    /// Blocks of memory that such a lock needs, filled with zeros at first.
    pub fn blocks(self, shape: Shape) -> u16 {
        match self {
            Algorithm::Mcs => mcs::blocks(shape),
            Algorithm::Central => central::BLOCKS,
            Algorithm::PerNode => per_node::blocks(shape),
            Algorithm::Cohort => cohort::blocks(shape),
            Algorithm::Service => 0,
        }
    }

    /// Near whom one of them should be.
    pub fn home(self, shape: Shape, block: u16) -> Home {
        match self {
            Algorithm::Mcs => mcs::home(shape, block),
            Algorithm::Central | Algorithm::Service => Home::Lock,
            Algorithm::PerNode => per_node::home(block),
            Algorithm::Cohort => cohort::home(shape, block),
        }
    }
}

/// One seat's part in a lock: see [the module](super). It counts the seat's turns, so it is kept as
/// long as the lock is, whichever thread has the seat.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Machine {
    lock: Lock,
    /// What it has said last.
    said: Step,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Lock {
    Mcs(Mcs),
    Central(Central),
    PerNode(PerNode),
    Cohort(Cohort),
    Service(Client),
}

macro_rules! each {
    ($self:expr, $lock:ident => $do:expr) => {
        match &mut $self.lock {
            Lock::Mcs($lock) => $do,
            Lock::Central($lock) => $do,
            Lock::PerNode($lock) => $do,
            Lock::Cohort($lock) => $do,
            Lock::Service($lock) => $do,
        }
    };
}

impl Machine {
    /// That of a seat; nothing if the lock is not made for such a seat.
    pub fn new(algorithm: Algorithm, shape: Shape, seat: ThreadPlace) -> Option<Machine> {
        if !shape.has(seat) {
            return None;
        }
        let lock = match algorithm {
            Algorithm::Mcs => Lock::Mcs(Mcs::new(shape, seat)),
            Algorithm::Central => Lock::Central(Central::new()),
            Algorithm::PerNode => Lock::PerNode(PerNode::new(shape, seat)),
            Algorithm::Cohort => Lock::Cohort(Cohort::new(shape, seat)),
            Algorithm::Service => Lock::Service(Client::new(seat)),
        };
        let said = Step::Outside;
        Some(Machine { lock, said })
    }

    /// Where it stands: what it has said last.
    #[inline]
    pub fn said(&self) -> Step {
        self.said
    }

    /// The thread wants to enter. One that is not outside gets its last answer again.
    #[inline]
    pub fn enter(&mut self, access: Access) -> Step {
        if self.said == Step::Outside {
            self.said = each!(self, lock => lock.enter(access));
        }
        self.said
    }

    /// The thread does not want to be inside any more. Whoever is not inside is told again what it
    /// was told.
    #[inline]
    pub fn leave(&mut self) -> Step {
        if self.said == Step::Inside {
            self.said = each!(self, lock => lock.leave());
        }
        self.said
    }

    /// The thread does not want to wait any longer. Possible while it waits for a manager's answer,
    /// and nowhere else: queues in memory cannot be left by who is in them. Says whether it was; it
    /// goes on to be outside then.
    pub fn give_up(&mut self) -> bool {
        let Lock::Service(client) = &mut self.lock else {
            return false;
        };
        let asks = matches!(self.said, Step::Do(Op::Ask(_)));
        if asks {
            self.said = client.leave();
        }
        asks
    }

    /// The operation has been executed; `word` is its result, and anything where it has none.
    #[inline]
    pub fn result(&mut self, word: u64) -> Step {
        if matches!(self.said, Step::Do(_)) {
            self.said = each!(self, lock => lock.result(word));
        }
        self.said
    }
}
