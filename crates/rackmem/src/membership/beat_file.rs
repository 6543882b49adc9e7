//! A heartbeat in a file that is written in place.
//!
//! To write it beside and rename it over the last one would be whole at any moment,
//! and slow at some: a file system that keeps data in order (ext4) writes a file to the disk before
//! it lets it replace another. Beside others' writing that takes seconds,
//! and a living member would be taken for dead. Nothing of a heartbeat has to be on a disk. So its
//! bytes are overwritten, which waits for no disk, and a sum tells who reads them in between that
//! they are not whole.

use super::{Beat, text};
use rackmem_proto::abd::journal::crc32c;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Result};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

/// Bytes of each, so that a short one leaves nothing of a long one: less than a page, which the
/// system copies in one go.
const LEN: usize = 512;
/// How often one that is not whole is read again, and how long its writer has in between: it may be
/// without a processor in the middle.
const ATTEMPTS: u32 = 16;
const MIDDLE: Duration = Duration::from_millis(1);

/// The text of a beat, its sum, and blanks.
pub(super) fn text_of(beat: Beat) -> String {
    let text = text::of_beat(beat);
    let sum = crc32c(0, text.as_bytes());
    format!("{:<1$}\n", format!("{text} {sum:08x}"), LEN - 1)
}

/// Overwrites the beat that is there; `false` when there is none yet.
pub(super) fn overwrite(path: &Path, text: &str) -> Result<bool> {
    match OpenOptions::new().write(true).open(path) {
        Ok(file) => file.write_all_at(text.as_bytes(), 0).map(|()| true),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// What a look finds; none where there is no file.
pub(super) fn load(path: &Path) -> Result<Option<std::result::Result<Beat, String>>> {
    let mut attempts = 1..ATTEMPTS;
    loop {
        let Some(bytes) = super::folder::read(path, text::MAX)? else {
            return Ok(None);
        };
        let beat = parse(&bytes);
        if beat.is_ok() || attempts.next().is_none() {
            return Ok(Some(beat));
        }
        std::thread::sleep(MIDDLE);
    }
}

/// A text without a sum has been renamed into place by an earlier version, so it is whole.
fn parse(bytes: &[u8]) -> std::result::Result<Beat, String> {
    let bytes = bytes.trim_ascii();
    let Some(end) = bytes.iter().rposition(|byte| *byte == b' ') else {
        return text::to_beat(bytes);
    };
    let (text, sum) = (&bytes[..end], &bytes[end + 1..]);
    if format!("{:08x}", crc32c(0, text)).as_bytes() != sum {
        return Err("it is not whole".into());
    }
    text::to_beat(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::membership::{Links, Places, Role};

    fn beat(counter: u64, unheard: Places) -> Beat {
        Beat {
            token: u64::MAX,
            incarnation: u32::MAX,
            counter,
            links: Links {
                unheard,
                starved: true,
            },
        }
    }

    #[test]
    fn each_fills_its_file_and_is_read() {
        for beat in [
            beat(1, Places::EMPTY),
            beat(u64::MAX, Role::all().collect()),
        ] {
            let text = text_of(beat);
            assert_eq!(text.len(), LEN);
            assert_eq!(parse(text.as_bytes()), Ok(beat));
            assert_eq!(parse(text::of_beat(beat).as_bytes()), Ok(beat));
        }
    }

    #[test]
    fn a_mixture_of_two_is_told() {
        let (old, new) = (
            text_of(beat(111, Places::EMPTY)),
            text_of(beat(222, Places::EMPTY)),
        );
        let differs = |at: &usize| old.as_bytes()[*at] != new.as_bytes()[*at];
        let first = (0..LEN).find(differs).unwrap();
        let last = (0..LEN).rfind(differs).unwrap();
        for at in 0..=LEN {
            let mixed = [&new.as_bytes()[..at], &old.as_bytes()[at..]].concat();
            assert_eq!(parse(&mixed).is_ok(), at <= first || at > last, "at {at}");
        }
        assert!(parse(&[0; LEN]).is_err());
        assert!(parse(&old.as_bytes()[..9]).is_err());
    }
}
