//! What is done with objects, as futures.

use super::making::{Making, MakingAlone};
use super::reading::Reading;
use super::updating::Updating;
use super::writing::{Writing, Written};
use super::{Content, Object, Retry};
use crate::bytes::value::Value;
use crate::error::{AccessError, AllocError};
use crate::host::driving::errand::Asked;
use crate::host::driving::several::Several;
use crate::host::objects::Answered;
use crate::node::Node;
use std::future::Future;

impl<T: Content + ?Sized + 'static> Object<T> {
    /// [`Object::read`] as a future: see [the page on futures](crate::futures).
    ///
    /// # Errors
    /// Those of [`Object::read`]; [`AccessError::TooManyAsked`].
    pub fn read_async(
        &self,
    ) -> impl Future<Output = Result<T::Owned, AccessError>> + Send + Unpin + use<T> {
        self.read_as(0, |object, newer| {
            let newer = newer.ok_or_else(|| object.gone());
            newer.map(|(_, value)| value)
        })
    }

    /// The same with its version.
    ///
    /// # Errors
    /// Those of [`Object::read_async`].
    pub fn read_versioned_async(
        &self,
    ) -> impl Future<Output = Result<(u64, T::Owned), AccessError>> + Send + Unpin + use<T> {
        self.read_as(0, |object, newer| newer.ok_or_else(|| object.gone()))
    }

    /// [`Object::read_if_newer`] as a future: what has been written since this version; `None` if
    /// nothing has.
    ///
    /// # Errors
    /// Those of [`Object::read_async`].
    pub fn read_if_newer_async(
        &self,
        version: u64,
    ) -> impl Future<Output = Result<Option<(u64, T::Owned)>, AccessError>> + Send + Unpin + use<T>
    {
        self.read_as(version, |_, newer| Ok(newer))
    }

    /// `then`: what a read of something newer comes to, or of what is known.
    fn read_as<R, F>(
        &self,
        known: u64,
        then: F,
    ) -> impl Future<Output = Result<R, AccessError>> + Send + Unpin + use<T, R, F>
    where
        R: Send + 'static,
        F: Fn(&Self, Option<(u64, T::Owned)>) -> Result<R, AccessError> + Send + 'static,
    {
        let object = self.clone();
        let mut reading = Reading::new(self.expected(known), Retry::default());
        Asked::new(&self.node.inner, move |came: Option<Answered>| {
            let read = reading.go_on(&object, came, &mut T::copied);
            read.and_then(|(version, seen)| then(&object, object.whole(version, seen)?))
        })
    }

    /// Writes `bytes` of a value where this version is; `then`: what that comes to.
    fn put_async<V, B, R, F>(
        &self,
        (expected, value): (u64, V),
        bytes: B,
        then: F,
    ) -> impl Future<Output = Result<R, AccessError>> + Send + Unpin + use<T, V, B, R, F>
    where
        V: Send + 'static,
        B: Fn(&V) -> &[u8] + Send + 'static,
        R: Send + 'static,
        F: Fn(&Self, Written) -> Result<R, AccessError> + Send + 'static,
    {
        let object = self.clone();
        let mut writing = Writing::new(expected);
        Asked::new(&self.node.inner, move |came: Option<Answered>| {
            let written = writing.go_on(&object, came, bytes(&value));
            written.and_then(|written| then(&object, written))
        })
    }
}

impl<T: ?Sized + 'static> Object<T> {
    /// [`Object::free`] as a future: see [the page on futures](crate::futures). If it is dropped
    /// before it is ready the object is freed or it is not, as another handle says: a clone.
    ///
    /// # Errors
    /// Those of [`Object::free`]; [`AccessError::TooManyAsked`], and then it is not.
    pub fn free_async(
        self,
    ) -> impl Future<Output = Result<(), AccessError>> + Send + Unpin + use<T> {
        let inner = self.node.inner.clone();
        Asked::new(&inner, move |came: Option<Answered>| self.free_on(came))
    }
}

impl<T: Value> Object<T> {
    /// [`Object::write`] as a future: its new version. See [the page on futures](crate::futures).
    ///
    /// # Errors
    /// Those of [`Object::write`]; [`AccessError::TooManyAsked`].
    pub fn write_async(
        &self,
        value: T,
    ) -> impl Future<Output = Result<u64, AccessError>> + Send + Unpin + use<T> {
        let of = (0, value);
        self.put_async(of, T::as_bytes, Object::replaced)
    }

    /// [`Object::write_if`] as a future: the new version, or in `Err` the one that it has.
    ///
    /// # Errors
    /// Those of [`Object::write_async`].
    pub fn write_if_async(
        &self,
        version: u64,
        value: T,
    ) -> impl Future<Output = Result<Result<u64, u64>, AccessError>> + Send + Unpin + use<T> {
        let of = (version, value);
        self.put_async(of, T::as_bytes, |_, written| Ok(written))
    }

