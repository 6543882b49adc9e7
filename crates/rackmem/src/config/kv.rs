//! What the file says of the store that nodes serve, which is none of the library's.

use super::Config;
use crate::error::OpenError;
use rackmem_proto::abd::{COPIES, Durability};
use rackmem_proto::membership::Survives;
use serde::Deserialize;
use std::fmt::Display;

/// Durable copies of what has none.
const ALONE: &str = "kv: durability goes with `copies`: 3, 5 or 7";

/// Copies of the store, and what they survive beside the death of a minority. A number of them is
/// in memory.
///
/// ```
/// use rackmem::{Durability, KvCopies};
///
/// let copies = KvCopies::from(3);
/// assert_eq!((copies.count, copies.durability), (3, Durability::Memory));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KvCopies {
    /// 3, 5 or 7.
    pub count: u8,
    /// As [`RegionSpec::durability`](crate::RegionSpec::durability).
    pub durability: Durability,
}

impl From<u8> for KvCopies {
    fn from(count: u8) -> Self {
        KvCopies {
            count,
            durability: Durability::Memory,
        }
    }
}

/// `[kv]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct KvTable {
    copies: Option<u8>,
    survives: Option<String>,
    durability: Option<String>,
    ship: Option<bool>,
}

impl KvTable {
    /// Whether its servers send each other commands, if it says so.
    pub fn ships(&self) -> Option<bool> {
        self.ship
    }

    /// Copies that the store has, if it has some.
    pub fn read(self) -> Result<Option<KvCopies>, OpenError> {
        let no = |why: String| Err(OpenError::Config(why));
        let durability = match (
            self.durability.as_deref().map(Durability::named),
            self.copies,
        ) {
            (None, _) => Durability::default(),
            (Some(Some(durability)), Some(_)) => durability,
            (Some(None), _) => {
                return no("kv: durability is \"memory\", \"file\", \"sync\" or \"dax\"".into());
            }
            (Some(_), None) => return no(ALONE.into()),
        };
        match (self.survives.as_deref().map(Survives::named), self.copies) {
            (None | Some(Some(Survives::Writes)), Some(count)) => {
                Ok(Some(KvCopies { count, durability }))
            }
            (None, None) => Ok(None),
            (Some(Some(Survives::Rest)), _) => no(
                "kv: survives: the store takes \"writes\": with \"rest\" a death would take parts of values, \
                 and nothing would say so"
                    .into(),
            ),
            (Some(None), _) => no("kv: survives is \"writes\"".into()),
            (Some(_), None) => no("kv: survives goes with `copies`: 3, 5 or 7".into()),
        }
    }
}

/// Whether a store can have so many copies in a rack of so many nodes.
///
/// ```
/// let why = rackmem::check_kv_copies(5, 4).unwrap_err().to_string();
/// assert!(why.contains("5 copies take as many nodes, and there are 4"), "{why}");
/// assert!(rackmem::check_kv_copies(3, 4).is_ok());
/// ```
///
/// # Errors
/// [`OpenError::Config`] says why not.
pub fn check_kv_copies(copies: u8, nodes: usize) -> Result<(), OpenError> {
    let no = |why: String| Err(OpenError::Config(why));
    if copies < 3 || !COPIES.contains(&copies) {
        return no(format!("kv: copies is 3, 5 or 7, not {copies}"));
    }
    if usize::from(copies) > nodes {
        return no(format!(
            "kv: copies: {copies} copies take as many nodes, and there are {nodes}"
        ));
    }
    Ok(())
}

impl Config {
    /// Copies that the store (`rackmem kv`) has in this rack; none: each key is at one node, and
    /// dies with it.
    pub fn kv_copies(&self) -> Option<KvCopies> {
        self.kv_copies
    }

    /// Whether its servers send commands to where their key is, if that goes round: what the file
    /// says (`ship`); otherwise they do over UDP, where a fetch takes longest.
    pub fn kv_ships(&self) -> bool {
        self.kv_ships
    }

    /// Lets the store have so many copies, where the file says nothing.
    ///
    /// # Errors
    /// [`OpenError::Config`] where the file says another number, or the rack cannot have so many.
    pub fn set_kv_copies(&mut self, copies: u8) -> Result<(), OpenError> {
        let asked = match self.kv_copies {
            Some(file) if file.count != copies => {
                return Err(differs("copies", file.count, copies));
            }
            Some(file) => file,
            None => copies.into(),
        };
        self.kv_copies = Some(asked);
        self.check_kv()
    }

    /// Lets the copies of the store survive so much, where the file says nothing. After
    /// [`Config::set_kv_copies`].
    ///
    /// # Errors
    /// [`OpenError::Config`] where the file says something else, or has no `store`, or the store no
    /// copies.
    pub fn set_kv_durability(&mut self, durability: Durability) -> Result<(), OpenError> {
        let Some(copies) = &mut self.kv_copies else {
            return Err(OpenError::Config(ALONE.into()));
        };
        match copies.durability {
            Durability::Memory => copies.durability = durability,
            same if same == durability => {}
            file => return Err(differs("durability", file, durability)),
        }
        self.check_kv()
    }

