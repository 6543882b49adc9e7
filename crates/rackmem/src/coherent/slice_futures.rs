//! What is done with elements of a [`SharedSlice`], as futures.

use super::slice::{SharedSlice, reading, writing};
use crate::bytes::value::Value;
use crate::error::{AccessError, BulkError, BulkResult};
use crate::host::driving::several::Several;
use std::future::Future;
use std::ops::Range;
use zerocopy::IntoBytes;

/// Address and length of each block's part of a range.
fn parts(block: usize, addr: u64, len: usize) -> impl Iterator<Item = (u64, usize)> + Send {
    let end = addr + len as u64;
    let mut at = addr;
    std::iter::from_fn(move || {
        let left = block - at as usize % block;
        let part = (at < end).then(|| (at, left.min((end - at) as usize)))?;
        at += part.1 as u64;
        Some(part)
    })
}

impl<T: Value> SharedSlice<T> {
    /// [`SharedSlice::get`] as a future: see [the page on futures](crate::futures).
    ///
    /// # Errors
    /// Those of [`SharedSlice::get`]; [`AccessError::TooManyAsked`].
    pub fn get_async(
        &self,
        at: usize,
    ) -> impl Future<Output = Result<T, AccessError>> + Send + use<T> {
        let read = self.read_async(at..at.saturating_add(1));
        async move {
            match read.await {
                Ok(value) => Ok(value.first().copied().unwrap_or_else(T::new_zeroed)),
                Err(bulk) => Err(bulk.error),
            }
        }
    }

    /// [`SharedSlice::set`] as a future: see [the page on futures](crate::futures).
    ///
    /// # Errors
    /// Those of [`SharedSlice::set`]; [`AccessError::TooManyAsked`].
    pub fn set_async(
        &self,
        at: usize,
        value: T,
    ) -> impl Future<Output = BulkResult<()>> + Send + use<T> {
        self.write_async(at, vec![value])
    }

    /// These elements, as a future: see [the page on futures](crate::futures). Blocks that other
    /// nodes have are brought to this node's cache, up to sixteen at a time. Each block's part is
    /// as it was at one moment.
    ///
    /// # Errors
    /// Those of [`SharedSlice::to_vec`]; [`AccessError::TooManyAsked`].
    pub fn read_async(
        &self,
        range: Range<usize>,
    ) -> impl Future<Output = BulkResult<Vec<T>>> + Send + use<T> {
        let place = self.within(range.start, range.len());
        let (node, block) = (self.node().clone(), self.node().block_size());
        async move {
            let addr = place.map_err(reading)?;
            let mut values = vec![T::new_zeroed(); range.len()];
            let (bytes, mut done) = (values.as_mut_bytes(), 0);
            let snapshot = |(part, len)| {
                node.snapshot_async(part, len, move |view| {
                    let mut bytes = vec![0; len];
                    view.read(0, &mut bytes);
                    bytes
                })
            };
            let mut parts = Several::new(parts(block, addr, bytes.len()).map(snapshot));
            while let Some(part) = parts.next().await {
                let part = part.map_err(|error| BulkError::reading(Self::elements(done), error))?;
                bytes[done..][..part.len()].copy_from_slice(&part);
                done += part.len();
            }
            Ok(values)
        }
    }

    /// Writes elements from one on, as a future: see [the page on futures](crate::futures). Each
    /// block's part is written at one moment, in this node's cache, where up to sixteen blocks are
    /// brought at a time.
    ///
    /// # Errors
    /// Those of [`SharedSlice::write_from`]; [`AccessError::TooManyAsked`].
    pub fn write_async(
        &self,
        at: usize,
        values: Vec<T>,
    ) -> impl Future<Output = BulkResult<()>> + Send + use<T> {
        let place = self.within(at, values.len());
        let (node, block) = (self.node().clone(), self.node().block_size());
        async move {
            let addr = place.map_err(writing)?;
            let (all, mut done) = (values.as_bytes(), 0);
            let write = |(part, len)| {
                let bytes = all[(part - addr) as usize..][..len].to_vec();
                node.update_async(part, len, move |view| {
                    view.write(0, &bytes);
                    len
                })
            };
            let mut parts = Several::new(parts(block, addr, all.len()).map(write));
            while let Some(part) = parts.next().await {
                done += part.map_err(|error| BulkError::writing(Self::elements(done), error))?;
            }
            Ok(())
        }
    }

    /// [`SharedSlice::update`] as a future: see [the page on futures](crate::futures).
    ///
    /// # Errors
    /// Those of [`SharedSlice::update`]; [`AccessError::TooManyAsked`].
    pub fn update_async<R, F>(
        &self,
        range: Range<usize>,
        f: F,
    ) -> impl Future<Output = Result<R, AccessError>> + Send + use<T, R, F>
    where
        R: Send + 'static,
        F: FnOnce(&mut [T]) -> R + Send + 'static,
    {
        let (place, len) = (self.within(range.start, range.len()), range.len());
        let node = self.node().clone();
        async move {
            let update = node.update_async(place?, size_of::<T>() * len, move |view| {
                let mut values = vec![T::new_zeroed(); len];
                view.read(0, values.as_mut_bytes());
                let result = f(&mut values);
                view.write(0, values.as_bytes());
                result
            });
            update.await
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_cut_where_blocks_begin() {
        let all = |addr, len| parts(64, addr, len).collect::<Vec<_>>();
        assert_eq!(all(64, 64), [(64, 64)]);
        assert_eq!(all(60, 8), [(60, 4), (64, 4)]);
        assert_eq!(all(130, 130), [(130, 62), (192, 64), (256, 4)]);
        assert_eq!(all(130, 0), []);
    }
}
