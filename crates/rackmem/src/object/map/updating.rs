//! A change of one key: one conditional write of its bucket's head.

use super::super::reading::Reading;
use super::super::writing::Writing;
use super::super::{Content, ObjectRef, Retry};
use super::bucket::{Entry, Part};
use super::tail::{Tail, TailFreeing, TailMaking, TailReading, fits};
use super::{Map, Of};
use crate::error::{AccessError, AllocError};
use crate::host::driving::errand::Action;
use crate::host::objects::{Answered, Asks};

/// What a change makes of a bucket.
struct Changed {
    head: Part,
    /// What its tail is to be instead of what it was; nothing: it stays.
    tail: Option<Part>,
}

impl Map {
    /// Gives a key this value; the one that it had.
    ///
    /// # Errors
    /// [`AllocError::TooLarge`] when key and value are longer than an object of the map's regions,
    /// or the bucket's tail would be than [`MAX_OBJECT`](crate::object::MAX_OBJECT);
    /// [`AllocError::OutOfMemory`] when the bucket needs a tail and its region is full; those of
    /// [`Object::write_if`](crate::object::Object::write_if). [`AccessError::Busy`] when other
    /// changes came first for longer than the configuration's `patience`.
    pub fn insert(&self, key: &[u8], value: &[u8]) -> Result<Option<Vec<u8>>, AllocError> {
        self.update(key, |_| Some(value.to_vec()))
    }

    /// Takes a key out; the value that it had.
    ///
    /// # Errors
    /// Those of [`Map::insert`].
    pub fn remove(&self, key: &[u8]) -> Result<Option<Vec<u8>>, AllocError> {
        self.update(key, |_| None)
    }

    /// Makes of a key's value, if it has one, another one or none, as one step; the value that it
    /// had. `f` may run several times, and what it did counts once.
    ///
    /// # Errors
    /// Those of [`Map::insert`].
    pub fn update(
        &self,
        key: &[u8],
        mut f: impl FnMut(Option<&[u8]>) -> Option<Vec<u8>>,
    ) -> Result<Option<Vec<u8>>, AllocError> {
        let of = self.of(key);
        let mut changing = Changing::new(&of);
        self.call(|came| changing.go_on((self, &of, key), &mut f, came))?
    }
}

/// A change, between two of its steps.
pub(super) struct Changing {
    step: Step,
    /// Whether it may make a tail: a future's may once a thread has it.
    may_make: bool,
}

/// A head that was read: its version, and what is in it.
type Head = (u64, Part);
/// The value that was there, and what is to be there.
type Change = (Option<Vec<u8>>, Option<Entry>);

enum Step {
    ReadsHead(Reading),
    /// The key is not in the head.
    ReadsTail(Head, TailReading),
    /// What it is to be has no room there.
    MakesRoom(Head, Change, TailReading),
    /// A new tail, for a head and instead of the old one.
    MakesTail(Writes, TailMaking),
    Writes(Writes, Vec<u8>, Writing),
    /// What the head names no more, or never has.
    Frees(TailFreeing, Then),
    Over(Done),
    /// Another change came first.
    Again,
}

/// A head that is written if it still has this version.
#[derive(Default)]
struct Writes {
    head: Head,
    /// The value that was there.
    before: Option<Vec<u8>>,
    /// The old tail, if there is to be another one, and the new one.
    old: Vec<ObjectRef>,
    made: Vec<ObjectRef>,
}

enum Then {
    Done(Option<Vec<u8>>),
    /// Another change came first.
    Again,
}

/// What it has come to.
type Done = Result<Option<Vec<u8>>, AllocError>;

impl Changing {
    pub fn new(of: &Of<'_>) -> Self {
        Changing {
            step: Step::begin(of),
            may_make: true,
        }
    }

    /// One whose first step a poll makes.
    pub fn of_future(of: &Of<'_>) -> Self {
        Changing {
            may_make: false,
            ..Changing::new(of)
        }
    }

    /// Whether there are objects that only it knows of, or what it has `asked` for is one.
    pub fn owes(&self, asked: bool) -> bool {
        match &self.step {
            Step::MakesTail(_, making) => making.owes(asked),
            Step::Writes(writes, ..) => !writes.made.is_empty() || !writes.old.is_empty(),
            Step::Frees(..) => true,
            _ => false,
        }
    }

