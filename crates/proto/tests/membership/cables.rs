//! Cables between the places of a rack: some carry packets one way only, some none; and places
//! whose thread that answers others does not get its turn.

use rackmem_proto::membership::{Links, Places, Role, Timing};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Default)]
pub struct Cables {
    /// From where nothing comes where.
    cut: BTreeSet<(Role, Role)>,
    starved: BTreeSet<Role>,
    /// Pairs without round trips, and since when.
    silent: BTreeMap<(Role, Role), u64>,
}

impl Cables {
    /// From now on nothing that the one sends reaches the other.
    pub fn cut(&mut self, now: u64, from: Role, to: Role) {
        self.cut.insert((from, to));
        self.note(now);
    }

    /// All cables are whole, and everybody gets a turn.
    pub fn mend(&mut self, now: u64) {
        self.cut.clear();
        self.starved.clear();
        self.note(now);
    }

    /// From now on this place answers nobody, though it has not died.
    pub fn starve(&mut self, now: u64, role: Role) {
        self.starved.insert(role);
        self.note(now);
    }

    fn note(&mut self, now: u64) {
        for (a, b) in Role::all().flat_map(|a| Role::all().map(move |b| (a, b))) {
            let starved = self.starved.contains(&a) || self.starved.contains(&b);
            let cut = self.cut.contains(&(a, b)) || self.cut.contains(&(b, a));
            match starved || cut {
                true => drop(self.silent.entry((a, b)).or_insert(now)),
                false => drop(self.silent.remove(&(a, b))),
            }
        }
    }

    /// What a process knows that counts so long a silence for nothing.
    pub fn links(&self, now: u64, me: Role, waits: u64) -> Links {
        let long = |other: &Role| {
            let since = self.silent.get(&(me, *other));
            since.is_some_and(|&since| now.saturating_sub(since) >= waits)
        };
        let unheard: Places = Role::all()
            .filter(|role| *role != me)
            .filter(long)
            .collect();
        let starved = self.starved.contains(&me);
        Links { unheard, starved }
    }

    /// How long a member waits until it says that it does not hear another.
    pub fn patience(timing: Timing) -> u64 {
        timing.deaf()
    }
}
