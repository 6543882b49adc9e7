//! What programs print, line by line.

use crate::out;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read};
use std::thread::JoinHandle;

/// Bytes of a line; a longer one comes in parts.
const LINE: u64 = 64 << 10;

/// How what programs print is shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Look {
    /// As it is.
    Plain,
    /// With the node in front of each line.
    Labelled,
    /// As JSON.
    Json,
}

/// Tells something of a node as JSON.
pub fn tell(node: usize, what: &str, value: Value) {
    out::line(json!({"node": node, what: value}));
}

/// Copies lines until nobody writes any more.
pub fn copy(
    from: impl Read + Send + 'static,
    look: Look,
    node: usize,
    what: &'static str,
) -> JoinHandle<()> {
    std::thread::spawn(move || {
        let mut from = BufReader::new(from);
        let mut line = Vec::new();
        while matches!(
            from.by_ref().take(LINE).read_until(b'\n', &mut line),
            Ok(1..)
        ) {
            let text = String::from_utf8_lossy(&line);
            let text = text.strip_suffix('\n').unwrap_or(&text);
            match (look, what) {
                (Look::Json, _) => tell(node, what, text.into()),
                (_, "err") => eprintln!("{node}: {text}"),
                _ => out::line(format_args!("{node}: {text}")),
            }
            line.clear();
        }
    })
}
