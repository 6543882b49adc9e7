//! The commands of scripts.

use super::*;
use crate::command::{functions, scripting};

#[rustfmt::skip]
impl<M: Memory> Table<M> {
    pub(super) const SCRIPTING: &'static [Command<M>] = commands! { "scripting":
        "eval"       -3 SCRIPT      COUNTED_SECOND "2.6.0" scripting::eval,       "Runs a script.";
        "evalsha"    -3 SCRIPT      COUNTED_SECOND "2.6.0" scripting::evalsha,    "Runs a script that the rack knows.";
        "eval_ro"    -3 SCRIPT_READ COUNTED_SECOND "7.0.0" scripting::eval_ro,    "Runs a script that only reads.";
        "evalsha_ro" -3 SCRIPT_READ COUNTED_SECOND "7.0.0" scripting::evalsha_ro, "Runs a script that the rack knows and that only reads.";
        "fcall"      -3 SCRIPT      COUNTED_SECOND "7.0.0" functions::fcall,      "Calls a function of a library.";
        "fcall_ro"   -3 SCRIPT_READ COUNTED_SECOND "7.0.0" functions::fcall_ro,   "Calls a function of a library that only reads.";
        "function"   -2 SCRIPT      NO_KEY         "7.0.0" subcommand [functions::subcommands], "About the libraries that the rack knows.";
        "script"     -2 SCRIPT      NO_KEY         "2.6.0" subcommand [scripting::subcommands], "About the scripts that the rack knows.";
    };
}
