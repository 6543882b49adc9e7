//! A write: by this thread where the object's home is this node, else by its home.

use super::Object;
use crate::backoff::Backoff;
use crate::bytes::objects::{Place, change};
use crate::bytes::whole;
use crate::error::AccessError;
use crate::host::objects::{count, unlike};
use rackmem_proto::sabre::rule::is_odd;
use rackmem_proto::sabre::{Command, Outcome};
use rackmem_proto::wire::Reason;

impl<T: ?Sized> Object<T> {
    /// Replaces the object if it has this version, or whichever it has if that is 0: its new one,
    /// or in `Err` the one that it has.
    pub(super) fn put(&self, expected: u64, bytes: &[u8]) -> Result<Result<u64, u64>, AccessError> {
        self.node.open()?;
        let access = &self.node.inner.access;
        let own = access.has_home_of(self.at.tag);
        let written = match (&self.place, own) {
            (Some(place), true) => self.put_here(place, expected, bytes)?,
            (None, true) => return Err(access.no_object(self.at.tag)),
            (_, false) => {
                let command = Command::Write(self.at, expected, bytes.len() as u32);
                let (outcome, _) = access.ask_until_free(command, bytes)?;
                match outcome {
                    Outcome::Written(version) => Ok(version),
                    Outcome::Conflict(version) => Err(version),
                    Outcome::Refused(Reason::Refused) => return Err(self.too_long(bytes.len())),
                    outcome => return Err(unlike(outcome, self.at.tag)),
                }
            }
        };
        if written.is_err() {
            count(&access.agents.objects.counters.conflicts);
        }
        // It may have been the process of a home that the rack goes on without.
        let addr = self.at.tag.0;
        match access.confirm() {
            Err(_) if own && written.is_ok() => Err(AccessError::Interrupted { addr }),
            confirmed => confirmed.map(|()| written).map_err(Into::into),
        }
    }

    fn put_here(
        &self,
        place: &Place,
        expected: u64,
        bytes: &[u8],
    ) -> Result<Result<u64, u64>, AccessError> {
        if bytes.len() > place.room() {
            return Err(self.too_long(bytes.len()));
        }
        let words = place.words();
        let mut backoff = Backoff::new(self.node.inner.access.patience);
        loop {
            let version = whole::version(words);
            let other = expected != 0 && expected != version;
            if !is_odd(version) && whole::take(words, version) {
                let meta = whole::meta(words);
                let gone = !meta.live || meta.generation != self.at.generation;
                if gone || other {
                    whole::release(words, version);
                    return if gone {
                        Err(self.gone())
                    } else {
                        Ok(Err(version))
                    };
                }
                return Ok(Ok(change(words, version, bytes)));
            }
            if !backoff.wait() {
                return Err(AccessError::Busy {
                    addr: self.at.tag.0,
                });
            }
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
