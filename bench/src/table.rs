//! Tables for terminals: aligned, in boxes, no wider than the window, coloured only where somebody
//! looks.

use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement};
use comfy_table::{ContentLineStyle, LineStyle, TableStyle};
use std::io::{self, IsTerminal, Write};

/// On which side of its column a cell stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// Text.
    Left,
    /// Numbers.
    Right,
}

/// A title, columns, rows and rules between them.
#[derive(Clone, Debug)]
pub struct Table {
    title: String,
    columns: Vec<(String, Align)>,
    /// A row without cells is a rule.
    rows: Vec<Vec<String>>,
}

/// How a table is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// The characters a line may have.
    pub width: usize,
    /// Whether to colour titles and heads.
    pub colour: bool,
}

/// Columns of a line where the window's width is unknown.
pub const DEFAULT_WIDTH: usize = 100;
/// The longest cell; longer ones are cut.
const MAX_CELL: usize = 1000;

const BARS: ContentLineStyle = ContentLineStyle::new('│', '│', '│');
const BOX: TableStyle = TableStyle::new()
    .top_border(LineStyle::new('╭', '─', '┬', '╮'))
    .header_lines(BARS)
    .header_separator(LineStyle::new('├', '─', '┼', '┤'))
    .content_lines(BARS)
    .bottom_border(LineStyle::new('╰', '─', '┴', '╯'));

const BOLD: &str = "\u{1b}[1m";
const DIM: &str = "\u{1b}[2m";
const PLAIN: &str = "\u{1b}[0m";

impl Look {
    /// What standard output can show. `NO_COLOR` is honoured; the width is the window's, else that
    /// of the variable `COLUMNS`, else [`DEFAULT_WIDTH`].
    pub fn of_stdout() -> Self {
        let is_terminal = io::stdout().is_terminal();
        let told = std::env::var("COLUMNS").ok();
        let told = told.and_then(|columns| columns.parse().ok());
        Look {
            width: window_width().or(told).unwrap_or(DEFAULT_WIDTH),
            colour: is_terminal && std::env::var_os("NO_COLOR").is_none(),
        }
    }
}

/// The width of the window that standard output goes to, if it goes to one.
fn window_width() -> Option<usize> {
    // SAFETY: all bytes zero is a value of this plain structure of four integers.
    let mut size: libc::winsize = unsafe { std::mem::zeroed() };
    // SAFETY: TIOCGWINSZ writes one `winsize` to the pointer, which is valid for that.
    let result = unsafe { libc::ioctl(libc::STDOUT_FILENO, libc::TIOCGWINSZ, &raw mut size) };
    (result == 0 && size.ws_col > 0).then_some(usize::from(size.ws_col))
}

impl Table {
    /// An empty table.
    pub fn new(title: &str, columns: &[(&str, Align)]) -> Self {
        let columns = columns.iter();
        Table {
            title: clean(title),
            columns: columns.map(|&(name, align)| (clean(name), align)).collect(),
            rows: Vec::new(),
        }
    }

    /// Adds a row. Missing cells are empty; cells beyond the last column are left out.
    pub fn row(&mut self, cells: &[&str]) -> &mut Self {
        let mut row: Vec<String> = cells.iter().map(|cell| clean(cell)).collect();
        row.resize(self.columns.len(), String::new());
        self.rows.push(row);
        self
    }

    /// Adds a line between the rows before and after.
    pub fn rule(&mut self) -> &mut Self {
        self.rows.push(Vec::new());
        self
    }

    /// Draws the table to standard output as it can show it.
    pub fn print(&self) -> io::Result<()> {
        let text = self.render(Look::of_stdout());
        io::stdout().lock().write_all(text.as_bytes())
    }

    /// Draws the table.
    pub fn render(&self, look: Look) -> String {
        let drawn = self.drawn(look.width).to_string();
        let lines: Vec<&str> = drawn.lines().collect();
        let head = lines.iter().position(|line| line.starts_with('├'));
        let head = head.unwrap_or(lines.len());
        let mut text = String::new();
        if !self.title.is_empty() {
            text.push_str(&painted(&self.title, BOLD, look));
            text.push('\n');
        }
        for (at, line) in lines.iter().enumerate() {
            // A row without cells is a rule, as below the head.
            let empty = line.chars().all(|letter| letter == '│' || letter == ' ');
            let line = if empty { lines[head] } else { line };
            let edge = line.starts_with(['╭', '├', '╰']);
            text.push_str(&match edge {
                true => painted(line, DIM, look),
                false => in_bars(line, if at < head { BOLD } else { "" }, look),
            });
            text.push('\n');
        }
        text
    }

