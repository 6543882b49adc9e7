//! Objects that are bytes, of a length that a write may change.

use super::{Object, Retry};
use crate::error::AccessError;

/// Bytes instead of a value: an object's length is that of what was written last, and at most what
/// there was room for when it was made.
impl Object<[u8]> {
    /// All of it, as one write has left it, at a moment since the call.
    ///
    /// # Errors
    /// As [`Object::read`] of a value.
    pub fn read(&self) -> Result<Vec<u8>, AccessError> {
        Ok(self.read_versioned()?.1)
    }

    /// The same, and which version it is.
    pub fn read_versioned(&self) -> Result<(u64, Vec<u8>), AccessError> {
        let newer = self.read_bytes(0, Retry::default())?;
        newer.ok_or_else(|| self.gone())
    }

    /// The same, tried so often; see [`Retry`].
    pub fn read_with(&self, retry: Retry) -> Result<Vec<u8>, AccessError> {
        let newer = self.read_bytes(0, retry)?;
        newer.map(|(_, bytes)| bytes).ok_or_else(|| self.gone())
    }

    /// Reads it into bytes that are there, exactly as many as it has; its version.
    ///
    /// # Errors
    /// [`AccessError::OtherSize`] where it has more or less; those of [`Object::read`].
    #[inline]
    pub fn read_into(&self, bytes: &mut [u8], retry: Retry) -> Result<u64, AccessError> {
        let newer = self.read_newer(0, bytes, retry)?;
        newer.ok_or_else(|| self.gone())
    }

    /// What has been written since this version; `None` if nothing has.
    pub fn read_if_newer(&self, version: u64) -> Result<Option<(u64, Vec<u8>)>, AccessError> {
        self.read_bytes(version, Retry::default())
    }

    fn read_bytes(&self, known: u64, retry: Retry) -> Result<Option<(u64, Vec<u8>)>, AccessError> {
        let mut bytes = Vec::new();
        let (version, seen) = self.look(self.known(known), retry, |view| {
            bytes.resize(view.len(), 0);
            view.read(0, &mut bytes);
        })?;
        Ok(seen.map(|()| (version, bytes)))
    }

    /// Replaces it; its new version.
    ///
    /// # Errors
    /// [`AccessError::OtherSize`] where there is no room for so many bytes; those of
    /// [`Object::write`] of a value.
    pub fn write(&self, bytes: &[u8]) -> Result<u64, AccessError> {
        self.replaced(self.put(0, bytes)?)
    }

    /// Replaces it if it still has this version: the new one, or in `Err` the one that it has.
    ///
    /// # Errors
    /// Those of [`Object::write`].
    pub fn write_if(&self, version: u64, bytes: &[u8]) -> Result<Result<u64, u64>, AccessError> {
        self.put(version, bytes)
    }
}
