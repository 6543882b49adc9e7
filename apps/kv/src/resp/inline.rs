//! Commands typed by hand: one line, words between spaces, quotes as in Redis.

use super::args::Span;
use super::parse::ProtocolError;

/// Splits a line into words, which go to `bytes`.
pub(crate) fn split(
    line: &[u8],
    bytes: &mut Vec<u8>,
    spans: &mut Vec<Span>,
) -> Result<(), ProtocolError> {
    let mut rest = line;
    loop {
        rest = rest.trim_ascii_start();
        if rest.is_empty() {
            return Ok(());
        }
        let start = bytes.len() as u32;
        rest = word(rest, bytes)?;
        spans.push((start, bytes.len() as u32));
    }
}

/// Takes one word off the front.
fn word<'a>(mut rest: &'a [u8], out: &mut Vec<u8>) -> Result<&'a [u8], ProtocolError> {
    loop {
        match rest {
            [b'"', tail @ ..] => return quoted(tail, b'"', out),
            [b'\'', tail @ ..] => return quoted(tail, b'\'', out),
            [byte, tail @ ..] if !byte.is_ascii_whitespace() => {
                out.push(*byte);
                rest = tail;
            }
            _ => return Ok(rest),
        }
    }
}

/// The rest of a quoted word; after the closing quote the word must end.
fn quoted<'a>(mut rest: &'a [u8], quote: u8, out: &mut Vec<u8>) -> Result<&'a [u8], ProtocolError> {
    loop {
        match rest {
            [byte, tail @ ..] if *byte == quote => {
                let ends = tail.first().is_none_or(u8::is_ascii_whitespace);
                return if ends {
                    Ok(tail)
                } else {
                    Err(ProtocolError::Quotes)
                };
            }
            [b'\\', b'x', high, low, tail @ ..]
                if quote == b'"' && high.is_ascii_hexdigit() && low.is_ascii_hexdigit() =>
            {
                out.push(hex(*high) << 4 | hex(*low));
                rest = tail;
            }
            [b'\\', b'\'', tail @ ..] if quote == b'\'' => {
                out.push(b'\'');
                rest = tail;
            }
            [b'\\', byte, tail @ ..] if quote == b'"' => {
                out.push(match byte {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'b' => 8,
                    b'a' => 7,
                    other => *other,
                });
                rest = tail;
            }
            [byte, tail @ ..] => {
                out.push(*byte);
                rest = tail;
            }
            [] => return Err(ProtocolError::Quotes),
        }
    }
}

fn hex(digit: u8) -> u8 {
    (digit as char).to_digit(16).unwrap_or(0) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Option<Vec<Vec<u8>>> {
        let (mut bytes, mut spans) = (Vec::new(), Vec::new());
        split(line.as_bytes(), &mut bytes, &mut spans).ok()?;
        Some(
            spans
                .iter()
                .map(|(a, b)| bytes[*a as usize..*b as usize].to_vec())
                .collect(),
        )
    }

    #[test]
    fn lines_split_as_in_redis() {
        assert_eq!(
            words("  set  a\tb "),
            Some(vec![b"set".to_vec(), b"a".to_vec(), b"b".to_vec()])
        );
        assert_eq!(
            words(r#"set "a b" '' "\x41\n\"" 'it\'s'"#).unwrap()[1..],
            [
                b"a b".to_vec(),
                b"".to_vec(),
                b"A\n\"".to_vec(),
                b"it's".to_vec()
            ]
        );
        assert_eq!(words(""), Some(vec![]));
        for bad in [r#"set "a"#, r#"set "a"b"#, "set 'a", r#""\"#] {
            assert_eq!(words(bad), None, "{bad}");
        }
    }
}
