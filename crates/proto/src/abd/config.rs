//! Who keeps the copies of a group, and who of them counts: configs,
//! and the steps from one to the next.
//!
//! A dead member makes no group smaller: the size stays, and so does what a quorum is.
//! Why each step is safe:
//!
//! - *Fence.* A member answers packets of its own config only, and its config only rises. A quorum
//!   of config *c* needs a member that is in *c*; when a quorum of *c + 1*'s counting members lives
//!   by it, too few are left.
//! - *A replacement* counts when it has filled from a quorum that lives by the config in which it
//!   fills, so that quorum has left all earlier ones. Until then a quorum has to be found among one
//!   member less, and meets each quorum of before and after without the replacement.
//! - *A new member* fills likewise, and raises the size when it counts.
//! - *Of two members* of a group that grows, the second one may go. A quorum of two is both, so the
//!   first one has whatever has completed. The second one may lack what completed before it
//!   counted. Places say who was first: below three members nobody can be replaced.
//!
//! No other step makes a group smaller. Quorums of neighbouring sizes meet,
//! but what was written at three copies may be at one of the two that stay, and then at none of the
//! last one: a smaller group would have to be filled anew, as another one is.

use crate::wire::{Copyset, NodeId};

/// Places for members.
pub const MEMBERS: usize = 8;
/// How many copies a region may have. Two are a step on the way and survive nothing.
pub const COPIES: [u8; 4] = [1, 3, 5, 7];

/// One that keeps copies, as long as it remembers: a process that has forgotten is not the member
/// that promised.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Member {
    /// The node.
    pub node: NodeId,
    /// The node's incarnation, or where the copies are durable a number of the store.
    pub life: u64,
}

/// What a member is in a config.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// It answers, and its answers count.
    Counting,
    /// It stores, and fetches what it has not got.
    Filling,
}

/// See the module.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Config {
    /// Its number: the fence of its packets.
    pub number: u32,
    /// Who keeps copies.
    pub members: [Option<Member>; MEMBERS],
    /// Who of them counts, by places.
    pub counting: u8,
    /// What a quorum is a majority of. While a member fills that is to be added,
    /// this is less than there are members.
    pub size: u8,
    /// Whether requesters send through a switch, which counts.
    pub through_switch: bool,
    /// The life of the switch that chooses stamps as well, so that writes take one round where it
    /// can; 0: none does. A switch that has started again is another life, which has forgotten
    /// what it chose, and chooses nothing until a config says that it may.
    pub chooser: u32,
    /// Whether that switch also carries out both rounds and holds the line between them: one
    /// request and one answer an operation, the paper's own form (CNVMM §III-B). For lines of
    /// [`HELD_LINE`](super::HELD_LINE) bytes.
    pub holds_lines: bool,
    /// The number of the config in which these members began to count.
    pub since: u32,
    /// The number of the config with which the region began. A group's number may be used again
    /// when its region has been removed, and its configs go on from there.
    pub first: u32,
}

/// A step to the next config.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change {
    /// This one takes the place of that node, which is dead or leaves, and fills.
    Replace(NodeId, Member),
    /// This one comes in addition, and fills.
    Add(Member),
    /// The member that fills at this node has all, and counts.
    Filled(NodeId),
    /// The member that fills at this node does not any more, and leaves; or the second one of two
    /// that count does, and the first goes on alone.
    Cancel(NodeId),
    /// Requesters send through a switch that counts, or to each member.
    ThroughSwitch(bool),
    /// Through a switch that also chooses stamps, in this life of it.
    AtOnce(u32),
    /// Likewise, and it carries out both rounds and holds the line between them.
    Held(u32),
    /// The region is removed: nobody keeps copies. What was under way ends.
    Remove,
    /// The same in all, under the next number: what was sent before counts no more.
    Fence,
}

/// Why a step cannot be taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refused {
    /// A member fills: one thing after the other.
    Filling,
    /// No quorum would be left among those who count.
    NoQuorum,
    /// The node is a member already, or is none, or does not fill.
    Member,
    /// There is no place left, or the number of copies is none of [`COPIES`].
    Full,
}

impl Config {
    /// The first config of a group: all of these count, and all of them are empty.
    pub fn first(members: &[Member]) -> Result<Config, Refused> {
        if !COPIES.contains(&(members.len() as u8)) {
            return Err(Refused::Full);
        }
        let mut config = Config {
            number: 1,
            members: [None; MEMBERS],
            counting: 0,
            size: members.len() as u8,
            through_switch: false,
            chooser: 0,
            holds_lines: false,
            since: 1,
            first: 1,
        };
        for (nth, member) in members.iter().enumerate() {
            if config.place(member.node).is_some() {
                return Err(Refused::Member);
            }
            config.members[nth] = Some(*member);
            config.counting |= 1 << nth;
        }
        Ok(config)
    }

