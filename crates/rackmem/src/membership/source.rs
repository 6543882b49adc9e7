//! Where the members of a rack are agreed on, as its configuration says.

use super::{Etcd, Events, Folder, Keeper, Result, Role, Store, View};
use rackmem_proto::wire::{Copyset, NodeId};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Where the members of a rack are agreed on.
///
/// ```
/// # fn main() -> rackmem::Result<()> {
/// use rackmem::Config;
/// use rackmem::membership::Source;
///
/// let text = "nodes = ['127.0.0.1:7401']\nmembership = 'dir:/srv/rack'";
/// let source = Config::parse(text)?.membership.source;
/// assert_eq!(source, Source::Folder("/srv/rack".into()));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Source {
    /// In the file that describes the rack: they are fixed, and nobody is ever declared dead.
    #[default]
    Fixed,
    /// In a folder that all processes see.
    Folder(PathBuf),
    /// In etcd, at these endpoints.
    Etcd(Vec<String>),
}

/// The name of a rack that has none.
const DEFAULT_NAME: &str = "rack";
/// Characters of a rack's name at most.
const MAX_NAME: usize = 64;
/// How long a member may be silent, by default.
const DEFAULT_LEASE: Duration = Duration::from_secs(1);
/// How many leases a process waits for its place at least. One that is impatient gave up, and
/// began to wait anew, before the members that died with it could be declared dead.
const JOINING: u32 = 4;
/// How long a member is dead before another keeps its copies, by default.
const REPLACE_AFTER: Duration = Duration::from_secs(30);
/// Below, threads that wait for a processor look dead; above, nobody would wait for it.
const LEASES: std::ops::RangeInclusive<Duration> =
    Duration::from_millis(50)..=Duration::from_secs(600);

impl Source {
    /// Reads `static`, `dir:/path` or `etcd:http://host:port[,http://host:port]`.
    fn parse(text: &str) -> std::result::Result<Source, String> {
        if text == "static" {
            return Ok(Source::Fixed);
        }
        if let Some(path) = text.strip_prefix("dir:") {
            if path.is_empty() {
                return Err("`membership` names no folder: \"dir:/path\"".into());
            }
            return Ok(Source::Folder(path.into()));
        }
        let Some(list) = text.strip_prefix("etcd:") else {
            return Err(format!(
                "`membership` is \"static\", \"dir:/path\" or \"etcd:http://host:port\", not \"{text}\""
            ));
        };
        let endpoints = list.split(',').map(|endpoint| {
            let endpoint = endpoint.trim().trim_end_matches('/');
            let host = endpoint.strip_prefix("http://").unwrap_or_default();
            let port = host.rsplit_once(':').map(|(_, port)| port.parse::<u16>());
            match port {
                Some(Ok(_)) if !host.contains('/') => Ok(endpoint.to_owned()),
                _ => Err(format!(
                    "`membership`: an endpoint of etcd is \"http://host:port\", not \"{endpoint}\""
                )),
            }
        });
        endpoints
            .collect::<std::result::Result<_, _>>()
            .map(Source::Etcd)
    }

    /// The store of the rack of this name; none where the members are fixed.
    ///
    /// # Errors
    /// When the folder cannot be made. Etcd is not asked yet.
    pub fn open(&self, name: &str) -> Result<Option<Arc<dyn Store>>> {
        Ok(match self {
            Source::Fixed => None,
            Source::Folder(path) => Some(Arc::new(Folder::open(&path.join(name))?)),
            Source::Etcd(endpoints) => Some(Arc::new(Etcd::new(endpoints.clone(), name))),
        })
    }
}

/// Whether a rack may have this name: it becomes part of paths and keys.
fn check_name(name: &str) -> std::result::Result<(), String> {
    let good = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if name.is_empty() || name.len() > MAX_NAME || name.starts_with('.') || !name.chars().all(good)
    {
        return Err(format!(
            "`name` is 1 to {MAX_NAME} letters, digits, `-`, `_` and `.`, and does not begin with `.`: not \"{name}\""
        ));
    }
    Ok(())
}

/// What a process needs to know to take its place.
///
/// ```
/// # fn main() -> rackmem::Result<()> {
/// use rackmem::Config;
/// use rackmem::membership::{Role, Settings};
///
/// let settings: Settings = Config::parse("nodes = ['127.0.0.1:7401']")?.membership;
/// assert_eq!((settings.nodes, settings.switch), (1, false));
/// assert!(settings.first_view().live.contains(0));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settings {
    /// Where the members are agreed on.
    pub source: Source,
    /// The name of the rack.
    pub name: String,
    /// How long a member may be silent before it is declared dead.
    pub lease: Duration,
    /// How long a member is dead until a live node gets its copies of regions; none: until
    /// `rackmem members replace`.
    pub replace_after: Option<Duration>,
    /// How many nodes the configuration has.
    pub nodes: usize,
    /// Whether it has a switch.
    pub switch: bool,
}

