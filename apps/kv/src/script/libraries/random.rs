//! `math.random`: the generator of Redis' scripts, which a seed makes repeat itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use mlua::{Lua, MultiValue, Table};

use crate::script::arguments::Arguments;
use crate::script::errors::failed;

/// The generator of POSIX' `lrand48`: 48 bits, of which a number has the upper 31.
const FACTOR: u64 = 0x5_deec_e66d;
const ADDEND: u64 = 0xb;
const MASK: u64 = (1 << 48) - 1;
/// What a seed is put in front of.
const LOW: u64 = 0x330e;
/// The numbers are below this, and a fraction is one of them divided by it.
const RANGE: f64 = i32::MAX as f64;

/// Of one state of Lua, which one thread has at a time.
struct Generator(AtomicU64);

impl Generator {
    fn seed(&self, seed: i64) {
        self.0
            .store((seed as u64 & 0xffff_ffff) << 16 | LOW, Relaxed);
    }

    /// From 0 on, below 1.
    fn fraction(&self) -> f64 {
        let state = self.0.load(Relaxed);
        let state = state.wrapping_mul(FACTOR).wrapping_add(ADDEND) & MASK;
        self.0.store(state, Relaxed);
        (state >> 17) as f64 % RANGE / RANGE
    }
}

/// Replaces Lua's own.
pub(super) fn install(lua: &Lua, math: &Table) -> mlua::Result<()> {
    let generator = Arc::new(Generator(AtomicU64::new(fastrand::u64(..) & MASK)));
    let seeded = generator.clone();
    let randomseed = lua.create_function(move |lua, args: MultiValue| {
        let args = Arguments::new(lua, "randomseed", args);
        seeded.seed(args.number(1)? as i64);
        Ok(())
    })?;
    math.raw_set("randomseed", randomseed)?;
    let random = lua.create_function(move |lua, args: MultiValue| random(lua, args, &generator))?;
    math.raw_set("random", random)
}

fn random(lua: &Lua, args: MultiValue, generator: &Generator) -> mlua::Result<f64> {
    let args = Arguments::new(lua, "random", args);
    let fraction = generator.fraction();
    let (low, high) = match args.len() {
        0 => return Ok(fraction),
        1 => (1.0, args.number(1)?.trunc()),
        2 => (args.number(1)?.trunc(), args.number(2)?.trunc()),
        _ => return Err(failed(lua, "wrong number of arguments")),
    };
    if low > high {
        return Err(args.bad(args.len(), "interval is empty"));
    }
    Ok((fraction * (high - low + 1.0)).floor() + low)
}
