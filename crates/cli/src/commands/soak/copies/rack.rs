//! The processes, and the register that says who keeps copies.

use super::beside::ADDRESSES;
use super::event::{Event, Planted};
use super::worker::{BESIDE, REGION};
use crate::commands::load;
use crate::commands::soak::cluster::Cluster;
use crate::commands::soak::paused::Paused;
use crate::failure::{Failure, Result};
use crate::stop::Stop;
use rackmem::Durability;
use rackmem::membership::{self, Group, Store, View};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// How long the store may take to answer.
const WITHIN: Duration = Duration::from_secs(2);

/// See the module.
pub struct ReplicatedRack {
    cluster: Cluster,
    store: Arc<dyn Store>,
    /// Where nodes have their stores.
    stores: PathBuf,
    pub nodes: usize,
    /// Those that things are done to: the first ones.
    pub mortal: usize,
    pub switch: bool,
}

impl ReplicatedRack {
    /// A rack that is up.
    pub fn new(cluster: Cluster, (nodes, mortal): (usize, usize), switch: bool) -> Result<Self> {
        let config = load(&cluster.file())?;
        let settings = &config.membership;
        let store = settings.source.open(&settings.name)?;
        let none = || Failure::new("the rack has no membership store", "this is a defect");
        Ok(ReplicatedRack {
            stores: config.store().map(Path::to_path_buf).unwrap_or_default(),
            store: store.ok_or_else(none)?,
            cluster,
            nodes,
            mortal,
            switch,
        })
    }

    /// Who keeps copies, and who is there.
    fn look(&self) -> Result<Option<(Group, View)>> {
        let roster = self.store.load(WITHIN)?.roster;
        let group = self.groups()?.into_iter().next();
        Ok(group.zip(roster.map(|roster| roster.view)))
    }

    /// The groups of its regions, the first one's first.
    fn groups(&self) -> Result<Vec<Group>> {
        let groups = self.store.groups(WITHIN)?.unwrap_or_default();
        let found = [REGION, BESIDE, ADDRESSES].map(|name| groups.find(name));
        let found = found.into_iter().map_while(|found| found);
        Ok(found.map(|(_, group)| group.clone()).collect())
    }

    /// Why the next thing may not happen yet: with another copy gone there might be no majority.
    pub fn unwell(
        &self,
        durability: Durability,
        planted: Option<Planted>,
    ) -> Result<Option<String>> {
        let Some((_, view)) = self.look()? else {
            return Ok(Some("there is no region yet".into()));
        };
        let away = (0..self.nodes as u16).find(|node| !view.live.contains(*node));
        if let Some(node) = away {
            return Ok(Some(format!("node {node} is no member of the rack")));
        }
        if self.switch && view.switch.is_none() {
            return Ok(Some("the switch is not there".into()));
        }
        for group in self.groups()? {
            if let Some(why) = unwell(&group, &view, durability, planted) {
                return Ok(Some(why));
            }
        }
        Ok(None)
    }

    /// The nodes that keep copies.
    pub fn members(&self) -> Result<Vec<u16>> {
        let members = self.look()?.map(|(group, _)| group.config.members);
        let members = members.iter().flatten().flatten();
        Ok(members.map(|member| member.node).collect())
    }
    /// The node that serves homes of groups.
    pub fn keeper(&self) -> Option<usize> {
        let (_, view) = self.look().ok()??;
        view.keeper().map(usize::from)
    }

    /// A member, and a node that keeps no copy. None: all do.
    pub fn replacement(&self, random: &mut fastrand::Rng) -> Option<Event> {
        let members = self.members().ok()?;
        let spares = (0..self.nodes as u16).filter(|node| !members.contains(node));
        let spares: Vec<u16> = spares.collect();
        let old = *members.get(random.usize(..members.len().max(1)))?;
        let new = *spares.get(random.usize(..spares.len().max(1)))?;
        Some(Event::Replace(old, new))
    }

