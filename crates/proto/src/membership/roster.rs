//! What the store outside the rack keeps: the view, who holds the places in it, and signs of life.

use super::{Links, Places, View};
use rackmem_wire::{Copyset, MAX_NODES, NodeId};

/// A place in the rack, held by one process at a time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Role {
    /// The node of this number.
    Node(NodeId),
    /// The switch.
    Switch,
}

impl Role {
    /// How many there are, and so the length of a table with a row for each.
    pub const COUNT: usize = MAX_NODES + 1;

    /// The row of this role in such a table.
    pub const fn index(self) -> usize {
        match self {
            Role::Node(node) => node as usize % MAX_NODES,
            Role::Switch => MAX_NODES,
        }
    }

    /// All of them, nodes first.
    pub fn all() -> impl Iterator<Item = Role> {
        (0..MAX_NODES as NodeId)
            .map(Role::Node)
            .chain([Role::Switch])
    }
}

impl core::fmt::Display for Role {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Role::Node(node) => write!(f, "node {node}"),
            Role::Switch => f.write_str("the switch"),
        }
    }
}

/// A sign of life of one process. Others compare it with the one before;
/// the numbers mean nothing else.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Beat {
    /// The token of the process.
    pub token: u64,
    /// The incarnation that it was admitted with.
    pub incarnation: u32,
    /// Another one with each beat.
    pub counter: u64,
    /// What it knows of its links to the others.
    pub links: Links,
}

/// The last beat under each role, by [`Role::index`].
pub type Beats = [Option<Beat>; Role::COUNT];

/// The view and the tokens of those who hold its places. A process draws its token when it starts,
/// so a roster names processes where a view names numbers: whoever is in doubt whether its own
/// proposal was taken looks for its token.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Roster {
    /// Who belongs to the rack.
    pub view: View,
    /// By [`Role::index`]: the token of the process that holds, or last held, this place.
    /// 0 is nobody ever.
    pub holders: [u64; Role::COUNT],
    /// Members that a majority cannot reach: they have been told to stop serving, and are excluded
    /// when their leases are over.
    pub suspects: Places,
    /// The version in which the last of them became one; 0 before anybody was. One that was
    /// acquitted and is suspected again is told by it from one that was suspected all the time.
    pub suspected: u64,
}

impl Roster {
    /// The incarnation of the process that holds this place now, if one does.
    pub fn incarnation(&self, role: Role) -> Option<u32> {
        match role {
            Role::Node(node) => self.view.incarnation(node),
            Role::Switch => self.view.switch,
        }
    }

    /// The token and incarnation of the process that holds this place now, if one does.
    pub fn holder(&self, role: Role) -> Option<(u64, u32)> {
        let incarnation = self.incarnation(role)?;
        Some((self.holders[role.index()], incarnation))
    }

    /// The places that are held.
    pub fn held(&self) -> impl Iterator<Item = Role> {
        let roster = *self;
        Role::all().filter(move |&role| roster.incarnation(role).is_some())
    }

    /// The roster of a rack whose first member is this process.
    pub fn first(role: Role, token: u64) -> Roster {
        let (nodes, switch) = one(role);
        let mut holders = [0; Role::COUNT];
        holders[role.index()] = token;
        Roster {
            view: View::first(nodes, switch),
            holders,
            suspects: Places::EMPTY,
            suspected: 0,
        }
    }

    /// With this process in a place that nobody holds.
    #[must_use]
    pub fn admit(&self, role: Role, token: u64) -> Option<Roster> {
        let view = match role {
            Role::Node(node) => self.view.admit(node),
            Role::Switch => self.view.admit_switch(),
        }?;
        let mut holders = self.holders;
        holders[role.index()] = token;
        Some(Roster {
            view,
            holders,
            suspects: self.suspects,
            suspected: self.suspected,
        })
    }

    /// Without these, as one heavy change.
    #[must_use]
    pub fn exclude(&self, roles: impl Iterator<Item = Role>) -> Option<Roster> {
        let (nodes, switch) = roles.fold((Copyset::EMPTY, false), |(nodes, switch), role| {
            let (node, is_switch) = one(role);
            (nodes.union(node), switch | is_switch)
        });
        self.with(self.view.exclude_all(nodes, switch)?)
    }

    /// Without this one, which serves nobody any more. See [`View::leave`].
    #[must_use]
    pub fn leave(&self, role: Role, settled: u32) -> Option<Roster> {
        self.with(match role {
            Role::Node(node) => self.view.leave(node, settled),
            Role::Switch => self.view.exclude_switch(),
        }?)
    }

    /// The same as the next version. See [`View::touch`].
    #[must_use]
    pub fn touch(&self) -> Option<Roster> {
        self.with(self.view.touch()?)
    }

    /// The same members, of whom exactly these are suspected, as the next version.
    #[must_use]
    pub fn suspect(&self, suspects: Places) -> Option<Roster> {
        let touched = self.touch()?;
        let suspects = suspects.and(self.held().collect());
        let more = suspects.iter().any(|role| !self.suspects.contains(role));
        Some(Roster {
            suspects,
            suspected: if more {
                touched.view.version
            } else {
                self.suspected
            },
            ..touched
        })
    }

    fn with(&self, view: View) -> Option<Roster> {
        let next = Roster { view, ..*self };
        Some(Roster {
            suspects: self.suspects.and(next.held().collect()),
            ..next
        })
    }
}

fn one(role: Role) -> (Copyset, bool) {
    match role {
        Role::Node(node) => (Copyset::of(node), false),
        Role::Switch => (Copyset::EMPTY, true),
    }
}
