//! A giant file is where the next protocol would be tangled with the last one.

use super::Finding;
use super::tree::Tree;

/// More lines than this fail the gate.
const MAX_LINES: usize = 800;

/// More lines than this are pointed out.
const MANY_LINES: usize = 450;

/// Characters of a line at most, strings and tables included.
const MAX_WIDTH: usize = 160;

pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.rust() {
        let lines = file.text.lines().count();
        let message =
            format!("{lines} lines, where {MAX_LINES} are the most and {MANY_LINES} are many");
        if lines > MAX_LINES {
            findings.push(Finding::error(&file.path, 0, message));
        } else if lines > MANY_LINES {
            findings.push(Finding::warning(&file.path, 0, message));
        }
        let wide = file
            .text
            .lines()
            .position(|line| line.chars().count() > MAX_WIDTH);
        if let Some(line) = wide {
            findings.push(Finding::warning(
                &file.path,
                line + 1,
                format!("more than {MAX_WIDTH} characters"),
            ));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::Severity;
    use super::*;

    #[test]
    fn long_files_are_warned_about_and_giants_refused() {
        let severity = |lines: usize| {
            let text = "x\n".repeat(lines);
            check(&Tree::of(&[("a.rs", &text)]))
                .first()
                .map(|finding| finding.severity)
        };
        assert_eq!(severity(MANY_LINES), None);
        assert_eq!(severity(MANY_LINES + 1), Some(Severity::Warning));
        assert_eq!(severity(MAX_LINES + 1), Some(Severity::Error));
    }

    #[test]
    fn documents_may_be_long() {
        let text = "x\n".repeat(MAX_LINES + 1);
        assert!(check(&Tree::of(&[("a.md", &text)])).is_empty());
    }
}
