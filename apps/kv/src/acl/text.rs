//! Users as text: a line each, as ACL LIST shows them and an ACL file has them.

use super::catalog::Catalog;
use super::rules;
use super::selector::Selector;
use super::user::User;

/// A user's line, without its end.
pub(crate) fn line(user: &User) -> Vec<u8> {
    let mut words: Vec<Vec<u8>> = vec![b"user".to_vec(), user.name.clone()];
    words.extend(flags(user).into_iter().map(|flag| flag.as_bytes().to_vec()));
    words.extend(
        user.passwords
            .iter()
            .map(|hash| [b"#", hash.as_slice()].concat()),
    );
    words.push(selector(&user.base));
    for further in &user.further {
        words.push([b"(", selector(further).as_slice(), b")"].concat());
    }
    words.join(&b' ')
}

/// The rules of one word.
pub(crate) fn flags(user: &User) -> Vec<&'static str> {
    let mut flags = vec![if user.on { "on" } else { "off" }];
    if user.nopass {
        flags.push("nopass");
    }
    match user.sanitize {
        Some(true) => flags.push("sanitize-payload"),
        Some(false) => flags.push("skip-sanitize-payload"),
        None => {}
    }
    flags
}

fn selector(selector: &Selector) -> Vec<u8> {
    let mut words = vec![keys(selector)];
    if !selector.all_channels {
        words.push(b"resetchannels".to_vec());
    }
    words.push(channels(selector));
    words.push(commands(selector).into_bytes());
    words.retain(|word| !word.is_empty());
    words.join(&b' ')
}

/// The rules on keys.
pub(crate) fn keys(selector: &Selector) -> Vec<u8> {
    if selector.all_keys {
        return b"~*".to_vec();
    }
    let one = |key: &super::selector::KeyPattern| {
        let rights: &[u8] = match (key.read, key.write) {
            (true, true) => b"~",
            (true, false) => b"%R~",
            _ => b"%W~",
        };
        [rights, &key.pattern].concat()
    };
    selector
        .keys
        .iter()
        .map(one)
        .collect::<Vec<_>>()
        .join(&b' ')
}

/// The rules on channels.
pub(crate) fn channels(selector: &Selector) -> Vec<u8> {
    if selector.all_channels {
        return b"&*".to_vec();
    }
    let one = |pattern: &Vec<u8>| [b"&", pattern.as_slice()].concat();
    selector
        .channels
        .iter()
        .map(one)
        .collect::<Vec<_>>()
        .join(&b' ')
}

/// The rules on commands.
pub(crate) fn commands(selector: &Selector) -> String {
    let base = if selector.all { "+@all" } else { "-@all" };
    let rules = selector.rules.iter().map(String::as_str);
    std::iter::once(base)
        .chain(rules)
        .collect::<Vec<_>>()
        .join(" ")
}

/// Why a text is not one of users.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct BadLine {
    /// Counted from 1.
    pub line: usize,
    pub why: String,
}

/// Reads users back. Lines that are empty or begin with `#` say nothing.
pub(crate) fn parse(catalog: &Catalog, text: &[u8]) -> Result<Vec<User>, BadLine> {
    let mut users: Vec<User> = Vec::new();
    for (i, line) in text.split(|byte| *byte == b'\n').enumerate() {
        let line = line.trim_ascii();
        if line.is_empty() || line[0] == b'#' {
            continue;
        }
        let bad = |why: String| BadLine { line: i + 1, why };
        let user = parse_line(catalog, line).map_err(bad)?;
        if users.iter().any(|have| have.name == user.name) {
            return Err(bad(format!(
                "user '{}' is there twice",
                user.name.escape_ascii()
            )));
        }
        users.push(user);
    }
    Ok(users)
}

fn parse_line(catalog: &Catalog, line: &[u8]) -> Result<User, String> {
    let mut words = line
        .split(|byte| byte.is_ascii_whitespace())
        .filter(|word| !word.is_empty());
    if words.next() != Some(b"user") {
        return Err("a line begins with 'user'".into());
    }
    let mut user = User::new(words.next().ok_or("a user has a name")?);
    let words: Vec<_> = words.collect();
    apply_all(&mut user, catalog, &words)?;
    Ok(user)
}

/// Applies rules in their order. The words of a selector may be several.
///
/// # Errors
/// What ACL SETUSER says, without its code.
pub(crate) fn apply_all(user: &mut User, catalog: &Catalog, words: &[&[u8]]) -> Result<(), String> {
    let mut open: Option<(Vec<u8>, &[u8])> = None;
    for word in words {
        let rule = match open.take() {
            None => word.to_vec(),
            Some((mut inner, first)) => {
                inner.push(b' ');
                inner.extend_from_slice(word);
                open = Some((inner.clone(), first));
                inner
            }
        };
        if rule.starts_with(b"(") && !rule.ends_with(b")") {
            let first = open.map_or(*word, |(_, first)| first);
            open = Some((rule, first));
            continue;
        }
        open = None;
        rules::apply(user, catalog, &rule).map_err(|why| {
            let rule = String::from_utf8_lossy(&rule);
            format!("Error in ACL SETUSER modifier '{rule}': {why}")
        })?;
    }
    match open {
        None => Ok(()),
        Some((_, first)) => {
            let first = String::from_utf8_lossy(first);
            Err(format!(
                "Unmatched parenthesis in acl selector starting at '{first}'."
            ))
        }
    }
}
