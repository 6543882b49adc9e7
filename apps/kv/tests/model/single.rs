//! The operations on one key.

use rackmem_kv::memory::Memory;
use rackmem_kv::{Condition, Db, Error, ExpireIf, Expiry, SetOptions};

use super::Run;

impl<M: Memory> Run<M> {
    pub(super) fn set(&mut self, db: Db<'_, M>, key: &[u8]) {
        let value = self.value();
        let condition =
            [Condition::Always, Condition::IfAbsent, Condition::IfPresent][self.rng.usize(..3)];
        let later = self.model.now + self.rng.u64(1..300);
        let expiry = [
            Expiry::Never,
            Expiry::Never,
            Expiry::Keep,
            Expiry::At(later),
        ][self.rng.usize(..4)];
        let options = SetOptions { condition, expiry };
        let old = self.model.get(db.number(), key).cloned();
        let outcome = if self.rng.bool() {
            let mut was = vec![1, 2, 3];
            let outcome = db.swap(key, &value, options, &mut was).unwrap();
            assert_eq!(was, old.clone().unwrap_or_default().0);
            outcome
        } else {
            db.set_with(key, &value, options).unwrap()
        };
        let applies = match condition {
            Condition::Always => true,
            Condition::IfAbsent => old.is_none(),
            Condition::IfPresent => old.is_some(),
        };
        assert_eq!((outcome.applied, outcome.existed), (applies, old.is_some()));
        if applies {
            let until = match expiry {
                Expiry::Never => 0,
                Expiry::At(at) => at,
                Expiry::Keep => old.map_or(0, |o| o.1),
            };
            self.model.put(db.number(), key, value, until);
        }
    }

    pub(super) fn check(&self, db: Db<'_, M>, key: &[u8]) {
        let mut value = vec![9];
        let found = db.get(key, &mut value).unwrap();
        let want = self.model.get(db.number(), key);
        assert_eq!(found.then_some(&value), want.map(|w| &w.0));
        let meta = db.meta(key).unwrap();
        assert_eq!(
            meta.map(|m| (m.len, m.expiry)),
            want.map(|(v, e)| (v.len(), *e))
        );
    }

    pub(super) fn increment(&mut self, db: Db<'_, M>, key: &[u8]) {
        let by = self.rng.i64(-50..50);
        let old = self
            .model
            .get(db.number(), key)
            .cloned()
            .unwrap_or((b"0".to_vec(), 0));
        let number = std::str::from_utf8(&old.0)
            .ok()
            .and_then(|t| t.parse::<i64>().ok());
        let canonical = number.filter(|n| n.to_string().as_bytes() == old.0);
        match canonical {
            Some(n) => {
                assert_eq!(db.increment(key, by).unwrap(), n + by);
                self.model
                    .put(db.number(), key, (n + by).to_string().into_bytes(), old.1);
            }
            None => assert!(matches!(db.increment(key, by), Err(Error::NotAnInteger))),
        }
    }

    pub(super) fn splice(&mut self, db: Db<'_, M>, key: &[u8]) {
        let bytes = self.value();
        let old = self.model.get(db.number(), key).cloned();
        let (mut value, expiry) = old.clone().unwrap_or_default();
        if value.len() > 1 << 20 {
            return;
        }
        let len = if self.rng.bool() {
            value.extend_from_slice(&bytes);
            db.append(key, &bytes).unwrap()
        } else {
            let at = self.rng.usize(..value.len() + 50);
            if bytes.is_empty() {
                assert_eq!(db.set_range(key, at, &bytes).unwrap(), value.len());
                return;
            }
            value.resize(value.len().max(at + bytes.len()), 0);
            value[at..at + bytes.len()].copy_from_slice(&bytes);
            db.set_range(key, at, &bytes).unwrap()
        };
        assert_eq!(len, value.len());
        self.model.put(db.number(), key, value, expiry);
    }

    pub(super) fn expire(&mut self, db: Db<'_, M>, key: &[u8]) {
        let at = self.model.now + self.rng.u64(..300) - 20;
        let only = ExpireIf {
            none: self.rng.u32(..4) == 0,
            later: self.rng.u32(..4) == 0,
            ..ExpireIf::default()
        };
        let old = self.model.get(db.number(), key).map(|e| e.1);
        let applies = old.is_some_and(|old| {
            let end = if old == 0 { u64::MAX } else { old };
            !(only.none && old != 0 || only.later && at <= end)
        });
        assert_eq!(db.expire(key, at, only).unwrap(), applies);
        if applies {
            let value = self.model.get(db.number(), key).unwrap().0.clone();
            self.model.put(db.number(), key, value, at);
            self.model.purge();
        }
    }

    pub(super) fn persist(&mut self, db: Db<'_, M>, key: &[u8]) {
        let old = self.model.get(db.number(), key).cloned();
        assert_eq!(
            db.persist(key).unwrap(),
            old.as_ref().is_some_and(|o| o.1 != 0)
        );
        if let Some((value, _)) = old {
            self.model.put(db.number(), key, value, 0);
        }
    }

    pub(super) fn take(&mut self, db: Db<'_, M>, key: &[u8]) {
        let mut value = Vec::new();
        let old = self.model.get(db.number(), key).cloned();
        let found = if self.rng.bool() {
            let found = db.take(key, &mut value).unwrap();
            self.model.remove(db.number(), key);
            found
        } else {
            let at = self.model.now + 100;
            let found = db.get_and_expire(key, at, &mut value).unwrap();
            if let Some((value, _)) = old.clone() {
                self.model.put(db.number(), key, value, at);
            }
            found
        };
        assert_eq!(found.then_some(value), old.map(|o| o.0));
    }

    pub(super) fn range(&mut self, db: Db<'_, M>, key: &[u8]) {
        let (first, last) = (self.rng.i64(-40..400), self.rng.i64(-40..400));
        let mut part = Vec::new();
        let found = db.get_range(key, first, last, &mut part).unwrap();
        let want = self.model.get(db.number(), key).map(|(value, _)| {
            let len = value.len() as i64;
            let from = if first < 0 {
                (len + first).max(0)
            } else {
                first
            };
            // As Redis does it: an end before the start of the value means its first byte.
            let to = if last < 0 { (len + last).max(0) } else { last }.min(len - 1);
            let crossed = first < 0 && last < 0 && first > last;
            if crossed || from > to {
                Vec::new()
            } else {
                value[from as usize..=to as usize].to_vec()
            }
        });
        assert_eq!(found, want.is_some());
        assert_eq!(part, want.unwrap_or_default());
    }
}
