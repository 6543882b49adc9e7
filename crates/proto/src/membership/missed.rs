//! A member that leaves may take a majority of the copies along, where another one fills only now.

use super::groups::is_there;
use super::{Groups, View};
use crate::abd::Member;
use crate::wire::NodeId;

impl Groups {
    /// Whether this node had better not go just now: a group that it has copies of is left without
    /// a majority, and is not soon. Another member fills; or, where `replaces` says that
    /// nobody has to order it, its node is back and will. Where the others have gone too, waiting
    /// helps nobody.
    pub fn misses(&self, node: NodeId, view: &View, replaces: bool) -> bool {
        self.rows.iter().any(|group| {
            let config = &group.config;
            if config.is_removed() || config.place(node).is_none() {
                return false;
            }
            // By place: those that are left, with what they have or without.
            let bits = |is_it: &dyn Fn(&Member) -> bool| {
                let others = config.members.iter().enumerate();
                let found = others.filter(|(_, m)| m.is_some_and(|m| m.node != node && is_it(&m)));
                found.fold(0u8, |bits, (place, _)| bits | 1 << place)
            };
            let there = bits(&|m| is_there(group, m, view));
            let back = bits(&|m| replaces && view.live.contains(m.node)) & !there;
            let fill = there & !config.counting;
            !config.is_quorum(there) && back | fill != 0
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abd::Layout;
    use crate::membership::Asked;
    use crate::wire::Copyset;

    #[test]
    fn who_would_take_the_majority_along_waits_for_who_fills_and_for_nobody_else() {
        let first = View::first(Copyset(0b11111), false);
        let asked = Asked::new(Layout::new(64, 640).unwrap(), 3);
        let groups = Groups::default().create(("ledger", 7), asked, (&first, 1));
        let groups = groups.unwrap();
        let waits = |groups: &Groups, view: &View, replaces| {
            [1, 2, 3, 4].map(|node| groups.misses(node, view, replaces))
        };
        let nobody = [false; 4];
        assert_eq!(waits(&groups, &first, true), nobody, "two are enough");
        let without = first.exclude(2).unwrap();
        assert_eq!(waits(&groups, &without, true), nobody, "none comes");
        // Who is back is to fill, if nobody has to order it, and then fills.
        let back = without.admit(2).unwrap();
        let both = [true, false, true, false];
        assert_eq!(waits(&groups, &back, true), both);
        assert_eq!(waits(&groups, &back, false), nobody);
        let filling = groups.replace(0, (2, 2), &back).unwrap();
        assert_eq!(waits(&filling, &back, false), both);
        let alone = back.exclude(2).unwrap();
        assert_eq!(waits(&filling, &alone, false), nobody, "it has gone again");
        let whole = filling.filled(0, (2, 2)).unwrap();
        assert_eq!(waits(&whole, &back, true), nobody);
    }
}
