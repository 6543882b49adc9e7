//! Histories as text: one JSON object a line.

use serde::de::DeserializeOwned;
use std::fmt;
use std::io::{self, BufRead, Read, Write};
use std::marker::PhantomData;

use super::operation::Operation;

/// The longest line that is read, in bytes: room for a value of a few hundred KiB, escaped.
pub const MAX_LINE_BYTES: usize = 1 << 20;

/// The most operations that are read from one history.
pub const MAX_OPERATIONS: usize = 16 << 20;

/// Why a history could not be read, and where.
#[derive(Debug)]
pub struct ReadError {
    /// The line, counted from 1.
    pub line: usize,
    /// What is wrong with it.
    pub kind: ReadErrorKind,
}

/// What was wrong with a line.
#[derive(Debug)]
pub enum ReadErrorKind {
    /// The source could not be read.
    Io(io::Error),
    /// Longer than [`MAX_LINE_BYTES`].
    TooLong,
    /// More than [`MAX_OPERATIONS`] operations.
    TooMany,
    /// The last line has no end.
    CutOff,
    /// There is no operation in it: a judgement on it would say nothing.
    Empty,
    /// Not JSON, a field missing or misspelled, or a JSON object that is no operation (see
    /// [`super::ShapeError`] for what these are).
    Json(serde_json::Error),
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: ", self.line)?;
        match &self.kind {
            ReadErrorKind::Io(error) => write!(f, "cannot be read: {error}"),
            ReadErrorKind::TooLong => write!(f, "longer than {MAX_LINE_BYTES} bytes"),
            ReadErrorKind::TooMany => write!(f, "more than {MAX_OPERATIONS} operations"),
            ReadErrorKind::CutOff => write!(f, "cut off, and the last one"),
            ReadErrorKind::Empty => write!(f, "the history ends, and has no operation in it"),
            ReadErrorKind::Json(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for ReadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.kind {
            ReadErrorKind::Io(error) => Some(error),
            ReadErrorKind::Json(error) => Some(error),
            ReadErrorKind::TooLong
            | ReadErrorKind::TooMany
            | ReadErrorKind::CutOff
            | ReadErrorKind::Empty => None,
        }
    }
}

/// Reads a history operation by operation, never more than a line of it into memory.
/// Empty lines are skipped.
///
/// A recorder that was killed leaves a last line without its end. That is no error:
/// the iterator ends, and
/// [`Reader::cut_off`] says where. A history without any operation is one:
/// [`ReadErrorKind::Empty`]. `O` is what a line has: an operation, or a
/// [`Deed`](crate::serial::Deed).
pub struct Reader<R, O = Operation> {
    source: R,
    buffer: Vec<u8>,
    line: usize,
    operations: usize,
    cut_off: Option<usize>,
    ended: bool,
    of: PhantomData<fn() -> O>,
}

impl<R: BufRead, O: DeserializeOwned> Reader<R, O> {
    /// Of a file or anything else.
    pub fn new(source: R) -> Self {
        Reader {
            source,
            buffer: Vec::new(),
            line: 0,
            operations: 0,
            cut_off: None,
            ended: false,
            of: PhantomData,
        }
    }

    /// The last line, counted from 1, if it was cut off; known once the iterator has ended.
    pub fn cut_off(&self) -> Option<usize> {
        self.cut_off
    }

    fn read_next(&mut self) -> Result<Option<O>, ReadErrorKind> {
        while !self.ended {
            self.line += 1;
            if !read_line(&mut self.source, &mut self.buffer)? {
                return self.end();
            }
            let text = self.buffer.trim_ascii();
            if text.is_empty() {
                continue;
            }
            if self.operations == MAX_OPERATIONS {
                return Err(ReadErrorKind::TooMany);
            }
            match serde_json::from_slice(text) {
                Ok(operation) => {
                    self.operations += 1;
                    return Ok(Some(operation));
                }
                Err(error) if error.is_eof() && self.buffer.last() != Some(&b'\n') => {
                    self.cut_off = Some(self.line);
                    return self.end();
                }
                Err(error) => return Err(ReadErrorKind::Json(error)),
            }
        }
        Ok(None)
    }

    fn end(&mut self) -> Result<Option<O>, ReadErrorKind> {
        self.ended = true;
        match self.operations {
            0 => Err(ReadErrorKind::Empty),
            _ => Ok(None),
        }
    }
}

impl<R: BufRead, O: DeserializeOwned> Iterator for Reader<R, O> {
    type Item = Result<O, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.read_next();
        let line = self.line;
        next.map_err(|kind| ReadError { line, kind }).transpose()
    }
}

/// Reads a whole history; empty lines are skipped. Nothing may be missing.
pub fn read(source: impl BufRead) -> Result<Vec<Operation>, ReadError> {
    let mut reader = Reader::new(source);
    let operations = reader.by_ref().collect::<Result<_, _>>()?;
    match reader.cut_off() {
        None => Ok(operations),
        Some(line) => Err(ReadError {
            line,
            kind: ReadErrorKind::CutOff,
        }),
    }
}

/// Reads one line, never more than the limit into memory; `false` at the end.
fn read_line(source: &mut impl BufRead, buffer: &mut Vec<u8>) -> Result<bool, ReadErrorKind> {
    buffer.clear();
    let limit = MAX_LINE_BYTES as u64 + 1;
    let read = source
        .take(limit)
        .read_until(b'\n', buffer)
        .map_err(ReadErrorKind::Io)?;
    if buffer.len() > MAX_LINE_BYTES && buffer.last() != Some(&b'\n') {
        return Err(ReadErrorKind::TooLong);
    }
    Ok(read > 0)
}

