//! A process that ends with the one that has started it, however that one ends.
//!
//! Its standard input is a pipe; the kernel closes it when the starter dies, by SIGKILL too.
//! To each line that comes through it, the process answers with what its sockets have cost so far.

use crate::out;
use rackmem::diagnostics::Work;
use serde_json::{Value, json};
use std::io::BufRead;

/// What the process is started with.
pub const OPTION: &str = "--end-with-stdin";

/// Ends this process, at once, when its standard input does.
pub fn end_with_stdin() -> std::io::Result<()> {
    let wait = || {
        let lines = std::io::stdin().lock().lines();
        for _ in lines.map_while(std::result::Result::ok) {
            out::line(work(&Work::now()));
        }
        std::process::exit(1);
    };
    let thread = std::thread::Builder::new().name("orphan".to_owned());
    thread.spawn(wait).map(|_| ())
}

/// What a process answers.
fn work(work: &Work) -> Value {
    json!({"work": {
        "system_calls": work.system_calls(),
        "yields": work.yields,
        "in_vain": work.in_vain,
        "datagrams_out": work.datagrams_out,
        "datagrams_in": work.datagrams_in,
        "sleeps": work.sleeps,
    }})
}
