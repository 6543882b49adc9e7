//! Unions, intersections and differences of sorted sets and sets.

use std::cmp::Ordering;
use std::collections::HashMap;

use super::super::{Call, Failure, MAX_REPLY, Outcome, SYNTAX};
use super::KIND;
use crate::double;
use crate::error::{Error, Result};
use crate::memory::{Access, Memory};
use crate::number::parse_i64;
use crate::resp::args::Args;
use crate::store::collection::sorted::Scored;
use crate::store::collection::{hashed, unhashed};
use crate::store::{Db, Kind};

/// The score of a set's members.
const PLAIN: f64 = 1.0;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    Union,
    Inter,
    Diff,
}

/// What is done with the scores of a member of several inputs.
#[derive(Clone, Copy, Debug)]
enum Aggregate {
    Sum,
    Min,
    Max,
}

impl Aggregate {
    fn merge(self, one: f64, two: f64) -> f64 {
        match self {
            Self::Sum => number(one + two),
            Self::Min => two.min(one),
            Self::Max => two.max(one),
        }
    }
}

/// What is not a number counts as 0.
fn number(value: f64) -> f64 {
    if value.is_nan() { 0.0 } else { value }
}

/// What follows the keys.
struct Options {
    weights: Vec<f64>,
    aggregate: Aggregate,
    scores: bool,
    /// The highest number that ZINTERCARD answers.
    limit: usize,
}

/// What a command does with the outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    Reply,
    Store,
    Count,
}

impl Options {
    fn parse(
        args: Args<'_>,
        mut at: usize,
        keys: usize,
        operation: Operation,
        purpose: Use,
    ) -> std::result::Result<Self, Failure> {
        let mut options = Self {
            weights: vec![1.0; keys],
            aggregate: Aggregate::Sum,
            scores: false,
            limit: usize::MAX,
        };
        let merges = operation != Operation::Diff && purpose != Use::Count;
        while at < args.len() {
            let left = args.len() - at;
            if merges && left > keys && args.is(at, "weights") {
                for (i, weight) in options.weights.iter_mut().enumerate() {
                    let word = args.at(at + 1 + i);
                    *weight = double::parse(word).ok_or("ERR weight value is not a float")?;
                }
                at += 1 + keys;
            } else if merges && left >= 2 && args.is(at, "aggregate") {
                options.aggregate = match () {
                    () if args.is(at + 1, "sum") => Aggregate::Sum,
                    () if args.is(at + 1, "min") => Aggregate::Min,
                    () if args.is(at + 1, "max") => Aggregate::Max,
                    () => return Err(SYNTAX.into()),
                };
                at += 2;
            } else if purpose == Use::Reply && args.is(at, "withscores") {
                options.scores = true;
                at += 1;
            } else if purpose == Use::Count && left >= 2 && args.is(at, "limit") {
                let limit = parse_i64(args.at(at + 1)).and_then(|n| usize::try_from(n).ok());
                let limit = limit.ok_or("ERR LIMIT can't be negative")?;
                options.limit = if limit == 0 { usize::MAX } else { limit };
                at += 2;
            } else {
                return Err(SYNTAX.into());
            }
        }
        Ok(options)
    }
}

/// One of the keys that are combined.
struct Input<'k, 'a, M: Memory> {
    db: Db<'a, M>,
    key: &'k [u8],
    kind: Kind,
    count: u64,
    weight: f64,
}

impl<'k, 'a, M: Memory> Input<'k, 'a, M> {
    fn open(db: Db<'a, M>, key: &'k [u8]) -> Result<Self> {
        let kind = db.meta(key)?.map_or(KIND, |meta| meta.kind);
        if !matches!(kind, Kind::Set | KIND) {
            return Err(Error::WrongType);
        }
        let count = db.view(key, kind, |found| Ok(found.count(0)))?;
        Ok(Self {
            db,
            key,
            kind,
            count: count.unwrap_or(0),
            weight: 1.0,
        })
    }

    fn weighted(&self, score: f64) -> f64 {
        number(self.weight * score)
    }

    /// All members with their weighted scores.
    fn load(&self) -> Result<Vec<Scored>> {
        let members = self.db.view(self.key, self.kind, |found| {
            if self.kind == KIND {
                return found.copy_span(0..found.members(), false, MAX_REPLY);
            }
            let (mut members, mut bytes) = (Vec::new(), 0);
            found.walk(0, 0, |key, _| {
                bytes += key.len();
                members.push((unhashed(key).to_vec(), PLAIN));
                bytes <= MAX_REPLY
            })?;
            match bytes <= MAX_REPLY {
                true => Ok(members),
                false => Err(Error::ReplyTooLong),
            }
        })?;
        let mut members = members.unwrap_or_default();
        for (_, score) in &mut members {
            *score = self.weighted(*score);
        }
        Ok(members)
    }

    /// The weighted scores of the members that are asked for, in their order.
    fn scores(&self, members: &[Scored]) -> Result<Vec<Option<f64>>> {
        if self.count <= members.len() as u64 {
            let known: HashMap<_, _> = self.load()?.into_iter().collect();
            return Ok(members.iter().map(|(m, _)| known.get(m).copied()).collect());
        }
        let scores = self.db.view(self.key, self.kind, |found| {
            let score = |member: &[u8]| match self.kind {
                KIND => found.score(member),
                _ => Ok(found.get(0, &hashed(member))?.map(|_| PLAIN)),
            };
            let scores = members.iter().map(|(member, _)| score(member));
            scores.collect::<Result<Vec<_>>>()
        })?;
        let weighted = |score: Option<f64>| score.map(|score| self.weighted(score));
        let scores = scores.unwrap_or_else(|| vec![None; members.len()]);
        Ok(scores.into_iter().map(weighted).collect())
    }
}

