//! What is told and counted of a node, and kept for the judge.

use super::WorldNode;
use crate::site::Before;
use crate::world::checks::Settling;
use crate::world::fabric::Fabric;
use rackmem_proto::engine::{Change, Note};
use rackmem_proto::flowcc::Rebuild;
use rackmem_proto::wire::Tag;

/// What is counted of a node, and what is to be judged of it.
#[derive(Default)]
pub struct Seen {
    /// Times its entries were made anew.
    pub rebuilds: u64,
    /// Blocks sent home because home might not have them.
    pub rescued: u64,
    /// How often retained data was what answered.
    pub recalled: u64,
    /// Blocks whose loss was accepted, with what home has.
    pub accepted: Vec<Tag>,
    /// A block that the packet at hand has put in place here, for a requester that keeps no copy.
    pub stored: Option<Tag>,
    /// Operations that were refused, since their region is removed, and those on blocks of such a
    /// region, by threads that have not heard.
    pub refused: u64,
    /// See there.
    pub unheard: u64,
    /// A block of a removed region that has been put in place at home.
    pub came_nowhere: Option<Tag>,
    /// What has become of entries.
    pub settlings: Vec<Settling>,
}

impl WorldNode {
    pub(super) fn note(&mut self, note: Note, fabric: &mut Fabric) {
        let id = self.id;
        match note {
            Note::Asked { recalled, .. } => self.seen.recalled += u64::from(recalled),
            Note::Stored(tag) => {
                fabric.note(id, tag, "segment home");
                if self.is_gone(tag) {
                    self.seen.came_nowhere = Some(tag);
                }
            }
            Note::StoredInPlace(tag) => {
                fabric.note(id, tag, "stored at home");
                self.seen.stored = Some(tag);
            }
            Note::Rescuing(tag) => fabric.note(id, tag, "segment rescued"),
            Note::Dropped(tag) => fabric.note(id, tag, "dropped: its home is gone"),
            Note::CameHome(tag) => fabric.note(id, tag, "rescued"),
            Note::ToRescue(tag) if !tag.home().is_of(id) => self.seen.rescued += 1,
            Note::Accepted(tag) => {
                fabric.note(id, tag, "loss accepted");
                self.seen.accepted.push(tag);
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
        self.seen.rebuilds += 1;
        for row in rows {
            let text = if row.lost { "settled: lost" } else { "settled" };
            fabric.note(id, row.tag, text);
            self.seen.settlings.push(row);
        }
    }

    /// Where a rebuild is, for a violation.
    pub fn describe(&self) -> String {
        let (id, version, epoch) = (self.id, self.view.version, self.view.epoch);
        let rebuild = self.recovery.rebuild().map(Rebuild::next);
        let done = self.in_service();
        format!(
            "node {id} {:?} view {version} epoch {epoch} rebuild {rebuild:?} done {done}",
            self.standing
        )
    }
}
