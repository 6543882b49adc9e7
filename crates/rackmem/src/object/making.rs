//! An object is made, step by step: its home gives it, and then it gets its content.

use super::writing::Writing;
use super::{MAX_OBJECT, Object};
use crate::error::{AccessError, AllocError, RackError};
use crate::host::driving::errand::{Action, Operation};
use crate::host::objects::{Answered, Asks};
use crate::node::Node;
use rackmem_proto::sabre::Command;
use rackmem_proto::wire::{Contract, Tag};

/// An object that is being made, between two steps.
pub(super) enum Making<T: ?Sized> {
    New,
    /// Its home has been asked for it.
    Given,
    Writes(Object<T>, Writing),
    /// It has not got its content. Nobody else knows of it; if its home is gone, so is it.
    Frees(Object<T>, AccessError),
}

impl<T: ?Sized> Making<T> {
    /// Whether there is an object that only it knows of, or what it has `asked` for is one.
    pub fn owes(&self, asked: bool) -> bool {
        match self {
            Making::New => false,
            Making::Given => asked,
            Making::Writes(..) | Making::Frees(..) => true,
        }
    }

    /// What is to be done next for an object in the region that begins at this address, with this
    /// content and so much room, when a home has answered this if it was asked.
    pub fn go_on(
        &mut self,
        node: &Node,
        (region, content, room): (u64, &[u8], usize),
        mut came: Option<Answered>,
    ) -> Action<Result<Object<T>, AllocError>, Asks> {
        let (region, len) = (Tag(region), content.len().max(room));
        loop {
            match self {
                Making::New => {
                    if !region.is_under(Contract::Object) {
                        let wrong = AccessError::wrong_contract(region, Contract::Object);
                        return Action::Over(Err(wrong));
                    }
                    if len > MAX_OBJECT {
                        let most = MAX_OBJECT;
                        return Action::Over(Ok(Err(AllocError::TooLarge { len, most })));
                    }
                    match node.open_now() {
                        Some(Ok(())) => *self = Making::Given,
                        Some(Err(error)) => return Action::Over(Err(error.into())),
                        None => return Action::Later(RackError::NoLease.into()),
                    }
                }
                Making::Given => {
                    let wanted = Command::Alloc(region, len as u32);
                    let given = node.inner.access.give_object(wanted, came.take());
                    let at = match given.over() {
                        Ok(Ok(Ok(at))) => at,
                        Ok(Ok(Err(error))) => return Action::Over(Ok(Err(error))),
                        Ok(Err(error)) => return Action::Over(Err(error)),
                        Err(next) => return next,
                    };
                    let object = Object::new(node, at);
                    // Zeros are there already.
                    if content.len() == len && content.iter().all(|byte| *byte == 0) {
                        return Action::Over(Ok(Ok(object)));
                    }
                    *self = Making::Writes(object, Writing::new(0));
                }
                Making::Writes(object, writing) => {
                    match writing.go_on(object, came.take(), content).over() {
                        Ok(Ok(_)) => return Action::Over(Ok(Ok(object.clone()))),
                        Ok(Err(error)) => *self = Making::Frees(object.clone(), error),
                        Err(next) => return next,
                    }
                }
                Making::Frees(object, error) => {
                    return match object.free_on(came.take()).over() {
                        Ok(_) => Action::Over(Err(*error)),
                        Err(next) => next,
                    };
                }
            }
        }
    }
}

/// What the steps of a making come to.
pub(super) type Made<T> = Result<Object<T>, AllocError>;

/// The same as a value that nobody need wait for: what it makes is freed if nobody takes it.
pub(super) struct MakingAlone<T: ?Sized> {
    pub node: Node,
    /// Where the region begins.
    pub region: u64,
    pub content: Vec<u8>,
    pub room: usize,
    pub making: Making<T>,
}

impl<T: ?Sized> Operation<Made<T>, Asks> for MakingAlone<T> {
    fn go_on(&mut self, came: Option<Answered>) -> Action<Made<T>, Asks> {
        let of = (self.region, &self.content[..], self.room);
        self.making.go_on(&self.node, of, came)
    }

    fn owes(&self, asked: bool) -> bool {
        self.making.owes(asked)
    }

    fn take_back(&mut self, over: Result<Made<T>, AccessError>) -> bool {
        let Ok(Ok(object)) = over else {
            return false;
        };
        let nobody_hears = object.gone();
        self.making = Making::Frees(object, nobody_hears);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::driving::errand::Asked;
    use crate::membership::term::Term;
    use crate::{Contract, Rack, RegionSpec};
    use std::future::Future;
    use std::pin::Pin;
    use std::sync::Arc;
    use std::task::{Context, Waker};
    use std::time::{Duration, Instant};

    fn is_pending<F: Future + Unpin>(future: &mut F) -> bool {
        let mut context = Context::from_waker(Waker::noop());
        Pin::new(future).poll(&mut context).is_pending()
    }

    /// The lease is late when an object has been given and is to get its content, and there are as
    /// many operations as may be: it is freed all the same.
    #[test]
    fn for_what_is_owed_there_is_always_room() {
        let rack = Rack::local(1).unwrap();
        let node = rack.node(0);
        let spec = RegionSpec::new("objects", 1 << 20).contract(Contract::Object);
        let region = node.create_region(&spec).unwrap();
        let [given, other]: [Object<u64>; 2] = [1, 2].map(|value| region.alloc(value).unwrap());
        let term = Arc::new(Term::default());
        node.inner.access.standing.lease(term.clone());
        let mut full: Vec<_> = (0..4096).map(|_| other.write_async(3)).collect();
        assert!(full.iter_mut().all(is_pending));
        assert!(!is_pending(&mut other.write_async(4)), "it is refused");
        let alone = MakingAlone {
            node: node.clone(),
            region: region.addr(),
            content: vec![5; 8],
            room: 0,
            making: Making::Writes(given.clone(), Writing::new(0)),
        };
        let mut making = Asked::of(&node.inner, alone);
        assert!(is_pending(&mut making));
        drop((making, full));
        term.set(u64::MAX);
        let (began, gone) = (Instant::now(), Err(given.gone()));
        while given.read() != gone {
            assert!(began.elapsed() < Duration::from_secs(60), "it is left");
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}