    /// Columns of text give way where the window is narrow; numbers are not broken.
    fn drawn(&self, width: usize) -> comfy_table::Table {
        let mut table = comfy_table::Table::new();
        table
            .load_style(BOX)
            .set_content_arrangement(ContentArrangement::Dynamic)
            .set_width(u16::try_from(width).unwrap_or(u16::MAX))
            .set_header(self.columns.iter().map(|column| &column.0));
        for row in &self.rows {
            table.add_row(self.columns.iter().enumerate().map(|(at, _)| {
                let cell = row.get(at);
                cell.map_or("", String::as_str)
            }));
        }
        for (column, (_, align)) in table.column_iter_mut().zip(&self.columns) {
            if *align == Align::Right {
                column.set_cell_alignment(CellAlignment::Right);
                column.set_constraint(ColumnConstraint::ContentWidth);
            }
        }
        table
    }
}

/// A line whose bars are dim and whose cells have a style.
fn in_bars(line: &str, style: &str, look: Look) -> String {
    let cells: Vec<String> = line
        .split('│')
        .map(|cell| painted(cell, style, look))
        .collect();
    cells.join(&painted("│", DIM, look))
}

fn painted(text: &str, style: &str, look: Look) -> String {
    match look.colour && !style.is_empty() && !text.is_empty() {
        true => format!("{style}{text}{PLAIN}"),
        false => text.to_owned(),
    }
}

/// A cell that can do no harm to a terminal: control characters become spaces.
fn clean(text: &str) -> String {
    let visible = |letter: char| if letter.is_control() { ' ' } else { letter };
    text.chars().take(MAX_CELL).map(visible).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const WIDE: Look = Look {
        width: 80,
        colour: false,
    };

    fn sample() -> Table {
        let mut table = Table::new("hit", &[("case", Align::Left), ("ns", Align::Right)]);
        table.row(&["load", "0.4"]).rule().row(&["read hit"]);
        table
    }

    #[test]
    fn a_table_is_drawn_in_a_box() {
        let expected = "\
hit
╭──────────┬─────╮
│ case     │  ns │
├──────────┼─────┤
│ load     │ 0.4 │
├──────────┼─────┤
│ read hit │     │
╰──────────┴─────╯
";
        assert_eq!(sample().render(WIDE), expected);
    }

    #[test]
    fn text_gives_way_and_numbers_do_not() {
        let mut table = Table::new("t", &[("name", Align::Left), ("n", Align::Right)]);
        table.row(&["a rather long name of a case", "123456789"]);
        for width in [0, 20, 25, 30] {
            let text = table.render(Look { width, ..WIDE });
            assert!(text.contains("123456789"), "{text}");
            let longest = text.lines().map(|line| line.chars().count()).max();
            assert!(longest <= Some(width.max(20)), "{text}");
        }
        // Nothing of it is cut off.
        let narrow = table.render(Look { width: 25, ..WIDE });
        let words = ["a", "rather", "long", "name", "of", "case"];
        assert!(words.iter().all(|word| narrow.contains(word)), "{narrow}");
    }

    #[test]
    fn colours_do_not_move_anything() {
        let coloured = sample().render(Look {
            colour: true,
            ..WIDE
        });
        assert!(coloured.contains(BOLD));
        let plain = [BOLD, DIM, PLAIN]
            .iter()
            .fold(coloured, |text, style| text.replace(style, ""));
        assert_eq!(plain, sample().render(WIDE));
    }

    #[test]
    fn cells_cannot_command_the_terminal() {
        let mut table = Table::new("\u{1b}[2J", &[("a\nb", Align::Left)]);
        table.row(&["\r\u{7}", "too", "many"]);
        let text = table.render(WIDE);
        assert!(
            text.chars()
                .all(|letter| letter == '\n' || !letter.is_control())
        );
        assert!(!text.contains("many"));
    }
}
