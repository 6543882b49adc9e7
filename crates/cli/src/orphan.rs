//! A process that ends with the one that has started it, however that one ends.
//!
//! Its standard input is a pipe that nobody writes to; the kernel closes it when the starter dies,
//! by SIGKILL too.

use std::io::Read;

/// What the process is started with.
pub const OPTION: &str = "--end-with-stdin";

/// Ends this process, at once, when its standard input does.
pub fn end_with_stdin() -> std::io::Result<()> {
    let wait = || {
        while !matches!(std::io::stdin().read(&mut [0; 64]), Ok(0)) {}
        std::process::exit(1);
    };
    let thread = std::thread::Builder::new().name("orphan".to_owned());
    thread.spawn(wait).map(|_| ())
}
