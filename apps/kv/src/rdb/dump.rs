//! One value by itself, what `DUMP` answers and `RESTORE` takes; and the same of libraries.
//! Behind the value are the version of the format, two bytes, and the checksum of all before it,
//! eight.

use super::body::{Body, string};
use super::error::{Cause, Error, Result};
use super::reader::Collection;
use super::source::Source;
use super::value::Value;
use super::{NEWEST, VERSION, crc, kind, module, opcode};

const VERSION_BYTES: usize = 2;
const CRC_BYTES: usize = 8;

/// The payload of a value.
pub fn payload(value: Body) -> Vec<u8> {
    let mut bytes = value.bytes;
    bytes.insert(0, value.kind);
    sealed(bytes)
}

fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.extend((VERSION as u16).to_le_bytes());
    bytes.extend(crc::extend(0, &bytes).to_le_bytes());
    bytes
}

/// The payload of libraries of functions, by their texts: what `FUNCTION DUMP` answers.
pub fn libraries_payload<'a>(texts: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for text in texts {
        bytes.push(opcode::FUNCTION);
        string(&mut bytes, text);
    }
    sealed(bytes)
}

/// The texts in a payload of libraries.
///
/// # Errors
/// The version or the checksum are not as they should be; there is something else in it.
pub fn libraries(bytes: &[u8]) -> Result<Vec<Vec<u8>>> {
    let content = checked(bytes)?;
    let (mut source, mut texts) = (Source::new(content), Vec::new());
    while source.offset() < content.len() as u64 {
        if source.byte()? != opcode::FUNCTION {
            return source.malformed(source.offset() - 1, "what is no library of functions");
        }
        texts.push(source.string()?);
    }
    Ok(texts)
}

/// What is before a payload's version and checksum, which are right.
fn checked(bytes: &[u8]) -> Result<&[u8]> {
    let wrong = |offset: usize, cause| {
        Err(Error {
            offset: offset as u64,
            cause,
        })
    };
    let Some((checked, crc)) = bytes.split_last_chunk::<CRC_BYTES>() else {
        return wrong(0, Cause::Truncated);
    };
    let Some((value, version)) = checked.split_last_chunk::<VERSION_BYTES>() else {
        return wrong(0, Cause::Truncated);
    };
    let version = u16::from_le_bytes(*version).into();
    if version > NEWEST {
        return wrong(value.len(), Cause::Version(version));
    }
    let (written, computed) = (u64::from_le_bytes(*crc), crc::extend(0, checked));
    if written != computed {
        return wrong(checked.len(), Cause::Checksum { written, computed });
    }
    Ok(value)
}

/// A payload whose version and checksum are right, and how far its value has been read.
#[derive(Debug)]
pub struct Payload<'a> {
    source: Source<&'a [u8]>,
    open: Option<Collection>,
    over: bool,
}

impl<'a> Payload<'a> {
    /// Looks at the version and the checksum.
    ///
    /// # Errors
    /// Either is not as it should be.
    pub fn new(bytes: &'a [u8]) -> Result<Self> {
        Ok(Self {
            source: Source::new(checked(bytes)?),
            open: None,
            over: false,
        })
    }

    /// The next part of the value; `None` after the last one, which nothing may follow.
    ///
    /// # Errors
    /// The value cannot be read.
    pub fn next_part(&mut self) -> Result<Option<Value>> {
        let source = &mut self.source;
        if self.over {
            return Ok(None);
        }
        let part = match &mut self.open {
            Some(open) => {
                let (value, more) = open.part(source)?;
                if !more {
                    self.open = None;
                }
                value
            }
            None => {
                let number = source.byte()?;
                if number == kind::MODULE {
                    module::skip(source)?;
                    return source.malformed(0, "a module's value");
                }
                let (value, open) = Collection::begin(source, number)?;
                self.open = open;
                value
            }
        };
        if self.open.is_none() {
            self.over = true;
            if source.byte().is_ok() {
                let offset = source.offset() - 1;
                return source.malformed(offset, "bytes behind the value");
            }
        }
        Ok(Some(part))
    }
}
