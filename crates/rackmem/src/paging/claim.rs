//! Who has a region's pages for itself: a node in one life, written into the groups' register,
//! where all changes of a group are agreed on.
//!
//! | the register says | and a node wants the pages | so |
//! |---|---|---|
//! | nobody | | it has them |
//! | another live node | | [`RegionError::Mapped`] |
//! | another node that is not live any more, or another life of this one | | it has them, under the next config: what the former has sent counts no more |
//! | this node in this life, and nothing is mapped here | | the same: it could not be said that it was over |

use crate::backoff::Backoff;
use crate::error::{AccessError, MembershipError, RegionError};
use crate::membership::{GroupMember, Groups, Unchanged};
use crate::node::Node;
use rackmem_proto::abd::first_line;

/// As long as it lives the pages are this node's, unless the rack goes on without it.
pub(super) struct Claim {
    node: Node,
    group: u16,
    me: GroupMember,
    over: bool,
}

fn unread(why: MembershipError) -> RegionError {
    RegionError::NoGroups { why: why.what() }
}

impl Claim {
    /// Of the region of this name and number.
    pub fn take(node: &Node, (group, name): (u16, &str)) -> Result<Claim, RegionError> {
        let access = &node.inner.access;
        let mapped = |node| RegionError::Mapped {
            name: name.into(),
            node,
        };
        if !access.agents.replicas.pages.begin(group) {
            return Err(mapped(node.id()));
        }
        let mut claim = Claim {
            node: node.clone(),
            group,
            me: GroupMember {
                node: node.id(),
                life: 0,
            },
            over: true,
        };
        let agreed = claim.agree(|claim, groups| {
            let view = access.groups.view(access.standing.view()).map_err(unread)?;
            let next = groups.map(group, node.id(), &view);
            let next = next.map_err(|why| match why {
                Unchanged::Mapped(by) => mapped(by),
                _ => AccessError::BadAddress {
                    addr: first_line(group).0,
                }
                .into(),
            })?;
            claim.me = next
                .get(group)
                .and_then(|row| row.mapped)
                .unwrap_or(claim.me);
            Ok(Some(next))
        });
        claim.over = agreed.is_err();
        agreed.map(|()| claim)
    }

    /// Proposes what follows from the groups until they are as it says. None: they are.
    fn agree(
        &mut self,
        mut next: impl FnMut(&mut Self, &Groups) -> Result<Option<Groups>, RegionError>,
    ) -> Result<(), RegionError> {
        let node = self.node.clone();
        let access = &node.inner.access;
        let mut backoff = Backoff::new(access.patience);
        loop {
            let groups = access.groups.look().map_err(unread)?;
            let Some(next) = next(self, &groups)? else {
                return Ok(());
            };
            if access.groups.propose(&next).map_err(unread)? {
                access.groups.hurry();
                return Ok(());
            }
            if !backoff.wait() {
                let why = "others change them all the time".into();
                return Err(RegionError::NoGroups { why });
            }
        }
    }

    /// The pages are nobody's from here on.
    ///
    /// # Errors
    /// [`RegionError::NoGroups`]: they stay this node's until it maps them again or leaves.
    pub fn release(&mut self) -> Result<(), RegionError> {
        if std::mem::replace(&mut self.over, true) {
            return Ok(());
        }
        let (group, me) = (self.group, self.me);
        self.agree(|_, groups| Ok(groups.unmap(group, me)))
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        // What could not be written down is, when this node maps them again, or leaves.
        let _ = self.release();
        self.node.inner.access.agents.replicas.pages.end(self.group);
    }
}
