//! A client of Redis' protocol that lives through the death of its server.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Longer than a rack waits for anything; who has no answer by then will not get one.
const PATIENCE: Duration = Duration::from_secs(45);
/// A server of this machine that takes longer to accept is not there.
const CONNECT: Duration = Duration::from_secs(1);
/// Bytes of a value at most.
const MAX_BULK: usize = 1 << 20;
/// Elements of an array at most, and arrays in each other.
const MAX_ITEMS: usize = 1 << 20;
const MAX_DEPTH: usize = 8;

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    Nil,
    Int(i64),
    Text(String),
    Many(Vec<Answer>),
    Error(String),
}

impl Answer {
    /// What an array has; of anything else nothing.
    pub fn items(&self) -> &[Answer] {
        match self {
            Answer::Many(items) => items,
            _ => &[],
        }
    }

    pub fn text(&self) -> Option<&str> {
        match self {
            Answer::Text(text) => Some(text),
            _ => None,
        }
    }
}

/// A connection.
pub struct Client {
    stream: BufReader<TcpStream>,
}

impl Client {
    pub fn connect(addr: SocketAddr) -> io::Result<Client> {
        let named = |error: io::Error| {
            let why = format!("cannot connect to {addr}: {error}");
            io::Error::new(error.kind(), why)
        };
        let stream = TcpStream::connect_timeout(&addr, CONNECT).map_err(named)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        Ok(Client {
            stream: BufReader::new(stream),
        })
    }

    /// Sends a command and waits for its answer. After an error the connection is of no use any
    /// more.
    pub fn call(&mut self, words: &[&str]) -> io::Result<Answer> {
        self.send([words])?;
        self.answer()
    }

    /// Sends commands, whose answers [`Client::answer`] gives one by one.
    pub fn send<'a>(
        &mut self,
        commands: impl IntoIterator<Item = &'a [&'a str]>,
    ) -> io::Result<()> {
        let mut request = String::new();
        for words in commands {
            request.push_str(&format!("*{}\r\n", words.len()));
            for word in words {
                request.push_str(&format!("${}\r\n{word}\r\n", word.len()));
            }
        }
        self.stream.get_mut().write_all(request.as_bytes())
    }

    /// Whether there is something to read, or will be within this time.
    pub fn is_told(&mut self, at_most: Duration) -> io::Result<bool> {
        if !self.stream.buffer().is_empty() {
            return Ok(true);
        }
        self.stream.get_ref().set_read_timeout(Some(at_most))?;
        let told = self.stream.fill_buf().map(|bytes| !bytes.is_empty());
        self.stream.get_ref().set_read_timeout(Some(PATIENCE))?;
        match told {
            Ok(true) => Ok(true),
            Ok(false) => Err(io::ErrorKind::UnexpectedEof.into()),
            Err(error) => match error.kind() {
                // The last: this process was stopped, and went on.
                io::ErrorKind::WouldBlock
                | io::ErrorKind::TimedOut
                | io::ErrorKind::Interrupted => Ok(false),
                _ => Err(error),
            },
        }
    }

    /// Waits for the next answer.
    pub fn answer(&mut self) -> io::Result<Answer> {
        self.answer_within(MAX_DEPTH)
    }

    fn answer_within(&mut self, depth: usize) -> io::Result<Answer> {
        let mut line = String::new();
        if self.stream.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let line = line.trim_end();
        let wrong = || io::Error::new(io::ErrorKind::InvalidData, format!("not RESP: {line:?}"));
        let (kind, rest) = line.split_at_checked(1).ok_or_else(wrong)?;
        match kind {
            "+" => Ok(Answer::Text(rest.into())),
            "-" => Ok(Answer::Error(rest.into())),
            ":" => rest.parse().map(Answer::Int).map_err(|_| wrong()),
            "$" if rest == "-1" => Ok(Answer::Nil),
            "$" => {
                let len = rest.parse::<usize>().ok().filter(|len| *len <= MAX_BULK);
                let mut bytes = vec![0; len.ok_or_else(wrong)? + 2];
                self.stream.read_exact(&mut bytes)?;
                bytes.truncate(bytes.len() - 2);
                String::from_utf8(bytes)
                    .map(Answer::Text)
                    .map_err(|_| wrong())
            }
            "*" if rest == "-1" => Ok(Answer::Nil),
            "*" if depth > 0 => {
                let count = rest.parse::<usize>().ok().filter(|n| *n <= MAX_ITEMS);
                let items = (0..count.ok_or_else(wrong)?).map(|_| self.answer_within(depth - 1));
                items.collect::<io::Result<_>>().map(Answer::Many)
            }
            _ => Err(wrong()),
        }
    }

    /// A field of INFO's section on the rack.
    pub fn figures(&mut self) -> io::Result<Vec<(String, u64)>> {
        let Answer::Text(text) = self.call(&["INFO", "rackmem"])? else {
            return Ok(Vec::new());
        };
        let field = |line: &str| {
            let (name, value) = line.split_once(':')?;
            Some((name.to_owned(), value.trim().parse().ok()?))
        };
        Ok(text.lines().filter_map(field).collect())
    }
}
