//! Replicated memory at a node beside blocks and locks: a site that speaks all three protocols.

use super::host::{Deed, Fx, Part};
use crate::site::{Site, Speaks};
use rackmem_proto::abd::Abd;
use rackmem_proto::engine::{FlowCc, Gcp, Host, Replicated, ReplicatedHost};
use rackmem_proto::wire::Own;

/// What a site has of it, and what came of its sections.
#[derive(Clone)]
pub struct Beside {
    /// Its part.
    pub part: Part,
    /// What it wants done.
    pub deeds: Vec<Deed>,
}

impl Speaks<()> for Beside {
    type Protocols = (FlowCc, Gcp, Replicated);
}

impl ReplicatedHost for Site<(), Beside> {
    type Fx<'f> = Fx<'f>;

    fn replicated<R>(&mut self, section: impl FnOnce(&mut Abd, &mut Fx<'_>) -> R) -> R {
        let mut result = None;
        let act = |abd: &mut Abd, fx: &mut Fx<'_>| result = Some(section(abd, fx));
        let deeds = self.part.part.section((1, None), None, act);
        self.part.deeds.extend(deeds);
        result.expect("the section has run")
    }

    fn own(&self) -> Own {
        let first = self.records().first().copied().unwrap_or_default();
        Own {
            a: first.tag.0,
            b: first.word,
        }
    }
}
