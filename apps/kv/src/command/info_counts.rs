//! The sections of INFO that count commands and errors.

use std::collections::BTreeMap;

use super::info::field;
use super::process::Process;
use super::{Call, Outcome};
use crate::memory::Memory;

pub(super) fn cpu<M: Memory>(_: &Call<'_, '_, M>, text: &mut String) -> Outcome {
    let process = Process::now();
    for (name, time) in [
        ("used_cpu_sys", process.system),
        ("used_cpu_user", process.user),
    ] {
        field(text, name, format_args!("{:.6}", time.as_secs_f64()));
    }
    for name in ["used_cpu_sys_children", "used_cpu_user_children"] {
        field(text, name, "0.000000");
    }
    Ok(())
}

/// No modules: the section is its title.
pub(super) fn modules<M: Memory>(_: &Call<'_, '_, M>, _: &mut String) -> Outcome {
    Ok(())
}

pub(super) fn commands<M: Memory>(call: &Call<'_, '_, M>, text: &mut String) -> Outcome {
    let catalog = call.shared.control.users.catalog();
    let counts = call.shared.unit_counts();
    for (unit, [calls, nanoseconds, rejected, failed]) in catalog.units.iter().zip(counts) {
        if calls + rejected == 0 {
            continue;
        }
        let microseconds = nanoseconds / 1000;
        let each = microseconds as f64 / calls.max(1) as f64;
        field(
            text,
            &format!("cmdstat_{}", unit.name),
            format_args!(
                "calls={calls},usec={microseconds},usec_per_call={each:.2},\
                 rejected_calls={rejected},failed_calls={failed}"
            ),
        );
    }
    Ok(())
}

pub(super) fn errors<M: Memory>(call: &Call<'_, '_, M>, text: &mut String) -> Outcome {
    let mut codes = BTreeMap::new();
    for stats in call.shared.desks.iter().flat_map(|desk| &desk.stats) {
        stats.counts.add_codes(&mut codes);
    }
    for (code, count) in codes {
        field(
            text,
            &format!("errorstat_{code}"),
            format_args!("count={count}"),
        );
    }
    Ok(())
}
