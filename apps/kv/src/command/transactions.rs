//! MULTI, EXEC and WATCH: EXEC holds the buckets of every key its commands name, and runs them.

use super::dispatch::{timed, write_failure};
use super::eviction::is_full;
use super::scripting::{self, LONG_WAIT, MAX_RUNS, SHORT_WAIT};
use super::{Call, Failure, Flags, MAX_REPLY, Outcome, monitor};
use crate::acl::{Context, permitted};
use crate::error::Error;
use crate::memory::Memory;
use crate::server::session::{MAX_WATCHED, Queue, Queued, Unheld, Watched};
use crate::server::shared::Shared;
use crate::store::Transaction;
use std::time::Duration;

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
    let (first, db) = (call.reply.out.len(), call.session.db);
    let mut more = Unheld::default();
    for run in 0.. {
        more.plan.whole |= run >= MAX_RUNS;
        call.reply.out.truncate(first);
        if call.session.db != db {
            call.session.select(db);
        }
        let mut transaction = open(call.shared, &queue, &watched, &more)?;
        if queue_wanders(call.shared, &queue) {
            transaction.keep_journal();
        }
        for watched in &watched {
            if !transaction.unchanged(watched.db, &watched.key, &watched.mark)? {
                call.reply.nil_array();
                return Ok(());
            }
        }
        match run_all(call, &queue, &mut transaction)? {
            None => break,
            Some(unheld) => {
                more.keys.extend(unheld.keys);
                more.plan.whole |= unheld.plan.whole;
                more.plan.flush |= unheld.plan.flush;
            }
        }
    }
    Ok(())
}

/// Whether there is a script in it, which may touch what it does not say.
fn queue_wanders<M: Memory>(shared: &Shared<M>, queue: &Queue) -> bool {
    let mut names = queue
        .commands
        .iter()
        .map(|queued| shared.commands.at(queued.command).name);
    names.any(monitor::is_script)
}

/// Runs the commands one after the other. Says what else must be held if a script among them
/// touches it: then nothing is changed, and all of them can run again.
fn run_all<M: Memory>(
    call: &mut Call<'_, '_, M>,
    queue: &Queue,
    transaction: &mut Transaction<'_, M>,
) -> Result<Option<Box<Unheld>>, Failure> {
    let (first, mut changed) = (call.reply.out.len(), false);
    call.reply.array(queue.commands.len());
    for queued in &queue.commands {
        let start = call.reply.out.len();
        let mut done = run_one(call, queued, transaction)?;
        for run in 0.. {
            let Some(mut unheld) = call.session.unheld.take() else {
                break;
            };
            unheld.plan.whole |= run >= MAX_RUNS;
            let last = changed && !transaction.can_undo();
            let wait = if last { LONG_WAIT } else { SHORT_WAIT };
            if !unheld.wrote && hold_more(transaction, &unheld, wait)? {
                call.reply.out.truncate(start);
                done = run_one(call, queued, transaction)?;
            } else if transaction.undo()? || !changed {
                return Ok(Some(unheld));
            }
        }
        changed |= !call
            .shared
            .commands
            .at(queued.command)
            .flags
            .has(Flags::READ);
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
    Ok(None)
}

fn run_one<M: Memory>(
    call: &mut Call<'_, '_, M>,
    queued: &Queued,
    transaction: &Transaction<'_, M>,
) -> Result<Outcome, Failure> {
    let db = transaction
        .db(call.session.db)
        .ok_or("ERR DB index is out of range")?;
    let args = queued.args.args();
    // The rules may have changed since it was queued.
    let allowed = permitted(
        call.shared,
        call.session,
        queued.command,
        args,
        Context::Transaction,
    );
    if let Err(failure) = allowed {
        return Ok(Err(failure));
    }
    let done = timed(
        call.shared,
        call.stats,
        call.session,
        db,
        queued.command,
        args,
        call.reply.out,
    );
    if call.shared.hub.monitors.any() {
        monitor::show(call.shared, call.session, queued.command, args, false);
    }
    Ok(done)
}

/// Holds what a script touches besides; `false`: it cannot be had now.
fn hold_more<M: Memory>(
    transaction: &mut Transaction<'_, M>,
    unheld: &Unheld,
    wait: Duration,
) -> crate::error::Result<bool> {
    if unheld.plan.flush && !transaction.may_flush() {
        return Ok(false);
    }
    if unheld.plan.whole && !transaction.holds_all() && !transaction.hold_all(wait)? {
        return Ok(false);
    }
    for key in &unheld.keys {
        if !transaction.hold_also(key, wait)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Holds what the commands name.
fn open<'a, M: Memory>(
    shared: &'a Shared<M>,
    queue: &Queue,
    watched: &[Watched],
    more: &Unheld,
) -> crate::error::Result<Transaction<'a, M>> {
    let (mut keys, mut plan): (Vec<&[u8]>, _) = (Vec::new(), more.plan);
    keys.extend(more.keys.iter().map(Vec::as_slice));
    let wanders = queue_wanders(shared, queue);
    for queued in &queue.commands {
        let (command, args) = (shared.commands.at(queued.command), queued.args.args());
        plan.whole |= wanders && command.flags.has(Flags::FLUSH);
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
