//! SAVE, BGSAVE, LASTSAVE: snapshots in the server's file.

use super::{Call, Failure, Outcome, SYNTAX};
use crate::memory::Memory;
use crate::snapshot::Keeper;

const UNDER_WAY: &str = "ERR Background save already in progress";
const NO_FILE: &str = "ERR this server was started without a file for snapshots";

fn keeper<'a, M: Memory>(call: &Call<'a, '_, M>) -> Result<&'a Keeper, Failure> {
    let keeper = &call.shared.snapshots;
    match keeper.file() {
        Some(_) => Ok(keeper),
        None => Err(NO_FILE.into()),
    }
}

/// One moment of all keys: the rack waits.
pub(super) fn save<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    match keeper(call)?.save(&call.shared.store) {
        None => Err(UNDER_WAY.into()),
        Some(Err(error)) => Err(format!("ERR {error}").into()),
        Some(Ok(_)) => {
            call.reply.ok();
            Ok(())
        }
    }
}

/// SCHEDULE waits for a rewrite of Redis' log, of which there is none.
pub(super) fn bgsave<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    if call.args.len() > 2 || call.args.len() == 2 && !call.args.is(1, "schedule") {
        return Err(SYNTAX.into());
    }
    match keeper(call)?.save_in_background(&call.shared.store) {
        Ok(true) => call.reply.simple("Background saving started"),
        Ok(false) => return Err(UNDER_WAY.into()),
        Err(error) => return Err(format!("ERR {error}").into()),
    }
    Ok(())
}

pub(super) fn lastsave<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let at = call.shared.snapshots.status().saved_at;
    call.reply.int(at as i64);
    Ok(())
}
