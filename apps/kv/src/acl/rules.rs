//! Rules as words: `on`, `>password`, `~key:*`, `+@read`, `-get`.

use super::catalog::{Catalog, category};
use super::selector::{KeyPattern, Selector};
use super::user::{Hash, User, hash};

/// Why a rule is none.
type Why = &'static str;

const SYNTAX: Why = "Syntax error";
const UNKNOWN: Why = "Unknown command or category name in ACL";
const BAD_HASH: Why = "The password hash must be exactly 64 characters and contain only lowercase hexadecimal characters";
const NO_PASSWORD: Why = "The password you are trying to remove from the user does not exist";
const AFTER_ALL_KEYS: Why = "Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and \
    does not have any effect. Try 'resetkeys' to start with an empty list of patterns";
const AFTER_ALL_CHANNELS: Why = "Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid \
    and does not have any effect. Try 'resetchannels' to start with an empty list of channels";
const DEEP: Why = "Allowing first-arg of a subcommand is not supported";
/// More patterns, passwords or selectors than a user can have.
const TOO_MANY: Why = "Too many rules";

/// Patterns, passwords or selectors of a user, at most.
const MAX_RULES: usize = 1024;

/// Applies one rule to a user. What begins with `(` must end with `)`.
pub(super) fn apply(user: &mut User, catalog: &Catalog, rule: &[u8]) -> Result<(), Why> {
    match rule {
        [b'(', inner @ .., b')'] => {
            let mut selector = Selector::default();
            for word in inner
                .split(|byte| *byte == b' ')
                .filter(|word| !word.is_empty())
            {
                select(&mut selector, catalog, word)?;
            }
            room(user.further.len())?;
            user.further.push(selector);
        }
        [b'>', word @ ..] => add_password(user, hash(word))?,
        [b'#', word @ ..] => add_password(user, digits(word)?)?,
        [b'<', word @ ..] => remove_password(user, &hash(word))?,
        [b'!', word @ ..] => remove_password(user, &digits(word)?)?,
        _ => return flag(user, catalog, rule),
    }
    Ok(())
}

/// The rules that are one word.
fn flag(user: &mut User, catalog: &Catalog, rule: &[u8]) -> Result<(), Why> {
    match rule.to_ascii_lowercase().as_slice() {
        b"on" => user.on = true,
        b"off" => user.on = false,
        b"nopass" => {
            user.nopass = true;
            user.passwords.clear();
        }
        b"resetpass" => {
            user.nopass = false;
            user.passwords.clear();
        }
        b"sanitize-payload" => user.sanitize = Some(true),
        b"skip-sanitize-payload" => user.sanitize = Some(false),
        b"clearselectors" => user.further.clear(),
        b"reset" => {
            *user = User {
                sanitize: Some(true),
                ..User::new(&user.name)
            };
        }
        _ => return select(&mut user.base, catalog, rule),
    }
    Ok(())
}

fn room(have: usize) -> Result<(), Why> {
    if have < MAX_RULES {
        Ok(())
    } else {
        Err(TOO_MANY)
    }
}

fn add_password(user: &mut User, password: Hash) -> Result<(), Why> {
    user.nopass = false;
    if !user.passwords.contains(&password) {
        room(user.passwords.len())?;
        user.passwords.push(password);
    }
    Ok(())
}

fn remove_password(user: &mut User, password: &Hash) -> Result<(), Why> {
    let before = user.passwords.len();
    user.passwords.retain(|have| have != password);
    if before == user.passwords.len() {
        Err(NO_PASSWORD)
    } else {
        Ok(())
    }
}

fn digits(word: &[u8]) -> Result<Hash, Why> {
    let hash: Hash = word.try_into().map_err(|_| BAD_HASH)?;
    let fine = hash.iter().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    if fine { Ok(hash) } else { Err(BAD_HASH) }
}

