//! The package lists on this machine.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use lz4_flex::frame::FrameDecoder;

use super::Skipped;
use super::control::{self, ControlError, MAX_PACKAGES, Package};

/// The most lists that are read; a machine has a handful.
const MAX_LISTS: usize = 256;

/// What all lists of a folder say.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub packages: Vec<Package>,
    pub used: Vec<PathBuf>,
    pub skipped: Vec<Skipped>,
}

/// Reads all lists of a folder. One that cannot be used is noted, and the others are.
pub(super) fn read_all(folder: &Path) -> Found {
    let mut found = Found::default();
    for path in candidates(folder) {
        let result = match found.used.len() < MAX_LISTS {
            true => read(&path, MAX_PACKAGES - found.packages.len()),
            false => Err(format!("more than {MAX_LISTS} lists")),
        };
        match result {
            Ok(packages) => {
                found.packages.extend(packages);
                found.used.push(path);
            }
            Err(why) => found.skipped.push(Skipped { path, why }),
        }
    }
    found
}

/// Everything in a folder that is called like a package list, compressed or not, by name.
fn candidates(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| stem(path).is_some_and(|stem| stem.ends_with("_Packages")))
        .collect();
    paths.sort();
    paths
}

/// A file's name up to what tells its compression.
fn stem(path: &Path) -> Option<&str> {
    let name = path.file_name()?.to_str()?;
    let end = name.rfind("_Packages")? + "_Packages".len();
    let rest = &name[end..];
    (rest.is_empty() || rest.starts_with('.')).then_some(&name[..end])
}

fn read(path: &Path, room: usize) -> Result<Vec<Package>, String> {
    let source = open(path)?;
    let packages = control::read(source).map_err(|error| error.to_string())?;
    match packages.len() > room {
        true => Err(ControlError::TooMany.to_string()),
        false => Ok(packages),
    }
}

fn open(path: &Path) -> Result<Box<dyn BufRead>, String> {
    let extension = path.extension().unwrap_or_default();
    let file = File::open(path).map_err(|error| error.to_string())?;
    let file = BufReader::new(file);
    match extension.to_str() {
        Some("") => Ok(Box::new(file)),
        Some("lz4") => Ok(Box::new(BufReader::new(FrameDecoder::new(file)))),
        _ => Err("compressed in a way that is not read here (plain and lz4 are)".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use lz4_flex::frame::FrameEncoder;

    use super::*;

    #[test]
    fn plain_and_lz4_lists_are_read_and_others_noted() {
        let folder = std::env::temp_dir().join(format!("rackmem-lists-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let write = |name: &str, bytes: &[u8]| fs::write(folder.join(name), bytes).unwrap();
        let mut encoder = FrameEncoder::new(Vec::new());
        encoder.write_all(b"Package: squeezed\n\n").unwrap();
        let squeezed = encoder.finish().unwrap();
        write("a_main_binary-amd64_Packages", b"Package: plain\n\n");
        write("b_main_binary-amd64_Packages.lz4", &squeezed);
        write("c_main_binary-amd64_Packages.gz", b"\x1f\x8b");
        write("d_main_binary-amd64_Packages.lz4", b"not lz4 at all");
        write(
            "e_main_binary-amd64_Packages.diff_Index.txt",
            b"Package: no\n",
        );
        write("f_InRelease", b"Package: no\n");
        let found = read_all(&folder);
        fs::remove_dir_all(&folder).unwrap();
        let names: Vec<&str> = found.packages.iter().map(|p| p.name.as_str()).collect();
        assert_eq!(names, ["plain", "squeezed"]);
        assert_eq!(found.used.len(), 2);
        let skipped: Vec<String> = found.skipped.iter().map(Skipped::to_string).collect();
        assert_eq!(skipped.len(), 3, "{skipped:?}");
        assert!(skipped[0].contains("plain and lz4"), "{skipped:?}");
        assert!(skipped[1].contains("cannot be read"), "{skipped:?}");
    }
}
