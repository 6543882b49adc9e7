//! Captures as BMv2 reads and writes them in place of interfaces.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

const HEAD: usize = 24;
const RECORD: usize = 16;

/// The head of a capture of Ethernet frames.
pub fn head() -> [u8; HEAD] {
    let mut head = [0; HEAD];
    head[..4].copy_from_slice(&0xa1b2_c3d4_u32.to_le_bytes());
    head[4..6].copy_from_slice(&2_u16.to_le_bytes());
    head[6..8].copy_from_slice(&4_u16.to_le_bytes());
    head[16..20].copy_from_slice(&65_535_u32.to_le_bytes());
    head[20..24].copy_from_slice(&1_u32.to_le_bytes());
    head
}

/// Writes a frame, all of them with the same time, so that nobody waits between them.
pub fn put(into: &mut impl Write, frame: &[u8]) -> io::Result<()> {
    let len = (frame.len() as u32).to_le_bytes();
    let mut record = Vec::with_capacity(RECORD + frame.len());
    record.extend_from_slice(&[0; 8]);
    record.extend_from_slice(&len);
    record.extend_from_slice(&len);
    record.extend_from_slice(frame);
    into.write_all(&record)
}

/// A capture that grows.
pub struct Growing {
    file: File,
    bytes: Vec<u8>,
    headed: bool,
}

impl Growing {
    /// Reads it from its beginning.
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Growing {
            file: File::open(path)?,
            bytes: Vec::new(),
            headed: false,
        })
    }

    /// The frames that have come since the last time.
    pub fn frames(&mut self) -> io::Result<Vec<Vec<u8>>> {
        self.file.read_to_end(&mut self.bytes)?;
        let mut frames = Vec::new();
        let mut at = 0;
        if !self.headed && self.bytes.len() >= HEAD {
            self.headed = true;
            at = HEAD;
        }
        while self.headed
            && let Some(record) = self.bytes.get(at..at + RECORD)
        {
            let len = u32::from_le_bytes([record[8], record[9], record[10], record[11]]) as usize;
            let begin = at + RECORD;
            let Some(frame) = self.bytes.get(begin..begin + len) else {
                break;
            };
            frames.push(frame.to_vec());
            at = begin + len;
        }
        self.bytes.drain(..at);
        Ok(frames)
    }
}
