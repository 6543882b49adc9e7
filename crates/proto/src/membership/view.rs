//! What the whole rack agrees on about its members, and the steps from one agreement to the next.

use rackmem_wire::{Copyset, HomeId, MAX_NODES, NodeId};

/// Which node serves a home where each node serves its own memory and there is no other. None:
/// there is no such home.
///
/// A node asks by its view ([`View::host`]); who has no view, and knows of nodes' own memories
/// only, by this.
#[inline]
pub const fn host(home: HomeId) -> Option<NodeId> {
    if home.is_own() { Some(home.0) } else { None }
}

/// Who belongs to the rack. There is one view a version; whoever wants another proposes the next
/// version, and one of the proposals is taken.
///
/// Two numbers say how old a view is. `version` rises by one with every change.
/// `epoch` rises only with *heavy* changes, those that fence somebody: it is in every packet, and a
/// packet of another epoch is dropped.
///
/// | change | version | epoch | incarnation | live, switch | shadow |
/// |---|---|---|---|---|---|
/// | [`admit`](View::admit) a node that was never here | + 1 | | 1 | with the node | elected if there is none |
/// | [`admit`](View::admit) a node that comes back | + 1 | **+ 1** | the node's + 1 | with the node | elected if there is none |
/// | [`leave`](View::leave): a live node that has emptied its cache | + 1 | | | without the node | elected if it left |
/// | [`leave`](View::leave), when the epoch in which it had is over | + 1 | **+ 1** | | without the node | elected if it left |
/// | [`exclude`](View::exclude) a live node | + 1 | **+ 1** | | without the node | elected if it is excluded |
/// | [`admit_switch`](View::admit_switch), when there is none | + 1 | **+ 1** | the new epoch | with the switch | elected |
/// | [`exclude_switch`](View::exclude_switch) | + 1 | **+ 1** | | without the switch | none |
/// | [`exclude_all`](View::exclude_all): several of them at once | + 1 | **+ 1** | | without them | as above |
/// | [`set_shadow`](View::set_shadow) to another live node | + 1 | | | | that node |
/// | [`touch`](View::touch) | + 1 | | | | |
///
/// A step that does not apply gives `None`: the live node is admitted already,
/// the dead one excluded. The shadow is elected as the lowest live node; a shadow stays one while
/// it lives, and without a switch there is none.
///
/// A node that restarts while it is still listed is first excluded and then admitted, in two steps;
/// who misses the view between sees it by the incarnation ([`View::gone_since`]).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct View {
    /// Rises by one with every change; 0 is before the first view.
    pub version: u64,
    /// Rises by one with every heavy change.
    pub epoch: u32,
    /// The nodes that take part.
    pub live: Copyset,
    /// The nodes that took part when the epoch began: those that rebuild the directory for it.
    pub founders: Copyset,
    /// By node: how often it has been admitted, so the incarnation of a live one. 0 is never.
    pub incarnations: [u32; MAX_NODES],
    /// The incarnation of the switch, if one takes part: the epoch that it was admitted with,
    /// so no two are equal.
    pub switch: Option<u32>,
    /// The node that keeps the switch's shadow, if there is a switch and a node.
    pub shadow: Option<NodeId>,
}

impl View {
    /// The view of a rack that starts with these members, each in its first incarnation.
    pub fn first(nodes: Copyset, switch: bool) -> View {
        let mut view = View {
            version: 1,
            epoch: 1,
            live: nodes,
            founders: nodes,
            incarnations: core::array::from_fn(|node| nodes.contains(node as NodeId).into()),
            switch: switch.then_some(1),
            shadow: None,
        };
        view.elect();
        view
    }

    /// Which node serves a home: a node's own memory that node, member or not, and memory that a
    /// group keeps the [`keeper`](View::keeper). None if there is no such home, or nobody to serve
    /// it.
    pub fn host(&self, home: HomeId) -> Option<NodeId> {
        match home.group() {
            Some(_) => self.keeper(),
            None => host(home),
        }
    }

