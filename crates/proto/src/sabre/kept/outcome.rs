//! What has come of a transaction's call: what its requester asks when a region is removed, and a
//! home that has locked something for it when its requester is dead.

use super::super::effects::{Bytes, Effects};
use super::record::{Call, who_of};
use super::{Need, Next, Regions, Step};
use crate::wire::{Dest, Flags, Header, Kind, MAX_NODES, MAX_REQUESTERS, Own, Reason, RequesterId};
use alloc::collections::BTreeMap;

impl Regions {
    /// Whether a region says that a call has taken effect that was to write the object in this
    /// place: by its record, by that object's line, or by the requester's row.
    pub(super) fn has_taken_effect(
        &mut self,
        group: u16,
        place: u32,
        call: Call,
        fx: &mut impl Effects,
    ) -> Step<bool> {
        self.carry_out(group, fx)?;
        let Some(region) = self.0.get(&group) else {
            return Ok(false);
        };
        if region.together.says(call) || region.last(group, place)? == Some(call) {
            return Ok(true);
        }
        let row = region.row(group, call.who)?;
        Ok(row.is_of(&call) && row.done)
    }

    /// A home asks what has come of a call of a requester that is dead. `said`:
    /// those of which homes were told that they have taken effect.
    pub(super) fn answer_home(
        &mut self,
        group: u16,
        said: &mut BTreeMap<RequesterId, Call>,
        (header, own): (&Header, &Own),
        fx: &mut impl Effects,
    ) -> Step<()> {
        let (tag, call) = (header.tag, who_of(own.b, own.a));
        let RequesterId { node, slot } = call.who;
        let is_one = usize::from(node) < MAX_NODES && usize::from(slot) < MAX_REQUESTERS;
        let Some(region) = self.0.get(&group).filter(|_| is_one) else {
            return Ok(());
        };
        if region.is_beyond(tag) {
            return Err(Next::Needs(Need::News, None));
        }
        let reason = match region.place(tag) {
            _ if said.get(&call.who) == Some(&call) => Reason::None,
            Ok(place) => match self.has_taken_effect(group, place, call, fx)? {
                true => Reason::None,
                false => Reason::Invalid,
            },
            Err(Reason::Gone) => Reason::Gone,
            Err(_) => Reason::Refused,
        };
        if reason == Reason::None {
            said.insert(call.who, call);
        }
        let mut ack = header.refuse(Kind::TxLockAck, header.sender, reason);
        (ack.tag, ack.offset, ack.flags) = (tag, 0, Flags(0));
        fx.send(
            Dest::Requester(header.requester),
            &ack,
            *own,
            Bytes::Nothing,
        );
        Ok(())
    }
}
