//! Loading, by processes: where the database has copies, nodes may die meanwhile, and others load
//! what those had begun.

use super::{DuringArg, TxnArgs};
use crate::crew::Crew;
use crate::failure::Failure;
use crate::halt::{Halt, Played};
use crate::stop::Stop;
use serde_json::{Value, json};
use std::time::Duration;

/// A node is killed so long after all have begun, at most: then the smallest database is not loaded
/// yet.
const SOON: Duration = Duration::from_millis(30);

/// What a node says when it begins.
pub fn begins() -> Value {
    json!({"loading": true})
}

/// Has all nodes load; those that have died, none of them where there are no copies.
pub fn run(crew: &mut Crew, args: &TxnArgs, stop: &Stop) -> Played<Vec<usize>> {
    crew.tell_all("load")?;
    let Some(copies) = args.copies else {
        crew.answers(stop)?;
        crew.answers(stop)?;
        return Ok(Vec::new());
    };
    let begun = crew.living();
    crew.answers_of_living(stop)?;
    for _ in 0..args.kill_during(DuringArg::Loading) {
        if !stop.sleep(SOON.mul_f64(fastrand::f64())) {
            return Err(Halt::Stopped);
        }
        let living = crew.living();
        crew.kill(living[fastrand::usize(..living.len())]);
    }
    crew.answers_of_living(stop)?;
    let (mut dead, mut loaded) = (Vec::new(), 0);
    loop {
        let living = crew.living();
        dead.extend(begun.iter().filter(|node| !living.contains(*node)));
        dead.sort_unstable();
        dead.dedup();
        if dead.len() > usize::from(copies / 2) {
            return Err(few(dead.len(), copies).into());
        }
        // Another one may die while it does that: then the next one does it.
        let Some(home) = dead.get(loaded) else {
            return Ok(dead);
        };
        crew.tell(living[0], &format!("load-for {home}"))?;
        let said = crew.answers_of(&living[..1], stop)?;
        loaded += said.len();
    }
}

/// More nodes have died than a database with copies outlives.
fn few(dead: usize, copies: u8) -> Failure {
    Failure::new(
        format!(
            "{dead} nodes have died while the database was loaded, a majority of its {copies} copies"
        ),
        "see why they have, and load it again; more --copies outlive more deaths",
    )
}
