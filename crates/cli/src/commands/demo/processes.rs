//! YCSB on a rack of processes, over UDP.

use super::summary::Phase;
use super::workload::RECORDS;
use crate::crew::{Crew, Start};
use crate::halt::{Played, wrong};
use crate::rack_args::RackArgs;
use crate::stop::Stop;
use rackmem_bench::histogram::Histogram;
use rackmem_bench::ycsb::Mix;
use serde_json::Value;
use std::path::Path;
use std::time::Duration;

/// How long a process may take to answer.
const PATIENCE: Duration = Duration::from_secs(90);

/// The rack.
pub struct Processes(Crew);

impl Processes {
    /// Starts all of them, and returns when every node serves the store.
    pub fn start(args: &RackArgs, stop: &Stop) -> Played<Processes> {
        let member = |file: &Path, node: usize| {
            let (file, node) = (file.to_string_lossy(), node.to_string());
            ["demo", "--member", &file, "--node", &node]
                .map(String::from)
                .to_vec()
        };
        let start = Start {
            rack: args,
            lines: "",
            member: &member,
            patience: PATIENCE,
            next: "see its message above; `rackmem demo --no-processes` leaves it out",
        };
        let mut crew = Crew::start(&start, stop)?;
        crew.answers(stop)?;
        Ok(Processes(crew))
    }

    /// Stores the records: every node its share.
    pub fn load(&mut self, stop: &Stop) -> Played<()> {
        let answers = self.0.all("load", stop)?;
        let stored: u64 = answers.iter().map(field("operations")).sum();
        match stored == RECORDS.count {
            true => Ok(()),
            false => Err(wrong(format!(
                "{stored} of {} records stored",
                RECORDS.count
            ))),
        }
    }

    /// A workload on all nodes at once, for a time.
    pub fn run(&mut self, mix: Mix, time: Duration, stop: &Stop) -> Played<Phase> {
        let answers = self
            .0
            .all(&format!("run {mix} {}", time.as_millis()), stop)?;
        let sum = |name| answers.iter().map(field(name)).sum::<u64>();
        if sum("missing") > 0 {
            return Err(wrong(
                "a record of YCSB is missing in the rack of processes",
            ));
        }
        let mut latencies = Histogram::new();
        let times = answers
            .iter()
            .filter_map(|answer| answer["nanos"].as_array());
        times
            .flatten()
            .filter_map(Value::as_u64)
            .for_each(|nanos| latencies.record(nanos));
        let seconds = answers
            .iter()
            .filter_map(|answer| answer["seconds"].as_f64());
        Ok(Phase {
            name: format!("ycsb {mix}").to_lowercase(),
            seconds: seconds.fold(0.0, f64::max),
            operations: sum("operations"),
            remote: sum("remote"),
            latencies,
        })
    }
}

fn field(name: &'static str) -> impl Fn(&Value) -> u64 {
    move |answer| answer[name].as_u64().unwrap_or_default()
}
