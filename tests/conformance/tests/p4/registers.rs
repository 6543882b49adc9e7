//! The program's registers by BMv2's names, and back.
//!
//! A score is one word in Rust and four registers in P4, a move one and two. Rows of requesters are
//! numbered for the largest rack there.

use rackmem_conformance::Setup;
use rackmem_conformance::generate::control::OF_A_LOCK_WAY;
use rackmem_proto::flowcc::migration::MAX_MOVES;
use rackmem_proto::switch::{Field, Register};
use rackmem_proto::wire::{MAX_NODES, MAX_REQUESTERS};

/// The registers of a row, with their places in Rust's word: shift and mask.
const OF_A_ROW: [(&str, u32, u64); 4] = [
    ("RackmemIngress.row_seq.seq", 32, 0xffff_ffff),
    ("RackmemIngress.row_route.provider", 8, 0xff),
    ("RackmemIngress.row_route.status", 1, 0x3),
    ("RackmemIngress.row_score.score", 0, 0xf9),
];
/// The flags of a move fill more bits than those of a score, and it has no route.
const OF_A_MOVE: [(&str, u32, u64); 2] =
    [(OF_A_ROW[0].0, 32, 0xffff_ffff), (OF_A_ROW[3].0, 0, 0xff)];
/// Rows of scores; those of moves come after them.
const SCORES: usize = MAX_NODES * MAX_REQUESTERS * 2;

const OF_A_WAY: [(Field, &str); 4] = [
    (Field::Tag, "tag"),
    (Field::Lock, "lock"),
    (Field::Status, "status"),
    (Field::Copyset, "copyset"),
];

/// `who` of a lock: one of these, and the holder's number below it.
const HOLDS: u64 = 0x20;
const SHARES: u64 = 0x40;

fn of_lock_ways(setup: &Setup) -> impl Iterator<Item = String> {
    let names = |way| OF_A_LOCK_WAY.map(|of| format!("RackmemIngress.lock_way{way}.{of}"));
    (0..setup.lock_ways).flat_map(names)
}

/// LOCK-WHO as `who`, `kept` and `why`.
fn parts(word: u64) -> [u64; 3] {
    let [reason, shared, keeper, holder] = (word as u32).to_be_bytes().map(u64::from);
    let mode = if shared == 0 { HOLDS } else { SHARES };
    [mode | holder, keeper, reason]
}

/// The same the other way.
fn word([who, kept, why]: [u64; 3]) -> u64 {
    let shared = u64::from(who & SHARES != 0);
    why << 24 | shared << 16 | kept << 8 | who & 0x1f
}

fn write_lock(register: &Register) -> Vec<String> {
    let Register {
        field,
        way,
        at,
        value,
    } = *register;
    let put = |name: &str, value: u64| {
        format!("register_write RackmemIngress.lock_way{way}.{name} {at} {value}")
    };
    let (high, low) = (value >> 32, value & 0xffff_ffff);
    let [who, kept, why] = parts(value);
    match field {
        // A lock that is here has a mode, even if nothing else of LOCK-WHO is other than zero.
        Field::LockTag => vec![put("tag", value), put("who", HOLDS)],
        Field::LockVersion => vec![put("version_high", high), put("version_low", low)],
        Field::LockSince => vec![put("since_high", high), put("since_low", low)],
        Field::LockWho => vec![put("who", who), put("kept", kept), put("why", why)],
        _ => vec![put("sharers", value)],
    }
}

fn of_ways(setup: &Setup) -> impl Iterator<Item = (Field, u8, String)> {
    let fields =
        |way| OF_A_WAY.map(|(field, name)| (field, way, format!("RackmemIngress.way{way}.{name}")));
    (0..setup.ways).flat_map(fields)
}

fn all(setup: &Setup) -> impl Iterator<Item = String> {
    of_ways(setup)
        .map(|row| row.2)
        .chain(of_lock_ways(setup))
        .chain(OF_A_ROW.map(|row| row.0.into()))
}

/// Commands that read them.
pub fn read(setup: &Setup) -> Vec<String> {
    all(setup)
        .map(|name| format!("register_read {name}"))
        .collect()
}

/// The row in P4's two arrays.
fn row(setup: &Setup, register: &Register) -> usize {
    let at = register.at as usize;
    if register.field == Field::Move {
        return SCORES + at;
    }
    let (requester, parity) = (at / 2, at % 2);
    let requesters = usize::from(setup.requesters);
    ((requester / requesters) * MAX_REQUESTERS + requester % requesters) * 2 + parity
}

