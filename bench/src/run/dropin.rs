//! `bench dropin`: write transactions of Debian's LMDB, unmodified, and two processes in turns on a
//! word of a mapped file, on the rack's memory and on this host's own. The programs are `dropin.c`
//! and `dropin_turns.c`; the node that keeps the files is this process.

use super::child::ends_with_us;
use super::{BenchError, Progress, Result};
use crate::report::Report;
use rackmem::{Config, Fabric, Rack};
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Names, sources and libraries.
const LMDB: Program = ("lmdb", include_str!("dropin.c"), &["-llmdb"]);
const TURNS: Program = ("turns", include_str!("dropin_turns.c"), &[]);
/// What they share, and LMDB's with programs of the drop-in's tests.
const HEADERS: [(&str, &str); 2] = [
    ("clock.h", include_str!("clock.h")),
    (
        "counters.h",
        include_str!("../../../crates/dropin/tests/programs/counters.h"),
    ),
];
type Program = (&'static str, &'static str, &'static [&'static str]);
/// Beginnings of the files' names: of this host's own, and of the rack's.
const NATIVE: &str = "/dev/shm/rackmem-bench-";
const RACKS: &str = "/dev/shm/rack.bench-";

/// What to measure.
#[derive(Clone, Debug)]
pub struct Options {
    /// `librackmem_pthread.so`.
    pub library: PathBuf,
    /// How many processes at a time; several: each.
    pub processes: Vec<usize>,
    /// The time of a case.
    pub duration: Duration,
}

/// What a process has done.
#[derive(Deserialize)]
struct Told {
    done: u64,
    seconds: f64,
    count: u64,
}

/// Where the database is.
#[derive(Clone, Copy)]
struct Case {
    name: &'static str,
    fabric: Option<Fabric>,
    keeps: bool,
}

const CASES: &[Case] = &[
    Case {
        name: "native",
        fabric: None,
        keeps: false,
    },
    Case {
        name: "shm",
        fabric: Some(Fabric::Shm),
        keeps: false,
    },
    Case {
        name: "udp",
        fabric: Some(Fabric::Udp),
        keeps: false,
    },
    Case {
        name: "udp-keep",
        fabric: Some(Fabric::Udp),
        keeps: true,
    },
];

/// Runs it.
pub fn run(options: &Options, report: &mut Report, progress: Progress<'_>) -> Result<()> {
    let files = Files::new()?;
    for &processes in &options.processes {
        for case in CASES {
            progress(&format!("{} by {processes}", case.name));
            let told = files.play(options, case, (LMDB.0, processes))?;
            let rate: f64 = told
                .iter()
                .map(|told| told.done as f64 / told.seconds)
                .sum();
            let name = |case: &Case| format!("write/{}/{processes}", case.name);
            match case.fabric {
                None => report.add(&name(case), rate, "/s")?,
                Some(_) => report.add_against(&name(case), rate, "/s", &name(&CASES[0]))?,
            }
        }
    }
    for case in CASES.iter().filter(|case| !case.keeps) {
        progress(&format!("turns, {}", case.name));
        let told = files.play(options, case, (TURNS.0, 2))?;
        let turn = told[0].seconds * 1e6 / told[0].count.max(1) as f64;
        let name = |case: &Case| format!("turns/{}", case.name);
        match case.fabric {
            None => report.add(&name(case), turn, "us")?,
            Some(_) => report.add_against(&name(case), turn, "us", &name(&CASES[0]))?,
        }
    }
    Ok(())
}

/// The programs and the rack's description. Removed with the value.
struct Files {
    folder: PathBuf,
}

impl Files {
    fn new() -> Result<Files> {
        let name = format!("rackmem-bench-dropin-{}", std::process::id());
        let files = Files {
            folder: std::env::temp_dir().join(name),
        };
        std::fs::create_dir_all(&files.folder)?;
        for (name, text) in HEADERS {
            std::fs::write(files.folder.join(name), text)?;
        }
        for (name, text, libraries) in [LMDB, TURNS] {
            let (source, program) = (files.folder.join(format!("{name}.c")), files.program(name));
            std::fs::write(&source, text)?;
            let mut compile = Command::new("cc");
            compile.args(["-O2", "-o"]).args([&program, &source]);
            let compiled = compile.args(libraries).output();
            if !compiled.is_ok_and(|output| output.status.success()) {
                let what = "LMDB or a C compiler is missing: apt-get install liblmdb-dev gcc";
                return Err(BenchError::Missing(what.into()));
            }
        }
        Ok(files)
    }

