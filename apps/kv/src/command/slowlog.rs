//! SLOWLOG: what took long at this node.

use super::{Call, Outcome, Subcommand, help};
use crate::memory::Memory;
use crate::number::parse_i64;

/// Commands that GET shows unless told.
const SHOWN: usize = 10;

pub(super) const fn subcommands<M: Memory>() -> &'static [Subcommand<M>] {
    const {
        &[
            ("get", 2..=3, get),
            ("len", 2..=2, len),
            ("reset", 2..=2, reset),
            ("help", 2..=2, help),
        ]
    }
}

fn get<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let count = match call.args.get(2).map(parse_i64) {
        None => SHOWN,
        Some(Some(-1)) => usize::MAX,
        Some(Some(count)) if count >= 0 => usize::try_from(count).unwrap_or(usize::MAX),
        Some(_) => return Err("ERR count should be greater than or equal to -1".into()),
    };
    let slow = call.shared.control.slowlog.newest(count);
    let reply = &mut call.reply;
    reply.array(slow.len());
    for slow in slow {
        reply.array(6);
        reply.int(slow.id as i64);
        reply.int(slow.at as i64);
        reply.int(i64::try_from(slow.took.as_micros()).unwrap_or(i64::MAX));
        reply.array(slow.words.len());
        slow.words.iter().for_each(|word| reply.bulk(word));
        reply.bulk(slow.peer.as_bytes());
        reply.bulk(&slow.name);
    }
    Ok(())
}

fn len<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    call.reply.count(call.shared.control.slowlog.len());
    Ok(())
}

fn reset<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    call.shared.control.slowlog.clear();
    call.reply.ok();
    Ok(())
}
