//! The program's registers by BMv2's names, and back.
//!
//! A score is one word in Rust and four registers in P4, a move one and two. Rows of requesters are numbered for the largest
//! rack there.

use rackmem_conformance::Setup;
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

fn of_ways(setup: &Setup) -> impl Iterator<Item = (Field, u8, String)> {
    let fields =
        |way| OF_A_WAY.map(|(field, name)| (field, way, format!("RackmemIngress.way{way}.{name}")));
    (0..setup.ways).flat_map(fields)
}

fn all(setup: &Setup) -> impl Iterator<Item = String> {
    of_ways(setup)
        .map(|row| row.2)
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
        if register.field.of_a_way() {
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

fn values(answer: &str) -> Result<Vec<u64>, String> {
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

fn score_at(setup: &Setup, row: usize) -> Option<usize> {
    let (requester, parity) = (row / 2, row % 2);
    let (node, slot) = (requester / MAX_REQUESTERS, requester % MAX_REQUESTERS);
    let (nodes, requesters) = (usize::from(setup.nodes), usize::from(setup.requesters));
    (node < nodes && slot < requesters).then_some((node * requesters + slot) * 2 + parity)
}
