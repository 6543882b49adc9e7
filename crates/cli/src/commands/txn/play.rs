//! The run: load, drive, check, judge.

use super::histories::judge;
use super::kills::Survived;
use super::outside::Outside;
use super::{EngineArg, TxnArgs, VsArg, copies, failure, processes, show};
use crate::ended::Ended;
use crate::failure::{Failure, Result};
use crate::rack_args::packets;
use crate::size;
use crate::stop::Stop;
use indicatif::{ProgressBar, ProgressStyle};
use rackmem::Rack;
use rackmem::guest::Guest;
use rackmem_txn::{
    Delegated, Done, Engine, History, Layout, Limit, Objects, OneLock, Plan, Report, Watch, check,
    drive, load,
};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Between two movements of what shows that something is under way.
const TICK: Duration = Duration::from_millis(100);
/// Transactions that are judged, at most: each takes about a kilobyte.
const MOST_JUDGED: usize = 200_000;

/// What was asked for.
pub struct Task<'a> {
    pub args: &'a TxnArgs,
    pub stop: Stop,
    pub json: bool,
}

/// What a run has come to.
pub struct Played {
    pub engine: &'static str,
    pub loading: Duration,
    pub done: Done,
    /// Packets that were received while terminals ran.
    pub packets: u64,
    pub report: Report,
    /// What was judged.
    pub judged: Option<Judged>,
    /// What deaths have come to, where the database has copies.
    pub survived: Option<Survived>,
}

/// What came of judging a history.
#[derive(Clone, Default)]
pub struct Judged {
    /// Transactions whose terminals know that they have committed.
    pub told: usize,
    /// Those that a death has cut off, and others have seen: they have committed, too.
    pub cut_off: usize,
    /// Why they have no order, if so.
    pub why: Option<String>,
}

