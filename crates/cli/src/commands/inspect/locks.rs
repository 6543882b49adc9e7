//! Locks, as the nodes of a rack tell of them.

use rackmem::locked::{Held, LockStatus};
use rackmem_bench::table::{Align, Table};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// A lock, as the nodes that have answered tell of it.
pub type Told = Vec<(usize, LockStatus)>;

/// What the nodes have told, by the addresses of locks, and the nodes that did not answer.
pub fn by_address(answers: Vec<Option<Vec<LockStatus>>>) -> (BTreeMap<u64, Told>, Vec<usize>) {
    let (mut locks, mut silent) = (BTreeMap::<u64, Told>::new(), Vec::new());
    for (node, answer) in answers.into_iter().enumerate() {
        if answer.is_none() {
            silent.push(node);
        }
        for lock in answer.into_iter().flatten() {
            locks.entry(lock.addr).or_default().push((node, lock));
        }
    }
    (locks, silent)
}

/// One lock, for programs.
pub fn object(addr: u64, told: &Told) -> Value {
    let nodes: Vec<Value> = told
        .iter()
        .map(|(node, lock)| {
            json!({
                "node": node,
                "right": match lock.right {
                    Held::Nothing => "none",
                    Held::ToRead => "read",
                    Held::ToWrite => "write",
                },
                "readers_inside": lock.readers,
                "writer_inside": lock.writer,
                "threads_waiting": lock.waiting,
                "nodes_waiting": lock.queue.iter().collect::<Vec<_>>(),
                "token": lock.token,
            })
        })
        .collect();
    let bytes = told.first().map_or(0, |(_, lock)| lock.bytes);
    json!({"addr": format!("{addr:#x}"), "bytes": bytes, "nodes": nodes})
}

/// All of them, in a table.
pub fn table(locks: &BTreeMap<u64, Told>, all: bool) -> Table {
    let what = if all { "known" } else { "in use" };
    let columns = [
        ("lock", Align::Left),
        ("bytes", Align::Right),
        ("inside", Align::Left),
        ("right", Align::Left),
        ("waiting", Align::Left),
    ];
    let mut table = Table::new(&format!("{} locks {what}", locks.len()), &columns);
    for (addr, told) in locks {
        let list = |text: fn(usize, &LockStatus) -> Option<String>| {
            let texts: Vec<String> = told.iter().filter_map(|(n, lock)| text(*n, lock)).collect();
            if texts.is_empty() {
                "-".into()
            } else {
                texts.join(", ")
            }
        };
        let bytes = told.first().map_or(0, |(_, lock)| lock.bytes);
        table.row(&[
            &format!("{addr:#x}"),
            &bytes.to_string(),
            &list(inside),
            &list(right),
            &list(waiting),
        ]);
    }
    table
}

fn inside(node: usize, lock: &LockStatus) -> Option<String> {
    match (lock.writer, lock.readers) {
        (true, _) => Some(format!("a writer of node {node} (token {})", lock.token)),
        (false, 0) => None,
        (false, 1) => Some(format!("a reader of node {node}")),
        (false, many) => Some(format!("{many} readers of node {node}")),
    }
}

fn right(node: usize, lock: &LockStatus) -> Option<String> {
    match lock.right {
        Held::Nothing => None,
        Held::ToRead => Some(format!("node {node} reads")),
        Held::ToWrite => Some(format!("node {node} writes")),
    }
}

fn waiting(node: usize, lock: &LockStatus) -> Option<String> {
    match lock.waiting {
        0 => None,
        1 => Some(format!("a thread of node {node}")),
        many => Some(format!("{many} threads of node {node}")),
    }
}
