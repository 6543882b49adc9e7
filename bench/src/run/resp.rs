//! A RESP client for benches: GET and SET of a pipeline at a time,
//! the same code against every server.

use crate::ycsb::{self, KeyValue};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};

/// Parts of an array at most.
const MAX_PARTS: usize = 16;
/// Bytes of an answer line at most: anything longer is no answer to GET or SET.
const MAX_LINE: usize = 256;

/// Commands that a client sends together which sends one for each of many records.
const TOGETHER: usize = 64;

/// Sends a command for each of these records, by a client of its own. `put` has the key.
pub fn for_each(
    addr: SocketAddr,
    records: impl Iterator<Item = u64>,
    put: impl Fn(&mut Client, &[u8]),
) -> super::Result<()> {
    let (mut client, mut key) = (Client::connect(addr)?, ycsb::Key::default());
    for record in records {
        put(&mut client, key.of(record));
        if client.waiting == TOGETHER {
            super::stopped()?;
            client.flush(|_| ())?;
        }
    }
    Ok(client.flush(|_| ())?)
}

/// One connection.
pub struct Client {
    stream: TcpStream,
    out: Vec<u8>,
    input: Vec<u8>,
    /// Bytes of `input` that are consumed.
    used: usize,
    waiting: usize,
}

impl Client {
    /// Connects. Errors name the address.
    pub fn connect(addr: SocketAddr) -> io::Result<Client> {
        let stream = super::connect(addr)?;
        stream.set_nodelay(true)?;
        Ok(Client {
            stream,
            out: Vec::new(),
            input: Vec::new(),
            used: 0,
            waiting: 0,
        })
    }

    /// Puts a command into the pipeline.
    pub fn command(&mut self, args: &[&[u8]]) {
        // Writing to a vector cannot fail.
        let _ = write!(self.out, "*{}\r\n", args.len());
        for arg in args {
            let _ = write!(self.out, "${}\r\n", arg.len());
            self.out.extend_from_slice(arg);
            self.out.extend_from_slice(b"\r\n");
        }
        self.waiting += 1;
    }

    /// Sends the pipeline and reads all its answers; `each` sees bulk strings and the digits of
    /// integers.
    pub fn flush(&mut self, mut each: impl FnMut(Option<&[u8]>)) -> io::Result<()> {
        self.stream.write_all(&self.out)?;
        self.out.clear();
        let mut left = std::mem::take(&mut self.waiting);
        while left > 0 {
            left += self.answer(&mut each)?;
            left -= 1;
        }
        self.input.drain(..self.used);
        self.used = 0;
        Ok(())
    }

    /// Reads an answer; how many more there are, because it is an array of them.
    fn answer(&mut self, each: &mut impl FnMut(Option<&[u8]>)) -> io::Result<usize> {
        let line = self.line()?;
        let bad = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
        match self.input.get(line.start) {
            Some(b'+') => {}
            Some(b'*') => {
                let text = std::str::from_utf8(&self.input[line.start + 1..line.end]);
                let count = text.ok().and_then(|t| t.parse().ok());
                let count = count.filter(|n| *n <= MAX_PARTS);
                return count.ok_or_else(|| bad("a bad array"));
            }
            Some(b':') => each(Some(&self.input[line.start + 1..line.end])),
            Some(b'$') => {
                let text = std::str::from_utf8(&self.input[line.start + 1..line.end]);
                let len: i64 = text
                    .ok()
                    .and_then(|t| t.parse().ok())
                    .ok_or_else(|| bad("a bad length"))?;
                let Ok(len) = usize::try_from(len) else {
                    each(None);
                    return Ok(0);
                };
                let start = self.used;
                self.fill(start + len + 2)?;
                each(Some(&self.input[start..start + len]));
                self.used = start + len + 2;
            }
            _ => return Err(bad(&String::from_utf8_lossy(&self.input[line]))),
        }
        Ok(0)
    }

    /// The next line, without its end.
    fn line(&mut self) -> io::Result<std::ops::Range<usize>> {
        let start = self.used;
        let mut looked = start;
        loop {
            if let Some(at) = self.input[looked..].windows(2).position(|w| w == b"\r\n") {
                self.used = looked + at + 2;
                return Ok(start..looked + at);
            }
            if self.input.len() - start > MAX_LINE {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    "a line without an end",
                ));
            }
            looked = self.input.len().saturating_sub(1).max(start);
            self.fill(self.input.len() + 1)?;
        }
    }

    /// Reads until there are so many bytes.
    fn fill(&mut self, len: usize) -> io::Result<()> {
        let mut buffer = [0; 16 << 10];
        while self.input.len() < len {
            let n = self.stream.read(&mut buffer)?;
            if n == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.input.extend_from_slice(&buffer[..n]);
        }
        Ok(())
    }
}

impl KeyValue for Client {
    type Error = io::Error;

    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> io::Result<bool> {
        self.command(&[b"GET", key]);
        let mut found = false;
        self.flush(|bytes| {
            found = bytes.is_some();
            value.extend_from_slice(bytes.unwrap_or_default());
        })?;
        Ok(found)
    }

    fn set(&mut self, key: &[u8], value: &[u8]) -> io::Result<()> {
        self.command(&[b"SET", key, value]);
        self.flush(|_| ())
    }
}
