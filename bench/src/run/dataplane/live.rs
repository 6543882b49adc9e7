//! Between hosts: what a packet takes through the switch, beside a program that only echoes or
//! forwards.

use super::part::{AGENT_PORT, SWITCH_PORT, at};
use super::{BenchError, Options, Progress, Result, missing};
use crate::report::Report;
use crate::run::child::Running;
use crate::timing::median_for;
use rackmem_hosts::{Hosts, Place};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

/// How peers are found by a miss: they listen for a while after each packet, and then sleep.
const PEERS: [&str; 2] = ["awake", "asleep"];

/// Parts end with their standard input, switches with a signal; neither may stay for longer.
const ENDS_WITHIN: Duration = Duration::from_millis(500);

pub(super) struct Scene {
    hosts: Hosts,
    pub(super) file: PathBuf,
}

impl Scene {
    fn new() -> Result<Self> {
        let switch = at(Place::Switch, SWITCH_PORT);
        Scene::of(&format!("switch = \"{switch}\"\n"))
    }

    pub(super) fn without_switch() -> Result<Self> {
        Scene::of("")
    }

    fn of(more: &str) -> Result<Self> {
        let hosts = Hosts::start(2).map_err(missing)?;
        let file =
            std::env::temp_dir().join(format!("rackmem-dataplane-{}.toml", std::process::id()));
        let text = format!(
            "nodes = [\"{}\", \"{}\"]\n{more}cache = 16777216\nmemory = 67108864\n",
            at(Place::Host(0), AGENT_PORT),
            at(Place::Host(1), AGENT_PORT),
        );
        std::fs::write(&file, text)?;
        Ok(Scene { hosts, file })
    }

    fn command(&self, place: Place) -> Result<Command> {
        Ok(self.hosts.command(place, std::env::current_exe()?))
    }

    pub(super) fn part(&self, place: Place, words: &[&str]) -> Result<Command> {
        let mut command = self.command(place)?;
        command.args(["bench", "dataplane", "--part"]).args(words);
        Ok(command)
    }

    /// Starts what stays, and returns when it has said its first line.
    fn start(command: Command) -> Result<Running> {
        Ok(Scene::start_saying(command)?.0)
    }

    /// The same, and what that says.
    pub(super) fn start_saying(mut command: Command) -> Result<(Running, String)> {
        Running::start_saying(&mut command, ENDS_WITHIN)
    }

    /// Runs what measures, and returns its figure.
    fn measure(&self, words: &[&str]) -> Result<f64> {
        self.measure_at(Place::Host(0), words)
    }

    /// The same at a place.
    pub(super) fn measure_at(&self, place: Place, words: &[&str]) -> Result<f64> {
        let output = self.part(place, words)?.stderr(Stdio::inherit()).output()?;
        let text = String::from_utf8_lossy(&output.stdout);
        text.trim()
            .parse()
            .map_err(|_| BenchError::Missing(format!("`{}` measured nothing", words.join(" "))))
    }

    fn switch(&self, mode: Option<&str>) -> Result<Running> {
        let mut command = self.command(Place::Switch)?;
        command
            .arg("--json")
            .arg("switch")
            .arg("--rack")
            .arg(&self.file);
        if let Some(mode) = mode {
            command
                .args(["--xdp-mode", mode, "--xdp"])
                .args(self.hosts.ports());
        }
        Scene::start(command)
    }

    /// The median of several measurements, each with a switch or a program of its own.
    pub(super) fn median(
        &self,
        duration: Duration,
        mut once: impl FnMut() -> Result<f64>,
    ) -> Result<f64> {
        let mut failed = None;
        let value = median_for(duration, || {
            once().unwrap_or_else(|error| {
                failed = Some(error);
                0.0
            })
        });
        failed.map_or(Ok(value.value), Err)
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        // It is a temporary file in any case.
        let _ = std::fs::remove_file(&self.file);
    }
}

pub fn run(report: &mut Report, options: &Options, progress: Progress<'_>) -> Result<()> {
    let scene = Scene::new()?;
    let rounds = options.rounds.to_string();
    let misses = (options.rounds / 5).max(1).to_string();
    let file = scene.file.display().to_string();
    let trips = |mode: Option<&str>, what: &str| {
        scene.median(options.duration, || {
            let _switch = scene.switch(mode)?;
            scene.measure(&["trips", what, &rounds])
        })
    };
    let reads = |mode: Option<&str>, who: &str| {
        scene.median(options.duration, || {
            let _switch = scene.switch(mode)?;
            let home = scene.part(Place::Host(1), &["member", &file, "1", "0", who])?;
            let _home = Scene::start(home)?;
            scene.measure(&["member", &file, "0", &misses, who])
        })
    };
    for mode in ["native", "skb"] {
        progress(&format!("round trips, {mode}"));
        let echo = scene.median(options.duration, || {
            let _echo = Scene::start(scene.part(Place::Switch, &["echo", mode])?)?;
            scene.measure(&["trips", "echo", &rounds])
        })?;
        let echo_case = format!("{mode}/echo");
        report.add(&echo_case, echo / 1e3, "us")?;
        for what in ["lock", "grant"] {
            let took = trips(Some(mode), what)? / 1e3;
            report.add_against(&format!("{mode}/{what}"), took, "us", &echo_case)?;
        }
        let forward = scene.median(options.duration, || {
            let _forward = Scene::start(scene.part(Place::Switch, &["forward", mode])?)?;
            let _server = Scene::start(scene.part(Place::Host(1), &["answer"])?)?;
            scene.measure(&["trips", "block", &misses])
        })?;
        let forward_case = format!("{mode}/forward-and-a-block-back");
        report.add(&forward_case, forward / 1e3, "us")?;
        for who in PEERS {
            let miss = reads(Some(mode), who)? / 1e3;
            report.add_against(
                &format!("{mode}/read-miss/{who}"),
                miss,
                "us",
                &forward_case,
            )?;
        }
        progress(&format!("packets a second, {mode}"));
        let echo_rate = scene.median(options.duration, || {
            let _echo = Scene::start(scene.part(Place::Switch, &["echo", mode])?)?;
            scene.measure(&["rate", "echo", &rounds])
        })?;
        let rate_case = format!("{mode}/echo-rate");
        report.add(&rate_case, echo_rate, "packets/s")?;
        let lock_rate = scene.median(options.duration, || {
            let _switch = scene.switch(Some(mode))?;
            scene.measure(&["rate", "lock", &rounds])
        })?;
        report.add_against(
            &format!("{mode}/lock-rate"),
            lock_rate,
            "packets/s",
            &rate_case,
        )?;
    }
    progress("the switch in user space");
    for what in ["lock", "grant"] {
        let took = trips(None, what)? / 1e3;
        report.add_against(&format!("user/{what}"), took, "us", &format!("skb/{what}"))?;
    }
    for who in PEERS {
        let case = format!("read-miss/{who}");
        let miss = reads(None, who)? / 1e3;
        report.add_against(&format!("user/{case}"), miss, "us", &format!("skb/{case}"))?;
    }
    let rate = scene.median(options.duration, || {
        let _switch = scene.switch(None)?;
        scene.measure(&["rate", "lock", &rounds])
    })?;
    report.add_against("user/lock-rate", rate, "packets/s", "skb/lock-rate")?;
    Ok(())
}
