//! A write: by whoever carries it out where the object's home is this node, else by its home.

use super::{MAX_OBJECT, Object};
use crate::bytes::objects::{Place, change};
use crate::bytes::whole;
use crate::error::{AccessError, RackError};
use crate::host::driving::errand::Action;
use crate::host::objects::{Answered, Asks, count, unlike};
use rackmem_proto::sabre::rule::is_odd;
use rackmem_proto::sabre::{Command, Outcome};
use rackmem_proto::wire::Reason;

/// The object's new version, or in `Err` the one that it has.
pub(super) type Written = Result<u64, u64>;

impl<T: ?Sized> Object<T> {
    /// Replaces the object if it has this version, or whichever it has if that is 0.
    pub(super) fn put(&self, expected: u64, bytes: &[u8]) -> Result<Written, AccessError> {
        let mut writing = Writing::new(expected);
        self.call(|came| writing.go_on(self, came, bytes))
    }

    /// The version of a write that has minded none.
    pub(super) fn replaced(&self, written: Written) -> Result<u64, AccessError> {
        written.or(Err(AccessError::Busy {
            addr: self.at.tag.0,
        }))
    }

    /// `None`: a writer is in.
    fn put_here(
        &self,
        place: &Place,
        expected: u64,
        bytes: &[u8],
    ) -> Result<Option<Written>, AccessError> {
        if bytes.len() > place.room() {
            return Err(self.too_long(bytes.len()));
        }
        let words = place.words();
        let version = whole::version(words);
        if is_odd(version) || !whole::take(words, version) {
            return Ok(None);
        }
        let meta = whole::meta(words);
        if !meta.live || meta.generation != self.at.generation {
            whole::release(words, version);
            return Err(self.gone());
        }
        if expected != 0 && expected != version {
            whole::release(words, version);
            return Ok(Some(Err(version)));
        }
        Ok(Some(Ok(change(words, version, bytes))))
    }

    /// What its home has answered. `None`: a writer is in.
    fn put_there(&self, answered: Answered, len: usize) -> Result<Option<Written>, AccessError> {
        match answered?.0 {
            Outcome::Written(version) => Ok(Some(Ok(version))),
            Outcome::Conflict(version) => Ok(Some(Err(version))),
            Outcome::Refused(Reason::Locked) => Ok(None),
            Outcome::Refused(Reason::Refused) => Err(self.too_long(len)),
            outcome => Err(unlike(outcome, self.at.tag)),
        }
    }

    fn too_long(&self, len: usize) -> AccessError {
        let place = self.place.as_ref();
        AccessError::OtherSize {
            addr: self.at.tag.0,
            len,
            is: place.map_or(0, Place::room),
        }
    }
}

/// A write, between two of its attempts.
pub(super) struct Writing {
    /// The version that is replaced; 0: whichever is there.
    expected: u64,
    /// It has come to this, which is told once there is a lease.
    written: Option<Written>,
}

impl Writing {
    pub fn new(expected: u64) -> Self {
        let written = None;
        Writing { expected, written }
    }

    /// What is to be done next, when the home has answered this if it was asked.
    pub fn go_on<T: ?Sized>(
        &mut self,
        object: &Object<T>,
        came: Option<Answered>,
        bytes: &[u8],
    ) -> Action<Written, Asks> {
        if let Some(written) = self.written {
            return Self::confirm(object, written);
        }
        if bytes.len() > MAX_OBJECT {
            return Action::Over(Err(AccessError::OtherSize {
                addr: object.at.tag.0,
                len: bytes.len(),
                is: MAX_OBJECT,
            }));
        }
        let access = &object.node.inner.access;
        let own = access.has_home_of(object.at.tag);
        let written = match (came, &object.place) {
            (Some(answered), _) => object.put_there(answered, bytes.len()),
            (None, place) => {
                match object.node.open_now() {
                    Some(Ok(())) => {}
                    Some(Err(error)) => return Action::Over(Err(error.into())),
                    None => return Action::Later(RackError::NoLease.into()),
                }
                match place {
                    Some(place) if own => object.put_here(place, self.expected, bytes),
                    None if own => Err(access.no_object(object.at.tag)),
                    _ => {
                        let len = bytes.len() as u32;
                        let command = Command::Write(object.at, self.expected, len);
                        let value = bytes.to_vec();
                        return Action::Ask(Asks { command, value });
                    }
                }
            }
        };
        match written {
            Ok(Some(written)) => {
                if written.is_err() {
                    count(&access.agents.objects.counters.conflicts);
                }
                self.written = Some(written);
                Self::confirm(object, written)
            }
            Ok(None) => Action::Later(AccessError::Busy {
                addr: object.at.tag.0,
            }),
            Err(error) => Action::Over(Err(error)),
        }
    }

    /// It may have been the process of a home that the rack goes on without.
    fn confirm<T: ?Sized>(object: &Object<T>, written: Written) -> Action<Written, Asks> {
        let access = &object.node.inner.access;
        let own = access.has_home_of(object.at.tag) && written.is_ok();
        let error = |error: RackError| match own {
            true => AccessError::Interrupted {
                addr: object.at.tag.0,
            },
            false => error.into(),
        };
        match access.confirm_now() {
            Some(Ok(())) => Action::Over(Ok(written)),
            Some(Err(fenced)) => Action::Over(Err(error(fenced))),
            None => Action::Later(error(RackError::NoLease)),
        }
    }
}
