//! `rackmem members`: who is in a rack of processes, and taking somebody out of it.

use super::load;
use crate::ended::Ended;
use crate::failure::{Failure, Result};
use crate::out;
use crate::rack_args::node;
use clap::{Args, Subcommand};
use rackmem::Config;
use rackmem::membership::{self, Group, Groups, MembershipError, Places, Role, Sign, Store, View};
use rackmem_bench::table::{Align, Table};
use serde_json::json;
use std::path::PathBuf;
use std::time::Duration;

pub const EXAMPLES: &str = "\
Examples:
  rackmem members --rack rack.toml                the view, and the age of each heartbeat
  rackmem members --rack rack.toml --json
  rackmem members --rack rack.toml remove 2       declare node 2 dead: it is fenced, and its unreplicated data is lost
  rackmem members --rack rack.toml remove switch
  rackmem members --rack rack.toml replace ledger 2 3    give node 2's copies of region `ledger` to node 3
  rackmem members --rack rack.toml grow ledger 3         have region `ledger` keep three copies instead of one

The file names the membership store: membership = \"dir:/path\" or \"etcd:http://host:port\".";

/// Options of `rackmem members`.
#[derive(Debug, Args)]
pub struct MembersArgs {
    /// Read the rack's description from FILE
    #[arg(long, value_name = "FILE", alias = "config")]
    rack: PathBuf,
    /// Change the members; without it, show them
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Declare a member dead
    Remove {
        /// Name the member: a node number, or `switch`
        #[arg(value_parser = role)]
        member: Role,
    },
    /// Give a node's copies of a region to another node, which fills while the region is in use
    Replace {
        /// Name the region
        #[arg(value_name = "REGION")]
        region: String,
        /// Take the copies from node OLD, which may be dead
        #[arg(value_name = "OLD", value_parser = node)]
        old: usize,
        /// Give them to node NEW; the same number for a node that has restarted without them
        #[arg(value_name = "NEW", value_parser = node)]
        new: usize,
    },
    /// Have a region keep more copies: live nodes are added one at a time,
    /// and fill while it is in use
    Grow {
        /// Name the region
        #[arg(value_name = "REGION")]
        region: String,
        /// Keep N copies: 3, 5 or 7
        #[arg(value_name = "N", value_parser = clap::value_parser!(u8).range(3..=7))]
        copies: u8,
    },
}

fn role(text: &str) -> std::result::Result<Role, String> {
    if text == "switch" {
        return Ok(Role::Switch);
    }
    let wrong = || format!("`{text}` is neither the number of a node nor `switch`");
    text.parse().map(Role::Node).map_err(|_| wrong())
}

/// How long the store may take to answer a person.
const WITHIN: Duration = Duration::from_secs(2);

/// Shows, or changes, and ends.
pub fn run(args: &MembersArgs, json: bool) -> Result<Ended> {
    let config = load(&args.rack)?;
    let settings = &config.membership;
    let open = settings.source.open(&settings.name);
    let store = open?;
    match (&args.action, store) {
        (None, Some(store)) => show(&config, &*store, json)?,
        (None, None) => {
            let none = Groups::default();
            print(&config, Some((settings.first_view(), &none)), &[], json);
        }
        (Some(_), None) => return Err(MembershipError::Fixed.into()),
        (Some(Action::Replace { region, old, new }), Some(store)) => {
            let nodes = (*old as u16, *new as u16);
            let groups = membership::replace(&*store, region, nodes, WITHIN)?;
            replaced(region, &groups, nodes, json);
        }
        (Some(Action::Grow { region, copies }), Some(store)) => {
            membership::grow(&*store, region, *copies, WITHIN)?;
            grows(region, *copies, json);
        }
        (&Some(Action::Remove { member }), Some(store)) => {
            let roster = membership::remove(&*store, member, WITHIN)?;
            print(&config, Some((roster.view, &Groups::default())), &[], json);
        }
    }
    Ok(Ended::Done)
}

fn replaced(region: &str, groups: &Groups, (old, new): (u16, u16), json: bool) {
    let config = groups
        .find(region)
        .map_or(0, |(_, group)| group.config.number);
    if json {
        return out::line(json!({"region": region, "config": config, "old": old, "new": new}));
    }
    out::line(format!(
        "{region}: config {config}; node {new} fills in place of node {old}. \
         `rackmem inspect --groups` shows how far it is."
    ));
}

fn grows(region: &str, copies: u8, json: bool) {
    if json {
        return out::line(json!({"region": region, "copies": copies}));
    }
    out::line(format!(
        "{region}: {copies} copies from now on; members are added one at a time. \
         `rackmem members` and `rackmem inspect --groups` show how far that is."
    ));
}

