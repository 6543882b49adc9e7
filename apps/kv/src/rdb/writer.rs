//! Writing a file.

use std::io::{Result, Write};

use super::body::{Body, length, string};
use super::{VERSION, crc, opcode};

/// Writes a file of Redis. It asks for many small writes: give it something that has a buffer.
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    crc: u64,
    written: u64,
    database: Option<u64>,
    /// What comes before a value.
    head: Vec<u8>,
}

impl<W: Write> Writer<W> {
    /// Begins a file.
    pub fn new(out: W) -> Result<Self> {
        let mut writer = Self {
            out,
            crc: 0,
            written: 0,
            database: None,
            head: Vec::new(),
        };
        writer.put(format!("REDIS{VERSION:04}").as_bytes())?;
        Ok(writer)
    }

    /// Bytes written so far.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Something about the file itself. Readers skip what they do not know.
    pub fn about(&mut self, name: &[u8], value: &[u8]) -> Result<()> {
        let mut bytes = vec![opcode::AUX];
        string(&mut bytes, name);
        string(&mut bytes, value);
        self.put(&bytes)
    }

    /// A key in a database, with when it expires in ms since 1970.
    pub fn key(
        &mut self,
        database: u64,
        key: &[u8],
        expiry: Option<u64>,
        value: &Body,
    ) -> Result<()> {
        let mut head = std::mem::take(&mut self.head);
        head.clear();
        if self.database != Some(database) {
            head.push(opcode::DATABASE);
            length(&mut head, database);
            self.database = Some(database);
        }
        if let Some(expiry) = expiry {
            head.push(opcode::EXPIRY_MS);
            head.extend(expiry.to_le_bytes());
        }
        head.push(value.kind);
        string(&mut head, key);
        self.put(&head)?;
        self.head = head;
        self.put(&value.bytes)
    }

    /// Ends the file with its checksum.
    pub fn finish(mut self) -> Result<W> {
        self.put(&[opcode::END])?;
        let crc = self.crc.to_le_bytes();
        self.put(&crc)?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.crc = crc::extend(self.crc, bytes);
        self.written += bytes.len() as u64;
        self.out.write_all(bytes)
    }
}
