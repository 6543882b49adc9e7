//! Reads commands out of a buffer that fills piece by piece.
//!
//! What has been read of a half-arrived command is remembered, so no byte is looked at twice.
//! A declared length is only ever a promise: memory is taken for what has arrived.

use std::fmt;

use super::args::{Args, Span};
use super::inline;

/// Bytes of a line that says a length, at most.
const LENGTH_LINE: usize = 32;
/// Bytes of a command typed by hand, at most.
const INLINE_LINE: usize = 64 << 10;
/// Words, and bytes of a command typed by hand, for which a quiet connection keeps memory.
const KEEP: usize = 16;

/// What a client may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Words in a command.
    pub words: usize,
    /// Bytes in a word.
    pub word: usize,
    /// Bytes in a command.
    pub command: usize,
}

impl Limits {
    /// For authenticated clients.
    pub const FULL: Self = Self {
        words: 1 << 20,
        word: crate::MAX_VALUE,
        command: 2 * crate::MAX_VALUE,
    };
    /// For clients that have not sent the password.
    pub const STRANGER: Self = Self {
        words: 10,
        word: 16 << 10,
        command: 64 << 10,
    };
}

/// Input that no correct client sends. The connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProtocolError {
    WordCount,
    WordLength,
    LengthLine,
    InlineLine,
    Quotes,
    Expected(u8),
    TooLong,
}

impl fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::WordCount => "invalid multibulk length",
            Self::WordLength => "invalid bulk length",
            Self::LengthLine => "too big mbulk count string",
            Self::InlineLine => "too big inline request",
            Self::Quotes => "unbalanced quotes in request",
            Self::TooLong => "the command is too long",
            Self::Expected(byte) => {
                return write!(f, "expected '$', got '{}'", byte.escape_ascii());
            }
        })
    }
}

/// Reads one command after the other.
#[derive(Debug, Default)]
pub(crate) struct Parser {
    spans: Vec<Span>,
    /// The words of a command typed by hand, quotes undone.
    unquoted: Vec<u8>,
    typed: bool,
    /// Words still to come; `None` before the count has been read.
    missing: Option<usize>,
    /// The length of the word that is arriving, once read.
    word: Option<usize>,
    /// Bytes of the command read so far.
    at: usize,
}

impl Parser {
    /// Reads on in `input`, which starts where the command starts. `Some(n)`:
    /// a command of `n` bytes is complete, see [`Parser::args`]; the next call is about the next
    /// command.
    pub fn parse(&mut self, input: &[u8], limits: &Limits) -> Result<Option<usize>, ProtocolError> {
        if self.missing.is_none() {
            self.spans.clear();
            self.typed = false;
            self.at = 0;
            match input.first() {
                None => return Ok(None),
                Some(b'*') => {}
                Some(_) => return self.line(input, limits),
            }
            let Some(count) = self.length(input, b'*', ProtocolError::WordCount)? else {
                return Ok(None);
            };
            if count > limits.words as i64 {
                return Err(ProtocolError::WordCount);
            }
            self.missing = Some(usize::try_from(count).unwrap_or(0));
        }
        self.words(input, limits)
    }

    /// Bytes of memory that it has.
    pub fn held(&self) -> usize {
        self.spans.capacity() * size_of::<Span>() + self.unquoted.capacity()
    }

    /// A turn of its connection ends: what an unusual command has taken is given back.
    pub fn settle(&mut self) {
        if self.missing.is_some() {
            return;
        }
        if self.spans.capacity() > KEEP {
            self.spans = Vec::new();
        }
        if self.unquoted.capacity() > KEEP {
            self.unquoted = Vec::new();
        }
    }

    /// The command [`Parser::parse`] found in `input`.
    pub fn args<'a>(&'a self, input: &'a [u8]) -> Args<'a> {
        Args::new(if self.typed { &self.unquoted } else { input }, &self.spans)
    }

    fn words(&mut self, input: &[u8], limits: &Limits) -> Result<Option<usize>, ProtocolError> {
        while let Some(missing) = self.missing.filter(|n| *n > 0) {
            let len = match self.word {
                Some(len) => len,
                None => {
                    let Some(len) = self.length(input, b'$', ProtocolError::WordLength)? else {
                        return Ok(None);
                    };
                    let len = usize::try_from(len).ok().filter(|len| *len <= limits.word);
                    *self.word.insert(len.ok_or(ProtocolError::WordLength)?)
                }
            };
            let end = self.at + len;
            if end > limits.command {
                return Err(ProtocolError::TooLong);
            }
            if input.len() < end + 2 {
                return Ok(None);
            }
            self.spans.push((self.at as u32, end as u32));
            self.at = end + 2;
            self.word = None;
            self.missing = Some(missing - 1);
        }
        self.missing = None;
        Ok(Some(self.at))
    }

