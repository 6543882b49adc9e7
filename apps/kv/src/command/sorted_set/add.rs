//! ZADD and ZINCRBY.

use super::super::{Call, Failure, Outcome, SYNTAX};
use super::{KIND, NOT_FLOAT};
use crate::double;
use crate::error::Result;
use crate::memory::Memory;
use crate::resp::args::Args;
use crate::store::collection::Collection;

/// When ZADD may do what.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::command) struct Rules {
    /// Only members that are not there yet.
    pub nx: bool,
    /// Only members that are there.
    pub xx: bool,
    /// Scores only rise.
    gt: bool,
    /// Scores only fall.
    lt: bool,
    /// The reply counts changed scores, too.
    pub ch: bool,
    incr: bool,
}

/// What has become of a member.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Added {
    /// A rule forbids it.
    Kept,
    NotANumber,
    /// The score it has now, and whether it is new or was changed.
    Has {
        score: f64,
        new: bool,
        changed: bool,
    },
}

impl Rules {
    /// The options of ZADD, and where the pairs begin.
    fn parse(args: Args<'_>) -> std::result::Result<(Self, usize), Failure> {
        let (mut rules, mut at) = (Self::default(), 2);
        while at < args.len() {
            let options = [
                ("nx", &mut rules.nx),
                ("xx", &mut rules.xx),
                ("gt", &mut rules.gt),
                ("lt", &mut rules.lt),
                ("ch", &mut rules.ch),
                ("incr", &mut rules.incr),
            ];
            let Some((_, on)) = options.into_iter().find(|(name, _)| args.is(at, name)) else {
                break;
            };
            *on = true;
            at += 1;
        }
        Ok((rules, at))
    }

    fn check(&self, words: usize) -> Outcome {
        if words == 0 || !words.is_multiple_of(2) {
            return Err(SYNTAX.into());
        }
        if self.nx && self.xx {
            return Err("ERR XX and NX options at the same time are not compatible".into());
        }
        if self.nx && (self.gt || self.lt) || self.gt && self.lt {
            return Err("ERR GT, LT, and/or NX options at the same time are not compatible".into());
        }
        if self.incr && words > 2 {
            return Err("ERR INCR option supports a single increment-element pair".into());
        }
        Ok(())
    }

    fn add<M: Memory>(
        &self,
        set: &mut Collection<'_, M>,
        member: &[u8],
        number: f64,
    ) -> Result<Added> {
        let old = set.score(member)?;
        if if old.is_some() { self.nx } else { self.xx } {
            return Ok(Added::Kept);
        }
        let score = match old {
            Some(old) if self.incr => old + number,
            _ => number,
        };
        if score.is_nan() {
            return Ok(Added::NotANumber);
        }
        let forbidden = |old| self.gt && score <= old || self.lt && score >= old;
        if old.is_some_and(forbidden) {
            return Ok(Added::Kept);
        }
        let changed = old.is_none_or(|old| old != score);
        if changed {
            set.set_score(member, old, score)?;
        }
        Ok(Added::Has {
            score,
            new: old.is_none(),
            changed,
        })
    }
}

pub(crate) fn zadd<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let (rules, at) = Rules::parse(call.args)?;
    rules.check(call.args.len() - at)?;
    add_words(call, rules, at)
}

pub(crate) fn zincrby<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let rules = Rules {
        incr: true,
        ..Rules::default()
    };
    add_words(call, rules, 2)
}

/// Adds the pairs of score and member that begin at a word.
fn add_words<M: Memory>(call: &mut Call<'_, '_, M>, rules: Rules, at: usize) -> Outcome {
    let pairs = (at..call.args.len()).step_by(2).map(|i| {
        let score = double::parse(call.args.at(i)).ok_or(NOT_FLOAT)?;
        Ok((score, call.args.at(i + 1)))
    });
    let pairs = pairs.collect::<std::result::Result<Vec<_>, Failure>>()?;
    add(call, rules, &pairs)
}

/// Adds members with scores to the sorted set of the first key, and replies.
pub(in crate::command) fn add<M: Memory>(
    call: &mut Call<'_, '_, M>,
    rules: Rules,
    pairs: &[(f64, &[u8])],
) -> Outcome {
    let (count, last) = call.db.change(call.word(1), KIND, |set| {
        let (mut count, mut last) = (0, Added::Kept);
        for (score, member) in pairs {
            last = rules.add(set, member, *score)?;
            if let Added::Has { new, changed, .. } = last {
                count += usize::from(new || rules.ch && changed);
            }
        }
        Ok((count, last))
    })?;
    match (rules.incr, last) {
        (_, Added::NotANumber) => {
            return Err("ERR resulting score is not a number (NaN)".into());
        }
        (true, Added::Has { score, .. }) => call.reply.double(score),
        (true, Added::Kept) => call.reply.nil(),
        (false, _) => call.reply.count(count),
    }
    Ok(())
}