impl Settings {
    /// Takes what a configuration says, and how many nodes it has and whether a switch.
    pub(crate) fn read(
        source: Option<&str>,
        name: Option<&str>,
        lease: Option<Duration>,
        replace_after: Option<Duration>,
        (nodes, switch): (usize, bool),
    ) -> std::result::Result<Settings, String> {
        let source = source.map_or(Ok(Source::default()), Source::parse)?;
        let name = name.unwrap_or(DEFAULT_NAME);
        check_name(name)?;
        if source == Source::Fixed && lease.is_some() {
            return Err("lease goes with a `membership` of \"dir:...\" or \"etcd:...\"".into());
        }
        if source == Source::Fixed && replace_after.is_some() {
            return Err(
                "replace_after goes with a `membership` of \"dir:...\" or \"etcd:...\"".into(),
            );
        }
        let replace_after = replace_after.unwrap_or(REPLACE_AFTER);
        let replace_after = Some(replace_after).filter(|after| !after.is_zero());
        let lease = lease.unwrap_or(DEFAULT_LEASE);
        if !LEASES.contains(&lease) {
            let (least, most) = LEASES.into_inner();
            return Err(format!(
                "lease is from {least:?} to {most:?}, not {lease:?}"
            ));
        }
        Ok(Settings {
            source,
            name: name.into(),
            lease,
            replace_after,
            nodes,
            switch,
        })
    }

    /// Whether members can come and go.
    pub fn can_change(&self) -> bool {
        self.source != Source::Fixed
    }

    /// Takes a place in the rack; returns when this process may serve. See [`Keeper::join`].
    /// It waits for `patience`, and for four leases if that is longer.
    ///
    /// # Errors
    /// Those of [`Keeper::join`] and [`Source::open`].
    pub fn join(&self, role: Role, patience: Duration, events: Arc<dyn Events>) -> Result<Keeper> {
        match self.source.open(&self.name)? {
            Some(store) => {
                let patience = patience.max(self.lease * JOINING);
                Keeper::join(store, role, self.lease, patience, events)
            }
            None => Ok(Keeper::fixed(role, &self.first_view(), events)),
        }
    }

    /// The view of a rack whose members are fixed.
    pub fn first_view(&self) -> View {
        let nodes = (0..self.nodes as NodeId).fold(Copyset::EMPTY, Copyset::with);
        View::first(nodes, self.switch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;

    #[test]
    fn the_membership_is_fixed_unless_told_otherwise() {
        let parse = |more: &str| Config::parse(&format!("nodes = ['127.0.0.1:1']\n{more}"));
        let fixed = parse("").unwrap().membership;
        assert_eq!(fixed.source, Source::Fixed);
        assert_eq!(fixed.first_view().live.len(), 1);
        assert_eq!(parse("membership = 'static'").unwrap().membership, fixed);
        let folder = parse("membership = 'dir:/a/b'\nname = 'one'\nlease_ms = 200").unwrap();
        assert_eq!(folder.membership.source, Source::Folder("/a/b".into()));
        assert_eq!(folder.membership.name, "one");
        assert_eq!(folder.membership.lease, Duration::from_millis(200));
        assert_eq!(folder.membership.replace_after, Some(REPLACE_AFTER));
        let by_hand = parse("membership = 'dir:/a/b'\nreplace_after = '0s'").unwrap();
        assert_eq!(by_hand.membership.replace_after, None);
        let etcd = parse("membership = 'etcd:http://a:2379,http://[::1]:80/'").unwrap();
        let endpoints = vec!["http://a:2379".into(), "http://[::1]:80".into()];
        assert_eq!(etcd.membership.source, Source::Etcd(endpoints));
        assert_eq!(etcd.membership.lease, Duration::from_secs(1));
    }

    #[test]
    fn what_is_wrong_with_a_membership_is_told() {
        let why = |more: &str| {
            let text = format!("nodes = ['127.0.0.1:1']\n{more}");
            Config::parse(&text).unwrap_err().to_string()
        };
        assert!(why("membership = 'zk:1'").contains("not \"zk:1\""));
        assert!(why("membership = 'dir:'").contains("names no folder"));
        for endpoint in [
            "",
            "a:2379",
            "https://a:2379",
            "http://a",
            "http://a:b",
            "http://a/b:1",
        ] {
            let text = why(&format!("membership = 'etcd:{endpoint}'"));
            assert!(text.contains("http://host:port"), "{endpoint}: {text}");
        }
        assert!(why("lease_ms = 100").contains("goes with"));
        assert!(why("replace_after = '5s'").contains("goes with"));
        assert!(why("membership = 'dir:/a'\nlease_ms = 1").contains("from 50"));
        for name in ["", "..", "a/b", "a b"] {
            assert!(
                why(&format!("name = '{name}'")).contains("letters"),
                "{name}"
            );
        }
    }
}
