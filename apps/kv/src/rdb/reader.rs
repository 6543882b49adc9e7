//! A file from its beginning to its end.

use std::io::{BufReader, Read};

use super::elements::Elements;
use super::error::{Cause, Error, Result};
use super::module;
use super::source::Source;
use super::stream::Entries;
use super::value::Value;
use super::{NEWEST, kind, opcode};

/// The oldest version with a checksum.
const CHECKED: u32 = 5;
/// Bytes taken from the input at a time.
const BUFFER: usize = 64 << 10;

/// What a file consists of.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// Something about the file itself, such as who wrote it.
    About {
        /// What it is called.
        name: Vec<u8>,
        /// What it says.
        value: Vec<u8>,
    },
    /// The keys that follow are in this database.
    Database(u64),
    /// The database has so many keys, as the writer says.
    Sizes {
        /// Keys.
        keys: u64,
        /// Those of them that expire.
        expiring: u64,
    },
    /// A library of functions: its code.
    Function(Vec<u8>),
    /// Data of a module, skipped: its name.
    Module(String),
    /// A key with a value of a module, skipped.
    ModuleKey {
        /// The key.
        key: Vec<u8>,
        /// The name of the module's type.
        module: String,
    },
    /// A key with its value, or the value's first part.
    Key(Entry),
    /// The next part of the last key's value.
    Part {
        /// The part.
        value: Value,
        /// Whether another follows.
        more: bool,
    },
}

/// A key with its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The key.
    pub key: Vec<u8>,
    /// Its value, or the first part.
    pub value: Value,
    /// Whether another part follows, as [`Item::Part`].
    pub more: bool,
    /// When the key expires, in ms since 1970.
    pub expiry: Option<u64>,
    /// Seconds since the key was used, if the writer kept them.
    pub idle: Option<u64>,
    /// How often the key was used, on the writer's logarithmic scale, if it kept that.
    pub frequency: Option<u8>,
}

/// Reads a file of Redis. After an error it is at no particular place: there is no going on.
#[derive(Debug)]
pub struct Reader<R: Read> {
    source: Source<BufReader<R>>,
    version: u32,
    open: Option<Collection>,
    over: bool,
}

/// A collection of which there is more to read.
#[derive(Debug)]
pub(crate) enum Collection {
    Elements(Elements),
    Stream(Entries),
}

impl Collection {
    /// The value of type `number` that begins here, or its first part, and what the rest is in.
    pub fn begin<R: Read>(source: &mut Source<R>, number: u8) -> Result<(Value, Option<Self>)> {
        let start = source.offset();
        let mut begun = if number == kind::STRING {
            return Ok((Value::String(source.string()?), None));
        } else if let Some(elements) = Elements::begin(source, number)? {
            Self::Elements(elements)
        } else if let Some(entries) = Entries::begin(source, number)? {
            Self::Stream(entries)
        } else {
            let cause = match number {
                kind::MODULE_OLD => Cause::OldModule,
                other => Cause::Type(other),
            };
            return Err(Error {
                offset: start,
                cause,
            });
        };
        let (value, more) = begun.part(source)?;
        Ok((value, more.then_some(begun)))
    }

    pub fn part<R: Read>(&mut self, source: &mut Source<R>) -> Result<(Value, bool)> {
        match self {
            Self::Elements(elements) => elements.part(source),
            Self::Stream(entries) => entries.part(source),
        }
    }
}

/// What is said of a key before its type.
#[derive(Default)]
struct Traits {
    expiry: Option<u64>,
    idle: Option<u64>,
    frequency: Option<u8>,
}

