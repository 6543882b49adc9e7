//! The form of RESP replies, as a client that trusts nobody reads them.

/// How deep replies may nest; the server's deepest are the descriptions of commands.
const MAX_DEPTH: usize = 16;

/// Why bytes are no replies.
pub type Malformed = String;

/// Checks that `bytes` is a sequence of whole replies, the last of which may be cut off.
/// How many are whole.
pub fn count(mut bytes: &[u8]) -> Result<usize, Malformed> {
    let mut count = 0;
    while let Some(rest) = reply(bytes, 0)? {
        bytes = rest;
        count += 1;
    }
    Ok(count)
}

/// What is behind the first reply; `None` when it is not complete.
fn reply(bytes: &[u8], depth: usize) -> Result<Option<&[u8]>, Malformed> {
    let Some(end) = bytes.windows(2).position(|two| two == b"\r\n") else {
        return Ok(None);
    };
    let (line, rest) = (&bytes[..end], &bytes[end + 2..]);
    let Some((kind, line)) = line.split_first() else {
        return Err("an empty line where a reply should begin".into());
    };
    match kind {
        b'+' | b'-' | b'_' | b'#' | b',' | b'(' => Ok(Some(rest)),
        b':' => number(line).map(|_| Some(rest)),
        b'$' | b'=' | b'!' => blob(number(line)?, rest),
        b'*' | b'~' | b'>' => several(number(line)?, rest, depth),
        b'%' | b'|' => several(number(line)?.saturating_mul(2), rest, depth),
        other => Err(format!("a reply of the kind {:?}", *other as char)),
    }
}

fn number(line: &[u8]) -> Result<i64, Malformed> {
    let text = String::from_utf8_lossy(line);
    text.parse()
        .map_err(|_| format!("`{text}` where a number should be"))
}

/// A length of -1 is RESP2's null.
fn blob(length: i64, rest: &[u8]) -> Result<Option<&[u8]>, Malformed> {
    let Ok(length) = usize::try_from(length) else {
        return if length == -1 {
            Ok(Some(rest))
        } else {
            Err(format!("length {length}"))
        };
    };
    match rest.get(length..length.saturating_add(2)) {
        None => Ok(None),
        Some(b"\r\n") => Ok(Some(&rest[length + 2..])),
        Some(_) => Err("a string is longer than it says".into()),
    }
}

fn several(count: i64, mut rest: &[u8], depth: usize) -> Result<Option<&[u8]>, Malformed> {
    if depth == MAX_DEPTH {
        return Err("replies nest too deep".into());
    }
    for _ in 0..count {
        match reply(rest, depth + 1)? {
            Some(behind) => rest = behind,
            None => return Ok(None),
        }
    }
    Ok(Some(rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_replies_are_counted() {
        assert_eq!(
            count(b"+OK\r\n$3\r\na\r\n\r\n*2\r\n:1\r\n$-1\r\n%1\r\n+a\r\n_\r\n"),
            Ok(4)
        );
        assert_eq!(count(b"+OK\r\n$3\r\na"), Ok(1));
        assert_eq!(count(b""), Ok(0));
    }

    #[test]
    fn malformed_replies_are_found() {
        for bytes in ["OK\r\n", "$2\r\nabc\r\n", ":x\r\n", "\r\n", "$-7\r\n"] {
            assert!(count(bytes.as_bytes()).is_err(), "{bytes:?}");
        }
    }
}