    /// [`Object::update`] as a future: its new version. `f` may run several times, and what it did
    /// counts once; where the home is asked, a thread of the node runs it. If the future is dropped
    /// the change is made, all of it, or it is not.
    ///
    /// # Errors
    /// Those of [`Object::update`]; [`AccessError::TooManyAsked`].
    pub fn update_async<F>(
        &self,
        mut f: F,
    ) -> impl Future<Output = Result<u64, AccessError>> + Send + Unpin + use<T, F>
    where
        F: FnMut(&mut T) + Send + 'static,
    {
        let object = self.clone();
        let mut updating = Updating::new(self);
        Asked::new(&self.node.inner, move |came: Option<Answered>| {
            updating.go_on(&object, came, &mut f)
        })
    }
}

impl Object<[u8]> {
    /// [`Object::write`] as a future: its new version. See [the page on futures](crate::futures).
    ///
    /// # Errors
    /// Those of [`Object::write`]; [`AccessError::TooManyAsked`].
    pub fn write_async(
        &self,
        bytes: Vec<u8>,
    ) -> impl Future<Output = Result<u64, AccessError>> + Send + Unpin + use<> {
        let of = (0, bytes);
        self.put_async(of, Vec::as_slice, Object::replaced)
    }

    /// [`Object::write_if`] as a future: the new version, or in `Err` the one that it has.
    ///
    /// # Errors
    /// Those of [`Object::write_async`].
    pub fn write_if_async(
        &self,
        version: u64,
        bytes: Vec<u8>,
    ) -> impl Future<Output = Result<Result<u64, u64>, AccessError>> + Send + Unpin + use<> {
        let of = (version, bytes);
        self.put_async(of, Vec::as_slice, |_, written| Ok(written))
    }
}

