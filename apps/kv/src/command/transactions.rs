//! MULTI, EXEC and WATCH: EXEC holds the buckets of every key its commands name, and runs them.

use super::dispatch::{timed, write_failure};
use super::eviction::is_full;
use super::scripting;
use super::{Call, Flags, MAX_REPLY, Outcome};
use crate::acl::{Context, permitted};
use crate::error::Error;
use crate::memory::Memory;
use crate::server::session::{MAX_WATCHED, Queue, Watched};
use crate::server::shared::Shared;
use crate::store::{Plan, Transaction};

pub(super) fn multi<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    if call.session.queue.is_some() {
        return Err("ERR MULTI calls can not be nested".into());
    }
    call.session.queue = Some(Queue::default());
    call.reply.ok();
    Ok(())
}

pub(super) fn discard<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    call.session
        .queue
        .take()
        .ok_or("ERR DISCARD without MULTI")?;
    call.session.watched.clear();
    call.reply.ok();
    Ok(())
}

pub(super) fn watch<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    if call.session.queue.is_some() {
        return Err("ERR WATCH inside MULTI is not allowed".into());
    }
    let db = call.db.number();
    for key in call.args.from(1) {
        if call
            .session
            .watched
            .iter()
            .any(|w| w.db == db && w.key == key)
        {
            continue;
        }
        if call.session.watched.len() == MAX_WATCHED {
            return Err("ERR too many watched keys".into());
        }
        let mark = call.db.mark(key)?;
        call.session.watched.push(Watched {
            db,
            key: key.to_vec(),
            mark,
        });
    }
    call.reply.ok();
    Ok(())
}

pub(super) fn unwatch<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    call.session.watched.clear();
    call.reply.ok();
    Ok(())
}

pub(super) fn exec<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let queue = call.session.queue.take().ok_or("ERR EXEC without MULTI")?;
    let watched = std::mem::take(&mut call.session.watched);
    if queue.failed {
        return Err("EXECABORT Transaction discarded because of previous errors.".into());
    }
    let transaction = open(call.shared, &queue, &watched)?;
    for watched in &watched {
        if !transaction.unchanged(watched.db, &watched.key, &watched.mark)? {
            call.reply.nil_array();
            return Ok(());
        }
    }
    let first = call.reply.out.len();
    call.reply.array(queue.commands.len());
    for queued in &queue.commands {
        let db = transaction
            .db(call.session.db)
            .ok_or("ERR DB index is out of range")?;
        let (args, start) = (queued.args.args(), call.reply.out.len());
        // The rules may have changed since it was queued.
        let allowed = permitted(
            call.shared,
            call.session,
            queued.command,
            args,
            Context::Transaction,
        );
        let done = allowed.and_then(|()| {
            timed(
                call.shared,
                call.stats,
                call.session,
                db,
                queued.command,
                args,
                call.reply.out,
            )
        });
        let fits = call.reply.out.len() - first <= MAX_REPLY;
        let done = done.and(if fits {
            Ok(())
        } else {
            Err(Error::ReplyTooLong.into())
        });
        call.session.full |= is_full(&done);
        if let Err(failure) = done {
            call.reply.out.truncate(start);
            write_failure(&failure, call.session, call.stats, call.reply.out);
        }
    }
    Ok(())
}

/// Holds what the commands name.
fn open<'a, M: Memory>(
    shared: &'a Shared<M>,
    queue: &Queue,
    watched: &[Watched],
) -> crate::error::Result<Transaction<'a, M>> {
    let (mut keys, mut plan): (Vec<&[u8]>, _) = (Vec::new(), Plan::default());
    for queued in &queue.commands {
        let (command, args) = (shared.commands.at(queued.command), queued.args.args());
        plan.whole |= command.flags.has(Flags::WHOLE) || command.keys.are_incomplete(args);
        plan.flush |= command.flags.has(Flags::FLUSH);
        keys.extend(command.keys.positions(args).map(|i| args.at(i)));
    }
    let names = queue.commands.iter().flat_map(|queued| {
        let (command, args) = (shared.commands.at(queued.command), queued.args.args());
        plan.flush |= scripting::flushes(command, args);
        scripting::names(command, args)
    });
    let names: Vec<_> = names.collect();
    keys.extend(names.iter().map(|name| &name[..]));
    keys.extend(watched.iter().map(|w| w.key.as_slice()));
    // The command with a key that is too long fails by itself, and touches nothing.
    keys.retain(|key| key.len() <= shared.store.key_limit());
    shared.store.transaction(keys, plan)
}
