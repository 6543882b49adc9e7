//! Publish and subscribe, over the whole rack.

use super::{Call, Outcome, Subcommand, help};
use crate::memory::Memory;
use crate::store::bus::SubscriptionKind as Kind;

/// Names that a connection may subscribe to.
const MOST: usize = 1 << 20;

pub(super) const fn subcommands<M: Memory>() -> &'static [Subcommand<M>] {
    const {
        &[
            ("channels", 2..=3, channels),
            ("numsub", 2..=usize::MAX, numsub),
            ("numpat", 2..=2, numpat),
            ("shardchannels", 2..=3, shardchannels),
            ("shardnumsub", 2..=usize::MAX, shardnumsub),
            ("help", 2..=2, help),
        ]
    }
}

pub(super) fn publish<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    send(call, false)
}

pub(super) fn spublish<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    send(call, true)
}

fn send<M: Memory>(call: &mut Call<'_, '_, M>, shard: bool) -> Outcome {
    let clients = call.db.publish(shard, call.word(1), call.word(2))?;
    call.reply.int(clients as i64);
    Ok(())
}

pub(super) fn subscribe<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    add(call, Kind::Channel, "subscribe")
}

pub(super) fn psubscribe<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    add(call, Kind::Pattern, "psubscribe")
}

pub(super) fn ssubscribe<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    add(call, Kind::Shard, "ssubscribe")
}

fn add<M: Memory>(call: &mut Call<'_, '_, M>, kind: Kind, word: &str) -> Outcome {
    for name in call.args.from(1) {
        if call.session.subscribed.count() >= MOST {
            return Err("ERR too many subscriptions".into());
        }
        call.session.subscribed.add(&call.shared.hub, kind, name)?;
        confirm(call, kind, word, Some(name));
    }
    Ok(())
}

pub(super) fn unsubscribe<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    remove(call, Kind::Channel, "unsubscribe")
}

pub(super) fn punsubscribe<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    remove(call, Kind::Pattern, "punsubscribe")
}

pub(super) fn sunsubscribe<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    remove(call, Kind::Shard, "sunsubscribe")
}

fn remove<M: Memory>(call: &mut Call<'_, '_, M>, kind: Kind, word: &str) -> Outcome {
    let names: Vec<Vec<u8>> = match call.args.len() {
        1 => call.session.subscribed.all(kind),
        _ => call.args.from(1).map(<[u8]>::to_vec).collect(),
    };
    if names.is_empty() {
        confirm(call, kind, word, None);
    }
    for name in names {
        call.session.subscribed.remove(kind, &name);
        confirm(call, kind, word, Some(&name));
    }
    Ok(())
}

/// Says what was done about one name, and how many are left.
fn confirm<M: Memory>(call: &mut Call<'_, '_, M>, kind: Kind, word: &str, name: Option<&[u8]>) {
    call.session.confirmed = true;
    call.reply.push(3);
    call.reply.bulk(word.as_bytes());
    call.reply.maybe(name);
    call.reply.count(call.session.subscribed.told(kind));
}

fn channels<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    names(call, Kind::Channel)
}

fn shardchannels<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    names(call, Kind::Shard)
}

fn names<M: Memory>(call: &mut Call<'_, '_, M>, kind: Kind) -> Outcome {
    let names = call.shared.store.subscribed(kind, call.args.get(2))?;
    call.reply.array(names.len());
    names.iter().for_each(|name| call.reply.bulk(name));
    Ok(())
}

fn numsub<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    counts(call, Kind::Channel)
}

fn shardnumsub<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    counts(call, Kind::Shard)
}

fn counts<M: Memory>(call: &mut Call<'_, '_, M>, kind: Kind) -> Outcome {
    let names: Vec<&[u8]> = call.args.from(2).collect();
    let counts = call.shared.store.subscribers(kind, &names)?;
    call.reply.array(2 * names.len());
    for (name, count) in names.iter().zip(counts) {
        call.reply.bulk(name);
        call.reply.int(count as i64);
    }
    Ok(())
}

fn numpat<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let patterns = call.shared.store.subscribed(Kind::Pattern, None)?;
    call.reply.count(patterns.len());
    Ok(())
}
