//! Commands that say something about members: scores, ranks, counts.

use super::super::{Call, Outcome, SYNTAX};
use super::edges::{By, Span};
use crate::memory::Memory;

pub(crate) fn zcard<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let count = call.sorted_set(call.word(1), |set| Ok(set.members()))?;
    call.reply.int(count.unwrap_or(0) as i64);
    Ok(())
}

pub(crate) fn zscore<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let score = call.sorted_set(call.word(1), |set| set.score(call.word(2)))?;
    match score.flatten() {
        Some(score) => call.reply.double(score),
        None => call.reply.nil(),
    }
    Ok(())
}

pub(crate) fn zmscore<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let scores = call.sorted_set(call.word(1), |set| {
        let members = call.args.from(2);
        members
            .map(|member| set.score(member))
            .collect::<Result<Vec<_>, _>>()
    })?;
    let scores = scores.unwrap_or_else(|| vec![None; call.args.len() - 2]);
    call.reply.array(scores.len());
    for score in scores {
        match score {
            Some(score) => call.reply.double(score),
            None => call.reply.nil(),
        }
    }
    Ok(())
}

pub(crate) fn zrank<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    rank(call, false)
}

pub(crate) fn zrevrank<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    rank(call, true)
}

fn rank<M: Memory>(call: &mut Call<'_, '_, M>, down: bool) -> Outcome {
    let with_score = match call.args.len() {
        3 => false,
        4 if call.args.is(3, "withscore") => true,
        4 => return Err(SYNTAX.into()),
        _ => return Err(call.wrong_count()),
    };
    let found = call.sorted_set(call.word(1), |set| {
        let Some(score) = set.score(call.word(2))? else {
            return Ok(None);
        };
        let position = set.position_of(call.word(2), score)?;
        let rank = match down {
            true => set.members().saturating_sub(position + 1),
            false => position,
        };
        Ok(Some((rank, score)))
    })?;
    match (found.flatten(), with_score) {
        (Some((rank, _)), false) => call.reply.int(rank as i64),
        (Some((rank, score)), true) => {
            call.reply.array(2);
            call.reply.int(rank as i64);
            call.reply.double(score);
        }
        (None, false) => call.reply.nil(),
        (None, true) => call.reply.nil_array(),
    }
    Ok(())
}

pub(crate) fn zcount<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    count(call, By::Score)
}

pub(crate) fn zlexcount<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    count(call, By::Member)
}

fn count<M: Memory>(call: &mut Call<'_, '_, M>, by: By) -> Outcome {
    let span = Span::parse(call, by, 2, 3)?;
    let count = call.sorted_set(call.word(1), |set| {
        let range = span.positions(set, false)?;
        Ok(range.end - range.start)
    })?;
    call.reply.int(count.unwrap_or(0) as i64);
    Ok(())
}