    pub(super) fn check_kv(&self) -> Result<(), OpenError> {
        let Some(copies) = self.kv_copies else {
            return Ok(());
        };
        check_kv_copies(copies.count, self.nodes.len())?;
        if copies.durability != Durability::Memory && self.settings.store.is_none() {
            return Err(OpenError::Config(
                "kv: durability goes with a `store`: the folder that has a node's durable copies"
                    .into(),
            ));
        }
        if !self.membership.can_change() {
            return Err(OpenError::Config(
                "kv: copies go with a `membership` of \"dir:...\" or \"etcd:...\"".into(),
            ));
        }
        Ok(())
    }
}

/// Where the file and the command do not agree.
fn differs(what: &str, file: impl Display, asked: impl Display) -> OpenError {
    OpenError::Config(format!(
        "kv: {what} is {file} in the rack's file, and {asked} was asked for: all nodes need the same"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(more: &str) -> Result<Option<KvCopies>, String> {
        let nodes = "nodes = ['127.0.0.1:1', '127.0.0.1:2', '127.0.0.1:3', '127.0.0.1:4']\n";
        let config = Config::parse(&format!("{nodes}{more}"));
        let copies = config.map(|config| config.kv_copies());
        copies.map_err(|error| error.to_string())
    }

    #[test]
    fn a_store_has_as_many_copies_as_the_rack_can_keep() {
        let dir = "membership = 'dir:/tmp/x'\n";
        let says = |kv: &str| read(&format!("{dir}[kv]\n{kv}"));
        assert_eq!((read(""), says("")), (Ok(None), Ok(None)));
        let in_memory = Ok(Some(3.into()));
        assert_eq!(says("copies = 3"), in_memory);
        assert_eq!(says("copies = 3\nsurvives = 'writes'"), in_memory);
        assert_eq!(says("copies = 3\ndurability = 'memory'"), in_memory);
        let synced = read(&format!(
            "{dir}store = '/tmp/y'\n[kv]\ncopies = 3\ndurability = 'sync'"
        ));
        let durability = Durability::Sync;
        assert_eq!(
            synced,
            Ok(Some(KvCopies {
                count: 3,
                durability
            }))
        );
        for (wrong, why) in [
            ("copies = 2", "line 4 (copies = 2): kv: copies is 3, 5 or 7"),
            ("copies = 1", "3, 5 or 7, not 1"),
            ("copies = 0", "3, 5 or 7, not 0"),
            ("copies = 5", "5 copies take as many nodes, and there are 4"),
            ("survives = 'writes'", "goes with `copies`"),
            (
                "copies = 3\nsurvives = 'rest'",
                "would take parts of values",
            ),
            ("copies = 3\nsurvives = 'all'", "survives is \"writes\""),
            (
                "copies = 3\ndurability = 'disk'",
                "durability is \"memory\", \"file\"",
            ),
            ("copies = 3\ndurability = 'file'", "goes with a `store`"),
            ("durability = 'sync'", "durability goes with `copies`"),
            ("copys = 3", "did you mean `copies`"),
        ] {
            let told = says(wrong).unwrap_err();
            assert!(told.contains(why), "{wrong}: {told}");
        }
        let fixed = read("[kv]\ncopies = 3").unwrap_err();
        assert!(fixed.contains("`membership`"), "{fixed}");
    }

    #[test]
    fn commands_are_sent_over_udp_or_as_the_file_says() {
        let nodes = "nodes = ['127.0.0.1:1', '127.0.0.1:2']\n";
        let ships = |kv: &str| Config::parse(&format!("{nodes}{kv}")).unwrap().kv_ships();
        assert!(ships("") && ships("[kv]"));
        assert!(!ships("[kv]\nship = false"));
        assert!(!ships("fabric = 'shm'") && ships("fabric = 'shm'\n[kv]\nship = true"));
    }

    #[test]
    fn what_a_command_asks_for_is_what_the_file_says() {
        let text =
            "nodes = ['127.0.0.1:1', '127.0.0.1:2', '127.0.0.1:3']\nmembership = 'dir:/tmp/x'\n";
        let mut config = Config::parse(text).unwrap();
        assert!(config.clone().set_kv_copies(5).is_err());
        config.set_kv_copies(3).unwrap();
        assert_eq!(config.kv_copies(), Some(3.into()));
        assert!(config.clone().set_kv_durability(Durability::Sync).is_err());
        let mut config = Config::parse(&format!("{text}store = '/tmp/y'\n")).unwrap();
        let alone = config.set_kv_durability(Durability::Sync).unwrap_err();
        assert!(alone.to_string().contains("goes with `copies`"), "{alone}");
        config.set_kv_copies(3).unwrap();
        config.set_kv_durability(Durability::Sync).unwrap();
        assert!(config.set_kv_durability(Durability::File).is_err());
        config.set_kv_copies(3).unwrap();
        assert_eq!(config.kv_copies().unwrap().durability, Durability::Sync);
        let why = config.set_kv_copies(7).unwrap_err().to_string();
        assert!(
            why.contains("3 in the rack's file, and 7 was asked for"),
            "{why}"
        );
    }
}
