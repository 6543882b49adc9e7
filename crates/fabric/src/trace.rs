//! A tap that writes a line for every packet.

use crate::Whole;
use crate::{Fate, Packet, Tap};
use rackmem_wire::{PacketLine, Tag};
use std::fmt::{self, Display};
use std::io::{BufWriter, Write};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

/// Bytes of a trace at most; then it ends.
const MAX_TRACE: u64 = 4 << 30;

/// Writes packets as text: microseconds since it was made, what became of the packet, the packet.
pub struct Trace {
    start: Instant,
    out: Mutex<Out>,
    unwritten: AtomicU64,
}

struct Out {
    writer: BufWriter<Box<dyn Write + Send>>,
    written: u64,
}

impl Trace {
    /// Into a file or anything else. What is written last is there when the trace is dropped.
    pub fn new(writer: impl Write + Send + 'static) -> Self {
        Trace {
            start: Instant::now(),
            out: Mutex::new(Out {
                writer: BufWriter::new(Box::new(writer)),
                written: 0,
            }),
            unwritten: AtomicU64::new(0),
        }
    }

    /// Lines that could not be written, or came after the last byte of a trace.
    pub fn unwritten(&self) -> u64 {
        self.unwritten.load(Relaxed)
    }
}

impl Tap for Trace {
    fn packet(&self, packet: &Packet<'_>, fate: Fate) {
        let us = self.start.elapsed().as_nanos() as f64 / 1e3;
        let fate = format!("{fate:?}");
        let line = PacketLine {
            to: packet.to,
            header: packet.header,
            block: &BlockName(packet.header.tag),
        };
        let bytes = packet.body.len();
        let line = format!("{us:13.2}  {fate:<9}{line} [{bytes}]\n");
        let mut out = self.out.lock().whole();
        let room = out.written + line.len() as u64 <= MAX_TRACE;
        if room && out.writer.write_all(line.as_bytes()).is_ok() {
            out.written += line.len() as u64;
        } else {
            self.unwritten.fetch_add(1, Relaxed);
        }
    }

    fn flush(&self) {
        let mut out = self.out.lock().whole();
        if out.writer.flush().is_err() {
            self.unwritten.fetch_add(1, Relaxed);
        }
    }
}

/// A block as `home:offset`.
struct BlockName(Tag);

impl Display for BlockName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{:#x}", self.0.home(), self.0.offset())
    }
}
