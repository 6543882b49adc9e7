//! Threads of a node that wait for a lock, first come, first served: one in the blade, the others
//! in line in front of it. A lock for which none waits has no memory for them.

use crate::gcp::Access;
use crate::wire::Copyset;
use alloc::boxed::Box;
use alloc::collections::VecDeque;

/// Who waits: a thread, or nobody. Then the lock is to come to this node, and is left at once.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Waiting<S> {
    pub seat: Option<S>,
    pub access: Access,
    /// Nodes that are told when it has come.
    pub tells: Copyset,
}

impl<S> Waiting<S> {
    pub const fn thread(seat: S, access: Access) -> Self {
        Waiting {
            seat: Some(seat),
            access,
            tells: Copyset::EMPTY,
        }
    }

    pub const fn nobody(access: Access, tells: Copyset) -> Self {
        Waiting {
            seat: None,
            access,
            tells,
        }
    }
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Waiters<S> {
    first: Option<Waiting<S>>,
    /// As many as the node has threads, and two that are none.
    others: VecDeque<Waiting<S>>,
}

/// See the module.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Line<S>(Option<Box<Waiters<S>>>);

impl<S> Line<S> {
    pub const fn new() -> Self {
        Line(None)
    }

    /// Whether none waits, in the blade or in front of it.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// How many do.
    pub fn len(&self) -> usize {
        self.iter().count()
    }

    /// All of them, in turn.
    pub fn iter(&self) -> impl Iterator<Item = &Waiting<S>> {
        let waiters = self.0.iter();
        waiters.flat_map(|waiters| waiters.first.iter().chain(&waiters.others))
    }

    /// Whether nobody waits so: the lock is to come anyway. Then these nodes are told, too.
    pub fn tell(&mut self, access: Access, tells: Copyset) -> bool {
        let Some(waiters) = &mut self.0 else {
            return false;
        };
        let all = waiters.first.iter_mut().chain(&mut waiters.others);
        let mut nobodies = all.filter(|waiting| waiting.seat.is_none());
        let coming = nobodies.find(|nobody| nobody.access >= access);
        coming.map(|it| it.tells = it.tells.union(tells)).is_some()
    }

    /// Who waits in the blade.
    pub fn first(&self) -> Option<&Waiting<S>> {
        self.0.as_ref()?.first.as_ref()
    }

    /// Who is next to wait there.
    pub fn next(&self) -> Option<&Waiting<S>> {
        self.0.as_ref()?.others.front()
    }

    pub fn push_back(&mut self, waiting: Waiting<S>) {
        let waiters = self.0.get_or_insert_with(|| {
            Box::new(Waiters {
                first: None,
                others: VecDeque::new(),
            })
        });
        waiters.others.push_back(waiting);
    }

    /// The next one goes to wait in the blade.
    pub fn step_forward(&mut self) {
        if let Some(waiters) = &mut self.0 {
            waiters.first = waiters.others.pop_front();
        }
        self.tidy();
    }

    /// Who waits in the blade waits no longer.
    pub fn take_first(&mut self) -> Option<Waiting<S>> {
        let first = self.0.as_mut()?.first.take();
        self.tidy();
        first
    }

    /// Takes a thread out that stands in front of the blade.
    pub fn remove(&mut self, is: impl Fn(&Waiting<S>) -> bool) -> bool {
        let Some(waiters) = &mut self.0 else {
            return false;
        };
        let before = waiters.others.len();
        waiters.others.retain(|waiting| !is(waiting));
        let found = waiters.others.len() < before;
        self.tidy();
        found
    }

    /// All of them, who wait no longer.
    pub fn take(&mut self) -> impl Iterator<Item = Waiting<S>> + use<S> {
        let waiters = self.0.take().into_iter();
        waiters.flat_map(|waiters| waiters.first.into_iter().chain(waiters.others))
    }

    fn tidy(&mut self) {
        self.0
            .take_if(|waiters| waiters.first.is_none() && waiters.others.is_empty());
    }
}