impl Node {
    /// [`Node::new_object`] as a future.
    pub(crate) fn new_object_async<T: ?Sized + 'static>(
        &self,
        region: u64,
        content: Vec<u8>,
        room: usize,
    ) -> impl Future<Output = Result<Object<T>, AllocError>> + Send + use<T> {
        let alone = MakingAlone {
            node: self.clone(),
            region,
            content,
            room,
            making: Making::New,
        };
        let asked = Asked::of(&self.inner, alone);
        async move { asked.await? }
    }

    /// [`Node::read_many`] as a future: each object with its version, in the order of the handles.
    /// See [the page on futures](crate::futures). Up to sixteen of them are asked for at a time,
    /// and count as so many operations of the node.
    ///
    /// ```
    /// # use std::future::Future;
    /// # use std::sync::Arc;
    /// # use std::task::{Context, Poll, Wake, Waker};
    /// # struct Unpark(std::thread::Thread);
    /// # impl Wake for Unpark {
    /// #     fn wake(self: Arc<Self>) {
    /// #         self.0.unpark();
    /// #     }
    /// # }
    /// # /// Your executor's.
    /// # fn block_on<F: Future>(future: F) -> F::Output {
    /// #     let mut future = std::pin::pin!(future);
    /// #     let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    /// #     loop {
    /// #         match future.as_mut().poll(&mut Context::from_waker(&waker)) {
    /// #             Poll::Ready(done) => return done,
    /// #             Poll::Pending => std::thread::park(),
    /// #         }
    /// #     }
    /// # }
    /// # fn main() -> rackmem::Result<()> {
    /// use rackmem::object::Object;
    /// use rackmem::{Contract, Rack, RegionSpec};
    ///
    /// let rack = Rack::local(2)?;
    /// let spec = RegionSpec::new("users", 1 << 20).contract(Contract::Object);
    /// let users = rack.node(0).create_region(&spec)?;
    /// let (a, b): (Object<u64>, Object<u64>) = (users.alloc(7)?, users.alloc(8)?);
    /// let all = block_on(rack.node(0).read_many_async(&[&a, &b]));
    /// let values = all.into_iter().map(|read| Ok(read?.1));
    /// assert_eq!(values.collect::<rackmem::Result<Vec<u64>>>()?, [7, 8]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn read_many_async<T: Content + ?Sized + 'static>(
        &self,
        objects: &[&Object<T>],
    ) -> impl Future<Output = Vec<Result<(u64, T::Owned), AccessError>>> + Send + use<T> {
        let objects: Vec<Object<T>> = objects.iter().map(|object| (*object).clone()).collect();
        let reads = objects.into_iter();
        Several::new(reads.map(|object| object.read_versioned_async())).all()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::whole;
    use crate::{Contract, Fabric, Rack, RegionSpec, TransactionError};
    use std::pin::Pin;
    use std::sync::Arc;
    use std::task::{Context, Poll, Wake, Waker};
    use std::thread::Thread;
    use std::time::{Duration, Instant};

    /// Longer than anything here takes on a loaded machine.
    const LONG: Duration = Duration::from_secs(60);

    struct Unpark(Thread);

    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }

    fn poll<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
        let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
        Pin::new(future).poll(&mut Context::from_waker(&waker))
    }

    fn end<F: Future + Unpin>(mut future: F) -> F::Output {
        let began = Instant::now();
        loop {
            if let Poll::Ready(done) = poll(&mut future) {
                return done;
            }
            std::thread::park_timeout(LONG);
            assert!(began.elapsed() < LONG, "it does not end");
        }
    }

    /// A writer of the home's process is in and does not run: nobody waits in a poll, what is
    /// dropped meanwhile is not done, and the others go on when it is out.
    #[test]
    fn who_meets_a_writer_waits_in_no_poll() {
        for fabric in Fabric::ALL.map(|(fabric, _)| fabric) {
            let rack = Rack::builder(2).fabric(fabric).patience(LONG);
            let rack = rack.build().unwrap();
            let spec = RegionSpec::new("objects", 1 << 20).contract(Contract::Object);
            let region = rack.node(0).create_region(&spec).unwrap();
            let own: Object<u64> = region.alloc(1).unwrap();
            let far: Object<u64> = rack.node(1).attach_object(own.at()).unwrap();
            let words = own.place.as_ref().unwrap().words();
            let version = whole::version(words);
            assert!(whole::take(words, version));
            let all = [&own, &far];
            let mut reads = all.map(|object| object.read_async());
            let mut updates = all.map(|object| object.update_async(|n| *n += 10));
            let mut dropped = all.map(|object| object.write_async(99));
            let transaction = |object: &Object<u64>, value| {
                let object = object.clone();
                let node = object.node.clone();
                Box::pin(node.transaction_async(async move |t| t.write(&object, value)))
            };
            let mut last = all.map(|object| transaction(object, 77));
            let mut never = all.map(|object| transaction(object, 88));
            for nth in 0..all.len() {
                assert!(poll(&mut last[nth]).is_pending(), "{fabric:?}");
                assert!(poll(&mut never[nth]).is_pending(), "{fabric:?}");
                assert!(poll(&mut reads[nth]).is_pending(), "{fabric:?}");
                assert!(poll(&mut updates[nth]).is_pending(), "{fabric:?}");
                assert!(poll(&mut dropped[nth]).is_pending(), "{fabric:?}");
            }
            // By now the reads ask for writers to be kept out.
            std::thread::sleep(Duration::from_millis(5));
            drop(dropped);
            // These have been refused, and pause.
            drop(never);
            // The home may have been asked already, and refuses.
            std::thread::sleep(Duration::from_millis(20));
            whole::release(words, version);
            for read in reads {
                let read = end(read).unwrap();
                assert!([1, 11, 21, 77, 87, 97].contains(&read), "{fabric:?}");
            }
            for update in updates {
                end(update).unwrap();
            }
            for transaction in last {
                end(transaction).unwrap();
            }
            // In whichever order.
            let read = own.read().unwrap();
            assert!([77, 87, 97].contains(&read), "{fabric:?}: {read}");
            let (now, _) = own.read_versioned().unwrap();
            assert_eq!(far.write(&5), Ok(now + 2), "{fabric:?}");
        }
    }

    /// As the call does, and as soon.
    #[test]
    fn a_writer_that_stays_in_is_an_error() {
        let patience = Duration::from_millis(20);
        let rack = Rack::builder(2).patience(patience).build().unwrap();
        let spec = RegionSpec::new("objects", 1 << 20).contract(Contract::Object);
        let region = rack.node(0).create_region(&spec).unwrap();
        let own: Object<u64> = region.alloc(1).unwrap();
        let far: Object<u64> = rack.node(1).attach_object(own.at()).unwrap();
        let words = own.place.as_ref().unwrap().words();
        let version = whole::version(words);
        assert!(whole::take(words, version));
        for object in [&own, &far] {
            let addr = object.addr();
            assert_eq!(end(object.read_async()), Err(AccessError::Busy { addr }));
            assert_eq!(end(object.write_async(9)), Err(AccessError::Busy { addr }));
            let update = object.update_async(|n| *n += 1);
            assert_eq!(end(update), Err(AccessError::Busy { addr }));
            let read = object.node.transaction(|t| t.read(object));
            let reads = object
                .node
                .transaction_async(async |t| t.read_async(object).await);
            assert_eq!(end(Box::pin(reads)), read);
            assert_eq!(read, Err(AccessError::Busy { addr }.into()));
            let call = object.node.transaction(|t| t.write(object, 9));
            let writes = object.node.transaction_async(async |t| t.write(object, 9));
            for ended in [call, end(Box::pin(writes))] {
                let conflict = matches!(ended, Err(TransactionError::Conflict { tries: 2.. }));
                assert!(conflict, "{ended:?}");
            }
        }
        whole::release(words, version);
        assert_eq!(end(far.read_async()), Ok(1));
    }
}
