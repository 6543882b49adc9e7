//! A client of Redis' protocol, no larger than the tests need.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Nothing there.
    Nil,
    /// An integer.
    Int(i64),
    /// A status or a value.
    Text(String),
    /// An error.
    Error(String),
    /// Several.
    List(Vec<Answer>),
}

/// A connection.
pub struct Client {
    stream: BufReader<TcpStream>,
}

impl Client {
    /// Connects. An answer that does not come in half a minute fails the test.
    pub fn connect(addr: SocketAddr) -> Client {
        Client::over(TcpStream::connect(addr).expect("a connection"))
    }

    /// Over a connection that there is.
    pub fn over(stream: TcpStream) -> Client {
        let limit = Some(Duration::from_secs(30));
        stream.set_read_timeout(limit).expect("a limit");
        stream.set_nodelay(true).expect("an option");
        Client {
            stream: BufReader::new(stream),
        }
    }

    /// Sends a command and waits for its answer.
    pub fn call(&mut self, words: &[&str]) -> Answer {
        self.try_call(words).expect("an answer")
    }

    /// The same where the server may die; after an error the connection is of no use any more.
    pub fn try_call(&mut self, words: &[&str]) -> io::Result<Answer> {
        self.say(words)?;
        self.answer()
    }

    /// Sends a command, whose answer [`Client::heard`] takes later.
    pub fn ask(&mut self, words: &[&str]) {
        self.say(words).expect("a connection");
    }

    /// The answer to the first command that was sent and not answered.
    pub fn heard(&mut self) -> Answer {
        self.answer().expect("an answer")
    }

    fn say(&mut self, words: &[&str]) -> io::Result<()> {
        let mut request = format!("*{}\r\n", words.len());
        for word in words {
            request.push_str(&format!("${}\r\n{word}\r\n", word.len()));
        }
        self.stream.get_mut().write_all(request.as_bytes())
    }

    fn answer(&mut self) -> io::Result<Answer> {
        let line = self.line()?;
        let (kind, rest) = line.split_at(1);
        Ok(match kind {
            "+" => Answer::Text(rest.to_owned()),
            "-" => Answer::Error(rest.to_owned()),
            ":" => Answer::Int(rest.parse().expect("an integer")),
            "$" if rest == "-1" => Answer::Nil,
            "$" => self.bulk(rest.parse().expect("a length"))?,
            "*" if rest == "-1" => Answer::Nil,
            "*" => {
                let count: usize = rest.parse().expect("a count");
                let answers = (0..count).map(|_| self.answer());
                Answer::List(answers.collect::<io::Result<_>>()?)
            }
            _ => panic!("not RESP: {line:?}"),
        })
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        if self.stream.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(line.trim_end().to_owned())
    }

    fn bulk(&mut self, length: usize) -> io::Result<Answer> {
        let mut bytes = vec![0; length + 2];
        self.stream.read_exact(&mut bytes)?;
        bytes.truncate(length);
        Ok(Answer::Text(String::from_utf8(bytes).expect("text")))
    }
}