/// Writes a history in the form that [`read`] reads.
pub fn write(mut target: impl Write, history: &[Operation]) -> io::Result<()> {
    for operation in history {
        serde_json::to_writer(&mut target, operation)?;
        target.write_all(b"\n")?;
    }
    target.flush()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{Call, Outcome, Reply};

    const SAMPLE: &str = r#"
{"client":0,"op":"set","key":"a","value":"1","invoke":100,"return":180,"outcome":"ok"}
{"client":1,"op":"get","key":"a","result":null,"invoke":150,"return":170,"outcome":"ok","note":"x"}
{"client":1,"op":"incr","key":"a","value":5,"result":6,"invoke":200,"return":260,"outcome":"ok"}
{"client":2,"op":"cas","key":"a","expected":"6","value":7,"invoke":210,"outcome":"unknown"}
{"client":2,"op":"del","key":"a","result":true,"invoke":300,"return":310,"outcome":"ok"}
{"client":2,"op":"append","key":"a","value":"zz","result":2,"invoke":320,"return":330,"outcome":"ok"}
{"client":2,"op":"swap","key":"a","value":"q","result":"zz","invoke":340,"return":340,"outcome":"ok"}
{"client":2,"op":"clear","key":"a","invoke":345,"return":346,"outcome":"ok"}
{"client":2,"op":"get","key":"a","invoke":350,"return":351,"outcome":"fail"}
"#;

    #[test]
    fn a_history_reads_and_writes_back_the_same() {
        let history = read(SAMPLE.as_bytes()).unwrap();
        assert_eq!(history.len(), 9);
        assert_eq!(
            history[3].call,
            Call::Cas {
                expected: Some("6".into()),
                value: "7".into()
            }
        );
        assert_eq!(history[3].outcome, Outcome::Unknown);
        let ok = |at, reply| Outcome::Ok { at, reply };
        assert_eq!(history[1].outcome, ok(170, Reply::Nil));
        assert_eq!(history[6].outcome, ok(340, Reply::Text("zz".into())));
        let mut text = Vec::new();
        write(&mut text, &history).unwrap();
        assert_eq!(read(text.as_slice()).unwrap(), history);
    }

    #[test]
    fn a_wrong_line_is_named() {
        let good = r#"{"client":0,"op":"get","key":"a","invoke":1,"return":2,"outcome":"ok"}"#;
        let cases = [
            ("{", "EOF"),
            (r#"{"client":0}"#, "missing field `op`"),
            (&good.replace("get", "peek"), "unknown variant `peek`"),
            (&good.replace("\"return\":2,", ""), "`return` time"),
            (&good.replace("\"return\":2", "\"return\":0"), "earlier"),
            (&good.replace("get", "set"), "`value`"),
            (&good.replace("get", "incr"), "`result`"),
            (
                &good.replace("\"invoke\":1", "\"invoke\":-1"),
                "invalid value",
            ),
            ("\u{0}\u{ff}", "expected value"),
        ];
        for (line, message) in cases {
            let error = read(format!("{good}\n\n{line}\n{good}").as_bytes()).unwrap_err();
            assert_eq!(error.line, 3, "{line}");
            assert!(error.to_string().contains(message), "{line}: {error}");
        }
    }

    #[test]
    fn a_last_line_that_was_cut_off_is_told_and_left_out() {
        let whole = SAMPLE.trim_end();
        let last = whole.rfind('\n').unwrap() + 1;
        for end in last + 1..whole.len() {
            let mut reader: Reader<_> = Reader::new(&whole.as_bytes()[..end]);
            let found: Result<Vec<_>, _> = reader.by_ref().collect();
            assert_eq!(found.unwrap().len(), 8, "{end}");
            assert_eq!(reader.cut_off(), Some(10));
            assert!(reader.next().is_none());
        }
        let mut reader: Reader<_> = Reader::new(whole.as_bytes());
        assert_eq!(reader.by_ref().count(), 9, "only the line's end is missing");
        assert_eq!(reader.cut_off(), None);
        let inside = format!("{}\n{whole}", &whole[..20]);
        let mut reader: Reader<_> = Reader::new(inside.as_bytes());
        assert!(reader.any(|line| line.is_err()));
    }

    #[test]
    fn a_history_without_an_operation_is_an_error_and_then_ends() {
        let line = SAMPLE.trim().lines().next().unwrap();
        for text in ["", "\n", " \n\n  \n", &line[..line.len() - 5]] {
            let mut reader: Reader<_> = Reader::new(text.as_bytes());
            let error = reader.next().unwrap().unwrap_err();
            assert!(
                matches!(error.kind, ReadErrorKind::Empty),
                "{text:?}: {error}"
            );
            assert!(error.to_string().contains("no operation"), "{error}");
            assert!(reader.next().is_none());
        }
        assert_eq!(read(line.as_bytes()).unwrap().len(), 1);
    }

    #[test]
    fn an_endless_line_is_refused_without_being_held() {
        let endless = io::BufReader::new(io::repeat(b'x'));
        let error = read(endless).unwrap_err();
        assert!(matches!(error.kind, ReadErrorKind::TooLong));
        assert_eq!(error.line, 1);
    }
}