/// The rules that selectors have too.
fn select(selector: &mut Selector, catalog: &Catalog, rule: &[u8]) -> Result<(), Why> {
    match rule {
        [b'~', pattern @ ..] => return add_key(selector, pattern, true, true),
        [b'%', rest @ ..] => {
            let at = rest.iter().position(|byte| *byte == b'~').ok_or(SYNTAX)?;
            let rights = rest[..at].to_ascii_uppercase();
            if rights.is_empty() || !rights.iter().all(|right| matches!(right, b'R' | b'W')) {
                return Err(SYNTAX);
            }
            let (read, write) = (rights.contains(&b'R'), rights.contains(&b'W'));
            return add_key(selector, &rest[at + 1..], read, write);
        }
        [b'&', pattern @ ..] => return add_channel(selector, pattern),
        [b'+', word @ ..] if !word.is_empty() => return command(selector, catalog, word, true),
        [b'-', word @ ..] if !word.is_empty() => return command(selector, catalog, word, false),
        _ => {}
    }
    match rule.to_ascii_lowercase().as_slice() {
        b"allkeys" => add_key(selector, b"*", true, true)?,
        b"allchannels" => add_channel(selector, b"*")?,
        b"allcommands" => selector.allow_all(catalog, true),
        b"nocommands" => selector.allow_all(catalog, false),
        b"resetkeys" => {
            selector.keys.clear();
            selector.all_keys = false;
        }
        b"resetchannels" => {
            selector.channels.clear();
            selector.all_channels = false;
        }
        _ => return Err(SYNTAX),
    }
    Ok(())
}

fn pattern_is_bad(pattern: &[u8]) -> bool {
    pattern
        .iter()
        .any(|byte| *byte == 0 || byte.is_ascii_whitespace())
}

fn add_key(selector: &mut Selector, pattern: &[u8], read: bool, write: bool) -> Result<(), Why> {
    if pattern_is_bad(pattern) {
        return Err(SYNTAX);
    }
    let all = pattern == b"*" && read && write;
    if all {
        selector.all_keys = true;
        selector.keys.clear();
        return Ok(());
    }
    if selector.all_keys {
        return Err(AFTER_ALL_KEYS);
    }
    let pattern = pattern.to_vec();
    match selector
        .keys
        .iter_mut()
        .find(|have| have.pattern == pattern)
    {
        Some(have) => (have.read, have.write) = (have.read | read, have.write | write),
        None => {
            room(selector.keys.len())?;
            selector.keys.push(KeyPattern {
                pattern,
                read,
                write,
            });
        }
    }
    Ok(())
}

fn add_channel(selector: &mut Selector, pattern: &[u8]) -> Result<(), Why> {
    if pattern_is_bad(pattern) {
        return Err(SYNTAX);
    }
    if pattern == b"*" {
        selector.all_channels = true;
        selector.channels.clear();
    } else if selector.all_channels {
        return Err(AFTER_ALL_CHANNELS);
    } else if !selector.channels.iter().any(|have| have == pattern) {
        room(selector.channels.len())?;
        selector.channels.push(pattern.to_vec());
    }
    Ok(())
}

/// `+get`, `-client|kill`, `+@read`, `+select|0`.
fn command(selector: &mut Selector, catalog: &Catalog, word: &[u8], on: bool) -> Result<(), Why> {
    room(selector.rules.len())?;
    let lower = word.to_ascii_lowercase();
    if lower == b"@all" {
        selector.allow_all(catalog, on);
        return Ok(());
    }
    if let [b'@', name @ ..] = lower.as_slice() {
        let bit = category(name).ok_or(UNKNOWN)?;
        let name = std::str::from_utf8(name).map_err(|_| UNKNOWN)?;
        selector.allow_category(catalog, name, bit, on);
        return Ok(());
    }
    if let Some(unit) = catalog.find(&lower) {
        selector.allow(catalog, unit, on);
        return Ok(());
    }
    let mut parts = lower.splitn(3, |byte| *byte == b'|');
    let (name, second, third) = (parts.next(), parts.next(), parts.next());
    let known = catalog.find(name.unwrap_or_default()).ok_or(UNKNOWN)?;
    let contains = !catalog.family(known).is_empty();
    if third.is_some() {
        return Err(if contains { DEEP } else { UNKNOWN });
    }
    let second = second.filter(|word| !word.is_empty()).ok_or(SYNTAX)?;
    if !on || contains {
        return Err(UNKNOWN);
    }
    let second = std::str::from_utf8(second).map_err(|_| SYNTAX)?;
    selector.allow_first_word(catalog, known, second);
    Ok(())
}
