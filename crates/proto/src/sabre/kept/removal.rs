//! Regions that are removed, and those that have their numbers next.
//!
//! A region is removed by one step of the rack's groups, and each node hears of it by itself. Then
//! its home has other addresses for good: those of a removed region are no other object's, so a
//! handle that is left finds nothing, however old it is, and no generation has to go on.
//!
//! | a packet | here |
//! |---|---|
//! | about an address of a removed region | is told that it is gone |
//! | about an address behind all regions that this node has heard of | waits until it has heard of the region ([`Need::News`]) |
//! | by which who has removed a region asks whether its keeper knows | waits until it does |
//!
//! **When a removal is over, nobody is answered by the region.** It has one keeper, which has said
//! that it knows; and the next one gets no line of a group whose members have left it.

use super::{KeptObjects, Need, RECORD, Region, bytes_without_rows};
use crate::abd::Layout;
use crate::sabre::HEADER;
use crate::sabre::calls::Answer;
use crate::sabre::effects::Effects;
use crate::sabre::layout::{SLAB, class_bytes, class_of};
use crate::sabre::operation::REGION;
use crate::wire::{Contract, Flags, Header, Kind, Own, Reason, Tag};

/// What the home that a group keeps has of objects.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Laid {
    /// The config of the group with which it began.
    pub first: u32,
    /// Where its objects' addresses begin: those below were of removed regions.
    pub base: u64,
    /// Its lines; none where no region of objects has the number.
    pub layout: Option<Layout>,
}

/// Bytes of addresses that a region of objects takes whose group has so many bytes in lines.
pub const fn span_of(bytes: u64, line: u32) -> u64 {
    bytes_without_rows(bytes, line).next_multiple_of(SLAB)
}

impl KeptObjects {
    /// The home that this group keeps is this from here on. What was under way of another one that
    /// had the number ends: whoever asks for it is told that it is gone.
    /// Whether it was another one.
    pub fn lay_out(&mut self, group: u16, laid: Laid) -> bool {
        let same = |region: &Region| region.laid == laid;
        if self.regions.0.get(&group).is_some_and(same) {
            return false;
        }
        let (mut line, mut places, mut class) = (0, 0, 0);
        if let Some(layout) = laid.layout {
            line = layout.line.max(RECORD);
            class = class_of(line.saturating_sub(HEADER)).unwrap_or(0);
            let all = bytes_without_rows(layout.bytes, line) / u64::from(line);
            let (Ok(all), true) = (u32::try_from(all), class_bytes(class) == Some(line)) else {
                return false;
            };
            places = all;
        }
        let region = Region {
            laid,
            line,
            places,
            class,
            ..Region::default()
        };
        self.regions.0.insert(group, region);
        self.pending.take_if(|pending| pending.group() == group);
        let of_it = |line: Tag| line.home().0 == group;
        self.need.take_if(|need| need.line().is_some_and(of_it));
        self.asked.take_if(|line| of_it(*line));
        true
    }

    /// The config with which the region began that a line is of.
    pub fn first_of(&self, line: Tag) -> Option<u32> {
        Some(self.regions.0.get(&line.home().0)?.laid.first)
    }

    /// Whether an address is of a region of objects that is removed, or of one that this node has
    /// not heard of. None: of neither.
    pub fn is_removed(&self, object: Tag) -> Option<bool> {
        let group = object.home().group()?;
        match self.regions.0.get(&group) {
            None => Some(false),
            Some(region) if region.is_gone(object) => Some(true),
            Some(region) => region.is_beyond(object).then_some(false),
        }
    }
}

impl Need {
    /// The line that it is about.
    pub fn line(&self) -> Option<Tag> {
        match self {
            Need::Line(line) | Need::Store(line, _) => Some(*line),
            Need::News => None,
        }
    }
}

impl Region {
    /// As it is when an epoch begins.
    pub(super) fn anew(&self) -> Self {
        Region {
            laid: self.laid,
            line: self.line,
            places: self.places,
            class: self.class,
            ..Region::default()
        }
    }

    /// Whether an address was of a region that is removed.
    pub(super) fn is_gone(&self, tag: Tag) -> bool {
        tag.is_under(Contract::Object) && tag.offset() < self.laid.base
    }

    /// Whether an address is behind all that this node has heard of.
    pub(super) fn is_beyond(&self, tag: Tag) -> bool {
        let span = self.laid.layout.map_or(0, |it| span_of(it.bytes, it.line));
        tag.is_under(Contract::Object) && tag.offset() >= self.laid.base.saturating_add(span)
    }

    /// Whether a packet is about what this node has yet to hear of.
    pub(super) fn is_unheard(&self, header: &Header, own: &Own) -> bool {
        let tag = header.tag;
        self.is_beyond(tag) || asks_whether_removed(header, own) && !self.is_gone(tag)
    }

    /// A packet is about a region that is removed.
    pub(super) fn answer_gone(&self, header: &Header, own: &Own, fx: &mut impl Effects) {
        let reason = match asks_whether_removed(header, own) {
            true => Reason::None,
            false => Reason::Gone,
        };
        Answer::refused(header.tag, reason).tell(header, Flags(0), fx);
    }
}

/// Whether who has removed a region asks whether its keeper knows.
fn asks_whether_removed(header: &Header, own: &Own) -> bool {
    header.kind == Kind::ObjFree && own.a == REGION && header.tag.is_under(Contract::Object)
}
