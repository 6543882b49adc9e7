//! What becomes of the rack while this process is in it: a line each time its members change.

use crate::out;
use crate::stop::Stop;
use rackmem::membership::{Pace, Role, View};
use rackmem::{LeaveError, Node, Rack};
use rackmem_kv::Store;
use rackmem_kv::memory::Memory;
use serde_json::json;
use std::time::{Duration, Instant};

/// Between two looks.
const LOOK: Duration = Duration::from_millis(100);
/// How long to wait for the rebuild that a change brings, before telling without it.
const REBUILT: Duration = Duration::from_secs(5);

/// Between two words about a membership store that is slow.
const SLOW_AGAIN: Duration = Duration::from_secs(10);

/// A change that is not told yet.
struct Pending {
    since: Instant,
    rebuilds: u64,
}

/// What a rebuild has come to at this node.
#[derive(Clone, Copy)]
struct Rebuilt {
    done: u64,
    time: Duration,
    /// Blocks and locks of this node's memory whose last content died with a member.
    blocks: u64,
    locks: u64,
}

/// A store, in whatever memory.
trait Buckets {
    /// Those whose home is away, and all.
    fn count(&self) -> (usize, usize);
}

impl<M: Memory> Buckets for Store<M> {
    fn count(&self) -> (usize, usize) {
        (self.buckets_away(), self.buckets())
    }
}

/// Tells of changes.
pub struct Watch<'a> {
    rack: &'a Rack,
    store: Option<&'a dyn Buckets>,
    json: bool,
    told: Option<View>,
    pending: Option<Pending>,
    /// Rebuilds when nothing was pending.
    rebuilds: u64,
    /// Copies that are known to have ended.
    ended: usize,
    slowness: Slowness,
}

/// What was told of a membership store that is slow.
#[derive(Default)]
struct Slowness {
    late: u64,
    told: Option<Instant>,
}

impl Slowness {
    /// What to tell now, if anything.
    fn news(&mut self, pace: Option<Pace>) -> Option<String> {
        let pace = pace.filter(|pace| pace.late > self.late)?;
        if self.told.is_some_and(|told| told.elapsed() < SLOW_AGAIN) {
            return None;
        }
        *self = Slowness {
            late: pace.late,
            told: Some(Instant::now()),
        };
        Some(slow(&pace))
    }
}

/// Why a watch is over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Over {
    /// The user wants the end.
    Stopped,
    /// The rack has declared this process dead.
    Fenced,
}

impl<'a> Watch<'a> {
    /// From now on.
    pub fn new(rack: &'a Rack, json: bool) -> Self {
        let mut watch = Watch {
            rack,
            store: None,
            json,
            told: rack.view(),
            pending: None,
            rebuilds: 0,
            ended: 0,
            slowness: Slowness::default(),
        };
        watch.rebuilds = watch.rebuilt().map_or(0, |rebuilt| rebuilt.done);
        watch
    }

    /// Also tells what a change means for this store.
    pub fn of_store<M: Memory>(self, store: &'a Store<M>) -> Self {
        Watch {
            store: Some(store),
            ..self
        }
    }

    /// Watches until told to stop, or fenced.
    pub fn wait(&mut self, stop: &Stop) -> Over {
        loop {
            if let Some(over) = self.sleep(Duration::MAX, stop) {
                return over;
            }
        }
    }

    /// Watches for so long; says why when it is over before.
    pub fn sleep(&mut self, time: Duration, stop: &Stop) -> Option<Over> {
        let began = Instant::now();
        loop {
            if self.rack.is_fenced() {
                // That may be why.
                self.look_at_store();
                return Some(Over::Fenced);
            }
            let left = time.saturating_sub(began.elapsed());
            if left.is_zero() {
                return None;
            }
            if !stop.sleep(left.min(LOOK)) {
                return Some(Over::Stopped);
            }
            self.look();
        }
    }

    /// Watches until fenced.
    pub fn until_fenced(&mut self) {
        while !self.rack.is_fenced() {
            std::thread::sleep(LOOK);
            self.look();
        }
    }

    /// The last rebuild; none in a switch.
    fn rebuilt(&self) -> Option<Rebuilt> {
        let node = self.rack.nodes().first()?;
        let rebuilds = node.rebuilds();
        Some(Rebuilt {
            done: rebuilds.done,
            time: rebuilds.last,
            blocks: node.blocks_lost(),
            locks: rebuilds.locks_lost,
        })
    }

