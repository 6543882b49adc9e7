//! The switch counts the answers of replicated memory, and chooses stamps where it may.

use crate::host::replicated::listening;
use crate::membership::Groups;
use rackmem_fabric::{Body, Net, Receiver, Whole};
use rackmem_proto::Output;
use rackmem_proto::abd::{GROUPS, config_of};
use rackmem_proto::membership::host;
use rackmem_proto::switch::{Counted, QuorumProgram};
use rackmem_proto::wire::{Header, Own};
use std::sync::{Mutex, OnceLock};

/// The program, beside those of blocks and of locks.
#[derive(Default)]
pub(crate) struct Counting {
    part: Mutex<Part>,
    /// What to do when a packet shows that a group has a newer config.
    behind: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

#[derive(Default)]
struct Part {
    program: QuorumProgram,
    /// The number of each group's config, also where it goes past the switch.
    heard: [u32; GROUPS],
}

impl Counting {
    /// This is the switch's incarnation: configs that name it let it choose stamps.
    pub fn lives(&self, incarnation: u32) {
        self.part.lock().whole().program.lives(incarnation);
    }

    /// What to do when a packet shows that a group has a newer config; the first counts.
    pub fn when_behind(&self, act: Box<dyn Fn() + Send + Sync>) {
        let _ = self.behind.set(act);
    }

    /// Counts by these groups from here on, but for those that the data plane takes. What of their
    /// packets comes here is passed on uncounted.
    pub fn hear(&self, groups: &Groups, mut taken: impl FnMut(u16, Option<Counted>) -> bool) {
        let mut part = self.part.lock().whole();
        let rows = groups.rows.iter().map(|group| &group.config);
        for (number, config) in rows.enumerate() {
            let counted = config.through_switch.then(|| Counted::new(config));
            // No other form of the program holds lines.
            let here = counted.is_some_and(|counted| counted.holds_lines());
            let elsewhere = taken(number as u16, counted.filter(|_| !here)) && !here;
            let counted = counted.filter(|_| !elsewhere);
            part.program.count(number as u16, counted);
            if let Some(heard) = part.heard.get_mut(number) {
                *heard = config.number;
            }
        }
    }

    /// A packet that is fenced by a config. Its body goes along with what is passed on.
    pub fn packet(&self, net: &dyn Net, header: &Header, body: Body<'_>, reply: &mut dyn Receiver) {
        let Body::Bytes(bytes) = body else {
            return;
        };
        let Some((own, rest)) = Own::split(bytes) else {
            return;
        };
        let mut part = self.part.lock().whole();
        let heard = part.heard.get(usize::from(header.tag.home().0));
        let behind = heard.is_some_and(|heard| *heard < config_of(&own));
        let left = part.program.handle(header, &own, rest);
        drop(part);
        if let (true, Some(act)) = (behind, self.behind.get()) {
            act();
        }
        let Some((to, header, own, carries)) = left else {
            return;
        };
        let mut bytes = own.to_bytes().to_vec();
        bytes.extend(carries.bytes(rest));
        for (to, header) in Output::new(to, header).copies(host) {
            net.send(listening(to, &header), &header, Body::Bytes(&bytes), reply);
        }
    }
}
