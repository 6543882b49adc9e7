//! Tables for terminals: aligned, in boxes, no wider than the window, coloured only where somebody
//! looks.

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

/// What a line has where nobody says how wide the window is.
pub const DEFAULT_WIDTH: usize = 100;
/// Columns of text are not made narrower than this, however narrow the window.
const MIN_COLUMN: usize = 4;
/// The longest cell; longer ones are cut.
const MAX_CELL: usize = 1000;

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
        let widths = self.widths(look.width);
        let mut text = String::new();
        if !self.title.is_empty() {
            let title = cut(&self.title, look.width);
            text.push_str(&painted(&title, BOLD, look));
            text.push('\n');
        }
        let head: Vec<String> = self.columns.iter().map(|column| column.0.clone()).collect();
        text.push_str(&edge(&widths, ['╭', '┬', '╮'], look));
        text.push_str(&self.line(&head, &widths, look, BOLD));
        text.push_str(&edge(&widths, ['├', '┼', '┤'], look));
        for row in &self.rows {
            text.push_str(&match row.is_empty() {
                true => edge(&widths, ['├', '┼', '┤'], look),
                false => self.line(row, &widths, look, ""),
            });
        }
        text.push_str(&edge(&widths, ['╰', '┴', '╯'], look));
        text
    }

    /// The widths of columns: what they need, taken from the widest of text while it is too much.
    fn widths(&self, width: usize) -> Vec<usize> {
        let needed = |(place, column): (usize, &(String, Align))| {
            let cells = self.rows.iter().filter_map(|row| row.get(place));
            let cells = cells.map(|cell| cell.chars().count());
            cells.max().unwrap_or(0).max(column.0.chars().count())
        };
        let mut widths: Vec<usize> = self.columns.iter().enumerate().map(needed).collect();
        let frame = 3 * widths.len() + 1;
        while widths.iter().sum::<usize>() + frame > width {
            let widest = (0..widths.len())
                .filter(|&place| self.columns[place].1 == Align::Left)
                .filter(|&place| widths[place] > MIN_COLUMN)
                .max_by_key(|&place| widths[place]);
            match widest {
                Some(place) => widths[place] -= 1,
                // Numbers are not cut: better a line too long than a wrong number.
                None => break,
            }
        }
        widths
    }

    fn line(&self, cells: &[String], widths: &[usize], look: Look, style: &str) -> String {
        let bar = painted("│", DIM, look);
        let mut text = bar.clone();
        for ((cell, &width), column) in cells.iter().zip(widths).zip(&self.columns) {
            let cell = cut(cell, width);
            let space = " ".repeat(width - cell.chars().count());
            let cell = painted(&cell, style, look);
            let (left, right) = match column.1 {
                Align::Left => ("", space.as_str()),
                Align::Right => (space.as_str(), ""),
            };
            text.push_str(&format!(" {left}{cell}{right} {bar}"));
        }
        text.push('\n');
        text
    }
}

fn edge(widths: &[usize], [left, middle, right]: [char; 3], look: Look) -> String {
    let parts: Vec<String> = widths.iter().map(|width| "─".repeat(width + 2)).collect();
    let line = format!("{left}{}{right}", parts.join(&middle.to_string()));
    painted(&line, DIM, look) + "\n"
}

fn painted(text: &str, style: &str, look: Look) -> String {
    match look.colour && !style.is_empty() && !text.is_empty() {
        true => format!("{style}{text}{PLAIN}"),
        false => text.to_owned(),
    }
}

/// A text of at most so many characters, with a mark where it is cut.
fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let kept = text.chars().take(width.saturating_sub(1));
    kept.chain((width > 0).then_some('…')).collect()
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
            assert_eq!(longest, Some(width.max(20)), "{text}");
        }
        assert!(
            table
                .render(Look { width: 25, ..WIDE })
                .contains("a rather…")
        );
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
