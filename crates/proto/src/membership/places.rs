//! Sets of places.

use super::Role;

/// A set of places in the rack.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Places(u64);

impl Places {
    /// None.
    pub const EMPTY: Places = Places(0);

    /// With one more.
    #[must_use]
    pub const fn with(self, role: Role) -> Places {
        Places(self.0 | 1 << role.index())
    }

    /// Without one.
    #[must_use]
    pub const fn without(self, role: Role) -> Places {
        Places(self.0 & !(1 << role.index()))
    }

    /// Whether this one is among them.
    pub const fn contains(self, role: Role) -> bool {
        self.0 >> role.index() & 1 == 1
    }

    /// Those that are in both.
    #[must_use]
    pub const fn and(self, other: Places) -> Places {
        Places(self.0 & other.0)
    }

    /// Those that are in either.
    #[must_use]
    pub const fn or(self, other: Places) -> Places {
        Places(self.0 | other.0)
    }

    /// How many.
    pub const fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Whether there are none.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Nodes first.
    pub fn iter(self) -> impl Iterator<Item = Role> {
        Role::all().filter(move |&role| self.contains(role))
    }
}

impl FromIterator<Role> for Places {
    fn from_iter<I: IntoIterator<Item = Role>>(roles: I) -> Places {
        roles.into_iter().fold(Places::EMPTY, Places::with)
    }
}

impl core::fmt::Debug for Places {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

impl core::fmt::Display for Places {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        for (at, role) in self.iter().enumerate() {
            if at > 0 {
                f.write_str(", ")?;
            }
            write!(f, "{role}")?;
        }
        Ok(())
    }
}
