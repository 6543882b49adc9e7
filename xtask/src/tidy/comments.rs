//! Comments end at column 100. `cargo xtask wrap` wraps those that do not.

use super::Finding;
use super::rust_code::line_comments;
use super::tree::Tree;

/// Columns of a line with a comment in it, at most.
const WIDTH: usize = 100;

/// A remainder shorter than this on a line of its own is avoided where a clause ends before it.
const ORPHAN: usize = 24;

/// A line that is broken at the end of a clause keeps at least this much.
const CLAUSE: usize = 60;

pub fn check(tree: &Tree) -> Vec<Finding> {
    tree.rust()
        .flat_map(|file| {
            too_wide(&file.text).map(|line| {
                let message = format!("a comment beyond column {WIDTH}: `cargo xtask wrap`");
                Finding::error(&file.path, line, message)
            })
        })
        .collect()
}

/// Numbers of the lines whose comment is too wide. Rows of a Markdown table cannot be wrapped, nor
/// can a single word.
fn too_wide(source: &str) -> impl Iterator<Item = usize> {
    let lines: Vec<&str> = source.lines().collect();
    let comments = line_comments(source);
    comments
        .into_iter()
        .filter(move |&(line, column)| {
            let body = lines[line][column..].trim_start_matches(['/', '!']).trim();
            width(lines[line]) > WIDTH && !body.starts_with('|') && body.contains(' ')
        })
        .map(|(line, _)| line + 1)
}

fn width(line: &str) -> usize {
    line.chars().count()
}

/// A line that is a comment and nothing else.
#[derive(Clone)]
struct Comment {
    /// What stands before the text: spaces and `//`, `///` or `//!`.
    mark: String,
    /// Spaces between the mark and the text.
    lead: usize,
    text: String,
    /// Inside a fence, or one of its ends.
    fenced: bool,
}

impl Comment {
    fn width(&self) -> usize {
        width(&self.mark) + self.lead + width(&self.text)
    }

    /// Columns before the text of the lines that continue this one.
    fn hanging(&self) -> usize {
        self.lead + list_mark(&self.text)
    }

    /// Whether words may be taken from its end.
    fn gives(&self) -> bool {
        !self.fenced && !self.text.starts_with('|')
    }

    /// Whether it goes on with the paragraph of `before`, so that words may be put before its own.
    fn continues(&self, before: &Comment) -> bool {
        self.gives()
            && self.mark == before.mark
            && self.lead == before.hanging()
            && !self.text.is_empty()
            && list_mark(&self.text) == 0
            && !self.text.starts_with(['#', '[', '<'])
            && !self.text.starts_with("SAFETY:")
    }

    fn line(&self) -> String {
        format!("{}{}{}", self.mark, " ".repeat(self.lead), self.text)
    }
}

/// The length of the mark of an item of a list that a text begins with, and of the space behind it.
fn list_mark(text: &str) -> usize {
    if text.starts_with("- ") || text.starts_with("* ") {
        return 2;
    }
    let digits = text.chars().take_while(char::is_ascii_digit).count();
    match digits {
        1..=2 if text[digits..].starts_with(". ") => digits + 2,
        _ => 0,
    }
}

/// The source with its comments wrapped; words move to the next line of the same paragraph.
pub fn wrapped(source: &str) -> String {
    let mut output = String::with_capacity(source.len());
    let mut lines = parsed(source).into_iter().peekable();
    while let Some((line, comment)) = lines.next() {
        let Some(mut comment) = comment else {
            output.push_str(&line);
            output.push('\n');
            continue;
        };
        while comment.width() > WIDTH && comment.gives() {
            let Some(rest) = comment.take_overflow() else {
                break;
            };
            output.push_str(&comment.line());
            output.push('\n');
            let next = lines
                .next_if(|(_, next)| next.as_ref().is_some_and(|next| next.continues(&comment)));
            let after = next.and_then(|(_, next)| next);
            comment = Comment {
                lead: comment.hanging(),
                text: match after {
                    Some(next) => format!("{rest} {}", next.text),
                    None => rest,
                },
                ..comment
            };
        }
        output.push_str(&comment.line());
        output.push('\n');
    }
    if !source.ends_with('\n') {
        output.pop();
    }
    output
}

impl Comment {
    /// Takes the words that do not fit; nothing where no word can be moved.
    fn take_overflow(&mut self) -> Option<String> {
        let room = WIDTH.saturating_sub(width(&self.mark) + self.lead);
        let breaks = breaks(&self.text);
        let fits = |at: &&usize| width(&self.text[..**at]) <= room;
        let mut at = *breaks.iter().rev().find(fits)?;
        if width(self.text[at..].trim()) < ORPHAN {
            let clause = breaks.iter().rev().find(|&&at| {
                let kept = &self.text[..at];
                kept.ends_with([',', ';', ':', '.']) && (CLAUSE..=room).contains(&width(kept))
            });
            at = clause.copied().unwrap_or(at);
        }
        let rest = self.text[at..].trim_start().to_owned();
        self.text.truncate(at);
        Some(rest)
    }
}