    /// Gives a member's copies to another node.
    pub fn replace(&self, old: u16, new: u16) -> Result<()> {
        membership::replace(&*self.store, REGION, (old, new), WITHIN)?;
        Ok(())
    }

    /// Has the region keep so many copies.
    pub fn grow(&self, copies: u8) -> Result<()> {
        membership::grow(&*self.store, REGION, copies, WITHIN)?;
        Ok(())
    }

    pub fn kill(&mut self, switch: bool, nodes: &[usize]) {
        self.cluster.kill(switch, nodes);
    }

    /// Starts what was killed; `false` when told to stop.
    pub fn restart(&mut self, switch: bool, nodes: &[usize], stop: &Stop) -> Result<bool> {
        self.cluster.restart(switch, nodes, stop)
    }

    /// Starts nodes again that have ended by themselves: the rack has gone on without them.
    pub fn revive(&mut self, stop: &Stop) -> Result<()> {
        let ended = self.cluster.ended();
        if !ended.is_empty() {
            self.restart(false, &ended, stop)?;
        }
        Ok(())
    }

    /// Ends all processes.
    pub fn end(&mut self) {
        let all: Vec<usize> = (0..self.nodes).collect();
        self.cluster.kill(true, &all);
    }

    /// Stops a node's process for a time.
    pub fn pause(&self, node: usize, time: Duration) -> Result<Option<Paused>> {
        let process = self.cluster.process(node);
        process
            .map(|process| Paused::new(process, time))
            .transpose()
    }

    /// A defect: processes that have forgotten count as the members that they were.
    pub fn count_forgetful(&self, nodes: &[u16]) -> Result<()> {
        loop {
            let (Some(mut groups), Some(roster)) =
                (self.store.groups(WITHIN)?, self.store.load(WITHIN)?.roster)
            else {
                return Ok(());
            };
            let Some(at) = groups.find(REGION).map(|(at, _)| usize::from(at)) else {
                return Ok(());
            };
            let config = &mut groups.rows[at].config;
            let member = config.members.iter_mut().flatten();
            for member in member.filter(|member| nodes.contains(&member.node)) {
                let life = roster.view.incarnation(member.node).map(u64::from);
                member.life = life.unwrap_or(member.life);
            }
            config.number += 1;
            config.since = config.number;
            groups.version += 1;
            if self.store.propose_groups(&groups, WITHIN)? {
                return Ok(());
            }
        }
    }

    fn kept(&self) -> PathBuf {
        self.stores.with_extension("kept")
    }

    /// Keeps what stores have now.
    pub fn keep_stores(&self) -> Result<()> {
        Ok(copy(&self.stores, &self.kept())?)
    }

    /// A defect: disks that lose what they called durable.
    pub fn roll_back(&self) -> Result<()> {
        std::fs::remove_dir_all(&self.stores)?;
        Ok(std::fs::rename(self.kept(), &self.stores)?)
    }
}

/// Why a group might have no majority without another copy.
fn unwell(
    group: &Group,
    view: &View,
    durability: Durability,
    planted: Option<Planted>,
) -> Option<String> {
    let config = &group.config;
    if let Some(node) = config.filling().and_then(|place| config.node(place)) {
        return Some(format!("node {node} fills"));
    }
    let (counting, copies) = (config.counting.count_ones(), group.copies);
    if counting < copies.into() {
        return Some(format!("{counting} of {copies} copies count"));
    }
    let forgot = config.members.iter().flatten().find(|member| {
        durability == Durability::Memory
            && view.incarnation(member.node).map(u64::from) != Some(member.life)
    });
    let forgot = forgot.filter(|_| planted != Some(Planted::Forgetful));
    forgot.map(|member| format!("node {} has forgotten its copy", member.node))
}

fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        match entry.file_type()?.is_dir() {
            true => copy(&entry.path(), &to)?,
            // A journal that is rolled just now may be gone.
            false => drop(std::fs::copy(entry.path(), to)),
        }
    }
    Ok(())
}
