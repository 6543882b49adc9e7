//! A client that sends words and reads replies back as one line of text each.
#![allow(dead_code, reason = "every test takes what it needs")]

pub mod talk;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

pub struct Client {
    pub stream: TcpStream,
    reader: BufReader<TcpStream>,
}

impl Client {
    pub fn new(addr: SocketAddr) -> Self {
        let stream = TcpStream::connect(addr).unwrap();
        stream.set_nodelay(true).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        let reader = BufReader::new(stream.try_clone().unwrap());
        Self { stream, reader }
    }

    pub fn send(&mut self, words: &[&[u8]]) {
        self.stream.write_all(&encode(words)).unwrap();
    }

    /// Sends a line typed by hand, and reads its reply.
    pub fn say(&mut self, line: &str) -> String {
        self.stream
            .write_all(format!("{line}\r\n").as_bytes())
            .unwrap();
        self.reply()
    }

    /// The same with a server that may have ended the connection.
    pub fn say_maybe(&mut self, line: &str) -> Option<String> {
        self.stream
            .write_all(format!("{line}\r\n").as_bytes())
            .ok()?;
        self.try_reply()
    }

    /// Sends words, and reads the reply.
    pub fn call(&mut self, words: &[&[u8]]) -> String {
        self.send(words);
        self.reply()
    }

    /// Reads a reply: `"text"` for strings, `[a b]` for arrays, `{a b}` for maps, `nil`,
    /// the line otherwise.
    pub fn reply(&mut self) -> String {
        self.try_reply().expect("a reply")
    }

    pub fn try_reply(&mut self) -> Option<String> {
        let mut line = String::new();
        if self.reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let line = line.trim_end();
        let (kind, rest) = line.split_at(1);
        let len = || {
            rest.parse::<i64>()
                .ok()
                .filter(|n| *n >= 0)
                .map(|n| n as usize)
        };
        Some(match kind {
            "$" | "=" => match len() {
                None => "nil".into(),
                Some(len) => {
                    let mut bytes = vec![0; len + 2];
                    self.reader.read_exact(&mut bytes).ok()?;
                    format!("{:?}", String::from_utf8_lossy(&bytes[..len]))
                }
            },
            "_" => "nil".into(),
            "*" | "~" => match len() {
                None => "nil".into(),
                Some(len) => format!("[{}]", self.elements(len)?),
            },
            "%" => format!("{{{}}}", self.elements(2 * len()?)?),
            _ => line.to_owned(),
        })
    }

    fn elements(&mut self, len: usize) -> Option<String> {
        let all: Option<Vec<_>> = (0..len).map(|_| self.try_reply()).collect();
        Some(all?.join(" "))
    }

    /// Whether the server has ended the connection.
    pub fn ended(&mut self) -> bool {
        let mut rest = Vec::new();
        self.reader.read_to_end(&mut rest).is_ok() && rest.is_empty()
    }
}

/// A command as clients send it.
pub fn encode(words: &[&[u8]]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        bytes.extend_from_slice(word);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}
