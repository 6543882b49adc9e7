//! What was promised of reads, and whether it holds.

use crate::driver::Complaint;
use rackmem_proto::bi::{Bound, Tick};

pub const CURRENT: &str = "what a section reads was current within the bound";
pub const REUSE: &str = "no memory is reused that a reader can reach";
pub const WHOLE: &str = "an object is whole when its pointer is seen";
pub const AT_ONCE: &str = "a lookup past the cache sees what was there";
pub const STAYS: &str = "no store is undone by another one to its line";
pub const KEPT: &str = "no memory is lost";
pub const RISES: &str = "what a domain has quiesced never falls";
pub const ENDS: &str = "BI §3.4";

/// A read that its section believes.
#[derive(Clone, Copy, Debug)]
pub struct Believed {
    /// The object that the word leads to, and the one that was found there.
    pub word: u8,
    pub object: u8,
    /// When the section began, by its domain's clock.
    pub began: Tick,
    /// It must not have read an older one.
    pub at_least: u8,
    pub domain: usize,
}

/// When, by each domain's clock, the word led elsewhere from then on; by object.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Judge {
    pub superseded: Vec<Vec<Tick>>,
}

impl Judge {
    /// The word leads to this object now.
    pub fn published(&mut self, object: u8, clocks: &[Tick]) {
        while self.superseded.len() < usize::from(object) {
            self.superseded.push(clocks.to_vec());
        }
    }

    /// The last object that memory's word has led to.
    pub fn current(&self) -> u8 {
        self.superseded.len() as u8
    }

    /// Whether a read is as promised. `bound`: of what all domains are told of.
    pub fn read(&self, read: Believed, bound: Option<Bound>) -> Result<(), Complaint> {
        let Believed { word, object, .. } = read;
        let seen = format!(
            "domain {} has read pointer {word}, object {object}",
            read.domain
        );
        if object < word {
            return Err((WHOLE, "BI §3.1, P4", seen));
        }
        if object > word {
            return Err((REUSE, "BI §3.1, P3", seen));
        }
        if word < read.at_least {
            let seen = format!("{seen}; {} was there before", read.at_least);
            return Err((AT_ONCE, "BI §3.3, §3.5", seen));
        }
        let since = self.superseded.get(usize::from(word));
        let late = since.map_or(0, |at| read.began.since(at[read.domain]));
        match bound.map(Bound::ticks) {
            Some(promised) if late > promised => {
                let seen = format!("{seen}, {late} ticks after another one; {promised} promised");
                Err((CURRENT, "BI §3.1, P2", seen))
            }
            _ => Ok(()),
        }
    }
}
