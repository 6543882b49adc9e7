//! A process that is stopped, for a time that does not depend on this process: whatever becomes of
//! this one, that goes on.

use crate::failure::Result;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// See the module.
pub struct Paused(Child);

impl Paused {
    /// SIGSTOP to a process now, and SIGCONT after this time.
    pub fn new(process: u32, time: Duration) -> Result<Self> {
        let seconds = time.as_secs_f64();
        let script = format!("kill -STOP {process}; sleep {seconds:.3}; kill -CONT {process}");
        let mut command = Command::new("sh");
        command.args(["-c", &script]).stdin(Stdio::null());
        let command = command.stdout(Stdio::null()).stderr(Stdio::null());
        Ok(Paused(command.spawn()?))
    }
}

impl Drop for Paused {
    fn drop(&mut self) {
        // It ends by itself when the time is over.
        let _ = self.0.wait();
    }
}
