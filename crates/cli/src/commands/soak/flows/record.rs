//! What clients put into streams and queues and took out of them, and when. Times are on the
//! recorder's clock, in nanoseconds.

use super::super::client::Answer;

/// The id of an entry of a stream: when it was added in milliseconds, and a number.
pub type Id = (u64, u64);

/// From the question to the answer; without one it may still happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    pub begun: u64,
    pub ended: Option<u64>,
}

impl Span {
    /// Whether this was over before the other one began.
    pub fn is_before(&self, other: &Span) -> bool {
        self.ended.is_some_and(|ended| ended < other.begun)
    }
}

/// Something was put into a stream or queue.
#[derive(Clone, Debug)]
pub struct Put {
    pub place: String,
    pub value: String,
    pub span: Span,
    /// Of a stream's entry, if it was answered.
    pub id: Option<Id>,
}

/// It came out.
#[derive(Clone, Debug)]
pub struct Taken {
    pub place: String,
    pub value: String,
    pub span: Span,
    /// Of a stream's entry.
    pub id: Option<Id>,
    /// Who has it now.
    pub by: String,
}

/// A consumer has said that it is done with an entry.
#[derive(Clone, Debug)]
pub struct Ack {
    pub place: String,
    pub value: String,
    /// How many entries that was, if it was answered.
    pub count: Option<i64>,
}

/// Of one client, or of all.
#[derive(Default)]
pub struct Record {
    pub puts: Vec<Put>,
    pub taken: Vec<Taken>,
    pub acks: Vec<Ack>,
    /// Places from which something may have been taken: there was no answer.
    pub asked: Vec<(String, usize)>,
}

impl Record {
    pub fn extend(&mut self, other: Record) {
        self.puts.extend(other.puts);
        self.taken.extend(other.taken);
        self.acks.extend(other.acks);
        self.asked.extend(other.asked);
    }

    /// How many values of a place were perhaps taken without an answer, at most.
    pub fn perhaps_taken(&self, place: &str) -> usize {
        let of = self.asked.iter().filter(|(of, _)| of == place);
        of.map(|(_, most)| most).sum()
    }
}

/// The id in an answer.
pub fn id(text: &str) -> Option<Id> {
    let (ms, number) = text.split_once('-')?;
    Some((ms.parse().ok()?, number.parse().ok()?))
}

/// Entries of a stream: ids, and what was put in.
pub fn entries(answer: &Answer) -> Vec<(Id, String)> {
    let entry = |item: &Answer| {
        let [name, fields] = item.items() else {
            return None;
        };
        let value = fields.items().get(1)?.text()?;
        Some((id(name.text()?)?, value.to_owned()))
    };
    answer.items().iter().filter_map(entry).collect()
}