    /// The node that keeps what the rack has once and no node owns: the lowest of those that
    /// founded the epoch and live. It changes with the epoch, and when it leaves. None: the nodes
    /// that founded the epoch are gone, or none has.
    pub fn keeper(&self) -> Option<NodeId> {
        Copyset(self.founders.0 & self.live.0).iter().next()
    }

    /// The incarnation of the node that serves a home, if it is live.
    pub fn incarnation_of(&self, home: HomeId) -> Option<u32> {
        self.host(home).and_then(|node| self.incarnation(node))
    }

    /// The incarnation of a node, if it is live.
    pub fn incarnation(&self, node: NodeId) -> Option<u32> {
        self.live
            .contains(node)
            .then(|| self.incarnations[node as usize])
    }

    /// With a node that is not live, in its next incarnation. Light the first time.
    /// A node that comes back numbers its events from the beginning, which agents and the switch
    /// would take for old ones: heavy.
    #[must_use]
    pub fn admit(&self, node: NodeId) -> Option<View> {
        if node as usize >= MAX_NODES || self.live.contains(node) {
            return None;
        }
        let comes_back = self.incarnations[node as usize] > 0;
        let mut view = if comes_back {
            self.fence()?
        } else {
            self.touch()?
        };
        let incarnation = &mut view.incarnations[node as usize];
        *incarnation = incarnation.checked_add(1)?;
        view.live = view.live.with(node);
        // The first node of a rack that a switch has begun finds nothing to rebuild.
        if comes_back || view.epoch == 1 && view.founders.is_empty() {
            view.founders = view.live;
        }
        view.elect();
        Some(view)
    }

    /// Without a node that has emptied its cache and serves nobody any more. Light, if this is the
    /// epoch in which that was so, and all others had all that they needed of the node to begin it.
    /// Otherwise they may wait for its part of another one, which never comes: it goes as one that
    /// is dead. Heavy then.
    #[must_use]
    pub fn leave(&self, node: NodeId, settled: u32) -> Option<View> {
        if settled != self.epoch {
            return self.exclude(node);
        }
        if !self.live.contains(node) {
            return None;
        }
        let mut view = self.touch()?;
        view.live = view.live.without(node);
        view.elect();
        Some(view)
    }

    /// Without a node that is dead, or must be treated so. Heavy.
    #[must_use]
    pub fn exclude(&self, node: NodeId) -> Option<View> {
        // A copyset wraps numbers that are out of range.
        if !self.live.contains(node) {
            return None;
        }
        self.exclude_all(Copyset::of(node), false)
    }

    /// With a switch whose tables are empty. Heavy.
    #[must_use]
    pub fn admit_switch(&self) -> Option<View> {
        if self.switch.is_some() {
            return None;
        }
        let mut view = self.fence()?;
        view.switch = Some(view.epoch);
        view.founders = view.live;
        view.elect();
        Some(view)
    }

    /// Without the switch. Heavy.
    #[must_use]
    pub fn exclude_switch(&self) -> Option<View> {
        self.exclude_all(Copyset::EMPTY, true)
    }

    /// Without those of `nodes` that are live, and without the switch if `switch`, as one change.
    /// Heavy.
    #[must_use]
    pub fn exclude_all(&self, nodes: Copyset, switch: bool) -> Option<View> {
        let live = Copyset(self.live.0 & !nodes.0);
        let switch = self.switch.filter(|_| !switch);
        if live == self.live && switch == self.switch {
            return None;
        }
        let mut view = self.fence()?;
        (view.live, view.founders) = (live, live);
        view.switch = switch;
        view.elect();
        Some(view)
    }

    /// With the shadow on another live node. Light.
    #[must_use]
    pub fn set_shadow(&self, node: NodeId) -> Option<View> {
        if self.switch.is_none() || !self.live.contains(node) || self.shadow == Some(node) {
            return None;
        }
        let mut view = self.touch()?;
        view.shadow = Some(node);
        Some(view)
    }