    fn look(&mut self) {
        self.look_at_copies();
        self.look_at_store();
        let (Some(before), Some(now)) = (self.told, self.rack.view()) else {
            return;
        };
        let same =
            |a: &View, b: &View| (a.epoch, a.live.0, a.switch) == (b.epoch, b.live.0, b.switch);
        if same(&before, &now) {
            return;
        }
        let pending = self.pending.get_or_insert(Pending {
            since: Instant::now(),
            rebuilds: self.rebuilds,
        });
        let (since, rebuilds) = (pending.since, pending.rebuilds);
        let rebuilt = self.rebuilt();
        let heavy = before.epoch != now.epoch;
        let done = rebuilt.is_none_or(|rebuilt| rebuilt.done > rebuilds) || !heavy;
        if !done && since.elapsed() < REBUILT {
            return;
        }
        self.pending = None;
        self.told = Some(now);
        self.rebuilds = rebuilt.map_or(0, |rebuilt| rebuilt.done);
        let away = self.store.map(Buckets::count);
        let text = tell(&before, &now, rebuilt.filter(|_| heavy), away, self.json);
        out::line(text);
    }
}

impl Watch<'_> {
    /// A membership store that is slow is told of beside what the command prints.
    fn look_at_store(&mut self) {
        if let Some(news) = self.slowness.news(self.rack.membership_pace()) {
            eprintln!("{news}");
        }
    }

    /// A durable copy that has ended says why, once.
    fn look_at_copies(&mut self) {
        let ended: Vec<_> = self
            .rack
            .nodes()
            .iter()
            .flat_map(Node::ended_copies)
            .collect();
        for (region, why) in ended.iter().skip(self.ended) {
            out::line(match self.json {
                true => json!({"copy_ended": region, "why": why.to_string()}).to_string(),
                false => format!("the copy of `{region}` here has ended: {why}"),
            });
        }
        self.ended = self.ended.max(ended.len());
    }
}

/// What the heartbeats of a process with a slow store come to, in a line.
fn slow(pace: &Pace) -> String {
    let Pace {
        lease,
        late,
        longest,
    } = pace;
    let (longest, lease) = (longest.as_millis(), lease.as_millis());
    format!(
        "the membership store or this machine is slow: {late} heartbeats were late so far, the worst took {longest} ms, and the \
         lease is {lease} ms; who cannot send one within it is declared dead. Give the rack a longer `lease`, or its store a \
         faster disk or network (docs/membership.md)"
    )
}

/// What a change comes to, in a line. `away`: the store's buckets whose home is no member,
/// and all of its buckets.
fn tell(
    before: &View,
    now: &View,
    rebuilt: Option<Rebuilt>,
    away: Option<(usize, usize)>,
    json: bool,
) -> String {
    let (came, went) = (news(before, now), news(now, before));
    if json {
        let line = json!({
            "epoch": now.epoch, "version": now.version, "came": came, "went": went,
            "rebuild_us": rebuilt.map(|rebuilt| rebuilt.time.as_micros() as u64),
            "blocks_lost": rebuilt.map(|rebuilt| rebuilt.blocks),
            "locks_lost": rebuilt.map(|rebuilt| rebuilt.locks),
            "buckets_unavailable": away.map(|(away, _)| away),
        });
        return line.to_string();
    }
    let mut text = format!("members: epoch {}", now.epoch);
    for (what, who) in [("came", came), ("went", went)] {
        if !who.is_empty() {
            text.push_str(&format!("; {} {what}", who.join(", ")));
        }
    }
    if let Some(Rebuilt {
        time,
        blocks,
        locks,
        ..
    }) = rebuilt
    {
        let ms = time.as_secs_f64() * 1000.0;
        text.push_str(&format!(
            "; directory rebuilt in {ms:.1} ms; of this node's memory {blocks} blocks and the data of {locks} locks lost"
        ));
    }
    if let Some((away, all)) = away.filter(|(away, _)| *away > 0) {
        text.push_str(&format!(
            "; {away} of {all} buckets are away: their keys answer NODELOST until their node is back"
        ));
    }
    text
}

