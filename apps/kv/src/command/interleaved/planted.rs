//! Planted defects: commands that look before they hold the buckets of their keys,
//! and act by what they saw then.

use crate::command::{Call as AnyCall, Handler, Outcome, transactions};
use crate::memory::HeapMemory;
use crate::store::{Condition, ExpireIf, Expiry, SetOptions};

type Call<'a, 's> = AnyCall<'a, 's, HeapMemory>;

/// A command, what is said, and what it does instead of what it should.
pub(super) const PLANTED: &[(&str, &str, Handler<HeapMemory>)] = &[
    ("exec", "WATCH a; MULTI; SET b 9; INCR b; !EXEC", exec),
    ("msetnx", "MSETNX a 5 b 6", msetnx),
    ("mset", "MSET a 5 b 6", mset),
    ("mget", "MGET a b", mget),
    ("exists", "EXISTS a b", exists),
    ("del", "DEL a b", del),
    ("renamenx", "RENAMENX a b", renamenx),
    ("rename", "RENAME a b", rename),
    ("copy", "COPY a b", copy),
    ("set", "SET a 5 NX", set_nx),
    ("setnx", "SETNX a 5", set_nx),
    ("getset", "GETSET a 5", getset),
    ("getdel", "GETDEL a", getdel),
    ("getex", "GETEX a EX -1", getex),
    ("incr", "INCR a", incr),
    ("append", "APPEND a yy", append),
    ("setrange", "SETRANGE a 2 zz", setrange),
    ("expire", "EXPIRE a 50 NX", expire_nx),
];

fn value(call: &Call<'_, '_>, key: &[u8]) -> Result<Option<Vec<u8>>, crate::Error> {
    let mut value = Vec::new();
    Ok(call.db.get(key, &mut value)?.then_some(value))
}

fn pairs<'a>(call: &Call<'a, '_>) -> Vec<(&'a [u8], &'a [u8])> {
    let keys = (1..call.args.len()).step_by(2);
    keys.map(|i| (call.word(i), call.word(i + 1))).collect()
}

/// Compares what is watched, and then holds the buckets and runs.
fn exec(call: &mut Call<'_, '_>) -> Outcome {
    for watched in std::mem::take(&mut call.session.watched) {
        let db = call.db.select(watched.db).expect("a database");
        if db.mark(&watched.key)? != watched.mark {
            call.session.queue = None;
            call.reply.nil_array();
            return Ok(());
        }
    }
    transactions::exec(call)
}

fn msetnx(call: &mut Call<'_, '_>) -> Outcome {
    let fresh = call.db.count_present(&call.keys())? == 0;
    if fresh {
        call.db.set_many(&pairs(call), false)?;
    }
    call.reply.flag(fresh);
    Ok(())
}

fn mset(call: &mut Call<'_, '_>) -> Outcome {
    for (key, value) in pairs(call) {
        call.db.set(key, value)?;
    }
    call.reply.ok();
    Ok(())
}

fn mget(call: &mut Call<'_, '_>) -> Outcome {
    let keys = call.keys();
    call.reply.array(keys.len());
    for key in keys {
        let value = value(call, key)?;
        call.reply.maybe(value.as_deref());
    }
    Ok(())
}

fn exists(call: &mut Call<'_, '_>) -> Outcome {
    let mut present = 0;
    for key in call.keys() {
        present += usize::from(call.db.meta(key)?.is_some());
    }
    call.reply.count(present);
    Ok(())
}

fn del(call: &mut Call<'_, '_>) -> Outcome {
    let mut removed = 0;
    for key in call.keys() {
        removed += usize::from(call.db.remove(key)?);
    }
    call.reply.count(removed);
    Ok(())
}

fn renamenx(call: &mut Call<'_, '_>) -> Outcome {
    let fresh = call.db.meta(call.word(2))?.is_none();
    if fresh {
        call.db.rename(call.word(1), call.word(2), true)?;
    }
    call.reply.flag(fresh);
    Ok(())
}

fn rename(call: &mut Call<'_, '_>) -> Outcome {
    let value = value(call, call.word(1))?.ok_or(crate::Error::NoSuchKey)?;
    call.db.set(call.word(2), &value)?;
    call.db.remove(call.word(1))?;
    call.reply.ok();
    Ok(())
}

fn copy(call: &mut Call<'_, '_>) -> Outcome {
    let fresh = call.db.meta(call.word(2))?.is_none();
    let done = match value(call, call.word(1))? {
        Some(value) if fresh => {
            call.db.set(call.word(2), &value)?;
            true
        }
        _ => false,
    };
    call.reply.flag(done);
    Ok(())
}

fn set_nx(call: &mut Call<'_, '_>) -> Outcome {
    let fresh = call.db.meta(call.word(1))?.is_none();
    if fresh {
        call.db.set(call.word(1), call.word(2))?;
    }
    match (call.command.name, fresh) {
        ("setnx", _) => call.reply.flag(fresh),
        (_, true) => call.reply.ok(),
        (_, false) => call.reply.nil(),
    }
    Ok(())
}

fn getset(call: &mut Call<'_, '_>) -> Outcome {
    let old = value(call, call.word(1))?;
    call.db.set(call.word(1), call.word(2))?;
    call.reply.maybe(old.as_deref());
    Ok(())
}

fn getdel(call: &mut Call<'_, '_>) -> Outcome {
    let old = value(call, call.word(1))?;
    call.db.remove(call.word(1))?;
    call.reply.maybe(old.as_deref());
    Ok(())
}

/// Of a key that is not there the time is not looked at, and then the key is.
/// It was so in the shipped command.
fn getex(call: &mut Call<'_, '_>) -> Outcome {
    if call.db.meta(call.word(1))?.is_some() {
        return Err("ERR invalid expire time in 'getex' command".into());
    }
    let value = value(call, call.word(1))?;
    call.reply.maybe(value.as_deref());
    Ok(())
}

fn incr(call: &mut Call<'_, '_>) -> Outcome {
    let old = value(call, call.word(1))?.unwrap_or_else(|| b"0".to_vec());
    let old: i64 = String::from_utf8_lossy(&old)
        .parse()
        .map_err(|_| crate::command::NOT_INTEGER)?;
    let options = SetOptions {
        condition: Condition::Always,
        expiry: Expiry::Keep,
    };
    let sum = (old + 1).to_string();
    call.db.set_with(call.word(1), sum.as_bytes(), options)?;
    call.reply.int(old + 1);
    Ok(())
}

fn append(call: &mut Call<'_, '_>) -> Outcome {
    let mut whole = value(call, call.word(1))?.unwrap_or_default();
    whole.extend_from_slice(call.word(2));
    let options = SetOptions {
        condition: Condition::Always,
        expiry: Expiry::Keep,
    };
    call.db.set_with(call.word(1), &whole, options)?;
    call.reply.count(whole.len());
    Ok(())
}

/// Makes the value long enough, and then patches it.
fn setrange(call: &mut Call<'_, '_>) -> Outcome {
    let at = call.integer(2)? as usize;
    let end = at + call.word(3).len();
    let len = call.db.meta(call.word(1))?.map_or(0, |meta| meta.len);
    call.db.set_range(call.word(1), at, call.word(3))?;
    call.reply.count(len.max(end));
    Ok(())
}

fn expire_nx(call: &mut Call<'_, '_>) -> Outcome {
    let none = matches!(call.db.meta(call.word(1))?, Some(meta) if meta.expiry == 0);
    let at = call.db.now() + 50_000;
    let done = none && call.db.expire(call.word(1), at, ExpireIf::default())?;
    call.reply.flag(done);
    Ok(())
}
