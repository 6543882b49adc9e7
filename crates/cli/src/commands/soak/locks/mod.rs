//! `rackmem soak --locks`: the processes of the rack hold locks and tell of it; some are killed;
//! what they told is judged.

mod churn;
mod judge;
mod line;
mod worker;

pub use judge::Process;
pub use line::{Line, MARK};
pub use worker::{now, work};

use super::cluster::Cluster;
use super::eras::victims;
use crate::failure::{Failure, Result};
use crate::out;
use crate::stop::Stop;
use judge::{Verdict, judge};
use serde_json::json;
use std::collections::HashMap;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

/// Locks that threads share, and threads of each process.
const LOCKS: usize = 4;
const THREADS: u32 = 2;
/// How long it may take until every node has had every lock again.
const SERVED: Duration = Duration::from_secs(60);
/// Between two looks.
const STEP: Duration = Duration::from_millis(20);
/// Lines that processes have told and nobody has read: more make them wait.
pub const UNREAD: usize = 1 << 16;

/// Its end, and its beginning.
pub struct Limits {
    pub seconds: u64,
    pub kills: u64,
    pub seed: u64,
}

/// A rack whose processes hold locks.
struct Soak {
    cluster: Cluster,
    told: Receiver<(Process, Line)>,
    lines: Vec<(Process, Line)>,
    /// Entries by node and lock.
    entries: HashMap<(usize, usize), u64>,
}

impl Soak {
    /// Reads what has been told.
    fn hear(&mut self) {
        for (process, line) in self.told.try_iter() {
            if matches!(line.what, line::What::Enters { .. }) {
                *self.entries.entry((process.0, line.lock)).or_default() += 1;
            }
            self.lines.push((process, line));
        }
    }

    /// Sleeps and hears; `false` when told to stop.
    fn sleep(&mut self, time: Duration, stop: &Stop) -> bool {
        let began = Instant::now();
        while began.elapsed() < time {
            self.hear();
            if !stop.sleep(STEP) {
                return false;
            }
        }
        self.hear();
        true
    }

    /// Waits until every node has had every lock. `None` when told to stop.
    fn all_served(&mut self, nodes: usize, stop: &Stop) -> Result<Option<Duration>> {
        self.hear();
        let (before, began) = (self.entries.clone(), Instant::now());
        let missing = |soak: &Soak| {
            let all = (0..nodes).flat_map(|node| (0..LOCKS).map(move |lock| (node, lock)));
            let mut all = all.filter(|at| soak.entries.get(at) <= before.get(at));
            all.next()
        };
        while let Some((node, lock)) = missing(self) {
            if !self.sleep(STEP, stop) {
                return Ok(None);
            }
            if began.elapsed() > SERVED {
                let seconds = SERVED.as_secs();
                return Err(Failure::new(
                    format!("lock {lock} is lost: node {node} has not had it for {seconds} s"),
                    "this is a defect: please report it with the seed and the options",
                ));
            }
            self.cluster.revive(stop)?;
        }
        Ok(Some(began.elapsed()))
    }

    /// Kills members and starts them again, to the end of the run. How many times,
    /// and what went wrong.
    fn kill_some(
        &mut self,
        switch: bool,
        limits: &Limits,
        stop: &Stop,
        json: bool,
    ) -> (u64, Result<()>) {
        let nodes = self.cluster.addrs().len();
        let mut random = fastrand::Rng::with_seed(limits.seed);
        let (began, mut kills) = (Instant::now(), 0);
        while !stop.requested()
            && began.elapsed() < Duration::from_secs(limits.seconds)
            && kills < limits.kills
        {
            let (with_switch, victims) = victims(&mut random, switch, nodes);
            let mut pause = |from, to| Duration::from_millis(random.u64(from..to));
            let pauses = (pause(300, 900), pause(0, 2500));
            match self.kill_once(with_switch, &victims, pauses, stop) {
                Ok(None) => break,
                Ok(Some(served)) => {
                    kills += 1;
                    tell_kill(kills, with_switch, &victims, served, json);
                }
                Err(failure) => return (kills, Err(failure)),
            }
        }
        (kills, Ok(()))
    }

    /// One kill: how long it took until everybody was served again. `None` when told to stop.
    fn kill_once(
        &mut self,
        switch: bool,
        victims: &[usize],
        (before, dead): (Duration, Duration),
        stop: &Stop,
    ) -> Result<Option<Duration>> {
        if !self.sleep(before, stop) {
            return Ok(None);
        }
        self.cluster.kill(switch, victims);
        if !self.sleep(dead, stop) || !self.cluster.restart(switch, victims, stop)? {
            return Ok(None);
        }
        self.all_served(self.cluster.addrs().len(), stop)
    }
}

/// Runs it. `false`: told to stop.
pub fn run(
    cluster: Cluster,
    told: Receiver<(Process, Line)>,
    switch: bool,
    limits: &Limits,
    stop: &Stop,
    json: bool,
) -> Result<bool> {
    let nodes = cluster.addrs().len();
    let mut soak = Soak {
        cluster,
        told,
        lines: Vec::new(),
        entries: HashMap::new(),
    };
    let began = Instant::now();
    let (kills, ended) = soak.kill_some(switch, limits, stop, json);
    let cut_short = soak.cluster.first_has_ended();
    if !cut_short {
        ended?;
    }
    soak.cluster.kill(switch, &(0..nodes).collect::<Vec<_>>());
    // Everything is told: the pipes are at their ends.
    while let Ok(line) = soak.told.recv_timeout(Duration::from_secs(1)) {
        soak.lines.push(line);
    }
    let verdict = judge(soak.lines);
    tell(
        &verdict,
        kills,
        cut_short,
        (began.elapsed(), limits.seed),
        json,
    );
    if let Some(violation) = verdict.violations.first() {
        return Err(Failure::new(
            format!("the threads' reports contradict each other: {violation}"),
            "this is a defect: please report it with the seed and the options",
        ));
    }
    Ok(!stop.requested())
}

fn tell_kill(number: u64, switch: bool, nodes: &[usize], served: Duration, json: bool) {
    let ms = served.as_millis() as u64;
    let mut names: Vec<String> = nodes.iter().map(|node| format!("node {node}")).collect();
    names.extend(switch.then(|| "switch".to_owned()));
    if json {
        return out::line(json!({"kill": number, "victims": names, "served_ms": ms}));
    }
    out::line(format!(
        "kill {number}: {}; every node had every lock again {ms} ms after they were back",
        names.join(" and ")
    ));
}

fn tell(verdict: &Verdict, kills: u64, cut_short: bool, run: (Duration, u64), json: bool) {
    let (time, seed) = run;
    let Verdict {
        entries,
        told,
        hand_overs,
        made,
        freed,
        refused,
        violations,
    } = verdict;
    let seconds = time.as_secs_f64();
    if json {
        return out::line(json!({
            "seed": seed, "seconds": seconds, "kills": kills, "entries": entries, "told_of_deaths": told,
            "hand_overs": hand_overs, "made": made, "freed": freed, "refused": refused, "cut_short": cut_short, "violations": violations,
        }));
    }
    out::line(format!(
        "soak of locks: {seconds:.0} s, {kills} kills, {entries} entries, {hand_overs} from one node to another, {told} told of a \
         death; {made} locks made meanwhile, {freed} freed, {refused} uses of freed ones refused; {} violations{}",
        violations.len(),
        match cut_short {
            true => "; cut short, for node 0 was declared dead: a longer --lease-ms helps",
            false => "",
        }
    ));
    violations.iter().for_each(out::line);
}
