//! A change of an object as one step: a read, and a write that counts if nobody has written since.

use super::reading::Reading;
use super::writing::Writing;
use super::{Content, Object, Retry};
use crate::bytes::value::Value;
use crate::error::AccessError;
use crate::host::driving::errand::Action;
use crate::host::objects::{Answered, Asks};

/// See the module: between two of its steps.
pub(super) enum Updating<T> {
    Reads(Reading),
    Writes(Writing, T),
}

impl<T: Value> Updating<T> {
    pub fn new(object: &Object<T>) -> Self {
        Updating::Reads(Reading::new(object.expected(0), Retry::default()))
    }

    /// What is to be done next, when the home has answered this if it was asked. `f` may run
    /// several times.
    pub fn go_on(
        &mut self,
        object: &Object<T>,
        mut came: Option<Answered>,
        f: &mut impl FnMut(&mut T),
    ) -> Action<u64, Asks> {
        loop {
            match self {
                Updating::Reads(reading) => {
                    let read = reading.go_on(object, came.take(), &mut T::copied);
                    let read = read.and_then(|(version, seen)| object.whole(version, seen));
                    match read {
                        Action::Over(Ok(Some((version, mut value)))) => {
                            f(&mut value);
                            *self = Updating::Writes(Writing::new(version), value);
                        }
                        Action::Over(Ok(None)) => return Action::Over(Err(object.gone())),
                        other => return other.and_then(|_| Err(object.gone())),
                    }
                }
                Updating::Writes(writing, value) => {
                    match writing.go_on(object, came.take(), value.as_bytes()) {
                        // Somebody has written since.
                        Action::Over(Ok(Err(_))) => {
                            *self = Updating::new(object);
                            let addr = object.addr();
                            return Action::Later(AccessError::Busy { addr });
                        }
                        other => return other.and_then(|new| new.or(Err(object.gone()))),
                    }
                }
            }
        }
    }
}
