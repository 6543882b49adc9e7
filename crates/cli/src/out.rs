//! Standard output. That nobody reads on (`rackmem doctor | head`) is no reason to fail or to stop serving.

use rackmem_bench::table::{Look, Table};
use std::fmt::Display;
use std::io::Write;

/// Prints a line.
pub fn line(text: impl Display) {
    let _ = writeln!(std::io::stdout().lock(), "{text}");
}

/// Prints a table, as wide and as colourful as the window bears.
pub fn table(table: &Table) {
    let text = table.render(Look::of_stdout());
    let _ = std::io::stdout().lock().write_all(text.as_bytes());
}
