//! As much of HTTP as etcd's JSON interface needs: requests with a body over one connection, and
//! answers that come in chunks.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Bytes of an answer, or of a chunk, at most.
const MAX_BODY: usize = 1 << 20;
/// Bytes of a line of a head at most.
const MAX_LINE: u64 = 4096;
/// Lines of a head at most.
const MAX_HEAD: usize = 64;
/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// A connection, made when it is needed and again when it has ended.
pub(in crate::run) struct Connection {
    addr: SocketAddr,
    stream: Option<BufReader<TcpStream>>,
}

/// How long a body is.
enum Length {
    Bytes(usize),
    Chunked,
}

fn bad(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_owned())
}

impl Connection {
    pub fn new(addr: SocketAddr) -> Self {
        Connection { addr, stream: None }
    }

    fn stream(&mut self) -> io::Result<&mut BufReader<TcpStream>> {
        let stream = match self.stream.take() {
            Some(stream) => stream,
            None => {
                let stream = crate::run::connect(self.addr)?;
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(PATIENCE))?;
                BufReader::new(stream)
            }
        };
        Ok(self.stream.insert(stream))
    }

    /// Sends a body, and returns the answer's.
    pub fn post(&mut self, path: &str, body: &str) -> io::Result<Vec<u8>> {
        let answer = self.send(path, body).and_then(|length| match length {
            Length::Bytes(length) => {
                let mut answer = vec![0; length];
                self.stream()?.read_exact(&mut answer)?;
                Ok(answer)
            }
            Length::Chunked => {
                let mut answer = Vec::new();
                while let Some(part) = self.next_chunk()? {
                    answer.extend(part);
                    if answer.len() > MAX_BODY {
                        return Err(bad("a long answer"));
                    }
                }
                Ok(answer)
            }
        });
        if answer.is_err() {
            self.stream = None;
        }
        answer
    }

    /// Sends a body whose answer comes in chunks, to be read by [`Connection::chunk`].
    pub fn begin(&mut self, path: &str, body: &str) -> io::Result<()> {
        match self.send(path, body)? {
            Length::Chunked => Ok(()),
            Length::Bytes(_) => Err(bad("an answer in one piece")),
        }
    }

    /// The next chunk.
    pub fn chunk(&mut self) -> io::Result<Vec<u8>> {
        self.next_chunk()?.ok_or_else(|| bad("an answer that ends"))
    }

    fn send(&mut self, path: &str, body: &str) -> io::Result<Length> {
        let host = self.addr;
        let length = body.len();
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
        );
        let stream = self.stream()?;
        // In one packet: a second one would wait for the first one's acknowledgement.
        stream.get_mut().write_all((head + body).as_bytes())?;
        let status = line(stream)?;
        if status.split(' ').nth(1) != Some("200") {
            return Err(bad(&format!("HTTP answered {status}")));
        }
        let mut found = None;
        for _ in 0..MAX_HEAD {
            let line = line(stream)?.to_ascii_lowercase();
            if line.is_empty() {
                return found.ok_or_else(|| bad("an answer without a length"));
            }
            match line.split_once(": ") {
                Some(("content-length", length)) => {
                    let length = length.parse().ok().filter(|length| *length <= MAX_BODY);
                    found = Some(Length::Bytes(length.ok_or_else(|| bad("a bad length"))?));
                }
                Some(("transfer-encoding", "chunked")) => found = Some(Length::Chunked),
                _ => {}
            }
        }
        Err(bad("a head without an end"))
    }

    fn next_chunk(&mut self) -> io::Result<Option<Vec<u8>>> {
        let stream = self.stream()?;
        let length = usize::from_str_radix(&line(stream)?, 16).ok();
        let length = length.filter(|length| *length <= MAX_BODY);
        let mut chunk = vec![0; length.ok_or_else(|| bad("a bad chunk"))?];
        stream.read_exact(&mut chunk)?;
        line(stream)?;
        Ok((!chunk.is_empty()).then_some(chunk))
    }
}

/// A line without its end.
fn line(stream: &mut BufReader<TcpStream>) -> io::Result<String> {
    let mut line = String::new();
    stream.take(MAX_LINE).read_line(&mut line)?;
    match line.strip_suffix("\r\n") {
        Some(line) => Ok(line.to_owned()),
        None => Err(bad("a line without an end")),
    }
}
