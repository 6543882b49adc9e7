//! The reader-writer lock of the system's C library, which one process has: what it costs to
//! exclude where nothing has to be told to other nodes.

use std::cell::UnsafeCell;
use std::io;
use std::sync::Arc;

/// A `pthread_rwlock_t` as it is by default: readers come before writers that wait.
#[derive(Debug)]
pub struct Pthread {
    lock: UnsafeCell<libc::pthread_rwlock_t>,
}

// SAFETY: the functions below may be called by all threads at once, and nothing else uses it.
unsafe impl Send for Pthread {}
// SAFETY: likewise.
unsafe impl Sync for Pthread {}

/// A [`Pthread`], held; left when it is dropped, by the thread that has taken it.
#[derive(Debug)]
pub struct PthreadGuard<'a> {
    of: &'a Pthread,
    /// A lock is left by the thread that has it.
    _not_send: std::marker::PhantomData<*const ()>,
}

impl Pthread {
    /// One that nobody has. It stays where it is.
    pub fn create() -> Arc<Pthread> {
        let lock = UnsafeCell::new(libc::PTHREAD_RWLOCK_INITIALIZER);
        Arc::new(Pthread { lock })
    }

    fn held(&self, code: libc::c_int) -> io::Result<PthreadGuard<'_>> {
        match code {
            0 => Ok(PthreadGuard {
                of: self,
                _not_send: std::marker::PhantomData,
            }),
            code => Err(io::Error::from_raw_os_error(code)),
        }
    }

    /// Holds it together with other readers.
    ///
    /// # Errors
    /// That there are too many readers, or that this thread has it to write.
    pub fn read(&self) -> io::Result<PthreadGuard<'_>> {
        // SAFETY: it was initialized, and has not moved since: it is only made in an `Arc`.
        self.held(unsafe { libc::pthread_rwlock_rdlock(self.lock.get()) })
    }

    /// Holds it alone.
    ///
    /// # Errors
    /// That this thread has it.
    pub fn write(&self) -> io::Result<PthreadGuard<'_>> {
        // SAFETY: as above.
        self.held(unsafe { libc::pthread_rwlock_wrlock(self.lock.get()) })
    }
}

impl Drop for PthreadGuard<'_> {
    fn drop(&mut self) {
        // SAFETY: this thread has it, since the guard is not `Send`.
        unsafe { libc::pthread_rwlock_unlock(self.of.lock.get()) };
    }
}

impl Drop for Pthread {
    fn drop(&mut self) {
        // SAFETY: nobody has it: guards borrow it.
        unsafe { libc::pthread_rwlock_destroy(self.lock.get_mut()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writers_are_alone() {
        let (lock, mut counted) = (Pthread::create(), 0u64);
        let counter = std::sync::atomic::AtomicPtr::new(&raw mut counted);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..10_000 {
                        let _held = lock.write().unwrap();
                        let at = counter.load(std::sync::atomic::Ordering::Relaxed);
                        // SAFETY: the lock is held, and the number outlives the threads.
                        unsafe { *at += 1 };
                    }
                });
            }
        });
        let (_one, _other) = (lock.read().unwrap(), lock.read().unwrap());
        assert_eq!(counted, 40_000);
    }
}
