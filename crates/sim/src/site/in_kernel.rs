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
        match (twin::concerns(header), in_kernel::concerns_read(header)) {
            (true, _) => self.provided_in_kernel(header),
            (_, true) => self.given_in_kernel(header),
            (_, false) => self.taken_in_kernel(header),
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

    fn breaks(&self, defect: Mutation) -> bool {
        self.mutation == Some(defect)
    }

    /// What the kernel sees when a packet for the cache agent comes.
    fn kernel_view(&self, header: &Header) -> KernelView {
        let entry = self.cache.copy(header.tag).map(|(status, _)| KernelEntry {
            status,
            locked: false,
        });
        KernelView {
            me: self.id,
            epoch: match self.breaks(Mutation::AnswerAnyEpoch) {
                true => Some(header.epoch),
                false => self.in_service().then_some(self.view.epoch),
            },
            incarnation: self.incarnation(header.requester.node),
            entry,
            executed: match self.breaks(Mutation::AnswerAgain) {
                true => Executed::New,
                false => self.copies.executed(header),
            },
            reaches: true,
            reaches_home: true,
        }
    }

    /// The kernel has executed a request, and the copy is this from here on.
    fn done_in_kernel(&mut self, header: &Header, status: LocalStatus) {
        if !self.breaks(Mutation::AnswerUnnoted) {
            self.copies.enter_executed(header);
        }
        if !self.breaks(Mutation::AnswerAndKeep) && self.cache.status(header.tag) != status {
            self.cache.lower(header.tag, status);
            self.deeds.push(Deed::Copy(header.tag, status, None));
        }
        self.answered = true;
    }

    /// A copy that the kernel takes away.
    fn taken_in_kernel(&mut self, header: &Header) -> bool {
        let Ok(ack) = in_kernel::answer(&self.kernel_view(header), header) else {
            return false;
        };
        self.took_written = self.cache.downgraded().any(|tag| tag == header.tag);
        self.done_in_kernel(header, LocalStatus::Invalid);
        let output = Output::new(Dest::Requester(header.requester), ack);
        self.deeds.push(Deed::Sent(output, Load::Nothing));
        true
    }

    /// A copy that the kernel gives to a reader.
    fn given_in_kernel(&mut self, header: &Header) -> bool {
        let given = in_kernel::give(&self.kernel_view(header), header);
        let block = self.cache.copy(header.tag).map(|(_, block)| block.clone());
        let (Ok(given), Some(block)) = (given, block) else {
            return false;
        };
        self.gave = true;
        self.done_in_kernel(header, LocalStatus::Shared);
        if self.breaks(Mutation::GiveUnnoted) {
            self.cache.home_has(header.tag);
        }
        let reader = (Dest::Requester(header.requester), given.reader);
        let home = given.home.map(|said| (Dest::Home(header.tag.home()), said));
        for (to, said) in [Some(reader), home].into_iter().flatten() {
            let output = Output::with(to, said, Data::Cache);
            let load = Load::Block(block.clone());
            self.deeds.push(Deed::Sent(output, load));
        }
        true
    }
}
