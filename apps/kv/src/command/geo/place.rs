//! Commands about members that are named: GEOADD, GEOPOS, GEODIST, GEOHASH.

use super::super::sorted_set::{Rules, add};
use super::super::{Call, Outcome, SYNTAX};
use super::{hash, point, shape, unit};
use crate::memory::Memory;

pub(crate) fn geoadd<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let args = call.args;
    let (mut rules, mut at) = (Rules::default(), 2);
    while at < args.len() {
        match () {
            () if args.is(at, "nx") => rules.nx = true,
            () if args.is(at, "xx") => rules.xx = true,
            () if args.is(at, "ch") => rules.ch = true,
            () => break,
        }
        at += 1;
    }
    let words = args.len() - at;
    if words == 0 || !words.is_multiple_of(3) || rules.nx && rules.xx {
        return Err(SYNTAX.into());
    }
    let places = (at..args.len()).step_by(3).map(|i| {
        let number = hash::number(point(args, i)?);
        Ok((number as f64, args.at(i + 2)))
    });
    let places = places.collect::<Result<Vec<_>, super::Failure>>()?;
    add(call, rules, &places)
}

pub(crate) fn geopos<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let places = call.places(2)?;
    let places = places.unwrap_or_else(|| vec![None; call.args.len() - 2]);
    call.reply.array(places.len());
    for place in places {
        match place {
            Some(point) => call.reply.point(point),
            None => call.reply.nil_array(),
        }
    }
    Ok(())
}

pub(crate) fn geohash<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let places = call.places(2)?;
    let places = places.unwrap_or_else(|| vec![None; call.args.len() - 2]);
    call.reply.array(places.len());
    for place in places {
        let text = place.map(hash::text);
        call.reply.maybe(text.as_ref().map(|text| &text[..]));
    }
    Ok(())
}

pub(crate) fn geodist<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let meters = match call.args.len() {
        4 => 1.0,
        5 => unit(call.args, 4)?,
        _ => return Err(SYNTAX.into()),
    };
    let (one, two) = (call.word(2), call.word(3));
    let places = call.sorted_set(call.word(1), |set| Ok(set.score(one)?.zip(set.score(two)?)))?;
    match places.flatten() {
        Some((one, two)) => {
            let distance = shape::distance(hash::point(one), hash::point(two));
            call.reply.length(distance / meters);
        }
        None => call.reply.nil(),
    }
    Ok(())
}
