//! JSON as Lua values.

use std::fmt;

use mlua::{Lua, Value};

use super::{DEPTH, Settings};
use crate::script::errors::failed;

pub(super) fn value(lua: &Lua, text: &[u8], settings: &Settings) -> mlua::Result<Value> {
    let mut decoder = Decoder {
        lua,
        settings,
        text,
        at: 0,
    };
    let (token, start) = decoder.next();
    let value = decoder.value(token, start, 0)?;
    match decoder.next() {
        (Token::End, _) => Ok(value),
        (token, at) => Err(decoder.unexpected("the end", &token, at)),
    }
}

/// A piece of JSON.
enum Token {
    ObjectBegin,
    ObjectEnd,
    ArrayBegin,
    ArrayEnd,
    String(Vec<u8>),
    Number(f64),
    Boolean(bool),
    Null,
    Colon,
    Comma,
    End,
    /// None, and what it is.
    Bad(&'static str),
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ObjectBegin => "T_OBJ_BEGIN",
            Self::ObjectEnd => "T_OBJ_END",
            Self::ArrayBegin => "T_ARR_BEGIN",
            Self::ArrayEnd => "T_ARR_END",
            Self::String(_) => "T_STRING",
            Self::Number(_) => "T_NUMBER",
            Self::Boolean(_) => "T_BOOLEAN",
            Self::Null => "T_NULL",
            Self::Colon => "T_COLON",
            Self::Comma => "T_COMMA",
            Self::End => "T_END",
            Self::Bad(what) => what,
        })
    }
}

struct Decoder<'a> {
    lua: &'a Lua,
    settings: &'a Settings,
    text: &'a [u8],
    at: usize,
}

impl Decoder<'_> {
    fn unexpected(&self, wanted: &str, token: &Token, at: usize) -> mlua::Error {
        let at = at + 1;
        let text = format_args!("Expected {wanted} but found {token} at character {at}");
        failed(self.lua, text)
    }

    /// The next token, and where it begins, or where it goes wrong.
    fn next(&mut self) -> (Token, usize) {
        while matches!(self.text.get(self.at), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
        let start = self.at;
        let rest = &self.text[start..];
        let Some(byte) = rest.first() else {
            return (Token::End, start);
        };
        let (token, len) = match byte {
            b'{' => (Token::ObjectBegin, 1),
            b'}' => (Token::ObjectEnd, 1),
            b'[' => (Token::ArrayBegin, 1),
            b']' => (Token::ArrayEnd, 1),
            b':' => (Token::Colon, 1),
            b',' => (Token::Comma, 1),
            b'"' => return self.string(),
            b'-' | b'0'..=b'9' => match number(rest, self.settings.decode_invalid) {
                Some((number, len)) => (Token::Number(number), len),
                None => (Token::Bad("invalid number"), 0),
            },
            _ if rest.starts_with(b"true") => (Token::Boolean(true), 4),
            _ if rest.starts_with(b"false") => (Token::Boolean(false), 5),
            _ if rest.starts_with(b"null") => (Token::Null, 4),
            _ => match special(rest).filter(|_| self.settings.decode_invalid) {
                Some((number, len)) => (Token::Number(number), len),
                None => (Token::Bad("invalid token"), 0),
            },
        };
        self.at += len;
        (token, start)
    }

    /// A string from its opening quote on.
    fn string(&mut self) -> (Token, usize) {
        let (start, mut at, mut out) = (self.at, self.at + 1, Vec::new());
        loop {
            match self.text.get(at) {
                None => return (Token::Bad("unexpected end of string"), at),
                Some(b'"') => break,
                Some(b'\\') => {}
                Some(byte) => {
                    out.push(*byte);
                    at += 1;
                    continue;
                }
            }
            let escape = self.text.get(at + 1).copied().unwrap_or(0);
            match escape {
                b'"' | b'\\' | b'/' => out.push(escape),
                b'b' => out.push(8),
                b'f' => out.push(12),
                b'n' => out.push(b'\n'),
                b'r' => out.push(b'\r'),
                b't' => out.push(b'\t'),
                b'u' => {
                    let Some((letter, len)) = unicode(&self.text[at..]) else {
                        return (Token::Bad("invalid unicode escape code"), at);
                    };
                    out.extend(letter.encode_utf8(&mut [0; 4]).bytes());
                    at += len;
                    continue;
                }
                _ => return (Token::Bad("invalid escape code"), at),
            }
            at += 2;
        }
        self.at = at + 1;
        (Token::String(out), start)
    }

    fn value(&mut self, token: Token, at: usize, depth: usize) -> mlua::Result<Value> {
        match token {
            Token::String(text) => Ok(Value::String(self.lua.create_string(text)?)),
            Token::Number(number) => Ok(Value::Number(number)),
            Token::Boolean(value) => Ok(Value::Boolean(value)),
            Token::Null => Ok(Value::NULL),
            Token::ObjectBegin => self.object(depth + 1),
            Token::ArrayBegin => self.array(depth + 1),
            token => Err(self.unexpected("value", &token, at)),
        }
    }

    fn descend(&self, depth: usize) -> mlua::Result<()> {
        if depth <= self.settings.decode_depth.min(DEPTH) {
            return Ok(());
        }
        let at = self.at;
        let text =
            format_args!("Found too many nested data structures ({depth}) at character {at}");
        Err(failed(self.lua, text))
    }

    fn array(&mut self, depth: usize) -> mlua::Result<Value> {
        self.descend(depth)?;
        let table = self.lua.create_table()?;
        let (mut token, mut at) = self.next();
        if matches!(token, Token::ArrayEnd) {
            return Ok(Value::Table(table));
        }
        for i in 1.. {
            table.raw_set(i, self.value(token, at, depth)?)?;
            match self.next() {
                (Token::ArrayEnd, _) => break,
                (Token::Comma, _) => (token, at) = self.next(),
                (other, at) => {
                    return Err(self.unexpected("comma or array end", &other, at));
                }
            }
        }
        Ok(Value::Table(table))
    }

    fn object(&mut self, depth: usize) -> mlua::Result<Value> {
        self.descend(depth)?;
        let table = self.lua.create_table()?;
        let (mut token, mut at) = self.next();
        if matches!(token, Token::ObjectEnd) {
            return Ok(Value::Table(table));
        }
        loop {
            let Token::String(key) = token else {
                return Err(self.unexpected("object key string", &token, at));
            };
            match self.next() {
                (Token::Colon, _) => {}
                (other, at) => return Err(self.unexpected("colon", &other, at)),
            }
            let (first, start) = self.next();
            let value = self.value(first, start, depth)?;
            table.raw_set(self.lua.create_string(key)?, value)?;
            match self.next() {
                (Token::ObjectEnd, _) => return Ok(Value::Table(table)),
                (Token::Comma, _) => (token, at) = self.next(),
                (other, at) => {
                    return Err(self.unexpected("comma or object end", &other, at));
                }
            }
        }
    }
}

