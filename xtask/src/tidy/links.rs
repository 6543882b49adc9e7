//! A document that points to a file which is not there has outlived its subject.

use std::path::Path;

use super::Finding;
use super::tree::Tree;

pub fn check(root: &Path, tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.with_ending(".md") {
        let folder = root
            .join(&file.path)
            .parent()
            .map(Path::to_path_buf)
            .unwrap_or_default();
        for (line, target) in relative_links(&file.text) {
            if !folder.join(&target).exists() {
                findings.push(Finding::error(
                    &file.path,
                    line,
                    format!("`{target}` does not exist"),
                ));
            }
        }
    }
    findings
}

/// The targets of relative links, without their fragments, and their lines. Code holds no links.
fn relative_links(text: &str) -> Vec<(usize, String)> {
    let mut links = Vec::new();
    let mut in_code = false;
    for (number, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        } else if !in_code {
            links.extend(targets(line).into_iter().map(|target| (number + 1, target)));
        }
    }
    links
}

fn targets(line: &str) -> Vec<String> {
    // Every second part between backquotes is code.
    let text: String = line.split('`').step_by(2).collect::<Vec<_>>().join("`");
    let inline = text
        .split("](")
        .skip(1)
        .filter_map(|part| part.split([')', ' ']).next());
    let reference = text
        .strip_prefix('[')
        .and_then(|rest| rest.split_once("]: "))
        .map(|(_, target)| target);
    inline.chain(reference).filter_map(relative).collect()
}

fn relative(target: &str) -> Option<String> {
    let target = target.trim().trim_start_matches('<').trim_end_matches('>');
    let path = target.split('#').next().unwrap_or_default();
    let absolute = path.contains("://") || path.starts_with("mailto:") || path.starts_with('/');
    (!path.is_empty() && !absolute).then(|| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_of_every_form_are_found() {
        let text = "[a](docs/a.md#part) and ![p](p.svg \"title\")\n[b]: ../b.md\n";
        let found: Vec<(usize, String)> = relative_links(text);
        let expected = [(1, "docs/a.md"), (1, "p.svg"), (2, "../b.md")];
        assert_eq!(
            found,
            expected.map(|(line, target)| (line, target.to_owned()))
        );
    }

    #[test]
    fn the_web_fragments_and_code_are_left_alone() {
        let text = "[w](https://example.org/x) [f](#here) [m](mailto:a@b.c) `[c](no.md)`\n```\n[d](no.md)\n```\n";
        assert!(relative_links(text).is_empty());
    }

    #[test]
    fn a_dead_link_is_an_error() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let tree = Tree::of(&[("a.md", "[here](Cargo.toml) [gone](Cargo.toast)")]);
        let findings = check(root, &tree);
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].message, "`Cargo.toast` does not exist");
    }
}
