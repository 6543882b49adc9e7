//! What comes of a node's step: packets, stories, and what was seen.

use super::effects::Effects;
use super::layout::Layout;
use super::node::ExplorerNode;
use super::packet::whole;
use crate::site::Deed;
use rackmem_proto::wire::{Kind, Tag};

impl ExplorerNode {
    /// Carries out what its site wants done, after a packet of this kind.
    pub fn follow(&mut self, asked: Option<Kind>, layout: &Layout, fx: &mut Effects) {
        for deed in std::mem::take(&mut self.site.deeds) {
            match deed {
                Deed::Sent(output, load) => {
                    if output.header.kind == Kind::Store {
                        let at = usize::from(output.header.requester.slot);
                        whole(&output, self.next_value(at), &mut fx.sent);
                        continue;
                    }
                    let load = self.watch_sent(asked, &output, load, layout, fx);
                    fx.send(&output, &load);
                }
                Deed::Copy(tag, text) => self.tell(tag, text, layout, fx),
                Deed::Noted(note) => self.note(note, layout, fx),
                Deed::Settled(change, rows) => self.settled(&change, &rows, fx),
                Deed::Lock(..) => {}
            }
        }
    }

    pub(super) fn tell(&self, tag: Tag, text: &'static str, layout: &Layout, fx: &mut Effects) {
        let block = layout.block(tag).map(|block| (self.site.id, block, text));
        fx.notes.extend(block);
    }
}
