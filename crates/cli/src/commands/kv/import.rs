//! `rackmem kv import`: a file of Redis into a store that is in use, as a client of it.

use crate::failure::{Failure, Result};
use crate::out;
use clap::Args;
use rackmem_kv::rdb::dump::payload;
use rackmem_kv::rdb::{Body, Entry, Item, Reader, Value};
use serde_json::json;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::time::{Duration, Instant};

pub const EXAMPLES: &str = "\
Examples:
  rackmem kv import dump.rdb --into 127.0.0.1:7379            into a store without keys
  rackmem kv import dump.rdb --into 127.0.0.1:7379 --replace  over keys of the same name
  redis-cli -p 6379 --rdb dump.rdb                            a file of a server of Redis

Any node will do. The file's keys are restored one by one, while others use the store; a long collection comes in
parts. A server of Redis (7.0 or later) takes them as well. Other ways: `rackmem kv --load FILE` at the start,
and SAVE or BGSAVE out of a store (`rackmem kv --help`).";

/// Between two words of progress.
const PROGRESS: Duration = Duration::from_secs(2);
/// Bytes and commands sent before their answers are read.
const AHEAD_BYTES: usize = 1 << 20;
const AHEAD: usize = 512;
/// Bytes of a line that is an answer.
const MAX_LINE: u64 = 64 << 10;

/// Options of `rackmem kv import`.
#[derive(Debug, Args)]
pub struct ImportArgs {
    /// A snapshot of Redis (RDB), or of a store
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The address of a node's server
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:7379")]
    #[arg(value_parser = |text: &str| rackmem::look_up("--into", text).map_err(|error| error.what()))]
    into: SocketAddr,
    /// Import into a store that has keys, over those of the same name
    #[arg(long)]
    replace: bool,
    /// The store's password; RACKMEM_PASSWORD keeps it out of process listings
    #[arg(long)]
    password: Option<String>,
}

/// A key whose answer is awaited, and where it is in the file.
struct Sent {
    key: Vec<u8>,
    offset: u64,
}

/// A connection, and what it has yet to say.
struct Link {
    stream: BufReader<TcpStream>,
    out: Vec<u8>,
    sent: Vec<Sent>,
}

#[derive(Default)]
struct Count {
    keys: u64,
    expired: u64,
    left_out: u64,
}

pub fn run(args: &ImportArgs, json: bool) -> Result<()> {
    let shown = args.file.display();
    let wrong = |cause: String| {
        let next = "name a file that SAVE or BGSAVE of Redis or of a store has written";
        Failure::new(format!("{shown}: {cause}"), next)
    };
    let file = File::open(&args.file).map_err(|error| wrong(error.to_string()))?;
    let mut reader = Reader::new(file).map_err(|error| wrong(error.to_string()))?;
    let mut link = Link::open(args)?;
    let (mut count, mut key, mut told) = (Count::default(), None, Instant::now());
    let now = std::time::UNIX_EPOCH
        .elapsed()
        .map_or(0, |t| t.as_millis() as u64);
    loop {
        let offset = reader.offset();
        let item = reader
            .next_item()
            .map_err(|error| wrong(error.to_string()))?;
        match item {
            None => break,
            Some(Item::Database(number)) => {
                link.send(&[b"SELECT", number.to_string().as_bytes()], b"", offset)?;
            }
            Some(Item::Key(entry)) => {
                key = None;
                if entry.expiry.is_some_and(|expiry| expiry <= now) {
                    count.expired += 1;
                    continue;
                }
                count.keys += 1;
                let entry = whole_stream(entry, &mut reader).map_err(|e| wrong(e.to_string()))?;
                link.restore(&entry, args.replace, offset)?;
                key = entry.more.then_some(entry.key);
            }
            Some(Item::Part { value, .. }) => {
                if let Some(key) = &key {
                    link.extend(key, &value, offset)?;
                }
            }
            Some(Item::ModuleKey { key, module }) => {
                let key = key.escape_ascii();
                return Err(wrong(format!(
                    "at byte {offset}, key '{key}': a value of the module type {module}"
                )));
            }
            Some(Item::Function(_) | Item::Module(_)) => count.left_out += 1,
            Some(Item::About { .. } | Item::Sizes { .. }) => {}
        }
        if told.elapsed() >= PROGRESS {
            told = Instant::now();
            eprintln!(
                "{shown}: {} keys, {} MiB",
                count.keys,
                reader.offset() >> 20
            );
        }
    }
    link.answers()?;
    tell(args, &count, json);
    Ok(())
}

fn tell(args: &ImportArgs, count: &Count, json: bool) {
    let Count {
        keys,
        expired,
        left_out,
    } = *count;
    if json {
        out::line(json!({"keys": keys, "expired": expired, "left_out": left_out}));
        return;
    }
    out::line(format!("imported {keys} keys into {}", args.into));
    if expired != 0 {
        out::line(format!("left out: {expired} keys that had expired"));
    }
    if left_out != 0 {
        out::line(format!("left out: {left_out} functions or modules' data"));
    }
}

/// A stream has no command that puts entries and groups behind what is there.
fn whole_stream(mut entry: Entry, reader: &mut Reader<File>) -> rackmem_kv::rdb::Result<Entry> {
    while entry.more && matches!(entry.value, Value::Stream(_)) {
        let Some(Item::Part { value, more }) = reader.next_item()? else {
            break;
        };
        entry.value.extend(value);
        entry.more = more;
    }
    Ok(entry)
}