/// Regions whose copies do not all count yet.
fn unfinished(groups: &Groups) -> impl Iterator<Item = (&Group, u32, Option<u16>)> {
    let rows = groups
        .rows
        .iter()
        .filter(|group| !group.config.is_removed());
    let rows = rows.map(|group| {
        let config = &group.config;
        let fills = config.filling().and_then(|place| config.node(place));
        (group, config.counting.count_ones(), fills)
    });
    rows.filter(|(group, counting, fills)| *counting < group.copies.into() || fills.is_some())
}

fn show(config: &Config, store: &dyn Store, json: bool) -> Result<()> {
    let lease = config.membership.lease;
    let (roster, signs) = membership::watch(store, lease, WITHIN)?;
    match roster {
        Some(roster) => {
            let groups = store.groups(WITHIN)?.unwrap_or_default();
            print(config, Some((roster.view, &groups)), &signs, json);
        }
        None if json => print(config, None, &signs, json),
        None => {
            let cause = format!("no rack `{}` has ever been here", config.membership.name);
            let next = "start its processes, or check `membership` and `name` in the file";
            return Err(Failure::new(cause, next));
        }
    }
    Ok(())
}

fn print(config: &Config, rack: Option<(View, &Groups)>, signs: &[Sign], json: bool) {
    let Some((view, groups)) = rack else {
        return out::line(json!({"name": config.membership.name, "version": 0, "members": []}));
    };
    let roles = view.live.iter().map(Role::Node);
    let roles = roles.chain(view.switch.map(|_| Role::Switch));
    let rows = roles.map(|role| {
        let sign = signs.iter().find(|sign| sign.role == role);
        (role, sign)
    });
    let members: Places = view
        .live
        .iter()
        .map(Role::Node)
        .chain(view.switch.map(|_| Role::Switch))
        .collect();
    let unheard = |sign: &Sign| sign.links.unheard.and(members).without(sign.role);
    if json {
        let member = |(role, sign): (Role, Option<&Sign>)| {
            let age = sign.and_then(|sign| sign.age);
            let cannot_reach = sign.map(|sign| unheard(sign).iter().map(name).collect::<Vec<_>>());
            json!({
                "member": name(role),
                "incarnation": incarnation(&view, role),
                "heartbeat_ms_ago": age.map(|age| age.as_millis() as u64),
                "cannot_reach": cannot_reach.unwrap_or_default(),
                "starved": sign.is_some_and(|sign| sign.links.starved),
                "suspected": sign.is_some_and(|sign| sign.suspected),
            })
        };
        let members: Vec<_> = rows.map(member).collect();
        return out::line(json!({
            "name": config.membership.name,
            "version": view.version,
            "epoch": view.epoch,
            "shadow": view.shadow,
            "switch": view.switch,
            "lease_ms": config.membership.lease.as_millis() as u64,
            "members": members,
            "unfinished_regions": unfinished(groups).map(|(group, counting, fills)| json!({
                "region": group.name, "counting": counting, "copies": group.copies, "fills": fills,
            })).collect::<Vec<_>>(),
        }));
    }
    let shadow = view
        .shadow
        .map_or("none".into(), |node| format!("node {node}"));
    let title = format!(
        "rack {}: version {}, epoch {}, shadow {shadow}",
        config.membership.name, view.version, view.epoch
    );
    let columns = [
        ("member", Align::Left),
        ("incarnation", Align::Right),
        ("last heartbeat", Align::Right),
        ("cannot reach", Align::Left),
        ("", Align::Left),
    ];
    let mut table = Table::new(&title, &columns);
    for (role, sign) in rows {
        let beat = match sign.and_then(|sign| sign.age) {
            Some(age) => format!("{} ms ago", age.as_millis()),
            None if signs.is_empty() => "not watched".into(),
            None => format!("none in {} ms", config.membership.lease.as_millis()),
        };
        let incarnation = incarnation(&view, role).to_string();
        let unheard = sign
            .map(|sign| unheard(sign).to_string())
            .unwrap_or_default();
        let note = match sign {
            Some(sign) if sign.suspected => "suspected: a majority cannot reach it",
            Some(sign) if sign.links.starved => "starved: its network thread gets no turn",
            _ => "",
        };
        table.row(&[&name(role), &incarnation, &beat, &unheard, note]);
    }
    out::table(&table);
    for (group, counting, fills) in unfinished(groups) {
        let (name, copies) = (&group.name, group.copies);
        let fills = fills.map_or("none fills yet".into(), |node| format!("node {node} fills"));
        out::line(format!(
            "region {name}: {counting} of {copies} copies count; {fills}"
        ));
    }
}

fn name(role: Role) -> String {
    match role {
        Role::Node(node) => format!("node {node}"),
        Role::Switch => "switch".into(),
    }
}

fn incarnation(view: &View, role: Role) -> u32 {
    match role {
        Role::Node(node) => view.incarnation(node),
        Role::Switch => view.switch,
    }
    .unwrap_or(0)
}
