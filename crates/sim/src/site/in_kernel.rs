//! The kernel of a node's host, which meets packets before the node does
//! ([`rackmem_proto::flowcc::in_kernel`], [`rackmem_proto::flowcc::twin`]).
//!
//! No entry is locked between two steps of a site, so that is never why a packet passes here; the
//! orders of steps within an entry's lock are gone through elsewhere (`races`).

use super::{Deed, Form, Load, Site, Speaks};
use crate::world::Mutation;
use rackmem_proto::call::Executed;
use rackmem_proto::engine::Host;
use rackmem_proto::flowcc::LocalStatus;
use rackmem_proto::flowcc::in_kernel::{self, KernelEntry, KernelView};
use rackmem_proto::flowcc::twin::{self, TwinView};
use rackmem_proto::wire::Header;
use rackmem_proto::{Data, Dest, Output};

impl<B: Form, X: Speaks<B>> Site<B, X> {
    /// Answers a packet as the kernel does, if it can: then the node never sees it.
    pub(super) fn answered_in_kernel(&mut self, header: &Header) -> bool {
        match twin::concerns(header) {
            true => self.provided_in_kernel(header),
            false => self.taken_in_kernel(header),
        }
    }

    /// What the kernel has of a home's block, for whom the switch has granted it.
    fn provided_in_kernel(&mut self, header: &Header) -> bool {
        let epoch = match self.mutation == Some(Mutation::AnswerAnyEpoch) {
            true => Some(header.epoch),
            false => self.in_service().then_some(self.view.epoch),
        };
        let view = TwinView {
            me: self.id,
            epoch,
            incarnation: self.incarnation(header.requester.node),
            reaches: true,
        };
        let block = self.memory.twins.blocks.get(&header.tag).cloned();
        let (Some(block), Ok(ack)) = (block, twin::acknowledge(&view, header)) else {
            return false;
        };
        let output = Output::with(Dest::Requester(header.requester), ack, Data::Home);
        self.deeds.push(Deed::Sent(output, Load::Block(block)));
        self.answered = true;
        true
    }

    /// A copy that the kernel takes away.
    fn taken_in_kernel(&mut self, header: &Header) -> bool {
        let broken = |defect| self.mutation == Some(defect);
        let entry = self.cache.copy(header.tag).map(|(status, _)| KernelEntry {
            status,
            locked: false,
        });
        let epoch = match broken(Mutation::AnswerAnyEpoch) {
            true => Some(header.epoch),
            false => self.in_service().then_some(self.view.epoch),
        };
        let executed = match broken(Mutation::AnswerAgain) {
            true => Executed::New,
            false => self.copies.executed(header),
        };
        let view = KernelView {
            me: self.id,
            epoch,
            incarnation: self.incarnation(header.requester.node),
            entry,
            executed,
            reaches: true,
        };
        let Ok(ack) = in_kernel::answer(&view, header) else {
            return false;
        };
        if !broken(Mutation::AnswerUnnoted) {
            self.copies.enter_executed(header);
        }
        self.took_written = self.cache.downgraded().any(|tag| tag == header.tag);
        if !broken(Mutation::AnswerAndKeep) {
            self.cache.lower(header.tag, LocalStatus::Invalid);
            let gone = Deed::Copy(header.tag, LocalStatus::Invalid, None);
            self.deeds.push(gone);
        }
        let output = Output::new(Dest::Requester(header.requester), ack);
        self.deeds.push(Deed::Sent(output, Load::Nothing));
        self.answered = true;
        true
    }
}
