//! Groups as people can read them, in files and in etcd.

use super::{Group, Groups, KeptAs};
use rackmem_proto::abd::{Config, Durability, Layout, MEMBERS, Member};
use rackmem_proto::wire::NodeId;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct GroupsText {
    version: u64,
    /// The rack's number, which its durable members' stores have.
    #[serde(default)]
    rack: u64,
    groups: Vec<GroupText>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct GroupText {
    name: String,
    element: u64,
    bytes: u64,
    line: u32,
    copies: u8,
    #[serde(default)]
    two_rounds: bool,
    #[serde(default, skip_serializing_if = "is_not")]
    held: bool,
    #[serde(default = "memory")]
    durability: String,
    /// Of one whose lines are those of a home: objects, or blocks, of which these writes survive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    home: Option<String>,
    config: u32,
    /// The config with which the region began.
    #[serde(default = "one")]
    first: u32,
    /// By place.
    members: Vec<Option<MemberText>>,
    /// Places of those that count.
    counting: Vec<u8>,
    size: u8,
    since: u32,
    through_switch: bool,
    /// The life of the switch that chooses stamps; 0: none.
    #[serde(default)]
    chooser: u32,
    /// Whether that carries out both rounds.
    #[serde(default, skip_serializing_if = "is_not")]
    holds_lines: bool,
    /// Who has its pages for itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mapped: Option<MemberText>,
    /// Where addresses of its objects begin: those below were of removed regions.
    #[serde(default, skip_serializing_if = "is_none")]
    base: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct MemberText {
    node: NodeId,
    life: u64,
}

fn memory() -> String {
    Durability::Memory.name().into()
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants a reference")]
fn is_not(flag: &bool) -> bool {
    !flag
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants a reference")]
fn is_none(number: &u64) -> bool {
    *number == 0
}

fn one() -> u32 {
    1
}

/// Bytes of a text at most; a longer one is garbage.
pub(super) const MAX: usize = 64 << 10;

pub(super) fn of_groups(groups: &Groups) -> String {
    let groups = GroupsText {
        version: groups.version,
        rack: groups.rack,
        groups: groups.rows.iter().map(of_group).collect(),
    };
    // Numbers, names and lists of them: there is nothing that JSON could not say.
    serde_json::to_string(&groups).unwrap_or_default()
}

fn of_group(group: &Group) -> GroupText {
    let config = &group.config;
    let member = |member: Member| MemberText {
        node: member.node,
        life: member.life,
    };
    let places = 0..MEMBERS as u8;
    GroupText {
        name: group.name.clone(),
        element: group.element,
        bytes: group.layout.bytes,
        line: group.layout.line,
        copies: group.copies,
        two_rounds: group.two_rounds,
        held: group.held,
        durability: group.durability.name().into(),
        home: group.home.map(|kept| kept.name().into()),
        config: config.number,
        first: config.first,
        members: config.members.iter().map(|m| m.map(member)).collect(),
        counting: places.filter(|n| config.counting >> n & 1 == 1).collect(),
        size: config.size,
        since: config.since,
        through_switch: config.through_switch,
        chooser: config.chooser,
        holds_lines: config.holds_lines,
        mapped: group.mapped.map(member),
        base: group.base,
    }
}

pub(super) fn to_groups(text: &[u8]) -> Result<Groups, String> {
    if text.len() > MAX {
        return Err(format!("{} bytes are too many", text.len()));
    }
    let text: GroupsText = serde_json::from_slice(text).map_err(|error| error.to_string())?;
    let rows = text.groups.into_iter().map(to_group);
    let groups = Groups {
        version: text.version,
        rack: text.rack,
        rows: rows.collect::<Result<_, _>>()?,
    };
    match groups.is_consistent() {
        true => Ok(groups),
        false => Err("the groups contradict themselves".into()),
    }
}

fn to_group(text: GroupText) -> Result<Group, String> {
    if text.members.len() > MEMBERS {
        return Err(format!("a group has {MEMBERS} places"));
    }
    let mut members = [None; MEMBERS];
    let member = |member: MemberText| Member {
        node: member.node,
        life: member.life,
    };
    for (place, there) in members.iter_mut().zip(text.members) {
        *place = there.map(member);
    }
    let mut counting = 0;
    for place in text.counting {
        let bit = 1u8.checked_shl(place.into());
        counting |= bit.ok_or_else(|| format!("there is no place {place}"))?;
    }
    let layout = Layout::new(text.line, text.bytes);
    let durability = Durability::named(&text.durability);
    let home = match text.home {
        Some(name) => Some(KeptAs::named(&name).ok_or("a home is of rest, writes or objects")?),
        None => None,
    };
    Ok(Group {
        layout: layout.ok_or("lines are of 64 bytes to 64 KiB, and whole")?,
        name: text.name,
        element: text.element,
        copies: text.copies,
        two_rounds: text.two_rounds,
        held: text.held,
        durability: durability.ok_or("durability is memory, file, sync or dax")?,
        home,
        config: Config {
            number: text.config,
            members,
            counting,
            size: text.size,
            through_switch: text.through_switch,
            chooser: text.chooser,
            holds_lines: text.holds_lines,
            since: text.since,
            first: text.first,
        },
        mapped: text.mapped.map(member),
        base: text.base,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::membership::{Asked, Survives, View};
    use rackmem_proto::abd::GROUPS;
    use rackmem_proto::wire::Copyset;

    fn groups(count: usize, name: &str, copies: u8) -> Groups {
        let view = View::first(Copyset(u32::MAX), true);
        let lines = Layout::new(64 << 10, 1 << 40).unwrap();
        (0..count).fold(Groups::default(), |groups, nth| {
            let name = format!("{nth:02}{name}");
            let asked = Asked {
                two_rounds: nth % 2 == 1,
                home: match nth % 4 {
                    0 => None,
                    1 => Some(KeptAs::Blocks(Survives::Rest)),
                    2 => Some(KeptAs::Blocks(Survives::Writes)),
                    _ => Some(KeptAs::Objects),
                },
                ..Asked::new(lines, copies)
            };
            let created = groups.create((&name, u64::MAX), asked, (&view, 30));
            created.unwrap()
        })
    }

    #[test]
    fn what_is_written_is_read() {
        let mut groups = groups(4, "ledger \"of\"\n", 3);
        groups.rows[1].mapped = Some(Member { node: 7, life: 9 });
        groups.rows[3].base = 3 << 16;
        assert_eq!(to_groups(of_groups(&groups).as_bytes()), Ok(groups));
        let none = Groups::default();
        assert_eq!(to_groups(of_groups(&none).as_bytes()), Ok(none));
    }

    #[test]
    fn the_longest_groups_are_short_enough() {
        // A quotation mark takes two bytes.
        let mut groups = groups(GROUPS, &"\"".repeat(86), 7);
        for group in &mut groups.rows {
            group.config.number = u32::MAX;
            for member in group.config.members.iter_mut().flatten() {
                member.life = u64::MAX;
            }
            group.mapped = group.config.members[0];
            // As much as the longest number that its home has addresses for.
            group.base = 1 << 44;
        }
        let text = of_groups(&groups);
        assert!(text.len() < MAX, "{}", text.len());
        assert_eq!(to_groups(text.as_bytes()), Ok(groups));
    }

    #[test]
    fn garbage_is_told() {
        let good = of_groups(&groups(1, "log", 3));
        let bad = [
            String::new(),
            "[]".into(),
            good.replace("\"line\":65536", "\"line\":100"),
            good.replace("\"counting\":[0,1,2]", "\"counting\":[0,1,9]"),
            good.replace("\"counting\":[0,1,2]", "\"counting\":[0,1,3]"),
            good.replace("\"counting\":[0,1,2]", "\"counting\":[0]"),
            good.replace("\"node\":31", "\"node\":32"),
            good.replace("\"version\":1", "\"version\":0"),
            good.replace("\"size\":3", "\"size\":9"),
            good.replace("\"memory\"", "\"sync\""),
            good.replace("\"memory\"", "\"disk\""),
            good.replace("\"memory\"", "\"memory\",\"home\":\"all\""),
            good.replace("null", "null,null"),
            good.replacen('{', "{\"more\":1,", 1),
            format!("{good}{}", " ".repeat(MAX)),
        ];
        for text in bad {
            assert_ne!(text, good);
            assert!(to_groups(text.as_bytes()).is_err(), "{text}");
        }
    }
}
