//! Rosters and beats as people can read them, in files and in etcd.

use super::{Beat, Links, Places, Role, Roster, View};
use rackmem_proto::wire::{Copyset, MAX_NODES, NodeId};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RosterText {
    version: u64,
    epoch: u32,
    live: Vec<NodeId>,
    founders: Vec<NodeId>,
    switch: Option<u32>,
    shadow: Option<NodeId>,
    incarnations: [u32; MAX_NODES],
    nodes: [u64; MAX_NODES],
    switch_token: u64,
    /// Rows of places, as in the other lists: 32 is the switch.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    suspects: Vec<u16>,
    #[serde(default)]
    suspected: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct BeatText {
    token: u64,
    incarnation: u32,
    counter: u64,
    /// Likewise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    unheard: Vec<u16>,
    #[serde(default, skip_serializing_if = "is_false")]
    starved: bool,
}

fn is_false(value: &bool) -> bool {
    !value
}

/// Bytes of a text at most; a longer one is garbage.
pub(super) const MAX: usize = 8 << 10;

pub(super) fn of_roster(roster: &Roster) -> String {
    let view = &roster.view;
    let mut nodes = [0; MAX_NODES];
    nodes.copy_from_slice(&roster.holders[..MAX_NODES]);
    write(&RosterText {
        version: view.version,
        epoch: view.epoch,
        live: view.live.iter().collect(),
        founders: view.founders.iter().collect(),
        switch: view.switch,
        shadow: view.shadow,
        incarnations: view.incarnations,
        nodes,
        switch_token: roster.holders[Role::Switch.index()],
        suspects: rows(roster.suspects),
        suspected: roster.suspected,
    })
}

pub(super) fn to_roster(text: &[u8]) -> Result<Roster, String> {
    let text: RosterText = read(text)?;
    let view = View {
        version: text.version,
        epoch: text.epoch,
        live: set(&text.live)?,
        founders: set(&text.founders)?,
        incarnations: text.incarnations,
        switch: text.switch,
        shadow: text.shadow,
    };
    if !view.is_consistent() {
        return Err("the view contradicts itself".into());
    }
    let mut holders = [0; Role::COUNT];
    holders[..MAX_NODES].copy_from_slice(&text.nodes);
    holders[Role::Switch.index()] = text.switch_token;
    let suspects = places(&text.suspects)?;
    Ok(Roster {
        view,
        holders,
        suspects,
        suspected: text.suspected,
    })
}

pub(super) fn of_beat(beat: Beat) -> String {
    write(&BeatText {
        token: beat.token,
        incarnation: beat.incarnation,
        counter: beat.counter,
        unheard: rows(beat.links.unheard),
        starved: beat.links.starved,
    })
}

pub(super) fn to_beat(text: &[u8]) -> Result<Beat, String> {
    let text: BeatText = read(text)?;
    Ok(Beat {
        token: text.token,
        incarnation: text.incarnation,
        counter: text.counter,
        links: Links {
            unheard: places(&text.unheard)?,
            starved: text.starved,
        },
    })
}

/// The name of a role's beat.
pub(super) fn name(role: Role) -> String {
    match role {
        Role::Node(node) => format!("beat-node-{node}"),
        Role::Switch => "beat-switch".into(),
    }
}

fn set(nodes: &[NodeId]) -> Result<Copyset, String> {
    match nodes.iter().find(|&&node| node as usize >= MAX_NODES) {
        Some(node) => Err(format!("there is no node {node}")),
        None => Ok(nodes.iter().copied().fold(Copyset::EMPTY, Copyset::with)),
    }
}

fn rows(places: Places) -> Vec<u16> {
    places.iter().map(|role| role.index() as u16).collect()
}

fn places(rows: &[u16]) -> Result<Places, String> {
    let role = |&row: &u16| match usize::from(row) {
        row if row < MAX_NODES => Ok(Role::Node(row as NodeId)),
        row if row == Role::Switch.index() => Ok(Role::Switch),
        _ => Err(format!("there is no place {row}")),
    };
    rows.iter().map(role).collect()
}

fn write(value: &impl Serialize) -> String {
    // Numbers and lists of them: there is nothing that JSON could not say.
    serde_json::to_string(value).unwrap_or_default()
}

fn read<'a, T: Deserialize<'a>>(text: &'a [u8]) -> Result<T, String> {
    if text.len() > MAX {
        return Err(format!("{} bytes are too many", text.len()));
    }
    serde_json::from_slice(text).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let roster = Roster::first(Role::Node(31), u64::MAX);
        let roster = roster.admit(Role::Switch, 7).unwrap();
        assert_eq!(to_roster(of_roster(&roster).as_bytes()), Ok(roster));
        let roster = roster.suspect(Places::EMPTY.with(Role::Switch)).unwrap();
        assert_eq!(to_roster(of_roster(&roster).as_bytes()), Ok(roster));
        let beat = Beat {
            token: u64::MAX,
            incarnation: 3,
            counter: 9,
            links: Links {
                unheard: Places::EMPTY.with(Role::Node(0)).with(Role::Switch),
                starved: true,
            },
        };
        assert_eq!(to_beat(of_beat(beat).as_bytes()), Ok(beat));
    }

    #[test]
    fn the_longest_roster_is_short_enough() {
        let mut roster = Roster::first(Role::Switch, u64::MAX);
        roster.holders = [u64::MAX; Role::COUNT];
        roster.view.incarnations = [u32::MAX; MAX_NODES];
        roster.view.live = Copyset(u32::MAX);
        assert!(of_roster(&roster).len() < MAX / 2);
    }

    #[test]
    fn garbage_is_told() {
        let good = of_roster(&Roster::first(Role::Node(0), 1));
        let bad = [
            String::new(),
            "{".into(),
            good.replace("\"live\":[0]", "\"live\":[32]"),
            good.replace("\"live\":[0]", "\"live\":[1]"),
            good.replace("\"epoch\":1", "\"epoch\":9"),
            good.replace("\"epoch\":1", "\"epoch\":-1"),
            good.replace("\"shadow\":null", "\"shadow\":0"),
            good.replace("{", "{\"more\":1,"),
            format!("{good}{}", " ".repeat(MAX)),
        ];
        for text in bad {
            assert!(to_roster(text.as_bytes()).is_err(), "{text}");
        }
        assert!(to_beat(b"[]").is_err());
        let beat = "{\"token\":1,\"incarnation\":1,\"counter\":1";
        assert!(to_beat(format!("{beat}}}").as_bytes()).is_ok());
        assert!(to_beat(format!("{beat},\"unheard\":[33]}}").as_bytes()).is_err());
    }
}