/// Who is in `now` and was not in `before`, or was as another process.
fn news(before: &View, now: &View) -> Vec<String> {
    let nodes = now.live.iter();
    let fresh = nodes.filter(|&node| before.incarnation(node) != now.incarnation(node));
    let mut who: Vec<String> = fresh.map(|node| format!("node {node}")).collect();
    if now.switch.is_some() && now.switch != before.switch {
        who.push("switch".into());
    }
    who
}

/// Gives the place of this process in the rack up, politely where that is possible,
/// and says where it is not.
pub fn leave(rack: Rack, role: Role, can_change: bool, lease: Duration) {
    if !can_change {
        return drop(rack);
    }
    let ms = lease.as_millis();
    match role {
        Role::Switch => {
            eprintln!("the rack continues without a switch after the lease, in {ms} ms");
            drop(rack);
        }
        Role::Node(node) => match rack.leave() {
            Ok(()) => eprintln!("node {node}: has left the rack"),
            Err(LeaveError::InUse { .. }) => eprintln!(
                "node {node}: its memory is in use and will be lost; the rack continues without it after the lease, in {ms} ms"
            ),
            Err(error) => eprintln!("node {node}: could not leave the rack: {error}"),
        },
    }
}

/// The same for a node whose part of a store is at the others, or is to be lost.
pub fn leave_store(rack: Rack, role: Role, can_change: bool) {
    if !can_change {
        return drop(rack);
    }
    match rack.leave_memory_behind() {
        Ok(()) => eprintln!("{role}: has left the rack"),
        Err(error) => eprintln!("{role}: could not leave the rack: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_came_and_who_went() {
        let file = "nodes = ['127.0.0.1:1', '127.0.0.1:2']\nswitch = '127.0.0.1:3'";
        let whole = rackmem::Config::parse(file)
            .unwrap()
            .membership
            .first_view();
        assert!(news(&whole, &whole).is_empty());
        let alone = whole.exclude(1).unwrap();
        assert_eq!(news(&alone, &whole), ["node 1"]);
        assert!(news(&whole, &alone).is_empty());
        let back = alone.admit(1).unwrap();
        // It is another process, so the first one went, too.
        assert_eq!(
            (news(&whole, &back), news(&back, &whole)),
            (vec!["node 1".into()], vec!["node 1".into()])
        );
        let switch = back.exclude_switch().unwrap().admit_switch().unwrap();
        assert_eq!(news(&back, &switch), ["switch"]);
    }

    #[test]
    fn a_slow_store_is_told_of_once_in_a_while() {
        let pace = |late| {
            Some(Pace {
                lease: Duration::from_secs(1),
                late,
                longest: Duration::from_millis(3210),
            })
        };
        let mut slowness = Slowness::default();
        assert_eq!(slowness.news(pace(0)).or(slowness.news(None)), None);
        let text = slowness.news(pace(2)).unwrap();
        for part in ["2 heartbeats", "3210 ms", "1000 ms", "`lease`"] {
            assert!(text.contains(part), "{text}");
        }
        // Soon after it, and when nothing more was late.
        assert_eq!(slowness.news(pace(3)), None);
        slowness.told = Instant::now().checked_sub(SLOW_AGAIN);
        assert_eq!(slowness.news(pace(2)), None);
        assert!(slowness.news(pace(3)).is_some());
    }

    #[test]
    fn a_death_is_not_told_as_if_nothing_were_lost() {
        let file = "nodes = ['127.0.0.1:1', '127.0.0.1:2']";
        let whole = rackmem::Config::parse(file)
            .unwrap()
            .membership
            .first_view();
        let alone = whole.exclude(1).unwrap();
        let rebuilt = Some(Rebuilt {
            done: 1,
            time: Duration::from_micros(1500),
            blocks: 0,
            locks: 7,
        });
        let text = tell(&whole, &alone, rebuilt, Some((32, 64)), false);
        for part in [
            "node 1 went",
            "0 blocks and the data of 7 locks lost",
            "32 of 64 buckets are away",
        ] {
            assert!(text.contains(part), "{text}");
        }
        let told: serde_json::Value =
            serde_json::from_str(&tell(&whole, &alone, rebuilt, Some((32, 64)), true)).unwrap();
        assert_eq!(
            (&told["locks_lost"], &told["buckets_unavailable"]),
            (&7.into(), &32.into())
        );
        let back = tell(&alone, &alone.admit(1).unwrap(), None, Some((0, 64)), false);
        assert!(!back.contains("away"), "{back}");
    }
}
