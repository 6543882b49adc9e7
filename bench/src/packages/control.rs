//! Debian's control format, as far as package lists use it: stanzas of `Field: value` lines.

use std::fmt;
use std::io::{self, BufRead, Read};

/// The longest line that is read, in bytes; the longest in Debian has some tens of thousands.
pub const MAX_LINE_BYTES: usize = 1 << 20;

/// The most packages that are read from all lists together; Debian has about 65 thousand.
pub const MAX_PACKAGES: usize = 1 << 20;

/// What a package list says of a package.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Package {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// What it needs: of each group, one.
    pub needs: Vec<Vec<String>>,
    /// Virtual packages that it stands for.
    pub provides: Vec<String>,
}

/// Why a list could not be read to its end.
#[derive(Debug)]
pub enum ControlError {
    /// The source could not be read, or not be decompressed.
    Io(io::Error),
    /// A line, counted from 1, is longer than [`MAX_LINE_BYTES`].
    LongLine(usize),
    /// There are more than [`MAX_PACKAGES`].
    TooMany,
}

impl fmt::Display for ControlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ControlError::Io(error) => write!(f, "cannot be read: {error}"),
            ControlError::LongLine(line) => {
                write!(f, "line {line} is longer than {MAX_LINE_BYTES} bytes")
            }
            ControlError::TooMany => write!(f, "more than {MAX_PACKAGES} packages"),
        }
    }
}

impl std::error::Error for ControlError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ControlError::Io(error) => Some(error),
            ControlError::LongLine(_) | ControlError::TooMany => None,
        }
    }
}

impl From<io::Error> for ControlError {
    fn from(error: io::Error) -> Self {
        ControlError::Io(error)
    }
}

/// Reads all stanzas that name a package. What is not UTF-8 in them is replaced.
pub fn read(mut source: impl BufRead) -> Result<Vec<Package>, ControlError> {
    let mut packages = Vec::new();
    let mut package = Package::default();
    let mut line = Vec::new();
    for number in 1.. {
        let is_end = !read_line(&mut source, &mut line, number)?;
        let text = String::from_utf8_lossy(&line);
        let text = text.trim_end();
        if !is_end && !text.is_empty() {
            field(&mut package, text);
            continue;
        }
        let done = std::mem::take(&mut package);
        if !done.name.is_empty() {
            if packages.len() == MAX_PACKAGES {
                return Err(ControlError::TooMany);
            }
            packages.push(done);
        }
        if is_end {
            break;
        }
    }
    Ok(packages)
}

/// Reads one line, never more than the limit into memory; `false` at the end.
fn read_line(
    source: &mut impl BufRead,
    line: &mut Vec<u8>,
    number: usize,
) -> Result<bool, ControlError> {
    line.clear();
    let read = source
        .take(MAX_LINE_BYTES as u64 + 1)
        .read_until(b'\n', line)?;
    match line.len() > MAX_LINE_BYTES {
        true => Err(ControlError::LongLine(number)),
        false => Ok(read > 0),
    }
}

/// Takes over a field that matters. (Lists keep a field on one line; continuations belong to
/// descriptions and the like.)
fn field(package: &mut Package, line: &str) {
    let Some((name, value)) = line.split_once(':') else {
        return;
    };
    match name {
        "Package" => value.trim().clone_into(&mut package.name),
        "Version" => value.trim().clone_into(&mut package.version),
        "Depends" | "Pre-Depends" => package.needs.extend(relations(value)),
        "Provides" => package.provides.extend(relations(value).flatten()),
        _ => {}
    }
}

/// `a (>= 1), b:any | c` as groups of bare names.
fn relations(value: &str) -> impl Iterator<Item = Vec<String>> {
    let group = |group: &str| -> Vec<String> { group.split('|').filter_map(bare).collect() };
    value
        .split(',')
        .map(group)
        .filter(|group| !group.is_empty())
}

/// A name without version, architecture and build profile.
fn bare(relation: &str) -> Option<String> {
    let name = relation.trim_start();
    let end = name.find(|c: char| c.is_whitespace() || "(:[<".contains(c));
    let name = &name[..end.unwrap_or(name.len())];
    (!name.is_empty()).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: &str = "\
Package: app
Version: 1:2.0-1
Depends: libc6 (>= 2.36), python3:any | python2 [amd64], default-mta|mail-transport-agent
Pre-Depends: dpkg
Recommends: ignored
Description: an app
 Package: not-a-field
 .
 more

Package: mta
Provides: mail-transport-agent (= 1), smtpd
Depends:,,

Source: nameless
Depends: libc6

no colon here
Package: last";

    #[test]
    fn stanzas_become_packages() {
        let packages = read(SAMPLE.as_bytes()).unwrap();
        let names: Vec<&str> = packages.iter().map(|p| p.name.as_str()).collect();
        assert_eq!(names, ["app", "mta", "last"]);
        let app = &packages[0];
        assert_eq!(app.version, "1:2.0-1");
        let needs: Vec<String> = app.needs.iter().map(|group| group.join("|")).collect();
        let expected = [
            "libc6",
            "python3|python2",
            "default-mta|mail-transport-agent",
            "dpkg",
        ];
        assert_eq!(needs, expected);
        assert_eq!(packages[1].provides, ["mail-transport-agent", "smtpd"]);
        assert!(packages[1].needs.is_empty());
    }

    #[test]
    fn nothing_read_is_trusted() {
        let junk: &[u8] = b"\xff\xfe: \x00\n\nPackage: \xff\n";
        assert_eq!(read(junk).unwrap().len(), 1);
        let endless = io::BufReader::new(io::repeat(b'x'));
        assert!(matches!(read(endless), Err(ControlError::LongLine(1))));
        assert!(read(&b""[..]).unwrap().is_empty());
    }
}