/// Where a text may be broken: at spaces, but for those in code and those before a word that would
/// begin a list, a heading or a table.
fn breaks(text: &str) -> Vec<usize> {
    let mut in_code = false;
    let mut found = Vec::new();
    for (at, letter) in text.char_indices() {
        match letter {
            '`' => in_code = !in_code,
            ' ' if !in_code && at > list_mark(text) => {
                let next = text[at..].trim_start();
                let means_more = next.starts_with(['-', '+', '*', '#', '>', '|', '=', '[', '<'])
                    && !next.starts_with("[`");
                if !means_more && list_mark(&format!("{next} ")) == 0 {
                    found.push(at);
                }
            }
            _ => {}
        }
    }
    found
}

/// Lines, and what comment each is.
fn parsed(source: &str) -> Vec<(String, Option<Comment>)> {
    let comments = line_comments(source);
    let mut comments = comments.into_iter().peekable();
    let mut fenced = false;
    let lines = source.lines().enumerate().map(|(number, line)| {
        let begins = comments.next_if(|&(at, _)| at == number);
        let whole = begins.filter(|&(_, column)| line[..column].trim().is_empty());
        let Some((_, column)) = whole else {
            fenced = false;
            return (line.to_owned(), None);
        };
        let after = &line[column..];
        let marks = ["///", "//!", "//"];
        let mark = marks.into_iter().find(|mark| after.starts_with(mark));
        let (mark, body) = line.split_at(column + mark.map_or(2, str::len));
        let text = body.trim_start();
        let is_fence = text.starts_with("```");
        let inside = fenced || is_fence;
        fenced ^= is_fence;
        let comment = Comment {
            mark: mark.to_owned(),
            lead: body.len() - text.len(),
            text: text.to_owned(),
            fenced: inside,
        };
        (line.to_owned(), Some(comment))
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(count: usize) -> String {
        vec!["words"; count].join(" ")
    }

    #[test]
    fn a_wide_comment_is_an_error_with_its_line() {
        let text = format!(
            "let a = 1;\n    /// {}\nfn f() {{}} // {}\n",
            words(17),
            words(17)
        );
        let found = check(&Tree::of(&[("a.rs", &text)]));
        let lines: Vec<usize> = found.iter().map(|finding| finding.line).collect();
        assert_eq!(lines, [2, 3]);
        let text = format!("// {}\n", words(16));
        assert!(check(&Tree::of(&[("a.rs", &text)])).is_empty());
    }

    #[test]
    fn tables_single_words_and_strings_are_left_alone() {
        let (row, long) = (format!("//! | {} |", words(20)), "x".repeat(120));
        let text = format!("{row}\n// {long}\nlet s = \"\n// {}\n\";\n", words(20));
        assert!(check(&Tree::of(&[("a.rs", &text)])).is_empty());
        assert_eq!(wrapped(&text), text);
    }

    #[test]
    fn words_move_on_through_the_paragraph() {
        let text = format!(
            "/// {}\n/// end of it\n///\n/// other\nfn f() {{}}\n",
            words(18)
        );
        let expected = format!(
            "/// {}\n/// words words end of it\n///\n/// other\nfn f() {{}}\n",
            words(16)
        );
        assert_eq!(wrapped(&text), expected);
        assert_eq!(wrapped(&expected), expected);
    }

    #[test]
    fn items_of_a_list_hang_and_are_not_joined() {
        let text = format!("    // - {}\n    // - next\n", words(17));
        let expected = format!(
            "    // - {}\n    //   words words\n    // - next\n",
            words(15)
        );
        assert_eq!(wrapped(&text), expected);
    }

    #[test]
    fn code_is_not_broken() {
        let code = format!("`{}`", words(3));
        let text = format!("// {} {code}\n", words(15));
        assert_eq!(wrapped(&text), format!("// {}\n// {code}\n", words(15)));
        let fence = format!("/// ```\n/// {}\n/// ```\n", words(20));
        assert_eq!(wrapped(&fence), fence);
    }

    #[test]
    fn a_short_rest_takes_its_clause_along() {
        let clause = format!("{},", words(12));
        let text = format!("// {clause} {} tail\n", words(4));
        let expected = format!("// {clause}\n// {} tail\n", words(4));
        assert_eq!(wrapped(&text), expected);
    }

    #[test]
    fn no_line_begins_with_what_would_mean_more() {
        let text = format!("/// {} - tail of this and more to come here\n", words(16));
        let wrapped = wrapped(&text);
        assert!(
            wrapped.lines().all(|line| !line.starts_with("/// -")),
            "{wrapped}"
        );
    }
}
