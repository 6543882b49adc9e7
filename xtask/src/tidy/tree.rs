//! The text files of the source tree.

use std::path::Path;

/// Folders that hold no sources: what is built, what git keeps, what the fuzzer writes.
const SKIPPED_FOLDERS: &[&str] = &[
    ".git",
    "target",
    "corpus",
    "artifacts",
    "__pycache__",
    "node_modules",
];

/// Endings of files, or whole names, that people write by hand.
const TEXT: &[&str] = &[
    ".rs", ".md", ".toml", ".py", ".sh", ".c", ".h", ".p4", ".yml", ".yaml", "Makefile", "run",
    ".txt",
];

/// Larger files are data.
const MAX_TEXT: u64 = 1024 * 1024;

/// A file and its text.
pub struct SourceFile {
    /// Relative to the root, with `/` between its parts.
    pub path: String,
    /// All of it.
    pub text: String,
}

/// Every source file, in the order of their paths.
pub struct Tree {
    /// The files.
    pub files: Vec<SourceFile>,
}

impl Tree {
    /// Reads the files below `root`.
    pub fn read(root: &Path) -> Result<Tree, String> {
        let mut files = Vec::new();
        let mut folders = vec![root.to_path_buf()];
        while let Some(folder) = folders.pop() {
            let failed = |error| format!("{}: {error}", folder.display());
            for entry in std::fs::read_dir(&folder).map_err(failed)? {
                let entry = entry.map_err(failed)?;
                let name = entry.file_name().to_string_lossy().into_owned();
                let kind = entry.file_type().map_err(failed)?;
                if kind.is_dir() && !SKIPPED_FOLDERS.contains(&name.as_str()) {
                    folders.push(entry.path());
                } else if kind.is_file() && TEXT.iter().any(|ending| name.ends_with(ending)) {
                    files.extend(read_file(root, &entry.path()));
                }
            }
        }
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(Tree { files })
    }

    /// The Rust files.
    pub fn rust(&self) -> impl Iterator<Item = &SourceFile> {
        self.with_ending(".rs")
    }

    /// The files whose path ends in `ending`.
    pub fn with_ending<'a>(&'a self, ending: &'a str) -> impl Iterator<Item = &'a SourceFile> {
        self.files
            .iter()
            .filter(move |file| file.path.ends_with(ending))
    }
}

/// A file that cannot be read, is no text or is large is not a source file.
fn read_file(root: &Path, path: &Path) -> Option<SourceFile> {
    if path.metadata().ok()?.len() > MAX_TEXT {
        return None;
    }
    let text = std::fs::read_to_string(path).ok()?;
    let path = path.strip_prefix(root).ok()?.display().to_string();
    Some(SourceFile { path, text })
}

#[cfg(test)]
impl Tree {
    /// A tree for tests of rules.
    pub fn of(files: &[(&str, &str)]) -> Tree {
        let file = |&(path, text): &(&str, &str)| SourceFile {
            path: path.into(),
            text: text.into(),
        };
        Tree {
            files: files.iter().map(file).collect(),
        }
    }
}