impl Link {
    fn open(args: &ImportArgs) -> Result<Self> {
        let stream = TcpStream::connect(args.into).map_err(|error| broken(&error))?;
        let mut link = Self {
            stream: BufReader::new(stream),
            out: Vec::new(),
            sent: Vec::new(),
        };
        let from_environment = || std::env::var("RACKMEM_PASSWORD").ok();
        if let Some(password) = args.password.clone().or_else(from_environment) {
            link.send(&[b"AUTH", password.as_bytes()], b"", 0)?;
            link.answers()?;
        }
        if !args.replace {
            link.expect_empty()?;
        }
        Ok(link)
    }

    /// Each database with keys has a line.
    fn expect_empty(&mut self) -> Result<()> {
        self.send(&[b"INFO", b"keyspace"], b"", 0)?;
        self.sent.clear();
        self.flush()?;
        let answer = self.answer()?;
        match answer.lines().find(|line| line.starts_with("db")) {
            None => Ok(()),
            Some(line) => Err(Failure::new(
                format!("the store has keys already: {line}"),
                "FLUSHALL removes them; --replace imports over those of the same name",
            )),
        }
    }

    fn restore(&mut self, entry: &Entry, replace: bool, offset: u64) -> Result<()> {
        let expiry = entry.expiry.unwrap_or(0).to_string();
        let value = payload(Body::from(&entry.value));
        let words: [&[u8]; 6] = [
            b"RESTORE",
            &entry.key,
            expiry.as_bytes(),
            &value,
            b"ABSTTL",
            b"REPLACE",
        ];
        let words = if replace { &words[..] } else { &words[..5] };
        self.send(words, &entry.key, offset)
    }

    /// Puts a part behind what a key has.
    fn extend(&mut self, key: &[u8], part: &Value, offset: u64) -> Result<()> {
        let scores: Vec<String>;
        let mut words: Vec<&[u8]> = Vec::with_capacity(2 + 2 * part.len());
        match part {
            Value::List(list) => {
                words.extend([&b"RPUSH"[..], key]);
                words.extend(list.iter().map(Vec::as_slice));
            }
            Value::Set(set) => {
                words.extend([&b"SADD"[..], key]);
                words.extend(set.iter().map(Vec::as_slice));
            }
            Value::Hash(pairs) => {
                words.extend([&b"HSET"[..], key]);
                words.extend(pairs.iter().flat_map(|(f, v)| [f.as_slice(), v.as_slice()]));
            }
            Value::SortedSet(pairs) => {
                words.extend([&b"ZADD"[..], key]);
                scores = pairs.iter().map(|(_, score)| score.to_string()).collect();
                for ((member, _), score) in pairs.iter().zip(&scores) {
                    words.extend([score.as_bytes(), member]);
                }
            }
            Value::String(_) | Value::Stream(_) => return Ok(()),
        }
        self.send(&words, key, offset)
    }

    fn send(&mut self, words: &[&[u8]], key: &[u8], offset: u64) -> Result<()> {
        let out = &mut self.out;
        out.extend(format!("*{}\r\n", words.len()).bytes());
        for word in words {
            out.extend(format!("${}\r\n", word.len()).bytes());
            out.extend_from_slice(word);
            out.extend_from_slice(b"\r\n");
        }
        self.sent.push(Sent {
            key: key.to_vec(),
            offset,
        });
        if self.out.len() >= AHEAD_BYTES || self.sent.len() >= AHEAD {
            self.answers()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        let out = std::mem::take(&mut self.out);
        let written = self.stream.get_mut().write_all(&out);
        written.map_err(|error| broken(&error))
    }

    /// Says everything, and hears what became of it.
    fn answers(&mut self) -> Result<()> {
        self.flush()?;
        for sent in std::mem::take(&mut self.sent) {
            let answer = self.answer()?;
            if let Some(error) = answer.strip_prefix('-') {
                let (key, offset) = (sent.key.escape_ascii(), sent.offset);
                return Err(Failure::new(
                    format!("at byte {offset}, key '{key}': the store says: {error}"),
                    "keys before it are imported; once the cause is gone, --replace imports all again",
                ));
            }
        }
        Ok(())
    }

    /// An answer: a line with what it begins with, or a text.
    fn answer(&mut self) -> Result<String> {
        let mut line = String::new();
        let read = (&mut self.stream).take(MAX_LINE).read_line(&mut line);
        if read.map_err(|error| broken(&error))? == 0 {
            return Err(broken(&std::io::ErrorKind::UnexpectedEof.into()));
        }
        let len = line
            .strip_prefix('$')
            .and_then(|len| len.trim_end().parse::<u64>().ok());
        let Some(len) = len else {
            return Ok(line.trim_end().to_owned());
        };
        let mut text = Vec::new();
        let read = (&mut self.stream).take(len + 2).read_to_end(&mut text);
        read.map_err(|error| broken(&error))?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }
}

fn broken(error: &std::io::Error) -> Failure {
    Failure::new(
        format!("the connection to the store: {error}"),
        "start `rackmem kv`, or name one of its servers with --into",
    )
}
