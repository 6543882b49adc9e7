//! Databases that no client sees, in which the servers of a rack keep what they all must know.
//!
//! They have keys, buckets and transactions as the others do, and numbers that clients cannot
//! select. SCAN, KEYS, DBSIZE and FLUSHALL leave them out. Their keys are not counted, so one that
//! expires may keep its memory until something else makes its node clean the bucket.

use super::Store;
use super::db::Db;
use crate::layout::superblock::{INTERNAL, SCRIPTS};
use crate::memory::Memory;

impl<M: Memory> Store<M> {
    /// The database of the servers. Names there begin with what they are about and a colon.
    pub(crate) fn internal(&self) -> Db<'_, M> {
        self.first().internal()
    }

    /// The database of scripts, which is flushed by itself.
    #[allow(dead_code)]
    pub(crate) fn scripts(&self) -> Db<'_, M> {
        self.first().scripts()
    }
}

impl<'a, M: Memory> Db<'a, M> {
    /// The database of the servers, as the same transaction sees it.
    pub(crate) fn internal(&self) -> Db<'a, M> {
        Db {
            number: INTERNAL,
            ..*self
        }
    }
}

impl<'a, M: Memory> Db<'a, M> {
    /// The database of scripts, as the same transaction sees it.
    pub(crate) fn scripts(&self) -> Db<'a, M> {
        Db {
            number: SCRIPTS,
            ..*self
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::memory::HeapMemory;
    use crate::{DATABASES, Keys, Options, Plan, SetOptions, Store};

    fn store() -> Store<HeapMemory> {
        let options = Options {
            buckets: 4,
            ..Options::default()
        };
        Store::open(HeapMemory::new(256, 1 << 20, 1), options).unwrap()
    }

    #[test]
    fn clients_neither_see_nor_flush_what_servers_keep() {
        let store = store();
        let mut value = Vec::new();
        store.internal().set(b"a:b", b"kept").unwrap();
        store.scripts().set(b"a:b", b"script").unwrap();
        store.set(b"a:b", b"seen").unwrap();
        for number in 0..DATABASES as u8 {
            let (db, mut keys) = (store.db(number).unwrap(), Keys::default());
            let seen = usize::from(number == 0);
            assert_eq!(db.len().unwrap(), seen);
            assert_eq!(db.scan(0, 100, &mut keys).unwrap(), 0);
            assert_eq!(keys.len(), seen);
            assert_eq!(db.random_key().unwrap().is_some(), seen == 1);
        }
        assert!(store.db(DATABASES as u8).is_none());
        assert!(
            store
                .first()
                .copy(b"a:b", 16, b"x", true)
                .unwrap()
                .is_none()
        );

        store.first().flush_all().unwrap();
        assert!(!store.get(b"a:b", &mut value).unwrap());
        assert!(store.internal().get(b"a:b", &mut value).unwrap());
        assert_eq!(value, b"kept");
        assert!(store.scripts().get(b"a:b", &mut value).unwrap());
        assert_eq!(value, b"script");

        store.scripts().flush().unwrap();
        assert!(!store.scripts().get(b"a:b", &mut value).unwrap());
        assert!(store.internal().get(b"a:b", &mut value).unwrap());
        store
            .first()
            .set_with(b"b", b"", SetOptions::default())
            .unwrap();
        assert_eq!(store.first().len().unwrap(), 1);
    }

    #[test]
    fn a_transaction_has_them_too() {
        let store = store();
        let transaction = store.transaction([&b"a:b"[..]], Plan::default()).unwrap();
        let db = transaction.db(3).unwrap();
        db.internal().set(b"a:b", b"1").unwrap();
        assert!(db.meta(b"a:b").unwrap().is_none());
        drop(transaction);
        assert_eq!(store.internal().increment(b"a:b", 1).unwrap(), 2);
    }
}
