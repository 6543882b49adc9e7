//! Words that must not be in the repository: unfinished work, and what is true on one machine only.

use super::Finding;
use super::rust_code::has_word;
use super::tree::Tree;

/// This file has to name the words.
const EXEMPT: &[&str] = &["xtask/src/tidy/words.rs"];

/// Marks of unfinished work, as whole words: finish it, or describe it where users read.
const UNFINISHED: &[&str] = &["TODO", "FIXME", "XXX", "HACK"];

/// Starts of paths that exist on one machine.
const MACHINE_PATHS: &[&str] = &["/root/", "/home/", "/Users/", "/work/", "/mnt/"];

/// Settings that tie a build to one network's copy of a package registry.
const MIRRORS: &[&str] = &["index-url", "replace-with", "GOPROXY"];

/// Marks that git leaves in a file whose merge was not finished.
const MERGE_MARKS: &[&str] = &["<<<<<<< ", ">>>>>>> "];

pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree
        .files
        .iter()
        .filter(|file| !EXEMPT.contains(&file.path.as_str()))
    {
        for (number, line) in file.text.lines().enumerate() {
            findings.extend(
                object(line).map(|message| Finding::error(&file.path, number + 1, message)),
            );
        }
    }
    findings
}

fn object(line: &str) -> Option<String> {
    if let Some(word) = UNFINISHED.iter().find(|word| has_word(line, word)) {
        return Some(format!(
            "`{word}`: finish it, or say in the documents what is missing"
        ));
    }
    if let Some(path) = MACHINE_PATHS.iter().find(|path| has_path(line, path)) {
        return Some(format!("`{path}` is a path of one machine"));
    }
    if let Some(setting) = MIRRORS.iter().find(|setting| line.contains(**setting)) {
        return Some(format!(
            "`{setting}` belongs in a user's own settings, not in the repository"
        ));
    }
    let mark = MERGE_MARKS.iter().find(|mark| line.starts_with(**mark))?;
    Some(format!("`{}` is left from a merge", mark.trim_end()))
}

/// Whether an absolute path starts with `path`; `docs/home/` and addresses of the web hold none.
fn has_path(line: &str, path: &str) -> bool {
    line.match_indices(path).any(|(start, _)| {
        let before = line[..start].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || "_-./}".contains(c))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unfinished_work_is_found() {
        assert!(object("// TODO: the rest").is_some());
        assert!(object("let mastodon = XXXL;").is_none());
    }

    #[test]
    fn paths_of_a_machine_are_found() {
        assert!(object("open(\"/home/anna/data\")").is_some());
        assert!(object("see docs/home/index.md and example.org/home/").is_none());
        assert!(object("/usr/share/doc").is_none());
    }

    #[test]
    fn settings_of_mirrors_are_found() {
        assert!(object("pip install --extra-index-url somewhere").is_some());
        assert!(object("replace-with = \"mirror\"").is_some());
        assert!(object("replace it with another index").is_none());
    }

    #[test]
    fn merge_marks_are_found() {
        assert!(object("<<<<<<< HEAD").is_some());
        assert!(object("a <<<<<<< b").is_none());
    }
}
