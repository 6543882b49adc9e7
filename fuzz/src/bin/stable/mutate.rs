//! New inputs from old ones.
// The mutations stand in one table and so have one type, also those that keep the length.
#![allow(clippy::ptr_arg)]

use fastrand::Rng;

/// Bytes of an input at most.
pub const MAX_INPUT: usize = 8192;

/// Values at which integers of every width turn over.
const EDGES: &[u8] = &[0x00, 0x01, 0x7f, 0x80, 0xff, b'\r', b'\n', b'0', b'9', b'-'];

type Mutation = fn(&mut Rng, &mut Vec<u8>, &[Vec<u8>]);

const MUTATIONS: &[Mutation] = &[
    flip_bit,
    set_byte,
    set_edge,
    fill_with_edge,
    remove,
    truncate,
    insert,
    double,
    splice,
    append,
];

/// An input of the corpus, mutated a few times; now and then one that is random throughout.
pub fn next(random: &mut Rng, corpus: &[Vec<u8>]) -> Vec<u8> {
    if corpus.is_empty() || random.u8(..16) == 0 {
        let length = random.usize(..512);
        return std::iter::repeat_with(|| random.u8(..))
            .take(length)
            .collect();
    }
    let mut input = corpus[random.usize(..corpus.len())].clone();
    for _ in 0..random.usize(1..6) {
        MUTATIONS[random.usize(..MUTATIONS.len())](random, &mut input, corpus);
        input.truncate(MAX_INPUT);
    }
    input
}

/// A position in `input`, if it has one.
fn at(random: &mut Rng, input: &[u8]) -> Option<usize> {
    (!input.is_empty()).then(|| random.usize(..input.len()))
}

/// A short stretch of `input`.
fn stretch(random: &mut Rng, input: &[u8]) -> std::ops::Range<usize> {
    let start = random.usize(..=input.len());
    let longest = (input.len() - start).min(64);
    start..start + random.usize(..=longest)
}

fn flip_bit(random: &mut Rng, input: &mut Vec<u8>, _: &[Vec<u8>]) {
    if let Some(at) = at(random, input) {
        input[at] ^= 1 << random.u8(..8);
    }
}

fn set_byte(random: &mut Rng, input: &mut Vec<u8>, _: &[Vec<u8>]) {
    if let Some(at) = at(random, input) {
        input[at] = random.u8(..);
    }
}

fn set_edge(random: &mut Rng, input: &mut Vec<u8>, _: &[Vec<u8>]) {
    if let Some(at) = at(random, input) {
        input[at] = EDGES[random.usize(..EDGES.len())];
    }
}

fn fill_with_edge(random: &mut Rng, input: &mut Vec<u8>, _: &[Vec<u8>]) {
    if let Some(at) = at(random, input) {
        let end = (at + [2, 4, 8][random.usize(..3)]).min(input.len());
        input[at..end].fill(EDGES[random.usize(..EDGES.len())]);
    }
}

fn remove(random: &mut Rng, input: &mut Vec<u8>, _: &[Vec<u8>]) {
    let stretch = stretch(random, input);
    input.drain(stretch);
}

fn truncate(random: &mut Rng, input: &mut Vec<u8>, _: &[Vec<u8>]) {
    input.truncate(random.usize(..=input.len()));
}

fn insert(random: &mut Rng, input: &mut Vec<u8>, _: &[Vec<u8>]) {
    let at = random.usize(..=input.len());
    input.insert(at, random.u8(..));
}

fn double(random: &mut Rng, input: &mut Vec<u8>, _: &[Vec<u8>]) {
    let copy = input[stretch(random, input)].to_vec();
    let at = random.usize(..=input.len());
    input.splice(at..at, copy);
}

/// The beginning of this one and the end of another one.
fn splice(random: &mut Rng, input: &mut Vec<u8>, corpus: &[Vec<u8>]) {
    let other = &corpus[random.usize(..corpus.len())];
    input.truncate(random.usize(..=input.len()));
    input.extend_from_slice(&other[random.usize(..=other.len())..]);
}

fn append(random: &mut Rng, input: &mut Vec<u8>, corpus: &[Vec<u8>]) {
    input.extend_from_slice(&corpus[random.usize(..corpus.len())]);
}