    /// The same members as the next version, so that every proposal made for this one is refused.
    /// Light.
    #[must_use]
    pub fn touch(&self) -> Option<View> {
        let version = self.version.checked_add(1)?;
        Some(View { version, ..*self })
    }

    fn fence(&self) -> Option<View> {
        let epoch = self.epoch.checked_add(1)?;
        let view = self.touch()?;
        Some(View { epoch, ..view })
    }

    fn elect(&mut self) {
        let stays = self.shadow.filter(|&node| self.live.contains(node));
        let elected = stays.or_else(|| self.live.iter().next());
        self.shadow = self.switch.and(elected);
    }

    /// Whether somebody was fenced between `old` and this view, so that directories must be
    /// rebuilt.
    pub fn is_heavy_after(&self, old: &View) -> bool {
        self.epoch != old.epoch
    }

    /// The nodes of which an incarnation has ended since `old`: those that were live then or have
    /// come since, and are not live any more, or in another incarnation. Who has seen none of the
    /// views between is told of those that came and went, too.
    pub fn gone_since(&self, old: &View) -> Copyset {
        let ended = |node: NodeId| {
            let at = usize::from(node);
            let began = self.incarnations[at].saturating_sub(old.incarnations[at]);
            let there = u32::from(old.live.contains(node)) + began;
            there > u32::from(self.live.contains(node))
        };
        (0..MAX_NODES as NodeId)
            .filter(|&node| ended(node))
            .fold(Copyset::EMPTY, Copyset::with)
    }

