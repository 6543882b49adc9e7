//! ZRANGE, in all its forms.

use super::super::{Call, Failure, Outcome, SYNTAX};
use super::edges::{By, Span};
use super::{KIND, MAX_REPLY};
use crate::error::Result;
use crate::memory::{Access, Memory};
use crate::store::collection::Collection;
use crate::store::collection::sorted::Scored;

/// What a command of the family asks for.
struct Wanted {
    span: Span,
    down: bool,
    scores: bool,
    /// Members to leave out at the front; `None`: all.
    offset: Option<u64>,
    limit: u64,
}

/// What a command's name says already.
#[derive(Clone, Copy)]
struct Form {
    /// The word of the first end.
    at: usize,
    by: Option<By>,
    down: Option<bool>,
    stores: bool,
}

impl Form {
    const fn named(by: By, down: bool) -> Self {
        Self {
            at: 2,
            by: Some(by),
            down: Some(down),
            stores: false,
        }
    }
}

impl Wanted {
    fn parse<M: Memory>(call: &Call<'_, '_, M>, form: Form) -> std::result::Result<Self, Failure> {
        let args = call.args;
        let (mut by, mut down) = (form.by, form.down);
        let (mut scores, mut limits) = (false, (0, -1));
        let mut i = form.at + 2;
        while i < args.len() {
            if !form.stores && args.is(i, "withscores") {
                scores = true;
            } else if args.is(i, "limit") && i + 2 < args.len() {
                limits = (call.integer(i + 1)?, call.integer(i + 2)?);
                i += 2;
            } else if down.is_none() && args.is(i, "rev") {
                down = Some(true);
            } else if by.is_none() && args.is(i, "bylex") {
                by = Some(By::Member);
            } else if by.is_none() && args.is(i, "byscore") {
                by = Some(By::Score);
            } else {
                return Err(SYNTAX.into());
            }
            i += 1;
        }
        let (by, down) = (by.unwrap_or(By::Rank), down.unwrap_or(false));
        if limits.1 != -1 && by == By::Rank {
            return Err("ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX".into());
        }
        if scores && by == By::Member {
            return Err(
                "ERR syntax error, WITHSCORES not supported in combination with BYLEX".into(),
            );
        }
        let swapped = usize::from(down && by != By::Rank);
        let span = Span::parse(call, by, form.at + swapped, form.at + 1 - swapped)?;
        let (offset, limit) = if by == By::Rank { (0, -1) } else { limits };
        Ok(Self {
            span,
            down,
            scores,
            offset: u64::try_from(offset).ok(),
            limit: u64::try_from(limit).unwrap_or(u64::MAX),
        })
    }

    fn find<M: Memory>(&self, set: &Collection<'_, M>) -> Result<Vec<Scored>> {
        let range = self.span.positions(set, self.down)?;
        let Some(offset) = self.offset else {
            return Ok(Vec::new());
        };
        let range = match self.down {
            true => {
                let end = range.end.saturating_sub(offset).max(range.start);
                end.saturating_sub(self.limit).max(range.start)..end
            }
            false => {
                let start = range.start.saturating_add(offset).min(range.end);
                start..start.saturating_add(self.limit).min(range.end)
            }
        };
        set.copy_span(range, self.down, MAX_REPLY)
    }
}

fn reply_range<M: Memory>(call: &mut Call<'_, '_, M>, form: Form) -> Outcome {
    let wanted = Wanted::parse(call, form)?;
    let found = call.sorted_set(call.word(1), |set| wanted.find(set))?;
    call.reply
        .members(&found.unwrap_or_default(), wanted.scores);
    Ok(())
}

pub(crate) fn zrange<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    reply_range(
        call,
        Form {
            at: 2,
            by: None,
            down: None,
            stores: false,
        },
    )
}

pub(crate) fn zrevrange<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    reply_range(call, Form::named(By::Rank, true))
}

pub(crate) fn zrangebyscore<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    reply_range(call, Form::named(By::Score, false))
}

pub(crate) fn zrevrangebyscore<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    reply_range(call, Form::named(By::Score, true))
}

pub(crate) fn zrangebylex<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    reply_range(call, Form::named(By::Member, false))
}

pub(crate) fn zrevrangebylex<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    reply_range(call, Form::named(By::Member, true))
}

pub(crate) fn zrangestore<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let form = Form {
        at: 3,
        by: None,
        down: None,
        stores: true,
    };
    let wanted = Wanted::parse(call, form)?;
    let (to, from) = (call.word(1), call.word(2));
    let count = call.db.together(&[to, from], Access::Write, |db| {
        let found = db.view(from, KIND, |set| wanted.find(set))?;
        db.store_members(to, &found.unwrap_or_default())
    })?;
    call.reply.count(count);
    Ok(())
}

impl<M: Memory> crate::store::Db<'_, M> {
    /// Makes a key a sorted set of these members, in place of what it had; no key if there are
    /// none. Says how many.
    pub(in crate::command) fn store_members(
        &self,
        key: &[u8],
        members: &[Scored],
    ) -> Result<usize> {
        self.replace(key, KIND, |set| {
            for (member, score) in members {
                set.set_score(member, None, *score)?;
            }
            Ok(members.len())
        })
    }
}
