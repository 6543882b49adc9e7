//! What is done with maps, as futures.

use super::finding::Finding;
use super::updating::Changing;
use super::{Map, search};
use crate::bytes::window::Window;
use crate::error::{AccessError, AllocError};
use crate::host::driving::errand::{Action, Asked, Operation};
use crate::host::driving::several::Several;
use crate::host::objects::{Answered, Asks};
use std::future::Future;

/// What a change has come to: the value that was there.
type Changed = Result<Option<Vec<u8>>, AllocError>;

/// A change, as a value that nobody need wait for.
struct Change<F> {
    map: Map,
    key: Vec<u8>,
    f: F,
    changing: Changing,
}

impl<F> Operation<Changed, Asks> for Change<F>
where
    F: FnMut(Option<&[u8]>) -> Option<Vec<u8>>,
{
    fn go_on(&mut self, came: Option<Answered>) -> Action<Changed, Asks> {
        let of = self.map.of(&self.key);
        let which = (&self.map, &of, &self.key[..]);
        self.changing.go_on(which, &mut self.f, came)
    }

    fn owes(&self, asked: bool) -> bool {
        self.changing.owes(asked)
    }
}

impl Map {
    /// [`Map::get`] as a future: see [the page on futures](crate::futures). Where this process has
    /// the bucket's memory it is ready at the first poll.
    ///
    /// # Errors
    /// Those of [`Map::get`]; [`AccessError::TooManyAsked`].
    pub fn get_async(
        &self,
        key: &[u8],
    ) -> impl Future<Output = Result<Option<Vec<u8>>, AccessError>> + Send + Unpin + use<> {
        let (map, key) = (self.clone(), key.to_vec());
        let (mut finding, mut value) = (Finding::new(&self.of(&key)), Vec::new());
        Asked::new(&self.shape.node.inner, move |came: Option<Answered>| {
            let of = map.of(&key);
            let mut look = |view: &Window<'_>| search(view, of.hash, &key, &mut value);
            let found = finding.go_on((&map, &of), &mut look, came);
            found.and_then(|found| Ok(found.then(|| std::mem::take(&mut value))))
        })
    }

    /// [`Map::get_many`] as a future: the values of several keys, in their order. See [the page on
    /// futures](crate::futures). Up to sixteen of them are looked up at a time,
    /// and count as so many operations of the node; what is wrong with one does not concern the
    /// others.
    pub fn get_many_async(
        &self,
        keys: &[&[u8]],
    ) -> impl Future<Output = Vec<Result<Option<Vec<u8>>, AccessError>>> + Send + use<> {
        let keys: Vec<Vec<u8>> = keys.iter().map(|key| key.to_vec()).collect();
        let (map, keys) = (self.clone(), keys.into_iter());
        Several::new(keys.map(move |key| map.get_async(&key))).all()
    }

    /// [`Map::insert`] as a future: the value that the key had. See [`Map::update_async`].
    ///
    /// # Errors
    /// Those of [`Map::insert`]; [`AccessError::TooManyAsked`].
    pub fn insert_async(
        &self,
        key: &[u8],
        value: Vec<u8>,
    ) -> impl Future<Output = Result<Option<Vec<u8>>, AllocError>> + Send + use<> {
        self.update_async(key, move |_| Some(value.clone()))
    }

    /// [`Map::remove`] as a future: the value that the key had. See [`Map::update_async`].
    ///
    /// # Errors
    /// Those of [`Map::remove`]; [`AccessError::TooManyAsked`].
    pub fn remove_async(
        &self,
        key: &[u8],
    ) -> impl Future<Output = Result<Option<Vec<u8>>, AllocError>> + Send + use<> {
        self.update_async(key, |_| None)
    }

    /// [`Map::update`] as a future: the value that the key had. `f` may run several times, and what
    /// it did counts once; where a home is asked, a thread of the node runs it.
    ///
    /// If it is dropped the change is made, all of it, or it is not. One that has begun to make a
    /// tail of a bucket goes on to its end without anybody, and counts as an operation of the node
    /// until then: so no object is left that nobody finds.
    ///
    /// # Errors
    /// Those of [`Map::update`]; [`AccessError::TooManyAsked`].
    pub fn update_async<F>(
        &self,
        key: &[u8],
        f: F,
    ) -> impl Future<Output = Result<Option<Vec<u8>>, AllocError>> + Send + use<F>
    where
        F: FnMut(Option<&[u8]>) -> Option<Vec<u8>> + Send + 'static,
    {
        let (map, key) = (self.clone(), key.to_vec());
        let changing = Changing::of_future(&self.of(&key));
        let change = Change {
            map,
            key,
            f,
            changing,
        };
        let asked = Asked::of(&self.shape.node.inner, change);
        async move {
            match asked.await {
                Ok(changed) => changed,
                Err(error) => Err(error.into()),
            }
        }
    }
}
