//! A part of Debian's graph inside the program, for machines that have no package lists.

use std::io::BufReader;

use lz4_flex::frame::FrameDecoder;

use super::control::{self, ControlError, Package};

/// Where the built-in graph is from.
pub const ORIGIN: &str = "the most needed packages of Debian 12 (bookworm), amd64, built in";

/// Stanzas of `Package` and `Depends` as in a package list, in an lz4 frame; `data/README.md` tells
/// how it was made.
const DATA: &[u8] = include_bytes!("../../data/packages.lz4");

pub(super) fn read() -> Result<Vec<Package>, ControlError> {
    control::read(BufReader::new(FrameDecoder::new(DATA)))
}