/// Commands that write some.
pub fn write(setup: &Setup, registers: &[Register]) -> Result<Vec<String>, String> {
    let mut commands = Vec::new();
    for register in registers {
        let (at, value) = (register.at, register.value);
        if register.field.of_locks() {
            commands.extend(write_lock(register));
        } else if register.field.of_a_way() {
            let same = |row: &(Field, u8, String)| (row.0, row.1) == (register.field, register.way);
            let (_, _, name) = of_ways(setup).find(same).ok_or("there is no such way")?;
            commands.push(format!("register_write {name} {at} {value}"));
        } else {
            let row = row(setup, register);
            let parts: &[_] = if register.field == Field::Move {
                &OF_A_MOVE
            } else {
                &OF_A_ROW
            };
            for (name, shift, mask) in parts {
                let part = value >> shift & mask;
                commands.push(format!("register_write {name} {row} {part}"));
            }
        }
    }
    Ok(commands)
}

pub fn values(answer: &str) -> Result<Vec<u64>, String> {
    let list = answer
        .split_once('=')
        .ok_or_else(|| format!("no registers in `{answer}`"))?
        .1;
    let value = |word: &str| {
        word.trim()
            .parse()
            .map_err(|_| format!("`{word}` is no register"))
    };
    list.split(',').map(value).collect()
}

/// All that are not zero, from the answers to [`read`].
pub fn found(setup: &Setup, answers: &[String]) -> Result<Vec<Register>, String> {
    let mut registers = Vec::new();
    for ((field, way, _), answer) in of_ways(setup).zip(answers) {
        let items = (0..).zip(values(answer)?).filter(|item| item.1 != 0);
        registers.extend(items.map(|(at, value)| Register {
            field,
            way,
            at,
            value,
        }));
    }
    registers.extend(found_locks(setup, answers)?);
    let of_rows = answers
        .len()
        .checked_sub(OF_A_ROW.len())
        .ok_or("too few answers")?;
    let mut words = Vec::new();
    for (answer, (_, shift, _)) in answers[of_rows..].iter().zip(OF_A_ROW) {
        let part = values(answer)?;
        words.resize(part.len(), 0);
        for (word, part) in words.iter_mut().zip(part) {
            *word |= part << shift;
        }
    }
    for (row, value) in words.into_iter().enumerate() {
        if value == 0 {
            continue;
        }
        let (field, at) = match row.checked_sub(SCORES) {
            Some(at) => (Field::Move, Some(at)),
            None => (Field::Score, score_at(setup, row)),
        };
        let most = usize::from(setup.nodes) * MAX_MOVES;
        let at = at.filter(|&at| field == Field::Score || at < most);
        let at = at.ok_or_else(|| format!("row {row} belongs to nobody and is {value:x}"))? as u32;
        registers.push(Register {
            field,
            way: 0,
            at,
            value,
        });
    }
    Ok(registers)
}

fn found_locks(setup: &Setup, answers: &[String]) -> Result<Vec<Register>, String> {
    let answers = &answers[of_ways(setup).count()..];
    let mut registers = Vec::new();
    for (way, answers) in (0..setup.lock_ways).zip(answers.chunks(OF_A_LOCK_WAY.len())) {
        let arrays: Vec<Vec<u64>> = answers
            .iter()
            .map(|answer| values(answer))
            .collect::<Result<_, _>>()?;
        let [
            tags,
            version,
            low_version,
            since,
            low_since,
            who,
            kept,
            why,
            sharers,
        ] = &arrays[..]
        else {
            return Err("too few answers".into());
        };
        for at in 0..tags.len() {
            let of_entry = [
                (Field::LockTag, tags[at]),
                (Field::LockVersion, version[at] << 32 | low_version[at]),
                (Field::LockSince, since[at] << 32 | low_since[at]),
                (Field::LockWho, word([who[at], kept[at], why[at]])),
                (Field::LockSharers, sharers[at]),
            ];
            let taken = of_entry.into_iter().filter(|&(_, value)| value != 0);
            registers.extend(taken.map(|(field, value)| Register {
                field,
                way,
                at: at as u32,
                value,
            }));
        }
    }
    Ok(registers)
}

fn score_at(setup: &Setup, row: usize) -> Option<usize> {
    let (requester, parity) = (row / 2, row % 2);
    let (node, slot) = (requester / MAX_REQUESTERS, requester % MAX_REQUESTERS);
    let (nodes, requesters) = (usize::from(setup.nodes), usize::from(setup.requesters));
    (node < nodes && slot < requesters).then_some((node * requesters + slot) * 2 + parity)
}
