//! What is told and counted of a node, and kept for the judge.

use super::WorldNode;
use crate::site::Before;
use crate::world::checks::Settling;
use crate::world::fabric::Fabric;
use rackmem_proto::engine::{Change, Note};
use rackmem_proto::flowcc::Rebuild;

impl WorldNode {
    pub(super) fn note(&mut self, note: Note, fabric: &mut Fabric) {
        let id = self.id;
        match note {
            Note::Asked { recalled, .. } => self.recalled += u64::from(recalled),
            Note::Stored(tag) => fabric.note(id, tag, "segment home"),
            Note::Rescuing(tag) => fabric.note(id, tag, "segment rescued"),
            Note::Dropped(tag) => fabric.note(id, tag, "dropped: its home is gone"),
            Note::CameHome(tag) => fabric.note(id, tag, "rescued"),
            Note::ToRescue(tag) if !tag.home().is_of(id) => self.rescued += 1,
            Note::Accepted(tag) => {
                fabric.note(id, tag, "loss accepted");
                self.accepted.push(tag);
            }
            _ => {}
        }
    }

    /// This home has made its entries anew.
    pub(super) fn settled(&mut self, change: Change, before: Vec<Before>, fabric: &mut Fabric) {
        let (id, gone) = (self.id, change.gone);
        let (left, switch_lost) = (gone.0, change.switch_lost);
        fabric.tell(|| {
            format!(
                "node {id} settles its entries: nodes {left:b} gone, switch lost: {switch_lost}"
            )
        });
        let rows = before.into_iter().map(|(tag, before, was_lost)| Settling {
            tag,
            before,
            was_lost,
            lost: self.home_of(tag).lost(tag),
            gone,
        });
        let rows: Vec<Settling> = rows.collect();
        self.keep_dead_locks(gone, &rows);
        self.rebuilds += 1;
        for row in rows {
            let text = if row.lost { "settled: lost" } else { "settled" };
            fabric.note(id, row.tag, text);
            self.settlings.push(row);
        }
    }

    /// Where a rebuild is, for a violation.
    pub fn describe(&self) -> String {
        let (id, version, epoch) = (self.id, self.view.version, self.view.epoch);
        let rebuild = self.recovery().rebuild().map(Rebuild::next);
        let done = self.in_service();
        format!(
            "node {id} {:?} view {version} epoch {epoch} rebuild {rebuild:?} done {done}",
            self.standing
        )
    }
}
