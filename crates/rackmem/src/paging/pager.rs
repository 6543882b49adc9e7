//! The thread that handles a mapping's faults.

use super::buffer::Buffer;
use rackmem_fabric::awake::{Awake, SPIN};
use std::io::{PipeReader, PipeWriter, pipe};
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// How long it waits before it tries again what it could not do, in a kernel where a load cannot
/// fail.
const AGAIN: Duration = Duration::from_millis(10);

/// Ends when it is dropped.
pub(super) struct Pager {
    thread: Option<JoinHandle<()>>,
    stop: Option<PipeWriter>,
}

impl Pager {
    pub fn start(buffer: &Arc<Buffer>) -> std::io::Result<Pager> {
        let (stopped, stop) = pipe()?;
        let buffer = buffer.clone();
        let thread = Builder::new().name("rackmem-pager".into());
        let thread = thread.spawn(move || run(&buffer, &stopped))?;
        Ok(Pager {
            thread: Some(thread),
            stop: Some(stop),
        })
    }
}

impl Drop for Pager {
    fn drop(&mut self) {
        // The other end of the pipe has an end of file.
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // What it has panicked about, the panic has said.
            let _ = thread.join();
        }
    }
}

fn run(buffer: &Buffer, stopped: &PipeReader) {
    loop {
        // A program that has had a fault will have another one soon.
        let mut awake = Awake::begin(SPIN);
        while let Some(fault) = next(buffer, &mut awake) {
            while !buffer.handle(fault) {
                std::thread::sleep(AGAIN);
            }
            awake = Awake::begin(SPIN);
        }
        if !buffer.faults.wait(stopped) {
            return;
        }
    }
}

fn next(buffer: &Buffer, awake: &mut Awake) -> Option<crate::faulting::userfault::Fault> {
    loop {
        let fault = buffer.faults.next();
        if fault.is_some() || !awake.look_again(awake.waited()) {
            return fault;
        }
    }
}
