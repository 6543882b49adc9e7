//! Standard output. That nobody reads on (`rackmem doctor | head`) is no reason to fail or to stop
//! serving.

use rackmem_bench::table::{Look, Table};
use std::fmt::Display;
use std::io::{IsTerminal, Write};

/// The width of what is no window: as wide as any table wants to be.
const UNBOUNDED: usize = 1000;

/// Prints a line.
pub fn line(text: impl Display) {
    let _ = writeln!(std::io::stdout().lock(), "{text}");
}

/// Prints a table, as wide and as colourful as the window bears.
pub fn table(table: &Table) {
    if std::io::stdout().is_terminal() {
        draw(table, Look::of_stdout());
    } else {
        whole_table(table);
    }
}

/// Prints a table whose texts must not be cut, such as the names of a bench's cases,
/// however narrow the window.
pub fn whole_table(table: &Table) {
    let width = UNBOUNDED;
    draw(
        table,
        Look {
            width,
            ..Look::of_stdout()
        },
    );
}

fn draw(table: &Table, look: Look) {
    let _ = std::io::stdout()
        .lock()
        .write_all(table.render(look).as_bytes());
}