    /// The first config of another region that gets the number of this one, which was removed. Its
    /// packets are of later configs, so whatever is still under way of the removed region is of
    /// an earlier one.
    pub fn again(&self, members: &[Member]) -> Result<Config, Refused> {
        let number = self.number + 1;
        Ok(Config {
            number,
            since: number,
            first: number,
            ..Config::first(members)?
        })
    }

    /// Whether its region was removed.
    pub const fn is_removed(&self) -> bool {
        self.counting == 0
    }

    /// How many counting members are a quorum.
    #[inline]
    pub const fn quorum(&self) -> u32 {
        self.size as u32 / 2 + 1
    }

    /// Whether these members are one.
    #[inline]
    pub const fn is_quorum(&self, members: u8) -> bool {
        (members & self.counting).count_ones() >= self.quorum()
    }

    /// The place of a node's member.
    pub fn place(&self, node: NodeId) -> Option<usize> {
        let is_it = |member: &Option<Member>| member.is_some_and(|m| m.node == node);
        self.members.iter().position(is_it)
    }

    /// The places of all members.
    pub fn members(&self) -> u8 {
        let taken = |place: &usize| self.members[*place].is_some();
        (0..MEMBERS)
            .filter(taken)
            .fold(0, |set, place| set | 1 << place)
    }

    /// The node at a place.
    pub fn node(&self, place: usize) -> Option<NodeId> {
        self.members.get(place)?.map(|member| member.node)
    }

    /// The nodes at these places.
    pub fn nodes(&self, places: u8) -> Copyset {
        let of = |nodes: Copyset, place| match places >> place & 1 {
            1 => self.node(place).map_or(nodes, |node| nodes.with(node)),
            _ => nodes,
        };
        (0..MEMBERS).fold(Copyset::EMPTY, of)
    }

    /// The places of these nodes' members.
    pub fn places(&self, nodes: Copyset) -> u8 {
        let of = |place: &usize| self.node(*place).is_some_and(|node| nodes.contains(node));
        (0..MEMBERS)
            .filter(of)
            .fold(0, |set, place| set | 1 << place)
    }

    /// What this member is, if it is one: not another life of its node.
    pub fn role(&self, member: Member) -> Option<Role> {
        let place = self.members.iter().position(|m| *m == Some(member))?;
        Some(match self.counting >> place & 1 {
            1 => Role::Counting,
            _ => Role::Filling,
        })
    }

    /// The place of the member that fills.
    pub fn filling(&self) -> Option<usize> {
        let fills =
            |place: &usize| self.members[*place].is_some() && self.counting >> place & 1 == 0;
        (0..MEMBERS).find(fills)
    }