    /// What is to be done next, when a home has answered this if it was asked. `f` may run several
    /// times.
    pub fn go_on(
        &mut self,
        (map, of, key): (&Map, &Of<'_>, &[u8]),
        f: &mut impl FnMut(Option<&[u8]>) -> Option<Vec<u8>>,
        mut came: Option<Answered>,
    ) -> Action<Done, Asks> {
        let which = (map, of, key);
        loop {
            let next = match &mut self.step {
                Step::ReadsHead(reading) => {
                    let read = reading.go_on(of.head, came.take(), &mut <[u8]>::copied);
                    let read = read.and_then(|(version, seen)| of.head.whole(version, seen));
                    match read.over() {
                        Ok(Ok(Some((version, bytes)))) => {
                            let head = (version, Part::of(&bytes));
                            if head.1.freed {
                                return Action::Over(Err(of.head.gone()));
                            }
                            match head.1.find(of.hash, key) {
                                Some(_) => decided(which, head, None, f),
                                // A tail is read only where it is needed.
                                None => {
                                    let tail = TailReading::new(head.1.tail);
                                    Step::ReadsTail(head, tail)
                                }
                            }
                        }
                        Ok(Ok(None)) => return Action::Over(Err(of.head.gone())),
                        Ok(Err(error)) => return Action::Over(Err(error)),
                        Err(next) => return next,
                    }
                }
                Step::ReadsTail(head, reading) => match reading.go_on(map, came.take()).over() {
                    Ok(Ok(Some(tail))) => decided(which, std::mem::take(head), Some(tail), f),
                    Ok(Ok(None)) => Step::Again,
                    Ok(Err(error)) => return Action::Over(Err(error)),
                    Err(next) => return next,
                },
                Step::MakesRoom(head, change, reading) => {
                    match reading.go_on(map, came.take()).over() {
                        Ok(Ok(Some(tail))) => {
                            let (head, change) = (std::mem::take(head), std::mem::take(change));
                            planned(which, head, tail, change)
                        }
                        Ok(Ok(None)) => Step::Again,
                        Ok(Err(error)) => return Action::Over(Err(error)),
                        Err(next) => return next,
                    }
                }
                Step::MakesTail(..) if !self.may_make => {
                    // A thread of the node's goes on with it, whoever is there then.
                    self.may_make = true;
                    return Action::Pause(0);
                }
                Step::MakesTail(writes, making) => match making.go_on(map, came.take()).over() {
                    Ok(Ok(Ok(made))) => {
                        let mut writes = std::mem::take(writes);
                        writes.head.1.tail = made.first().copied();
                        writes.made = made;
                        writes.begin()
                    }
                    Ok(Ok(Err(error))) => return Action::Over(Ok(Err(error))),
                    Ok(Err(error)) => return Action::Over(Err(error)),
                    Err(next) => return next,
                },
                Step::Writes(writes, bytes, writing) => {
                    match writing.go_on(of.head, came.take(), bytes).over() {
                        Ok(Ok(written)) => {
                            let Writes {
                                before, old, made, ..
                            } = std::mem::take(writes);
                            let (frees, then) = match written {
                                Ok(_) => (old, Then::Done(before)),
                                Err(_) => (made, Then::Again),
                            };
                            Step::Frees(TailFreeing::new(frees), then)
                        }
                        // The home may have written it: what it would name stays.
                        Ok(Err(error)) => return Action::Over(Err(error)),
                        Err(next) => return next,
                    }
                }
                Step::Frees(freeing, then) => match freeing.go_on(map, came.take()).over() {
                    Ok(_) => match then {
                        Then::Done(before) => Step::Over(Ok(before.take())),
                        Then::Again => Step::Again,
                    },
                    Err(next) => return next,
                },
                Step::Over(done) => return Action::Over(Ok(std::mem::replace(done, Ok(None)))),
                Step::Again => {
                    self.step = Step::begin(of);
                    let addr = of.head.addr();
                    return Action::Later(AccessError::Busy { addr });
                }
            };
            self.step = next;
        }
    }
}

impl Step {
    fn begin(of: &Of<'_>) -> Self {
        Step::ReadsHead(Reading::new(of.head.expected(0), Retry::default()))
    }
}

impl Writes {
    fn begin(self) -> Step {
        let (version, head) = &self.head;
        let (bytes, writing) = (head.bytes(), Writing::new(*version));
        Step::Writes(self, bytes, writing)
    }
}

/// What a key is to be, where what there is of its bucket is enough to say so.
fn decided(
    (map, of, key): (&Map, &Of<'_>, &[u8]),
    (version, head): Head,
    tail: Option<Tail>,
    f: &mut impl FnMut(Option<&[u8]>) -> Option<Vec<u8>>,
) -> Step {
    let has = |part: &Part| part.find(of.hash, key).cloned();
    let before = has(&head).or_else(|| tail.as_ref().and_then(|tail| has(&tail.part)));
    let before = before.map(|entry| entry.value);
    let after = f(before.as_deref());
    if after == before {
        // It was so when the head was read.
        return Step::Over(Ok(before));
    }
    let entry = after.map(|value| Entry {
        hash: of.hash,
        key: key.to_vec(),
        value,
    });
    let room = map.shape.room;
    let stays = (entry.as_ref()).is_none_or(|entry| head.has_room(entry, room));
    let change = (before, entry);
    match tail {
        None if !stays => {
            let reading = TailReading::new(head.tail);
            Step::MakesRoom((version, head), change, reading)
        }
        tail => planned(
            (map, of, key),
            (version, head),
            tail.unwrap_or_default(),
            change,
        ),
    }
}

/// What is to become of a key's bucket.
fn planned(
    (map, of, key): (&Map, &Of<'_>, &[u8]),
    (version, head): Head,
    old: Tail,
    (before, entry): Change,
) -> Step {
    let bounds = (map.shape.room, map.shape.most);
    let changed = change((head, old.part), bounds, (of.hash, key), entry);
    let Changed { head, tail } = match changed {
        Ok(changed) => changed,
        Err(error) => return Step::Over(Err(error)),
    };
    let mut writes = Writes {
        head: (version, head),
        before,
        ..Writes::default()
    };
    match tail {
        Some(tail) => {
            writes.old = old.at;
            let making = TailMaking::new(of.region, tail.entries, map.shape.most);
            Step::MakesTail(writes, making)
        }
        None => writes.begin(),
    }
}

/// What is to become of a bucket, whose head has so much room and whose tail is of objects of so
/// many bytes, in which a key is to have this entry, or none.
fn change(
    (mut head, mut tail): (Part, Part),
    (room, most): (usize, usize),
    (hash, key): (u32, &[u8]),
    entry: Option<Entry>,
) -> Result<Changed, AllocError> {
    head.take(hash, key);
    let mut moved = tail.take(hash, key).is_some();
    if let Some(entry) = entry
        && let Err(entry) = head.put(entry, room)
    {
        fits(&tail, &entry, most)?;
        tail.entries.push(entry);
        moved = true;
    }
    if moved {
        // A new one is made in any case: what has room in the head goes there.
        tail.entries = (tail.entries.into_iter())
            .filter_map(|entry| head.put(entry, room).err())
            .collect();
    }
    Ok(Changed {
        head,
        tail: moved.then_some(tail),
    })
}

#[cfg(test)]
mod tests {
    use super::super::super::MAX_OBJECT;
    use super::*;

    /// Of a head, and of an object of a tail.
    const BOUNDS: (usize, usize) = (100, MAX_OBJECT);

    fn entry(key: u8, len: usize) -> Entry {
        Entry {
            hash: key.into(),
            key: vec![key],
            value: vec![key; len],
        }
    }

    fn keys(part: &Part) -> Vec<u8> {
        let mut keys: Vec<u8> = part.entries.iter().map(|entry| entry.key[0]).collect();
        keys.sort_unstable();
        keys
    }

    #[test]
    fn what_does_not_fit_goes_to_the_tail_and_comes_back() {
        let none = || (Part::default(), Part::default());
        let put = |parts: (Part, Part), entry: Entry| {
            let (hash, key) = (entry.hash, entry.key.clone());
            change(parts, BOUNDS, (hash, &key), Some(entry)).unwrap()
        };
        let first = put(none(), entry(1, 31));
        assert!(first.tail.is_none());
        let second = put((first.head, Part::default()), entry(2, 31));
        let tail = put((second.head, Part::default()), entry(3, 20));
        assert_eq!(
            (keys(&tail.head), keys(tail.tail.as_ref().unwrap())),
            (vec![1, 2], vec![3])
        );
        // The same key is never in both.
        let parts = || (tail.head.clone(), tail.tail.clone().unwrap());
        let longer = put(parts(), entry(1, 60));
        assert_eq!(keys(&longer.head), [2, 3]);
        assert_eq!(keys(longer.tail.as_ref().unwrap()), [1]);
        // What only concerns the head leaves the tail.
        let shorter = put(parts(), entry(1, 5));
        assert_eq!((keys(&shorter.head), shorter.tail), (vec![1, 2], None));
        let gone = change(parts(), BOUNDS, (3, &[3]), None).unwrap();
        assert_eq!(
            (keys(&gone.head), gone.tail),
            (vec![1, 2], Some(Part::default()))
        );
    }

    #[test]
    fn what_no_object_holds_is_refused() {
        let parts = (Part::default(), Part::default());
        let most = MAX_OBJECT;
        let long = entry(1, MAX_OBJECT);
        let error = change(parts.clone(), BOUNDS, (1, &[1]), Some(long)).map(drop);
        assert!(matches!(error, Err(AllocError::TooLarge { most: m, .. }) if m == most));
        let full = change(parts, BOUNDS, (1, &[1]), Some(entry(1, MAX_OBJECT - 32))).unwrap();
        let tail = full.tail.unwrap();
        assert!(tail.bytes().len() <= MAX_OBJECT);
        let next = change(
            (full.head, tail),
            (10, MAX_OBJECT),
            (2, &[2]),
            Some(entry(2, 100)),
        )
        .map(drop);
        assert!(next.is_err());
    }
}
