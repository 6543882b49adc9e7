//! The order of the elements.

use std::cmp::Ordering;

use super::super::Failure;
use super::Options;
use crate::error::Result;
use crate::memory::Memory;
use crate::number::Number;
use crate::store::{Db, Kind};

const NO_NUMBER: &str = "ERR One or more scores can't be converted into double";

/// What an element is compared by.
enum Weight {
    Number(f64),
    Text(Vec<u8>),
    /// Before all others.
    None,
}

impl Weight {
    fn cmp(&self, other: &Weight) -> Ordering {
        match (self, other) {
            (Weight::Number(a), Weight::Number(b)) => a.total_cmp(b),
            (Weight::Text(a), Weight::Text(b)) => a.cmp(b),
            (Weight::None, Weight::None) => Ordering::Equal,
            (Weight::None, _) => Ordering::Less,
            (_, _) => Ordering::Greater,
        }
    }
}

/// The elements in the order asked for.
pub(super) fn ordered<M: Memory>(
    db: &Db<'_, M>,
    kind: Kind,
    mut elements: Vec<Vec<u8>>,
    options: &Options<'_>,
) -> Result<std::result::Result<Vec<Vec<u8>>, Failure>> {
    // A set has no order that could stay; where it is stored, and in scripts, there must be one.
    let wants_one = options.store.is_some() || options.scripted;
    let fixed = options.as_they_are() && kind == Kind::Set && wants_one;
    if options.as_they_are() && !fixed {
        if kind != Kind::Set && options.descending {
            elements.reverse();
        }
        return Ok(Ok(elements));
    }
    let mut weighed = Vec::with_capacity(elements.len());
    for element in elements {
        let text = match options.by {
            Some(by) if !fixed => by.look(db, &element)?,
            _ => Some(element.clone()),
        };
        let weight = match text {
            None if options.alpha => Weight::None,
            None => Weight::Number(0.0),
            Some(text) if options.alpha || fixed => Weight::Text(text),
            Some(text) => match number(&text) {
                Some(number) => Weight::Number(number),
                None => return Ok(Err(NO_NUMBER.into())),
            },
        };
        weighed.push((weight, element));
    }
    weighed.sort_by(|(a, first), (b, second)| {
        let order = a.cmp(b).then_with(|| first.cmp(second));
        if options.descending {
            order.reverse()
        } else {
            order
        }
    });
    Ok(Ok(weighed
        .into_iter()
        .map(|(_, element)| element)
        .collect()))
}

/// A number as the C library reads one: behind spaces; nothing at all is 0.
fn number(text: &[u8]) -> Option<f64> {
    if text.is_empty() {
        return Some(0.0);
    }
    let number = Number::parse(text.trim_ascii_start())?.float();
    // -0 and 0 are the same.
    Some(number + 0.0)
}