    /// The next config. That a member has filled, [`super::Fill::is_whole`] says, in this config.
    pub fn step(&self, change: Change) -> Result<Config, Refused> {
        if self.is_removed() {
            return Err(Refused::NoQuorum);
        }
        let mut next = *self;
        next.number += 1;
        match change {
            Change::Replace(old, new) => {
                let place = self.place(old).ok_or(Refused::Member)?;
                if self.filling().is_some_and(|fills| fills != place) {
                    return Err(Refused::Filling);
                }
                if new.node != old && self.place(new.node).is_some() {
                    return Err(Refused::Member);
                }
                next.members[place] = Some(new);
                next.counting &= !(1 << place);
            }
            Change::Add(new) => {
                if self.filling().is_some() {
                    return Err(Refused::Filling);
                }
                if self.place(new.node).is_some() {
                    return Err(Refused::Member);
                }
                let free = self.members.iter().position(Option::is_none);
                next.members[free.ok_or(Refused::Full)?] = Some(new);
            }
            Change::Filled(node) => {
                let place = self.place(node).ok_or(Refused::Member)?;
                if self.filling() != Some(place) {
                    return Err(Refused::Member);
                }
                next.counting |= 1 << place;
                next.size = self.size.max(next.counting.count_ones() as u8);
            }
            Change::Cancel(node) => {
                let place = self.place(node).ok_or(Refused::Member)?;
                match self.filling() {
                    Some(fills) if fills == place => {}
                    None if self.size == 2 && place != 0 => next.size = 1,
                    _ => return Err(Refused::Member),
                }
                next.members[place] = None;
                next.counting &= !(1 << place);
            }
            Change::ThroughSwitch(through) => {
                (next.through_switch, next.chooser) = (through, 0);
                next.holds_lines = false;
            }
            Change::AtOnce(life) | Change::Held(life) => {
                (next.through_switch, next.chooser) = (true, life);
                next.holds_lines = matches!(change, Change::Held(_));
            }
            Change::Remove => {
                (next.members, next.counting) = ([None; MEMBERS], 0);
                (next.through_switch, next.chooser, next.since) = (false, 0, next.number);
                next.holds_lines = false;
                return Ok(next);
            }
            Change::Fence => {}
        }
        if next.members != self.members || next.counting != self.counting {
            next.since = next.number;
        }
        if next.counting.count_ones() < next.quorum() {
            return Err(Refused::NoQuorum);
        }
        Ok(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(node: NodeId) -> Member {
        Member { node, life: 1 }
    }

    fn group(nodes: NodeId) -> Config {
        let members: alloc::vec::Vec<Member> = (0..nodes).map(member).collect();
        Config::first(&members).unwrap()
    }

    /// All sets of counting members that are a quorum.
    fn quorums(config: &Config) -> impl Iterator<Item = u8> {
        let config = *config;
        (0..=u8::MAX).filter(move |set| set & !config.counting == 0 && config.is_quorum(*set))
    }

    #[test]
    fn quorums_are_majorities_of_the_size() {
        for (nodes, quorum) in [(1, 1), (3, 2), (5, 3), (7, 4)] {
            assert_eq!(group(nodes).quorum(), quorum);
        }
        assert_eq!(Config::first(&[member(0), member(1)]), Err(Refused::Full));
        assert_eq!(
            Config::first(&[member(0), member(1), member(1)]),
            Err(Refused::Member)
        );
    }

    #[test]
    fn a_dead_member_makes_no_group_smaller() {
        let config = group(3);
        let next = config.step(Change::Replace(2, member(7))).unwrap();
        let found = (next.quorum(), next.counting, next.filling());
        assert_eq!(found, (2, 3, Some(2)));
        assert_eq!(next.role(member(7)), Some(Role::Filling));
        assert_eq!(next.role(member(2)), None);
        // The replacement is no member in another life.
        assert_eq!(next.role(Member { node: 7, life: 2 }), None);
        let other = Change::Replace(1, member(8));
        assert_eq!(next.step(other), Err(Refused::Filling));
        let whole = next.step(Change::Filled(7)).unwrap();
        assert_eq!((whole.counting, whole.size, whole.number), (7, 3, 3));
        // It dies while it fills, and another takes its place, or none.
        let again = next.step(Change::Replace(7, member(9))).unwrap();
        assert_eq!((again.counting, again.filling()), (3, Some(2)));
        let none = next.step(Change::Cancel(7)).unwrap();
        assert_eq!((none.counting, none.size, none.filling()), (3, 3, None));
        assert_eq!(
            none.step(Change::Replace(1, member(9))),
            Err(Refused::NoQuorum)
        );
        // One that counts leaves no hole, and a node is a member once.
        assert_eq!(whole.step(Change::Cancel(7)), Err(Refused::Member));
        assert_eq!(
            config.step(Change::Replace(2, member(1))),
            Err(Refused::Member)
        );
        assert_eq!(config.step(Change::Filled(1)), Err(Refused::Member));
    }

    #[test]
    fn a_group_grows_by_one_member_at_a_time() {
        let mut config = group(1);
        for node in 1..8 {
            config = config.step(Change::Add(member(node))).unwrap();
            assert_eq!(config.size, node as u8);
            config = config.step(Change::Filled(node)).unwrap();
        }
        assert_eq!((config.size, config.quorum()), (8, 5));
        assert_eq!(config.step(Change::Add(member(9))), Err(Refused::Full));
    }

    /// While one copy becomes three, there are two for a time, and the second one may die.
    #[test]
    fn of_two_members_the_first_one_can_go_on_alone() {
        let two = group(1).step(Change::Add(member(1))).unwrap();
        let two = two.step(Change::Filled(1)).unwrap();
        assert_eq!((two.size, two.quorum()), (2, 2));
        let dead = two.step(Change::Replace(1, member(2)));
        assert_eq!(dead, Err(Refused::NoQuorum));
        assert_eq!(two.step(Change::Cancel(0)), Err(Refused::Member));
        let third = two.step(Change::Add(member(2))).unwrap();
        assert_eq!(third.step(Change::Cancel(1)), Err(Refused::Member));
        let again = third.step(Change::Cancel(2)).unwrap();
        let one = again.step(Change::Cancel(1)).unwrap();
        assert_eq!((one.size, one.counting, one.members()), (1, 1, 1));
        let next = one.step(Change::Add(member(3))).unwrap();
        assert_eq!(next.place(3), Some(1));
        assert_eq!(group(3).step(Change::Cancel(2)), Err(Refused::Member));
    }

    #[test]
    fn quorums_of_neighbours_meet_without_the_member_that_has_filled() {
        for nodes in [3, 5, 7] {
            let config = group(nodes);
            let filling = config.step(Change::Replace(0, member(20))).unwrap();
            let whole = filling.step(Change::Filled(20)).unwrap();
            let adding = config.step(Change::Add(member(21))).unwrap();
            let larger = adding.step(Change::Filled(21)).unwrap();
            let added = 1 << nodes;
            let pairs = [
                (config, filling, 1),
                (filling, whole, 1),
                (adding, larger, added),
            ];
            for (one, other, without) in pairs {
                for a in quorums(&one) {
                    let meets = |b: u8| a & b & !without != 0;
                    assert!(quorums(&other).all(meets), "{one:?} {other:?}");
                }
            }
        }
    }
}
