//! A process that takes a rack down when the one that made it is gone.
//!
//! It reads from a pipe. Its end without a word means that the owner has ended without doing it
//! itself: by a signal, or killed.

use crate::error::Result;
use crate::names::{self, Place};
use crate::state;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

/// `$1` is the state's file, the others are namespaces, the switch's first:
/// with its ports go all cables.
const SCRIPT: &str = r#"
trap '' INT TERM HUP
read -r word && exit 0
state=$1; shift
for i in 1 2 3; do
    for ns in "$@"; do
        pids=$(ip netns pids "$ns") && [ -n "$pids" ] && kill -9 $pids
    done
done
for port in $(ip -n "$1" -o link show type veth | sed 's/^[0-9]*: \([^@:]*\).*/\1/'); do
    ip -n "$1" link del "$port"
done
for ns in "$@"; do ip netns del "$ns"; done
rm -rf "$state.d"
rm -f "$state"
"#;

pub struct Guard(Child);

impl Guard {
    pub fn start(rack: &str, hosts: usize) -> Result<Guard> {
        let namespaces = [Place::Switch]
            .into_iter()
            .chain((0..hosts).map(Place::Host))
            .map(|place| names::namespace(rack, place));
        let child = Command::new("sh")
            .args(["-c", SCRIPT, "rackmem-guard"])
            .arg(state::file(rack))
            .args(namespaces)
            // A group of its own: Ctrl-C in a terminal is for the owner.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        Ok(Guard(child))
    }

    /// There is nothing left to do, or nothing is to be done.
    pub fn dismiss(mut self) {
        if let Some(mut pipe) = self.0.stdin.take() {
            // A guard that has ended needs no word.
            let _ = pipe.write_all(b"done\n");
        }
        let _ = self.0.wait();
    }
}
