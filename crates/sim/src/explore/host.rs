//! What comes of a node's step: packets, stories, and what was seen.

use super::effects::{Effects, Observation};
use super::layout::Layout;
use super::node::ExplorerNode;
use super::packet::{Body, Value, WORDS, telling};
use super::witness::Witness;
use crate::site::{Deed, Form, Load};
use rackmem_proto::wire::{Kind, Record, Tag};

impl Form for Value {
    type Body = Body;

    fn zeroes() -> Self {
        [0; WORDS]
    }

    fn put(&mut self, offset: u32, body: &Body) {
        body.put(offset, self);
    }

    fn len(body: &Body) -> u32 {
        body.bytes()
    }

    fn records(body: &Body) -> Vec<Record> {
        body.records().to_vec()
    }
}

impl ExplorerNode {
    /// Carries out what its site wants done, after a packet of this kind.
    pub fn follow(&mut self, asked: Option<Kind>, layout: &Layout, fx: &mut Effects) {
        for deed in std::mem::take(&mut self.site.deeds) {
            match deed {
                Deed::Sent(output, Load::Records(records)) => {
                    fx.sent.push(telling(&output, &records));
                }
                Deed::Sent(output, load) => {
                    let back = output.header.kind == Kind::WriteBack;
                    let under_read = back && asked == Some(Kind::ReadMiss);
                    fx.seen.see_if(under_read, Witness::WrittenBackUnderRead);
                    if let (Kind::FetchAck, Load::Block(words)) = (output.header.kind, &load) {
                        self.fetched(output.header.tag, *words, layout, fx);
                        fx.send(&output, None);
                        continue;
                    }
                    let words = match &load {
                        Load::Block(words) => Some(words),
                        _ => None,
                    };
                    fx.send(&output, words);
                }
                Deed::Copy(tag, text) => self.tell(tag, text, layout, fx),
                Deed::Noted(note) => self.note(note, layout, fx),
                Deed::Settled(change, rows) => self.settled(&change, &rows, fx),
                Deed::Lock(..) => {}
            }
        }
    }

    /// A home answers who keeps no copy. The reader's moment is this one,
    /// whenever the answer comes.
    fn fetched(&self, tag: Tag, words: Value, layout: &Layout, fx: &mut Effects) {
        fx.seen.see(Witness::Fetched);
        let block = layout.block(tag);
        let read = block.map(|block| Observation::Read(block, words));
        fx.observed.extend(read);
    }

    pub(super) fn tell(&self, tag: Tag, text: &'static str, layout: &Layout, fx: &mut Effects) {
        let block = layout.block(tag);
        fx.notes
            .extend(block.map(|block| (self.site.id, block, text)));
    }
}