/// An escape `\uXXXX`, or two that are one letter; and its bytes.
fn unicode(text: &[u8]) -> Option<(char, usize)> {
    let unit = |at: usize| {
        let digits = text.get(at..at + 6)?.strip_prefix(b"\\u")?;
        let digits = std::str::from_utf8(digits).ok()?;
        u32::from_str_radix(digits, 16)
            .ok()
            .filter(|_| !digits.starts_with('+'))
    };
    match unit(0)? {
        high @ 0xd800..0xdc00 => {
            let low = unit(6).filter(|low| (0xdc00..0xe000).contains(low))?;
            let letter = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
            Some((char::from_u32(letter)?, 12))
        }
        letter => Some((char::from_u32(letter)?, 6)),
    }
}

/// A number at the front of a text, and its bytes. With `lenient`, also what C reads as one.
fn number(text: &[u8], lenient: bool) -> Option<(f64, usize)> {
    let sign = usize::from(text.first() == Some(&b'-'));
    let rest = &text[sign..];
    if let Some((number, len)) = special(rest).or_else(|| hexadecimal(rest)) {
        if !lenient {
            return None;
        }
        let number = if sign == 1 { -number } else { number };
        return Some((number, sign + len));
    }
    let digits = |at: usize| {
        let rest = text.get(at..).unwrap_or_default();
        rest.iter().take_while(|b| b.is_ascii_digit()).count()
    };
    let whole = digits(sign);
    let mut end = sign + whole;
    if whole == 0 || !lenient && whole > 1 && rest[0] == b'0' {
        return None;
    }
    if text.get(end) == Some(&b'.') {
        end += 1 + digits(end + 1);
    }
    if let Some(b'e' | b'E') = text.get(end) {
        let signed = usize::from(matches!(text.get(end + 1), Some(b'+' | b'-')));
        let exponent = digits(end + 1 + signed);
        if exponent > 0 {
            end += 1 + signed + exponent;
        }
    }
    let number = std::str::from_utf8(&text[..end]).ok()?.parse().ok()?;
    Some((number, end))
}

fn hexadecimal(text: &[u8]) -> Option<(f64, usize)> {
    let [b'0', b'x' | b'X', digits @ ..] = text else {
        return None;
    };
    let len = digits.iter().take_while(|b| b.is_ascii_hexdigit()).count();
    let digit = |b: &u8| char::from(*b).to_digit(16).map_or(0.0, f64::from);
    let number = digits[..len].iter().fold(0.0, |n, b| n * 16.0 + digit(b));
    (len > 0).then_some((number, 2 + len))
}

/// Infinity and "not a number".
fn special(text: &[u8]) -> Option<(f64, usize)> {
    let words = [
        ("infinity", f64::INFINITY),
        ("inf", f64::INFINITY),
        ("nan", f64::NAN),
    ];
    words.into_iter().find_map(|(word, number)| {
        let front = text.get(..word.len())?;
        front
            .eq_ignore_ascii_case(word.as_bytes())
            .then_some((number, word.len()))
    })
}
