//! Servers that a bench starts.

use std::os::unix::process::CommandExt;
use std::process::Command;

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