    /// A line of a type's byte and a number.
    fn length(
        &mut self,
        input: &[u8],
        kind: u8,
        bad: ProtocolError,
    ) -> Result<Option<i64>, ProtocolError> {
        let rest = &input[self.at.min(input.len())..];
        match rest.first() {
            None => return Ok(None),
            Some(byte) if *byte != kind => return Err(ProtocolError::Expected(*byte)),
            Some(_) => {}
        }
        let line = &rest[..rest.len().min(LENGTH_LINE)];
        let Some(end) = line.iter().position(|b| *b == b'\n') else {
            return if rest.len() < LENGTH_LINE {
                Ok(None)
            } else {
                Err(ProtocolError::LengthLine)
            };
        };
        let digits = line[1..end].strip_suffix(b"\r").unwrap_or(&line[1..end]);
        self.at += end + 1;
        crate::number::parse_i64(digits).map(Some).ok_or(bad)
    }

    fn line(&mut self, input: &[u8], limits: &Limits) -> Result<Option<usize>, ProtocolError> {
        let window = &input[..input.len().min(INLINE_LINE.min(limits.command))];
        let Some(end) = window.iter().position(|b| *b == b'\n') else {
            return if window.len() == input.len() {
                Ok(None)
            } else {
                Err(ProtocolError::InlineLine)
            };
        };
        self.typed = true;
        self.unquoted.clear();
        inline::split(&window[..end], &mut self.unquoted, &mut self.spans)?;
        if self.spans.len() > limits.words {
            return Err(ProtocolError::WordCount);
        }
        Ok(Some(end + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds `input` in pieces of `step` bytes.
    fn read(input: &[u8], step: usize) -> Result<Vec<Vec<Vec<u8>>>, ProtocolError> {
        let (mut parser, mut commands, mut start) = (Parser::default(), Vec::new(), 0);
        for end in (0..input.len())
            .step_by(step)
            .map(|i| (i + step).min(input.len()))
        {
            while let Some(n) = parser.parse(&input[start..end], &Limits::FULL)? {
                let args = parser.args(&input[start..end]);
                commands.push(args.from(0).map(<[u8]>::to_vec).collect());
                start += n;
            }
        }
        Ok(commands)
    }

    const PIPELINE: &[u8] = b"*2\r\n$3\r\nGET\r\n$1\r\na\r\n*0\r\nPING\r\n\r\n*-1\r\n*3\r\n$3\r\nSET\r\n$0\r\n\r\n$5\r\n\r\n*2\r\r\nECHO 'a b'\r\n";

    #[test]
    fn however_the_bytes_arrive_the_commands_are_the_same() {
        let whole = read(PIPELINE, PIPELINE.len()).unwrap();
        assert_eq!(whole.len(), 7);
        assert_eq!(whole[0], [b"GET".to_vec(), b"a".to_vec()]);
        assert_eq!(
            whole[5],
            [b"SET".to_vec(), b"".to_vec(), b"\r\n*2\r".to_vec()]
        );
        assert_eq!(whole[6], [b"ECHO".to_vec(), b"a b".to_vec()]);
        for step in 1..PIPELINE.len() {
            assert_eq!(read(PIPELINE, step).unwrap(), whole, "step {step}");
        }
    }

    #[test]
    fn bad_input_is_told_apart() {
        for (input, error) in [
            ("*1048577\r\n", ProtocolError::WordCount),
            ("*x\r\n", ProtocolError::WordCount),
            ("*1\r\n$-1\r\n", ProtocolError::WordLength),
            ("*1\r\n$67108865\r\n", ProtocolError::WordLength),
            ("*1\r\n+3\r\n", ProtocolError::Expected(b'+')),
            (
                "*1111111111111111111111111111111111\r\n",
                ProtocolError::LengthLine,
            ),
            ("get \"a\r\n", ProtocolError::Quotes),
        ] {
            assert_eq!(read(input.as_bytes(), 7), Err(error), "{input:?}");
        }
        assert_eq!(
            read(&vec![b'a'; 70_000], 1000),
            Err(ProtocolError::InlineLine)
        );
    }

    #[test]
    fn damaged_input_never_panics_and_takes_no_memory_on_trust() {
        let mut rng = fastrand::Rng::with_seed(1);
        for _ in 0..20_000 {
            let mut input = PIPELINE.to_vec();
            for _ in 0..rng.usize(1..6) {
                let at = rng.usize(..input.len());
                match rng.u8(..4) {
                    0 => input[at] = rng.u8(..),
                    1 => input[at] = b"*$\r\n0123456789-\"'"[rng.usize(..17)],
                    2 => drop(input.remove(at)),
                    _ => input.insert(at, b"0123456789"[rng.usize(..10)]),
                }
            }
            let _ = read(&input, rng.usize(1..80));
        }
        let mut parser = Parser::default();
        assert_eq!(
            parser.parse(b"*1000000\r\n$60000000\r\nx", &Limits::FULL),
            Ok(None)
        );
        assert!(parser.spans.capacity() < 64);
    }
}
