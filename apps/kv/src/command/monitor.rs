//! MONITOR: every command that the node runs, as it runs.

use std::fmt::Write as _;
use std::time::{SystemTime, UNIX_EPOCH};

use super::{Call, Outcome};
use crate::acl::category;
use crate::memory::Memory;
use crate::resp::args::Args;
use crate::server::monitors::Watching;
use crate::server::session::Session;
use crate::server::shared::Shared;
use crate::server::slowlog::secret_from;

/// Bytes of a line, about: words that come then are left out.
const MAX_LINE: usize = 1 << 20;

pub(super) fn monitor<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    if call.session.monitor.is_none() {
        let watching = Watching::new(&call.shared.hub, &call.session.client);
        call.session.monitor = Some(Box::new(watching));
    }
    call.reply.ok();
    Ok(())
}

/// Shows a client's command, or a script's, to those who watch, unless it is about the server
/// itself. Commands that run others are shown before these.
pub(super) fn show<M: Memory>(
    shared: &Shared<M>,
    session: &Session,
    position: usize,
    args: Args<'_>,
    by_script: bool,
) {
    let catalog = shared.control.users.catalog();
    let unit = &catalog.units[catalog.unit(position, args)];
    if unit.categories & category(b"admin").unwrap_or(0) != 0 {
        return;
    }
    let from = match by_script {
        true => "lua".to_owned(),
        false => session.client.peer.to_string(),
    };
    shared
        .hub
        .monitors
        .show(&shared.hub, line(session.db, &from, args));
}

/// Whether a command is shown before it runs, since it is what runs others.
pub(super) fn is_script(name: &str) -> bool {
    name.starts_with("eval") || name.starts_with("fcall")
}

fn line(db: u8, from: &str, args: Args<'_>) -> String {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let (seconds, micros) = (now.as_secs(), now.subsec_micros());
    let mut line = format!("{seconds}.{micros:06} [{db} {from}]");
    let secret = secret_from(args);
    for (i, word) in args.from(0).enumerate() {
        if line.len() > MAX_LINE {
            line.push_str(" ...");
            break;
        }
        line.push_str(" \"");
        match i >= secret {
            true => line.push_str("(redacted)"),
            false => quote(&word[..word.len().min(MAX_LINE)], &mut line),
        }
        line.push('"');
    }
    line
}

/// A word as it may stand between quotes.
fn quote(word: &[u8], line: &mut String) {
    for byte in word {
        match byte {
            b'\\' => line.push_str("\\\\"),
            b'"' => line.push_str("\\\""),
            b'\n' => line.push_str("\\n"),
            b'\r' => line.push_str("\\r"),
            b'\t' => line.push_str("\\t"),
            0x07 => line.push_str("\\a"),
            0x08 => line.push_str("\\b"),
            b' '..=b'~' => line.push(char::from(*byte)),
            // Writing to a string cannot fail.
            _ => _ = write!(line, "\\x{byte:02x}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_shown_so_that_they_can_be_told_apart() {
        let mut line = String::new();
        quote(b"a\"b\\\n\t\x07\x08\r \x92\x00~", &mut line);
        assert_eq!(line, r#"a\"b\\\n\t\a\b\r \x92\x00~"#);
    }
}