fn union<M: Memory>(inputs: &[Input<'_, '_, M>], aggregate: Aggregate) -> Result<Vec<Scored>> {
    let (mut scores, mut bytes) = (HashMap::new(), 0);
    for input in inputs {
        for (member, score) in input.load()? {
            bytes += member.len();
            let merged = |old: &mut f64| *old = aggregate.merge(*old, score);
            scores.entry(member).and_modify(merged).or_insert(score);
        }
        if bytes > MAX_REPLY {
            return Err(Error::ReplyTooLong);
        }
    }
    Ok(scores.into_iter().collect())
}

fn inter<M: Memory>(inputs: &[Input<'_, '_, M>], aggregate: Aggregate) -> Result<Vec<Scored>> {
    let [first, others @ ..] = inputs else {
        return Ok(Vec::new());
    };
    let mut members = first.load()?;
    for input in others {
        let scores = input.scores(&members)?;
        let both = members.into_iter().zip(scores);
        members = both
            .filter_map(|((member, one), two)| Some((member, aggregate.merge(one, two?))))
            .collect();
    }
    Ok(members)
}

fn diff<M: Memory>(inputs: &[Input<'_, '_, M>]) -> Result<Vec<Scored>> {
    let [first, others @ ..] = inputs else {
        return Ok(Vec::new());
    };
    let mut members = first.load()?;
    for input in others {
        let scores = input.scores(&members)?;
        let both = members.into_iter().zip(scores);
        members = both
            .filter_map(|(member, other)| other.is_none().then_some(member))
            .collect();
    }
    Ok(members)
}

/// The outcome in the order of a sorted set; nothing if there are no options to go by. As in Redis,
/// a key of another type is found before a wrong option.
fn combine<M: Memory>(
    db: Db<'_, M>,
    wanted: &Wanted<'_>,
    operation: Operation,
) -> Result<Vec<Scored>> {
    let inputs = wanted.keys.iter().map(|key| Input::open(db, key));
    let mut inputs = inputs.collect::<Result<Vec<_>>>()?;
    let Ok(options) = &wanted.options else {
        return Ok(Vec::new());
    };
    for (input, weight) in inputs.iter_mut().zip(&options.weights) {
        input.weight = *weight;
    }
    if operation != Operation::Diff {
        inputs.sort_by_key(|input| input.count);
    }
    let mut members = match operation {
        Operation::Union => union(&inputs, options.aggregate)?,
        Operation::Inter => inter(&inputs, options.aggregate)?,
        Operation::Diff => diff(&inputs)?,
    };
    members.sort_unstable_by(|one, two| {
        let scores = one.1.partial_cmp(&two.1).unwrap_or(Ordering::Equal);
        scores.then_with(|| one.0.cmp(&two.0))
    });
    Ok(members)
}

/// What a command asks for.
struct Wanted<'a> {
    keys: Vec<&'a [u8]>,
    options: std::result::Result<Options, Failure>,
}

impl<'a> Wanted<'a> {
    /// The word at `at` counts the keys behind it.
    fn parse<M: Memory>(
        call: &Call<'a, '_, M>,
        at: usize,
        operation: Operation,
        purpose: Use,
    ) -> std::result::Result<Self, Failure> {
        let count = call.integer(at)?;
        if count < 1 {
            let name = call.command.name;
            return Err(format!("ERR at least 1 input key is needed for '{name}' command").into());
        }
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        if count > call.args.len() - (at + 1) {
            return Err(SYNTAX.into());
        }
        let options = Options::parse(call.args, at + 1 + count, count, operation, purpose);
        Ok(Self {
            keys: call.args.from(at + 1).take(count).collect(),
            options,
        })
    }
}

fn reply_combined<M: Memory>(call: &mut Call<'_, '_, M>, operation: Operation) -> Outcome {
    let wanted = Wanted::parse(call, 1, operation, Use::Reply)?;
    let db = call.db;
    let members = db.together_to_read(&wanted.keys, |db| combine(db, &wanted, operation))?;
    call.reply.members(&members, wanted.options?.scores);
    Ok(())
}

fn store_combined<M: Memory>(call: &mut Call<'_, '_, M>, operation: Operation) -> Outcome {
    let wanted = Wanted::parse(call, 2, operation, Use::Store)?;
    let to = call.word(1);
    let mut held = wanted.keys.clone();
    held.push(to);
    let count = call.db.together(&held, Access::Write, |db| {
        let members = combine(db, &wanted, operation)?;
        match wanted.options {
            Ok(_) => db.store_members(to, &members),
            Err(_) => Ok(0),
        }
    })?;
    wanted.options?;
    call.reply.count(count);
    Ok(())
}

pub(crate) fn zunion<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    reply_combined(call, Operation::Union)
}

pub(crate) fn zinter<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    reply_combined(call, Operation::Inter)
}

pub(crate) fn zdiff<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    reply_combined(call, Operation::Diff)
}

pub(crate) fn zunionstore<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    store_combined(call, Operation::Union)
}

pub(crate) fn zinterstore<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    store_combined(call, Operation::Inter)
}

pub(crate) fn zdiffstore<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    store_combined(call, Operation::Diff)
}

pub(crate) fn zintercard<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let wanted = Wanted::parse(call, 1, Operation::Inter, Use::Count)?;
    let db = call.db;
    let members = db.together_to_read(&wanted.keys, |db| combine(db, &wanted, Operation::Inter))?;
    call.reply.count(members.len().min(wanted.options?.limit));
    Ok(())
}
