//! How a key keeps the value that clients write: the kinds of values take turns, so that histories
//! judge strings, collections and scripts alike.

use super::load::stuffed;
use rackmem_sim::history::Call;

/// Fields and elements beside the value in a collection that is made long: enough for a tree of
/// several nodes.
const FILLERS: usize = 120;

/// What a key holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    String,
    /// The value is that of one field.
    Hash,
    /// The value is the first element.
    List,
    /// The value is the member of the lowest score.
    Sorted,
}

/// Puts elements in place of a list.
const PUT: &str = "redis.call('DEL', KEYS[1]) \
     redis.call('RPUSH', KEYS[1], unpack(ARGV)) return redis.status_reply('OK')";
/// The same, and says what was first.
const SWAP: &str = "local old = redis.call('LINDEX', KEYS[1], 0) redis.call('DEL', KEYS[1]) \
     redis.call('RPUSH', KEYS[1], unpack(ARGV)) return old";
/// Sets the field of a hash and says what it was.
const SWAP_FIELD: &str = "local old = redis.call('HGET', KEYS[1], 'value') \
     redis.call('HSET', KEYS[1], 'value', unpack(ARGV)) return old";

/// Members of a sorted set in place of all that were there.
const RANK: &str = "redis.call('DEL', KEYS[1]) for i, member in ipairs(ARGV) do \
     redis.call('ZADD', KEYS[1], i, member) end return redis.status_reply('OK')";
/// Gives a sorted set another first member, and says which one was first.
const SWAP_LOWEST: &str = "local old = redis.call('ZRANGE', KEYS[1], 0, 0) redis.call('DEL', KEYS[1]) \
     for i, member in ipairs(ARGV) do redis.call('ZADD', KEYS[1], i, member) end return old[1]";

impl Shape {
    /// That of a key, by the last digit of its name.
    pub fn of(key: &str) -> Shape {
        match key.bytes().last().unwrap_or_default() % 4 {
            0 => Shape::String,
            1 => Shape::Hash,
            2 => Shape::List,
            _ => Shape::Sorted,
        }
    }

    /// The command that does an operation. `long`: the value shall not fit its key's record.
    pub fn command(self, key: &str, call: &Call, long: bool) -> Vec<String> {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        match (call, self) {
            (Call::Set { value }, Shape::String) => words(&["SET", key, &stuffed(value, long)]),
            (Call::Swap { value }, Shape::String) => words(&["GETSET", key, &stuffed(value, long)]),
            (Call::Set { value }, Shape::Hash) => {
                let mut all: Vec<String> = words(&["HSET", key, "value"]);
                all.extend(self.entries(value, long));
                all
            }
            (Call::Swap { value }, Shape::Hash) => self.script(SWAP_FIELD, key, value, long),
            (Call::Set { value }, Shape::List) => self.script(PUT, key, value, long),
            (Call::Swap { value }, Shape::List) => self.script(SWAP, key, value, long),
            (Call::Set { value }, Shape::Sorted) => self.script(RANK, key, value, long),
            (Call::Swap { value }, Shape::Sorted) => self.script(SWAP_LOWEST, key, value, long),
            (Call::Del, _) => words(&["DEL", key]),
            (_, Shape::String) => words(&["GET", key]),
            (_, Shape::Hash) => words(&["HGET", key, "value"]),
            (_, Shape::List) => words(&["LINDEX", key, "0"]),
            (_, Shape::Sorted) => words(&["ZRANGE", key, "0", "0"]),
        }
    }

    /// Whether an operation removes the key before it makes it anew.
    /// A script that fails in between, because a node is away for too long,
    /// has done the first half, as in Redis.
    pub fn removes_first(self, call: &Call) -> bool {
        let writes = matches!(call, Call::Set { .. } | Call::Swap { .. });
        writes && matches!(self, Shape::List | Shape::Sorted)
    }

    fn script(self, script: &str, key: &str, value: &str, long: bool) -> Vec<String> {
        let head = ["EVAL", script, "1", key];
        let head = head.into_iter().map(str::to_owned);
        head.chain(self.entries(value, long)).collect()
    }

    /// The value, and what stands beside it.
    fn entries(self, value: &str, long: bool) -> Vec<String> {
        let mut all = vec![stuffed(value, long)];
        let fillers = if long { FILLERS } else { 0 };
        for i in 0..fillers {
            if self == Shape::Hash {
                all.push(format!("filler:{i}"));
            }
            all.push(format!("{value} and {i}"));
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_values_take_turns() {
        let shapes: Vec<Shape> = (0..4).map(|i| Shape::of(&format!("key:{i}"))).collect();
        for shape in [Shape::String, Shape::Hash, Shape::List, Shape::Sorted] {
            assert!(shapes.contains(&shape), "{shape:?} is never played");
        }
    }

    #[test]
    fn a_long_hash_has_a_value_for_each_field() {
        let value = "1.2".to_owned();
        let words = Shape::Hash.command("k", &Call::Set { value }, true);
        assert_eq!(words.len(), 4 + 2 * FILLERS);
    }
}