impl<R: Read> Reader<R> {
    /// Reads the first bytes, which say that the file is one of Redis and its version.
    ///
    /// # Errors
    /// It is none, or its version is not read.
    pub fn new(input: R) -> Result<Self> {
        let mut source = Source::new(BufReader::with_capacity(BUFFER, input));
        let wrong = |cause| Err(Error { offset: 0, cause });
        let mut magic = [0; 5];
        let begins = source.exact(&mut magic);
        if magic != *b"REDIS" {
            return match begins {
                Err(error) if !matches!(error.cause, Cause::Truncated) => Err(error),
                _ => wrong(Cause::NotRdb),
            };
        }
        let digits = source.array::<4>()?;
        let version = std::str::from_utf8(&digits).ok();
        let version = version
            .filter(|digits| digits.bytes().all(|digit| digit.is_ascii_digit()))
            .and_then(|digits| digits.parse().ok());
        match version {
            None => wrong(Cause::NotRdb),
            Some(version @ 1..=NEWEST) => Ok(Self {
                source,
                version,
                open: None,
                over: false,
            }),
            Some(version) => wrong(Cause::Version(version)),
        }
    }

    /// The version of the file.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// Bytes read so far.
    pub fn offset(&self) -> u64 {
        self.source.offset()
    }

    /// The next item; `None` after the last one, whose checksum has been compared.
    ///
    /// # Errors
    /// The file is damaged, ends too early, or has something that cannot be read.
    pub fn next_item(&mut self) -> Result<Option<Item>> {
        if self.over {
            return Ok(None);
        }
        if let Some(open) = &mut self.open {
            let (value, more) = open.part(&mut self.source)?;
            if !more {
                self.open = None;
            }
            return Ok(Some(Item::Part { value, more }));
        }
        let mut traits = Traits::default();
        loop {
            let source = &mut self.source;
            match source.byte()? {
                opcode::EXPIRY => {
                    let seconds = i64::from(source.u32()?.cast_signed());
                    traits.expiry = Some(seconds.max(0) as u64 * 1000);
                }
                opcode::EXPIRY_MS => {
                    traits.expiry = Some(source.u64()?.cast_signed().max(0) as u64);
                }
                opcode::FREQ => traits.frequency = Some(source.byte()?),
                opcode::IDLE => traits.idle = Some(source.number()?),
                opcode::END => {
                    self.over = true;
                    return self.compare().map(|()| None);
                }
                kind::MODULE => {
                    let key = source.string()?;
                    let module = module::skip(source)?;
                    return Ok(Some(Item::ModuleKey { key, module }));
                }
                number => {
                    return match self.aside(number)? {
                        None => self.key(number, traits).map(Some),
                        aside => Ok(aside),
                    };
                }
            }
        }
    }

    /// What is no key; `None`: it is one.
    fn aside(&mut self, number: u8) -> Result<Option<Item>> {
        let source = &mut self.source;
        Ok(Some(match number {
            opcode::AUX => Item::About {
                name: source.string()?,
                value: source.string()?,
            },
            opcode::DATABASE => Item::Database(source.number()?),
            opcode::SIZES => Item::Sizes {
                keys: source.number()?,
                expiring: source.number()?,
            },
            opcode::FUNCTION => Item::Function(source.string()?),
            opcode::FUNCTION_OLD => return source.error(Cause::OldFunction),
            opcode::MODULE_AUX => Item::Module(module::skip(source)?),
            _ => return Ok(None),
        }))
    }

    fn key(&mut self, number: u8, traits: Traits) -> Result<Item> {
        let start = self.source.offset() - 1;
        // A type that is not known says nothing of what follows.
        if number > kind::STREAM_3 {
            return Err(Error {
                offset: start,
                cause: Cause::Type(number),
            });
        }
        let key = self.source.string()?;
        let (value, open) = Collection::begin(&mut self.source, number)?;
        self.open = open;
        Ok(Item::Key(Entry {
            key,
            value,
            more: self.open.is_some(),
            expiry: traits.expiry,
            idle: traits.idle,
            frequency: traits.frequency,
        }))
    }

    /// Compares the checksum; 0 says that the writer made none.
    fn compare(&mut self) -> Result<()> {
        if self.version < CHECKED {
            return Ok(());
        }
        let computed = self.source.crc;
        let start = self.source.offset();
        match self.source.u64()? {
            0 => Ok(()),
            written if written == computed => Ok(()),
            written => Err(Error {
                offset: start,
                cause: Cause::Checksum { written, computed },
            }),
        }
    }
}
