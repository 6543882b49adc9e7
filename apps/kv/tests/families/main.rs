//! Conversations about values that consist of many: what is said, and what must come back, word for
//! word as from Redis.

#[path = "../support/mod.rs"]
mod support;

mod bitmaps;
mod geo;
mod hashes;
mod hyperloglogs;
mod lists;
mod sets;
mod sort;
mod sorted_sets;
mod sorted_sets_model;
mod streams;

use support::Client;
use support::talk::{converse, server};

fn check(script: &str) {
    let server = server(|_| {});
    converse(&mut Client::new(server.local_addr()), script);
    server.shutdown();
}

/// The elements of an array of strings, sorted.
fn sorted(reply: &str) -> Vec<String> {
    let inner = reply.trim_start_matches('[').trim_end_matches(']');
    let mut elements: Vec<String> = inner.split_whitespace().map(str::to_owned).collect();
    elements.sort();
    elements
}