impl Task<'_> {
    /// All of it.
    pub fn run(&self) -> Result<Ended> {
        let rack = &self.args.rack;
        let layout = Layout::new(self.args.scale(), rack.nodes).map_err(failure)?;
        copies::check(self.args)?;
        let parts = layout.parts().iter().map(|part| part.bytes);
        // A node may have a copy of everything.
        let most = match self.args.copies {
            Some(_) => Some(parts.sum()),
            None => parts.max(),
        };
        if let Some(bytes) = most.filter(|bytes| *bytes > rack.memory) {
            let (needs, has) = (size::show(bytes), size::show(rack.memory));
            return Err(Failure::new(
                format!("a node's part of the database takes {needs}, and --memory is {has}"),
                "give more --memory or --nodes, fewer --warehouses, or less --room",
            ));
        }
        if let (Some(file), Some(node)) = (&self.args.member.member, self.args.member.as_node) {
            return processes::member(self, (file, node), layout);
        }
        let played = match self.args.processes {
            true => processes::run(self)?,
            false => self.here(layout)?,
        };
        let Some(played) = played else {
            return Ok(Ended::Interrupted);
        };
        let outside = self.outside()?;
        show::print(self, &played, outside.as_ref());
        self.verdict(&played)?;
        match self.stop.requested() {
            true => Ok(Ended::Interrupted),
            false => Ok(Ended::Done),
        }
    }

    /// Another database, with the machine to itself.
    fn outside(&self) -> Result<Option<Outside>> {
        let Some(VsArg::Sqlite) = self.args.vs.filter(|_| !self.stop.requested()) else {
            return Ok(None);
        };
        let _watcher = Watcher::new(self, "SQLite");
        Outside::run(self.args).map(Some)
    }

    /// All nodes in this process.
    fn here(&self, layout: Layout) -> Result<Option<Played>> {
        let owners = self.owners(&layout);
        let rack = self.args.rack.build_with(|rack| match owners {
            Some(owners) => rack.guests(owners),
            None => rack,
        })?;
        let nodes = rack.nodes();
        match self.args.engine {
            EngineArg::Locks => self.with(&rack, &copies::locks(self.args, nodes, layout)?),
            EngineArg::Objects => self.with(&rack, &Objects::new(nodes, layout).map_err(failure)?),
            EngineArg::Delegate => {
                self.with(&rack, &Delegated::new(nodes, layout).map_err(failure)?)
            }
            EngineArg::OneLock => self.with(&rack, &OneLock::new(nodes, layout).map_err(failure)?),
        }
    }

    /// What nodes have beside the rack's memory, where that is not what the database is in.
    pub fn owners(
        &self,
        layout: &Layout,
    ) -> Option<impl Fn(u16) -> Arc<dyn Guest> + Send + Sync + 'static> {
        let delegates = self.args.engine == EngineArg::Delegate;
        delegates.then(|| Delegated::guests(layout.clone()))
    }

    /// Nothing if the user wants the end before terminals run.
    fn with<E: Engine>(&self, rack: &Rack, engine: &E) -> Result<Option<Played>> {
        let began = Instant::now();
        let watcher = Watcher::new(self, "loading");
        load(engine, self.args.seed, &watcher).map_err(failure)?;
        drop(watcher);
        let loading = began.elapsed();
        if self.stop.requested() {
            return Ok(None);
        }
        let before = packets(rack);
        let watcher = Watcher::new(self, "running");
        let mut done = drive(engine, &self.plan(), &watcher).map_err(failure)?;
        drop(watcher);
        let packets = packets(rack) - before;
        let watcher = Watcher::new(self, "checking all rows");
        let report = check(engine, &done.tally.counts()).map_err(failure)?;
        drop(watcher);
        let judged = self.args.judge.then(|| {
            let deeds = std::mem::take(&mut done.tally.deeds);
            let open = Vec::new();
            judge(History { deeds, open })
        });
        Ok(Some(Played {
            engine: E::NAME,
            loading,
            done,
            packets,
            report,
            judged,
            survived: self.args.copies.map(|_| Survived::default()),
        }))
    }

    /// What terminals are to do.
    pub fn plan(&self) -> Plan {
        let threads = self.args.threads as usize;
        let terminals = threads * self.args.rack.nodes;
        Plan {
            threads,
            limit: Limit::Time(Duration::from_secs(self.args.seconds)),
            remote: self.args.remote(),
            seed: self.args.seed,
            deeds: match self.args.judge {
                true => MOST_JUDGED / terminals.max(1),
                false => 0,
            },
        }
    }

    fn verdict(&self, played: &Played) -> Result<()> {
        let next = "this is a defect of rackmem: please report it with this text and the options";
        if !played.report.holds() {
            let cause = "the database is not consistent: see the conditions above";
            return Err(Failure::new(cause, next));
        }
        match &played.judged {
            Some(Judged { why: Some(why), .. }) => Err(Failure::new(why.clone(), next)),
            _ => Ok(()),
        }
    }
}

/// Shows how far it is, and looks for Ctrl-C.
pub struct Watcher<'a> {
    bar: ProgressBar,
    stop: &'a Stop,
}

impl<'a> Watcher<'a> {
    /// Of something that is called so.
    pub fn new(task: &'a Task<'_>, what: &str) -> Self {
        let bar = match task.json {
            true => ProgressBar::hidden(),
            false => ProgressBar::new_spinner(),
        };
        if let Ok(style) = ProgressStyle::with_template("  {spinner} {msg} {pos} {prefix}") {
            bar.set_style(style);
        }
        bar.set_message(what.to_owned());
        bar.enable_steady_tick(TICK);
        let stop = &task.stop;
        Watcher { bar, stop }
    }
}

impl Watch for Watcher<'_> {
    fn loaded(&self, steps: u64) {
        self.bar.set_prefix(format!("of {steps} districts"));
        self.bar.inc(1);
    }

    fn ran(&self) {
        self.bar.inc(1);
    }

    fn stop(&self) -> bool {
        self.stop.requested()
    }
}

impl Drop for Watcher<'_> {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