    fn program(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Lets so many processes run a program, which count.
    fn play(
        &self,
        options: &Options,
        case: &Case,
        (program, processes): (&str, usize),
    ) -> Result<Vec<Told>> {
        remove_native();
        let keeper = case
            .fabric
            .map(|fabric| self.keeper(fabric, processes))
            .transpose()?;
        let running: Result<Vec<Running>> = (0..processes)
            .map(|who| self.start(options, case, program, (who, processes)))
            .collect();
        let told: Result<Vec<Told>> = running?.into_iter().map(Running::told).collect();
        remove_native();
        drop(keeper);
        let told = told?;
        let all: u64 = told.iter().map(|told| told.done).sum();
        // Whoever is last to look has seen all.
        if told.iter().any(|told| told.count != all) {
            let counts: Vec<u64> = told.iter().map(|told| told.count).collect();
            let what = format!("{program}: {all} were done, and counters say {counts:?}");
            return Err(BenchError::Broken(what));
        }
        Ok(told)
    }

    /// Node 0 of a rack, which keeps the files.
    fn keeper(&self, fabric: Fabric, processes: usize) -> Result<Rack> {
        let nodes: Vec<String> = rackmem_hosts::addresses(processes + 1)
            .iter()
            .map(|addr| format!("\"{addr}\""))
            .collect();
        let text = format!(
            "fabric = \"{}\"\nnodes = [{}]\nmemory = \"256M\"\n",
            fabric.name(),
            nodes.join(", ")
        );
        std::fs::write(self.rack(), text)?;
        let config = Config::load(&self.rack()).map_err(rackmem::Error::from)?;
        Ok(Rack::join(&config, 0).map_err(rackmem::Error::from)?)
    }

    fn rack(&self) -> PathBuf {
        self.folder.join("rack.toml")
    }

    fn start(
        &self,
        options: &Options,
        case: &Case,
        program: &str,
        (who, all): (usize, usize),
    ) -> Result<Running> {
        let mut command = Command::new(self.program(program));
        command.arg(who.to_string()).arg(all.to_string());
        command.arg(options.duration.as_secs_f64().to_string());
        match case.fabric {
            None => command.arg(format!("{NATIVE}{program}")),
            Some(_) => command
                .arg(format!("{RACKS}{program}"))
                .env("RACKMEM_CONFIG", self.rack())
                .env("RACKMEM_NODE", (who + 1).to_string())
                .env("LD_PRELOAD", &options.library),
        };
        // What is to outlive a node, the program has to say.
        if program == LMDB.0 {
            command.arg(u8::from(case.keeps).to_string());
        }
        if case.keeps {
            command.env("RACKMEM_FILES_KEEP", "unlock");
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        Ok(Running(Some(ends_with_us(&mut command).spawn()?)))
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        // What cannot be removed is in the system's folder for such things.
        let _ = std::fs::remove_dir_all(&self.folder);
        remove_native();
    }
}

fn remove_native() {
    for suffix in [LMDB.0, "lmdb-lock", TURNS.0] {
        let _ = std::fs::remove_file(Path::new(&format!("{NATIVE}{suffix}")));
    }
}

/// A process of ours; killed when dropped.
struct Running(Option<Child>);

impl Running {
    fn told(mut self) -> Result<Told> {
        let child = self.0.take().ok_or(std::io::ErrorKind::NotFound);
        let output = child.map_err(std::io::Error::from)?.wait_with_output()?;
        let told = serde_json::from_slice(&output.stdout);
        told.map_err(|_| BenchError::Broken("the program failed: its message is above".into()))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            // Gone already is as good as killed.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
