//! Finds a command by its name, in any case.

use super::Command;
use super::table::Table;
use crate::memory::Memory;

/// Slots; several times the commands, so that most searches end at once.
const SLOTS: usize = 1024;
/// Bytes of the longest name.
const NAME: usize = 24;

/// The table, and where each name is in it.
pub(crate) struct Index<M: Memory> {
    commands: Vec<&'static Command<M>>,
    /// Position in `commands` plus 1, 0 for none.
    slots: Box<[u16; SLOTS]>,
}

/// The name in lower case, padded.
fn fold(name: &[u8]) -> Option<[u8; NAME]> {
    let mut folded = [0; NAME];
    folded.get_mut(..name.len())?.copy_from_slice(name);
    folded.make_ascii_lowercase();
    Some(folded)
}

fn slot(name: &[u8; NAME]) -> usize {
    crate::hash::hash(0, name) as usize % SLOTS
}

impl<M: Memory> Index<M> {
    pub fn new() -> Self {
        let commands: Vec<_> = Table::<M>::GROUPS
            .iter()
            .flat_map(|group| group.iter())
            .collect();
        let mut slots = Box::new([0; SLOTS]);
        assert!(commands.len() < SLOTS / 2, "a search ends at an empty slot");
        for (i, command) in commands.iter().enumerate() {
            let folded = fold(command.name.as_bytes()).expect("names are short");
            let mut at = slot(&folded);
            while slots[at] != 0 {
                at = (at + 1) % SLOTS;
            }
            slots[at] = i as u16 + 1;
        }
        Self { commands, slots }
    }

    /// The position of the command called `name`.
    #[inline]
    pub fn find(&self, name: &[u8]) -> Option<usize> {
        let folded = fold(name)?;
        let mut at = slot(&folded);
        loop {
            let position = usize::from(self.slots[at]).checked_sub(1)?;
            let have = self.commands[position].name.as_bytes();
            if have == &folded[..name.len()] && name.len() == have.len() {
                return Some(position);
            }
            at = (at + 1) % SLOTS;
        }
    }

    #[inline]
    pub fn at(&self, position: usize) -> &'static Command<M> {
        self.commands[position]
    }

    /// All commands.
    pub fn all(&self) -> &[&'static Command<M>] {
        &self.commands
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::HeapMemory;

    #[test]
    fn every_command_is_found_by_its_name_alone() {
        let index = Index::<HeapMemory>::new();
        for (i, command) in index.all().iter().enumerate() {
            assert_eq!(
                index.find(command.name.as_bytes()),
                Some(i),
                "{}",
                command.name
            );
            assert_eq!(
                index.find(command.name.to_ascii_uppercase().as_bytes()),
                Some(i)
            );
            assert!(command.arity != 0 && !command.summary.is_empty());
        }
        for name in ["", "ge", "gett", "get\0", "averyveryverylongname"] {
            assert_eq!(index.find(name.as_bytes()), None, "{name:?}");
        }
    }
}
