//! Servers, and other processes, that a bench starts.

use super::{BenchError, Result};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Between two looks whether a process has ended.
const LOOK: Duration = Duration::from_millis(10);

/// Lets a child end with the thread that starts it, whatever ends that:
/// also when no process is left to stop it.
pub fn ends_with_us(command: &mut Command) -> &mut Command {
    // SAFETY: `prctl` is a system call and nothing else, which is allowed between fork and exec.
    unsafe {
        command.pre_exec(|| {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            Ok(())
        })
    }
}

/// Stops a process, as one that has no processor for long, or lets it go on.
pub fn signal(process: u32, signal: i32) {
    // SAFETY: a signal to a process of this bench, whose parent has not waited for it.
    unsafe { libc::kill(process as i32, signal) };
}

/// A process that lives until the value is dropped.
pub struct Running {
    process: Child,
    ends_within: Duration,
}

impl Running {
    /// Starts a process, and returns when it has said its first line; it, and what that says. When
    /// it loses its standard input it has so long to end by itself.
    pub fn start_saying(command: &mut Command, ends_within: Duration) -> Result<(Self, String)> {
        let process = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let process = process.spawn()?;
        let mut running = Running {
            process,
            ends_within,
        };
        let mut line = String::new();
        if let Some(out) = running.process.stdout.take() {
            let mut out = BufReader::new(out);
            out.read_line(&mut line)?;
            // A writer to a pipe without a reader would block.
            std::thread::spawn(move || out.read_to_end(&mut Vec::new()));
        }
        if line.is_empty() {
            return Err(BenchError::Missing(
                "a process of the bench did not start".into(),
            ));
        }
        Ok((running, line.trim().to_owned()))
    }

    /// Its number, by which it is stopped.
    pub fn id(&self) -> u32 {
        self.process.id()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        signal(self.id(), libc::SIGCONT);
        drop(self.process.stdin.take());
        let end = Instant::now() + self.ends_within;
        while Instant::now() < end {
            if matches!(self.process.try_wait(), Ok(Some(_))) {
                return;
            }
            std::thread::sleep(LOOK);
        }
        // It may have ended meanwhile.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
