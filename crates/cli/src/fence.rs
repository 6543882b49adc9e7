//! What a process does that the rack has declared dead: it ends,
//! or joins the rack again as its next incarnation.

use crate::ended::Ended;
use crate::failure::{Failure, Result};
use crate::out;
use crate::stop::Stop;
use clap::{ArgAction, Args};
use rackmem::membership::Role;
use rackmem::{OpenError, Rack};
use serde_json::json;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::{Duration, Instant};

/// How long clients are still answered, with errors, before the process ends.
const GRACE: Duration = Duration::from_secs(1);
/// The same before it joins again.
const SHORT_GRACE: Duration = Duration::from_millis(100);
/// Between two looks whether all is put away.
const STEP: Duration = Duration::from_millis(10);

/// Whether to end or to join again.
#[derive(Clone, Copy, Debug, Args)]
#[command(next_help_heading = "When the rack has declared this process dead")]
pub struct FenceArgs {
    /// Join the rack again as a new process; with `=false`, exit with status 3
    #[arg(long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1)]
    #[arg(
        default_value_t = true,
        default_missing_value = "true",
        hide_possible_values = true,
        require_equals = true
    )]
    rejoin: bool,
}

impl FenceArgs {
    /// Joins the rack by `join`. While the members are there and cannot be reached, a process that
    /// rejoins goes on trying: it was declared dead for that, as a rule, and its cable may be
    /// mended. `None` when told to stop.
    ///
    /// # Errors
    /// Those of `join`.
    pub fn join(
        self,
        stop: &Stop,
        mut join: impl FnMut() -> rackmem::Result<Rack, OpenError>,
    ) -> Result<Option<Rack>> {
        let mut told = false;
        loop {
            match join() {
                Err(OpenError::Membership(error)) if self.rejoin && error.is_out_of_reach() => {
                    if !std::mem::replace(&mut told, true) {
                        eprintln!("{}; retrying", error.what());
                    }
                    if stop.requested() {
                        return Ok(None);
                    }
                }
                joined => return Ok(Some(joined?)),
            }
        }
    }

    /// Says what has happened and what comes next.
    fn announce(self, role: Role, json: bool) {
        let next = if self.rejoin { "rejoin" } else { "exit" };
        if json {
            return out::line(json!({"fenced": role.to_string(), "next": next}));
        }
        let what = match self.rejoin {
            true => "it rejoins as the next incarnation",
            false => "it exits with status 3",
        };
        out::line(format!(
            "{role}: the rack has declared this process dead; {what}"
        ));
    }

    /// Goes on after a fence. What is left of the rack in this process is dropped by `leave` once
    /// clients had time to be told. `more` is added to the arguments of the process that joins
    /// again.
    ///
    /// # Errors
    /// When the program cannot be started again.
    pub fn go_on(
        self,
        role: Role,
        json: bool,
        more: &[String],
        leave: impl FnOnce() + Send + 'static,
    ) -> Result<Ended> {
        self.announce(role, json);
        if !self.rejoin {
            std::thread::sleep(GRACE);
            within(GRACE, leave);
            return Ok(Ended::Fenced);
        }
        std::thread::sleep(SHORT_GRACE);
        within(GRACE, leave);
        Err(start_again(more))
    }
}

/// Puts things away, for so long at most: the end of the process does the rest.
fn within(time: Duration, leave: impl FnOnce() + Send + 'static) {
    let leaving = std::thread::spawn(leave);
    let began = Instant::now();
    while !leaving.is_finished() && began.elapsed() < time {
        std::thread::sleep(STEP);
    }
}

/// This process becomes a fresh one, with the same number, arguments and open terminal: nothing of
/// the old one is left that could serve. Returns only when that fails.
fn start_again(more: &[String]) -> Failure {
    let mut args = std::env::args_os();
    let name = args.next().unwrap_or_else(|| "rackmem".into());
    // The file that this process runs, also when it has been replaced since.
    let error = Command::new("/proc/self/exe")
        .arg0(name)
        .args(args)
        .args(more)
        .exec();
    Failure::new(
        format!("this process cannot start itself again: {error}"),
        "start it by hand, or with --rejoin=false under a supervisor",
    )
}
