//! Keys and fields that depend on an element.

use crate::error::{Error, Result};
use crate::memory::Memory;
use crate::store::collection::hashed;
use crate::store::{Db, Kind};

/// `#` for the element itself; a key with the element in the place of the first `*`, which may be
/// followed by `->` and a field.
#[derive(Clone, Copy)]
pub(super) struct Pattern<'a>(pub &'a [u8]);

impl<'a> Pattern<'a> {
    pub fn has_place(&self) -> bool {
        self.0.contains(&b'*')
    }

    /// The key, and the field of it, for an element; `None`: the pattern names none.
    pub fn key(&self, element: &[u8]) -> Option<(Vec<u8>, Option<&'a [u8]>)> {
        let place = self.0.iter().position(|byte| *byte == b'*')?;
        let (before, behind) = (&self.0[..place], &self.0[place + 1..]);
        let arrow = behind.windows(2).position(|two| two == b"->");
        let arrow = arrow.filter(|at| at + 2 < behind.len());
        let (behind, field) = match arrow {
            Some(at) => (&behind[..at], Some(&behind[at + 2..])),
            None => (behind, None),
        };
        Some(([before, element, behind].concat(), field))
    }

    /// What there is for an element. Keys of other types count as not there.
    pub fn look<M: Memory>(&self, db: &Db<'_, M>, element: &[u8]) -> Result<Option<Vec<u8>>> {
        if self.0 == b"#" {
            return Ok(Some(element.to_vec()));
        }
        let Some((key, field)) = self.key(element) else {
            return Ok(None);
        };
        let found = match field {
            Some(field) => {
                let field = hashed(field);
                db.view(&key, Kind::Hash, |hash| hash.get(0, &field))
                    .map(Option::flatten)
            }
            None => {
                let mut value = Vec::new();
                db.get(&key, &mut value).map(|found| found.then_some(value))
            }
        };
        match found {
            Err(Error::WrongType) => Ok(None),
            found => found,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_fields() {
        for (pattern, want) in [
            ("w_*", Some(("w_x", None))),
            ("*", Some(("x", None))),
            ("a*b*", Some(("axb*", None))),
            ("h*->f", Some(("hx", Some("f")))),
            ("h*b->f->g", Some(("hxb", Some("f->g")))),
            ("h*->", Some(("hx->", None))),
            ("h->*", Some(("h->x", None))),
            ("none", None),
            ("#", None),
        ] {
            let key = Pattern(pattern.as_bytes()).key(b"x");
            let want = want.map(|(key, field): (&str, Option<&str>)| {
                (key.as_bytes().to_vec(), field.map(str::as_bytes))
            });
            assert_eq!(key, want, "{pattern}");
        }
    }
}
