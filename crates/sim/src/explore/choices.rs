//! What happens to a node because the explorer says so: elsewhere clocks and heat do.

use super::effects::Effects;
use super::node::ExplorerNode;
use super::witness::Witness;
use rackmem_proto::Output;
use rackmem_proto::wire::{Header, Kind, RequesterId, Seq};

/// A time at which every retransmission is due and nothing is given up.
const LATE: u64 = 1 << 50;

impl ExplorerNode {
    /// What a thread's requester sends again when it has waited long enough, each by itself:
    /// timeouts differ.
    pub fn resends(&self, at: usize) -> impl Iterator<Item = Output> + use<> {
        // Sending again changes nothing but the times of sending, so the requester stays as it is.
        let outputs = self.threads[at].client.engine.clone().handle_timeout(LATE);
        let outputs: Vec<Output> = outputs.iter().copied().collect();
        outputs.into_iter()
    }

    /// Sends one of them.
    pub fn resend(&mut self, at: usize, nth: usize, fx: &mut Effects<'_>) {
        if let Some(output) = self.resends(at).nth(nth) {
            let client = &mut self.threads[at].client;
            self.site.ask_again(client, &output);
            self.follow(None, fx);
        }
    }

    /// Its home agent is told to move a block's entry to the switch.
    pub fn want(&mut self, block: u8, fx: &mut Effects<'_>) {
        let tag = fx.layout.tag(block);
        fx.send_all(self.site.home_of(tag).want(tag));
    }

    /// Its home agent is told to take one back: what a shadow says.
    pub fn demote(&mut self, block: u8, fx: &mut Effects<'_>) {
        let (node, slot) = (self.site.id, 0);
        let shadow = RequesterId { node, slot };
        let (tag, epoch) = (fx.layout.tag(block), self.site.view.epoch);
        let header = Header::request(Kind::Demote, epoch, tag, shadow, Seq(0));
        let outputs = self.site.home_of(tag).handle(&header, 0).0;
        fx.send_all(outputs.iter().copied());
    }

    /// Tells again the nth of what is not acknowledged.
    pub fn retell(&mut self, nth: usize, fx: &mut Effects<'_>) {
        if let Some(output) = self.site.recovery.unacknowledged().get(nth) {
            fx.seen.see(Witness::ToldAgain);
            self.site
                .recover(|recovery, site| recovery.send_one(output, site));
            self.follow(None, fx);
        }
    }
}