    /// Whether steps from a first view can lead here. A view that was read from outside may
    /// contradict itself.
    pub fn is_consistent(&self) -> bool {
        let admitted = |node: NodeId| self.incarnations[node as usize] > 0;
        let mut elected = *self;
        elected.elect();
        self.version >= 1
            && self.epoch >= 1
            && u64::from(self.epoch) <= self.version
            && self.live.iter().chain(self.founders.iter()).all(admitted)
            && self
                .switch
                .is_none_or(|epoch| (1..=self.epoch).contains(&epoch))
            && elected == *self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_is_a_row_of_the_table() {
        type Step = fn(&View) -> Option<View>;
        let full = View::first(Copyset(0b111), true);
        let bare = View::first(Copyset(0b110), false);
        // name, step, from, epochs more, live, switch, shadow
        type Row = (&'static str, Step, View, u32, u32, Option<u32>, Option<u16>);
        let rows: [Row; 11] = [
            ("admit", |v| v.admit(3), full, 0, 0b1111, Some(1), Some(0)),
            ("leave", |v| v.leave(0, 1), full, 0, 0b110, Some(1), Some(1)),
            ("leave", |v| v.leave(2, 1), full, 0, 0b011, Some(1), Some(0)),
            ("late", |v| v.leave(2, 0), full, 1, 0b011, Some(1), Some(0)),
            (
                "exclude",
                |v| v.exclude(0),
                full,
                1,
                0b110,
                Some(1),
                Some(1),
            ),
            (
                "several",
                |v| v.exclude_all(Copyset(0b11), true),
                full,
                1,
                0b100,
                None,
                None,
            ),
            (
                "no switch",
                View::exclude_switch,
                full,
                1,
                0b111,
                None,
                None,
            ),
            (
                "switch",
                View::admit_switch,
                bare,
                1,
                0b110,
                Some(2),
                Some(1),
            ),
            (
                "shadow",
                |v| v.set_shadow(2),
                full,
                0,
                0b111,
                Some(1),
                Some(2),
            ),
            ("touch", View::touch, full, 0, 0b111, Some(1), Some(0)),
            ("admit", |v| v.admit(0), bare, 0, 0b111, None, None),
        ];
        for (name, step, from, epochs, live, switch, shadow) in rows {
            let to = step(&from).unwrap();
            assert_eq!(to.version, from.version + 1, "{name}");
            assert_eq!(to.epoch, from.epoch + epochs, "{name}");
            assert_eq!(
                (to.live.0, to.switch, to.shadow),
                (live, switch, shadow),
                "{name}"
            );
            assert_eq!(to.is_heavy_after(&from), epochs > 0, "{name}");
            let founders = if epochs > 0 { to.live } else { from.founders };
            assert_eq!(to.founders, founders, "{name}");
            assert!(from.is_consistent() && to.is_consistent(), "{name}");
        }
    }

    #[test]
    fn a_step_that_does_not_apply_is_none() {
        let view = View::first(Copyset(0b11), true);
        assert_eq!(view.admit(1), None);
        assert_eq!(view.admit(MAX_NODES as NodeId), None);
        assert_eq!((view.leave(2, 1), view.leave(2, 0)), (None, None));
        assert_eq!(view.exclude(2), None);
        assert_eq!(view.exclude(32 + 1), None);
        assert_eq!(view.exclude_all(Copyset(0b100), false), None);
        assert_eq!(view.admit_switch(), None);
        assert_eq!(view.set_shadow(2), None);
        assert_eq!(view.set_shadow(0), None);
        let bare = view.exclude_switch().unwrap();
        assert_eq!(bare.exclude_switch(), None);
        assert_eq!(bare.set_shadow(1), None);
    }

    #[test]
    fn incarnations_never_come_back() {
        let first = View::first(Copyset(0b11), true);
        let again = first.exclude(1).unwrap().admit(1).unwrap();
        assert_eq!(again.incarnation(1), Some(2));
        assert_eq!(again.incarnation(0), Some(1));
        assert_eq!(again.gone_since(&first), Copyset::of(1));
        assert_eq!(again.gone_since(&again), Copyset::EMPTY);
        // One that came and went between two views that somebody has seen may have held something.
        let guest = first.admit(2).unwrap();
        assert_eq!(guest.gone_since(&first), Copyset::EMPTY);
        let left = guest.exclude(2).unwrap();
        assert_eq!(left.gone_since(&first), Copyset::of(2));
        assert_eq!(left.admit(2).unwrap().gone_since(&first), Copyset::of(2));
        let switch = again.exclude_switch().unwrap().admit_switch().unwrap();
        assert_eq!(switch.switch, Some(5));
    }

    #[test]
    fn the_shadow_stays_while_it_lives() {
        let view = View::first(Copyset(0b110), true);
        assert_eq!(view.shadow, Some(1));
        let lower = view.admit(0).unwrap();
        assert_eq!(lower.shadow, Some(1));
        let none = lower.exclude_all(Copyset(u32::MAX), false).unwrap();
        assert_eq!(none.shadow, None);
        assert_eq!(none.admit(5).unwrap().shadow, Some(5));
    }

    #[test]
    fn a_view_that_no_step_leads_to_is_told() {
        let good = View::first(Copyset(0b11), true);
        let bad = [
            View { version: 0, ..good },
            View { epoch: 0, ..good },
            View { epoch: 2, ..good },
            View {
                live: Copyset(0b111),
                ..good
            },
            View {
                switch: Some(2),
                ..good
            },
            View {
                switch: None,
                ..good
            },
            View {
                shadow: None,
                ..good
            },
            View {
                shadow: Some(2),
                ..good
            },
            View {
                shadow: Some(40),
                ..good
            },
        ];
        for view in bad {
            assert!(!view.is_consistent(), "{view:?}");
        }
    }

    #[test]
    fn numbers_that_cannot_rise_end_the_steps() {
        let view = View {
            version: u64::MAX,
            epoch: u32::MAX,
            ..View::first(Copyset(1), false)
        };
        assert_eq!(view.touch(), None);
        assert_eq!(view.exclude(0), None);
        let late = View {
            version: 1 << 40,
            ..view
        };
        assert_eq!(late.exclude(0), None);
        assert!(late.leave(0, late.epoch).is_some());
    }
}
