//! What threads that enter a lock must find: data, news of deaths, fencing tokens.
//! The worlds' judge of locks as well.

use rackmem_proto::gcp::{Access, Entered};
use rackmem_proto::wire::{NodeId, Reason};

/// A broken promise: its name, and what was seen.
pub type Found = (&'static str, String);

/// What is known of a lock that its rack does not know. Every writer adds one to the data.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Judge {
    /// What the data is: critical sections of writers that have ended and are not lost.
    pub committed: u64,
    /// The node that had the lock to write last, and what the data was when it got it.
    pub tenure: (NodeId, u64),
    /// A node that had the lock to write last has died, and nobody has entered since:
    /// what the data was when it got it.
    pub doubt: Option<u64>,
    /// A thread was told this, and no writer has left since.
    pub spoilt: Option<Reason>,
    /// An epoch has begun since a thread entered.
    pub news: bool,
    /// The highest token of each node so far.
    tokens: Vec<u64>,
    /// The highest token of a writer.
    written: u64,
}

impl Judge {
    /// Of a lock that nobody has entered, whose first version is `first`.
    pub fn new(nodes: usize, home: NodeId, first: u64) -> Self {
        Judge {
            committed: 0,
            tenure: (home, 0),
            doubt: None,
            spoilt: None,
            news: false,
            tokens: vec![0; nodes],
            written: first << 1,
        }
    }

    /// A thread is inside, and finds what the first and the last word of the data say. `Ok`:
    /// whether it was told of a death that another one had been told of before this epoch.
    pub fn entered(&mut self, me: NodeId, entered: Entered, seen: [u64; 2]) -> Result<bool, Found> {
        self.data(me, entered.reason, seen)?;
        let again = self.told(me, entered.reason)?;
        let here = usize::from(me);
        let others = self.tokens.iter().enumerate();
        let others = others.filter(|(node, _)| *node != here);
        let highest = others.map(|(_, token)| *token).max().unwrap_or(0);
        let rises = match entered.access {
            Access::Write => entered.token > highest,
            Access::Read => entered.token >= self.written,
        };
        if !rises || entered.token < self.tokens[here] {
            let detail = format!("node {me} has {:#x} after {highest:#x}", entered.token);
            return Err(("tokens rise", detail));
        }
        self.tokens[here] = entered.token;
        if entered.access == Access::Write {
            self.written = entered.token;
        }
        Ok(again)
    }

    /// Data seen is the data of the last release, or the one who enters is told what it is.
    fn data(&mut self, me: NodeId, reason: Reason, seen: [u64; 2]) -> Result<(), Found> {
        let [first, last] = seen;
        let right = match reason {
            Reason::None => first == self.committed,
            Reason::OwnerDied => first == self.committed || Some(first) == self.doubt,
            _ => first <= self.committed,
        };
        if first != last || !right {
            let committed = self.committed;
            let detail = format!(
                "node {me} sees {seen:?}, told {reason:?}; the last release left {committed}"
            );
            return Err(("data of the last release", detail));
        }
        (self.committed, self.doubt) = (first, None);
        Ok(())
    }

    /// What one thread is told of a death, all are told until a writer has left:
    /// through further deaths as well.
    fn told(&mut self, me: NodeId, reason: Reason) -> Result<bool, Found> {
        if let (Some(before), Reason::None) = (self.spoilt, reason) {
            let detail = format!("node {me} is not told, another was told {before:?}");
            return Err(("a death is told until a writer has left", detail));
        }
        let again = self.news && self.spoilt.is_some();
        if reason != Reason::None {
            self.spoilt = Some(reason);
        }
        self.news = false;
        Ok(again)
    }

    /// A writer leaves, and has left the data as this.
    pub fn left(&mut self, data: u64) {
        (self.committed, self.spoilt) = (data, None);
    }

    /// A node may write, and this is the last word of its data.
    pub fn gained(&mut self, node: NodeId, data: u64) {
        self.tenure = (node, data);
    }

    /// The lock's entry has been made anew. `dead`: the node that had it to write last is not there
    /// any more.
    pub fn settled(&mut self, dead: bool) {
        // Who has got the lock since another death, and has let nobody in,
        // has what was in doubt then.
        self.doubt = dead.then_some(self.tenure.1).or(self.doubt);
        self.news = true;
    }
}
