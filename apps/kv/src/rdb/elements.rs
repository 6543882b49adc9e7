//! Collections other than streams: their elements in their order, whatever encodes them, and the
//! parts that are made of them.

use std::io::Read;

use super::error::Result;
use super::packed::{Form, Packed};
use super::source::Source;
use super::value::Value;
use super::{ELEMENT, PART, kind};

const ODD: &str = "a collection of pairs that ends in the middle of one";
const SCORE: &str = "a score that is not a number";
const CONTAINER: &str = "an unknown kind of node in a list";
const NODES: &str = "more nodes or elements than there can be";

/// What a collection is.
#[derive(Clone, Copy, Debug)]
enum Shape {
    List,
    Set,
    Hash,
    /// Scores are elements.
    SortedSet,
    /// Scores are text after a byte that is its length.
    TextScores,
    /// Scores are eight bytes.
    BinaryScores,
}

/// Where elements come from.
#[derive(Debug)]
enum Origin {
    /// From so many further strings, or pairs of them.
    Strings(u64),
    /// From a packed string, and from so many further ones.
    Packed {
        packed: Option<Packed>,
        nodes: u64,
        form: Form,
        /// Each says whether it is packed.
        marked: bool,
    },
}

/// A collection that is being read.
#[derive(Debug)]
pub(crate) struct Elements {
    shape: Shape,
    from: Origin,
    /// Where the packed string begins that elements come from.
    start: u64,
    /// Elements taken that are not in a part yet.
    ahead: Option<Vec<u8>>,
}

impl Elements {
    /// The collection of this type that begins here; `None`: the type is another.
    pub fn begin<R: Read>(source: &mut Source<R>, number: u8) -> Result<Option<Self>> {
        use Form::{IntSet, ListPack, ZipList, ZipMap};
        let (shape, form) = match number {
            kind::LIST => (Shape::List, None),
            kind::SET => (Shape::Set, None),
            kind::HASH => (Shape::Hash, None),
            kind::ZSET_TEXT => (Shape::TextScores, None),
            kind::ZSET => (Shape::BinaryScores, None),
            kind::HASH_ZIPMAP => (Shape::Hash, Some(ZipMap)),
            kind::LIST_ZIPLIST | kind::LIST_QUICKLIST => (Shape::List, Some(ZipList)),
            kind::SET_INTSET => (Shape::Set, Some(IntSet)),
            kind::ZSET_ZIPLIST => (Shape::SortedSet, Some(ZipList)),
            kind::HASH_ZIPLIST => (Shape::Hash, Some(ZipList)),
            kind::HASH_LISTPACK => (Shape::Hash, Some(ListPack)),
            kind::ZSET_LISTPACK => (Shape::SortedSet, Some(ListPack)),
            kind::LIST_QUICKLIST_2 => (Shape::List, Some(ListPack)),
            kind::SET_LISTPACK => (Shape::Set, Some(ListPack)),
            _ => return Ok(None),
        };
        let start = source.offset();
        let nodes = [kind::LIST_QUICKLIST, kind::LIST_QUICKLIST_2].contains(&number);
        let count = match nodes || form.is_none() {
            true => source.number()?,
            false => 1,
        };
        if count > u64::MAX / 2 {
            return source.malformed(start, NODES);
        }
        let from = match form {
            None => Origin::Strings(count),
            Some(form) => Origin::Packed {
                packed: None,
                nodes: count,
                form,
                marked: number == kind::LIST_QUICKLIST_2,
            },
        };
        Ok(Some(Self {
            shape,
            from,
            start,
            ahead: None,
        }))
    }

    /// The next part, and whether another follows it.
    pub fn part<R: Read>(&mut self, source: &mut Source<R>) -> Result<(Value, bool)> {
        let mut part = match self.shape {
            Shape::List => Value::List(Vec::new()),
            Shape::Set => Value::Set(Vec::new()),
            Shape::Hash => Value::Hash(Vec::new()),
            _ => Value::SortedSet(Vec::new()),
        };
        let mut bytes = 0;
        while let Some(element) = self.next(source)? {
            if bytes >= PART {
                self.ahead = Some(element);
                return Ok((part, true));
            }
            bytes += element.len() + ELEMENT;
            match &mut part {
                Value::List(list) | Value::Set(list) => list.push(element),
                Value::Hash(pairs) => {
                    let value = self.second(source)?;
                    bytes += value.len() + ELEMENT;
                    pairs.push((element, value));
                }
                Value::SortedSet(pairs) => pairs.push((element, self.score(source)?)),
                _ => {}
            }
        }
        Ok((part, false))
    }

    fn second<R: Read>(&mut self, source: &mut Source<R>) -> Result<Vec<u8>> {
        if matches!(self.from, Origin::Strings(_)) {
            return source.string();
        }
        match self.next(source)? {
            Some(second) => Ok(second),
            None => source.malformed(self.start, ODD),
        }
    }

    fn score<R: Read>(&mut self, source: &mut Source<R>) -> Result<f64> {
        let start = source.offset();
        let (start, score) = match self.shape {
            Shape::BinaryScores => (start, Some(f64::from_bits(source.u64()?))),
            Shape::TextScores => (start, text_score(source)?),
            _ => (self.start, parse(&self.second(source)?)),
        };
        match score.filter(|score| !score.is_nan()) {
            Some(score) => Ok(score),
            None => source.malformed(start, SCORE),
        }
    }

    fn next<R: Read>(&mut self, source: &mut Source<R>) -> Result<Option<Vec<u8>>> {
        if let Some(element) = self.ahead.take() {
            return Ok(Some(element));
        }
        let (packed, nodes, form, marked) = match &mut self.from {
            Origin::Strings(0) => return Ok(None),
            Origin::Strings(left) => {
                *left -= 1;
                return source.string().map(Some);
            }
            Origin::Packed {
                packed,
                nodes,
                form,
                marked,
            } => (packed, nodes, *form, *marked),
        };
        loop {
            if let Some(packed) = packed {
                match packed.next() {
                    Ok(None) => {}
                    Ok(Some(element)) => return Ok(Some(element.to_bytes())),
                    Err(what) => return source.malformed(self.start, what),
                }
            }
            *packed = None;
            if *nodes == 0 {
                return Ok(None);
            }
            *nodes -= 1;
            self.start = source.offset();
            let form = match marked.then(|| source.number()).transpose()? {
                None | Some(2) => form,
                Some(1) => Form::Lone,
                Some(_) => return source.malformed(self.start, CONTAINER),
            };
            self.start = source.offset();
            match Packed::new(form, source.string()?) {
                Ok(node) => *packed = Some(node),
                Err(what) => return source.malformed(self.start, what),
            }
        }
    }
}

/// A score as text behind its length, or a length that stands for one that has no digits.
fn text_score<R: Read>(source: &mut Source<R>) -> Result<Option<f64>> {
    Ok(match source.byte()? {
        253 => None,
        254 => Some(f64::INFINITY),
        255 => Some(f64::NEG_INFINITY),
        len => parse(&source.bytes(len.into())?),
    })
}

fn parse(text: &[u8]) -> Option<f64> {
    std::str::from_utf8(text).ok()?.trim().parse().ok()
}
