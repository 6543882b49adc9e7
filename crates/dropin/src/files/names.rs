//! Names of files: taken away, and given to others.

use super::{region, remove};
use crate::answer::{Done, Errno};
use crate::inside::Inside;
use crate::member::{self, Member};
use crate::table::{self, State};

/// Takes a name away. The file is there as long as somebody uses it.
pub fn unlink(name: &str) -> Done {
    let member = member::join()?;
    let _inside = Inside::enter();
    let over = member.change(|view| {
        let at = table::find(view, name).ok_or(Errno(libc::ENOENT))?;
        let mut row = table::row(view, at);
        row.state = State::Unlinked;
        table::put(view, at, &row);
        Ok((row.users & member.live(view) == 0).then_some(at))
    })?;
    over.map_or(Ok(()), |at| free(member, at))
}

/// Gives a file another name; the one that had it has none any more. `alone`: nobody may have it.
pub fn rename(from: &str, to: &str, alone: bool) -> Done {
    if to.len() > table::NAME {
        return Err(Errno(libc::ENAMETOOLONG));
    }
    let member = member::join()?;
    let _inside = Inside::enter();
    let over = member.change(|view| {
        let at = table::find(view, from).ok_or(Errno(libc::ENOENT))?;
        let other = table::find(view, to);
        if alone && other.is_some() {
            return Err(Errno(libc::EEXIST));
        }
        let mut over = None;
        if let Some(other) = other.filter(|other| *other != at) {
            let mut row = table::row(view, other);
            row.state = State::Unlinked;
            table::put(view, other, &row);
            over = (row.users & member.live(view) == 0).then_some(other);
        }
        let mut row = table::row(view, at);
        row.name = to.into();
        table::put(view, at, &row);
        Ok(over)
    })?;
    over.map_or(Ok(()), |at| free(member, at))
}

/// A file without a name and users: its memory is free, and its row.
pub(super) fn free(member: &Member, at: usize) -> Done {
    let over = member.change(|view| {
        let mut row = table::row(view, at);
        if row.state != State::Unlinked || row.users & member.live(view) != 0 {
            return Ok(None);
        }
        let over = (row.room > 0).then(|| region(member, at, &row).ok());
        row.state = State::Free;
        row.room = 0;
        table::put(view, at, &row);
        Ok(over.flatten())
    })?;
    remove(member, over);
    Ok(())
}
