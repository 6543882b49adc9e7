//! What is done with lines, as futures.

use super::Replicated;
use crate::bytes::value::Value;
use crate::error::AccessError;
use crate::host::driving::errand::{Asked, Came};
use crate::host::replicated::Asks;
use std::future::Future;

impl<T: Value> Replicated<T> {
    /// [`Replicated::read`] as a future: see [the page on futures](crate::futures).
    ///
    /// # Errors
    /// Those of [`Replicated::read`]; [`AccessError::TooManyAsked`].
    pub fn read_async(
        &self,
    ) -> impl Future<Output = Result<T, AccessError>> + Send + Unpin + use<T> {
        let line = self.clone();
        Asked::new(&self.node.inner, move |came: Option<Came<Asks>>| {
            line.go_on(came, || line.asks_read(), |bytes| line.value(bytes))
        })
    }

    /// [`Replicated::write`] as a future: see [the page on futures](crate::futures). If it is
    /// dropped the line is written, all of it, or it is not; it may be later.
    ///
    /// # Errors
    /// Those of [`Replicated::write`]; [`AccessError::TooManyAsked`].
    pub fn write_async(
        &self,
        value: T,
    ) -> impl Future<Output = Result<(), AccessError>> + Send + Unpin + use<T> {
        let line = self.clone();
        Asked::new(&self.node.inner, move |came: Option<Came<Asks>>| {
            line.go_on(came, || line.asks_write(&value), |_| Ok(()))
        })
    }
}
