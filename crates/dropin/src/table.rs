//! The table of files, as it lies in the page of a lock of the rack: which file has which name,
//! how long it is, and which nodes use it. Nothing here knows a rack.

use rackmem::{Window, WindowMut};

/// Files that a rack has at a time.
pub const FILES: usize = 252;
/// Bytes of a name.
pub const NAME: usize = 160;
/// Bytes of the table.
pub const TABLE: usize = FIRST + FILES * ROW;

const FIRST: usize = 1024;
const ROW: usize = 256;
const NUMBERS: usize = 8;
/// A word a node: its process, and which life of it.
const NODES: usize = 64;
const NODE_COUNT: u16 = 32;

const STATE: usize = 0;
const LIFE: usize = 8;
const SIZE: usize = 16;
const ROOM: usize = 24;
const VERSION: usize = 32;
const NUMBER: usize = 40;
const MODE: usize = 48;
const USERS: usize = 56;
const MAPPERS: usize = 64;
const CHANGED: usize = 72;
const LEN: usize = 80;
const TEXT: usize = 88;

/// What a row is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum State {
    #[default]
    Free,
    Named,
    /// Its name is gone, and somebody uses it still.
    Unlinked,
}

/// A file.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Row {
    pub state: State,
    /// Which file of this row it is: it rises with each.
    pub life: u64,
    pub size: u64,
    /// Bytes of its region; 0: it has none.
    pub room: u64,
    /// Which region of the file it is: it rises with each.
    pub version: u64,
    /// As `stat` has it.
    pub number: u64,
    pub mode: u32,
    /// Nodes that have it open or mapped, as bits.
    pub users: u64,
    /// Nodes that have it mapped.
    pub mappers: u64,
    /// Nanoseconds since 1970.
    pub changed: u64,
    pub name: String,
}

fn place(row: usize) -> usize {
    FIRST + row * ROW
}

/// The row, as it is.
pub fn row(view: &Window<'_>, row: usize) -> Row {
    let at = place(row);
    let word = |field| view.u64(at + field);
    let mut name = vec![0; (word(LEN) as usize).min(NAME)];
    view.read(at + TEXT, &mut name);
    Row {
        state: match word(STATE) {
            1 => State::Named,
            2 => State::Unlinked,
            _ => State::Free,
        },
        life: word(LIFE),
        size: word(SIZE),
        room: word(ROOM),
        version: word(VERSION),
        number: word(NUMBER),
        mode: word(MODE) as u32,
        users: word(USERS),
        mappers: word(MAPPERS),
        changed: word(CHANGED),
        name: String::from_utf8(name).unwrap_or_default(),
    }
}

/// Puts a row in its place.
pub fn put(view: &mut WindowMut<'_>, row: usize, is: &Row) {
    view.grow(TABLE);
    let at = place(row);
    let state = match is.state {
        State::Free => 0,
        State::Named => 1,
        State::Unlinked => 2,
    };
    let words = [
        (STATE, state),
        (LIFE, is.life),
        (SIZE, is.size),
        (ROOM, is.room),
        (VERSION, is.version),
        (NUMBER, is.number),
        (MODE, is.mode.into()),
        (USERS, is.users),
        (MAPPERS, is.mappers),
        (CHANGED, is.changed),
        (LEN, is.name.len() as u64),
    ];
    for (field, word) in words {
        view.set_u64(at + field, word);
    }
    view.write(at + TEXT, is.name.as_bytes());
}

/// The row of a name.
pub fn find(view: &Window<'_>, name: &str) -> Option<usize> {
    (0..FILES).find(|row| {
        let at = place(*row);
        view.u64(at + STATE) == 1
            && view.u64(at + LEN) == name.len() as u64
            && view.eq(at + TEXT, name.as_bytes())
    })
}

/// A row that is nobody's: free, or of a file without a name whose users have all died.
pub fn free(view: &Window<'_>, live: u64) -> Option<usize> {
    (0..FILES).find(|at| {
        let row = row(view, *at);
        row.state == State::Free || (row.state == State::Unlinked && row.users & live == 0)
    })
}

/// A new file in this row.
pub fn make(view: &mut WindowMut<'_>, at: usize, name: &str, mode: u32) -> Row {
    view.grow(TABLE);
    let number = view.u64(NUMBERS) + 1;
    view.set_u64(NUMBERS, number);
    let before = row(view, at);
    let made = Row {
        state: State::Named,
        life: before.life + 1,
        // The region of the file before is not this one's.
        version: before.version,
        number,
        mode,
        name: name.into(),
        ..Row::default()
    };
    put(view, at, &made);
    made
}

fn node_at(node: u16) -> usize {
    NODES + usize::from(node % NODE_COUNT) * 8
}

/// The process of a node, and which life of the node it is, as it has told when it came.
fn process(view: &Window<'_>, node: u16) -> Option<(u32, u32)> {
    let word = view.u64(node_at(node));
    (word != 0).then_some(((word >> 32) as u32, word as u32))
}

/// A node has come, in a new life: what it used before it does not use.
pub fn enter(view: &mut WindowMut<'_>, node: u16, (pid, life): (u32, u32)) {
    view.grow(TABLE);
    view.set_u64(node_at(node), u64::from(pid) << 32 | u64::from(life));
    for at in 0..FILES {
        let mut is = row(view, at);
        let ours = 1 << node;
        if (is.users | is.mappers) & ours != 0 {
            is.users &= !ours;
            is.mappers &= !ours;
            put(view, at, &is);
        }
    }
}

/// The nodes that have come and have not died, as bits; `lives` says that of a node's life.
pub fn live(view: &Window<'_>, lives: impl Fn(u16, u32) -> bool) -> u64 {
    let lives = |node: &u16| process(view, *node).is_some_and(|(_, life)| lives(*node, life));
    (0..NODE_COUNT)
        .filter(lives)
        .fold(0, |bits, node| bits | 1 << node)
}

/// A live node other than this whose process has this number.
pub fn same_pid(view: &Window<'_>, (node, pid): (u16, u32), live: u64) -> Option<u16> {
    let same = |other: &u16| process(view, *other).is_some_and(|(is, _)| is == pid);
    (0..NODE_COUNT).find(|other| *other != node && live & (1 << other) != 0 && same(other))
}
