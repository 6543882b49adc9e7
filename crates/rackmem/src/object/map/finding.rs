//! A lookup, step by step: a read of the bucket's head, and of its tail if the key may be there.

use super::bucket::Seen;
use super::{Map, Object, Of};
use crate::bytes::window::Window;
use crate::error::AccessError;
use crate::host::driving::errand::Action;
use crate::host::objects::{Answered, Asks};
use crate::object::Retry;
use crate::object::reading::Reading;

/// A lookup, between two of its steps.
pub(super) struct Finding {
    reading: Reading,
    /// The object of the bucket's tail that is read; none: its head.
    tail: Option<Object<[u8]>>,
    /// What a look into that has found already.
    seen: Option<Seen>,
}

fn reading(object: &Object<[u8]>) -> Reading {
    Reading::new(object.known(0), Retry::default())
}

impl Finding {
    pub fn new(of: &Of<'_>) -> Self {
        Finding {
            reading: reading(of.head),
            tail: None,
            seen: None,
        }
    }

    /// One that has read the head, and has found this there.
    pub fn after(of: &Of<'_>, seen: Seen) -> Self {
        let seen = Some(seen);
        Finding {
            seen,
            ..Finding::new(of)
        }
    }

    /// What is to be done next, when a home has answered this if it was asked. It comes to whether
    /// the key is there; `look` has its value then.
    #[inline]
    pub fn go_on(
        &mut self,
        (map, of): (&Map, &Of<'_>),
        look: &mut impl FnMut(&Window<'_>) -> Seen,
        mut came: Option<Answered>,
    ) -> Action<bool, Asks> {
        loop {
            let seen = match self.seen.take() {
                Some(seen) => seen,
                None => {
                    let object = self.tail.as_ref().unwrap_or(of.head);
                    match self.reading.go_on(object, came.take(), look).over() {
                        Ok(Ok((_, Some(seen)))) => seen,
                        Ok(Ok((_, None))) => return Action::Over(Err(object.gone())),
                        // Who has changed the bucket has freed it: the head names another one.
                        Ok(Err(AccessError::Gone { .. })) if self.tail.is_some() => {
                            *self = Finding::new(of);
                            let addr = of.head.addr();
                            return Action::Later(AccessError::Busy { addr });
                        }
                        Ok(Err(error)) => return Action::Over(Err(error)),
                        Err(next) => return next,
                    }
                }
            };
            let at = match seen {
                Seen::Value { .. } => return Action::Over(Ok(true)),
                Seen::Absent => return Action::Over(Ok(false)),
                Seen::Freed => return Action::Over(Err(of.head.gone())),
                Seen::Tail(at) => at,
            };
            let tail = match map.shape.node.attach_object::<[u8]>(at) {
                Ok(tail) => tail,
                Err(error) => return Action::Over(Err(error)),
            };
            self.reading = reading(&tail);
            self.tail = Some(tail);
        }
    }
}
