//! One node of the demo's rack of processes: does what the parent process writes to its standard
//! input, and prints a line of JSON for each command.

use super::remote;
use super::workload::{self, RECORDS, Target};
use crate::commands::load;
use crate::ended::Ended;
use crate::failure::Result;
use crate::out;
use crate::stop::Stop;
use crate::store;
use rackmem::Rack;
use rackmem_bench::ycsb::{Client, Done, Mix};
use rackmem_bench::zipf::{YCSB_THETA, Zipf};
use serde_json::{Value, json};
use std::path::Path;
use std::str::FromStr;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Buckets of the store: as many records as buckets.
const BUCKETS: usize = 1 << 16;
/// Operations between two looks at the clock.
const BATCH: u64 = 64;
/// One operation in so many is timed.
const SAMPLE: u64 = 16;
/// Latencies of a phase, at most.
const SAMPLES: usize = 1 << 16;

/// Joins the rack and serves the parent until standard input closes.
pub fn run(file: &Path, number: usize) -> Result<Ended> {
    let commands = commands()?;
    let config = load(file)?;
    let nodes = config.nodes.len();
    let rack = Rack::join(&config, number)?;
    let Some(store) = store::open_when_ready(&rack.node(number), BUCKETS, &Stop::default())? else {
        return Ok(Ended::Interrupted);
    };
    let mut target = Target(&store);
    out::line(json!({"ready": number}));
    for command in commands {
        let mut words = command.split_whitespace();
        match (words.next(), words.next().map(Mix::from_str), words.next()) {
            (Some("load"), ..) => {
                let stored = RECORDS.load(&mut target, number as u64, nodes as u64)?;
                out::line(json!({"operations": stored}));
            }
            (Some("run"), Some(Ok(mix)), Some(millis)) => {
                let time = Duration::from_millis(millis.parse().unwrap_or_default());
                let before = remote::transactions(&rack);
                let mut done = mixed(&mut target, mix, number, time)?;
                done["remote"] = (remote::transactions(&rack) - before).into();
                out::line(done);
            }
            _ => out::line(json!({"unknown": command})),
        }
    }
    Ok(Ended::Done)
}

/// The lines of standard input. When it closes the parent is gone, and so is this process.
fn commands() -> Result<Receiver<String>> {
    let (tell, commands) = channel();
    let reader = std::thread::Builder::new().name("commands".to_owned());
    reader.spawn(move || {
        let lines = std::io::stdin().lines();
        for line in lines.map_while(std::result::Result::ok) {
            if tell.send(line).is_err() {
                break;
            }
        }
        std::process::exit(0);
    })?;
    Ok(commands)
}

/// One thread's operations for a time.
fn mixed(target: &mut Target<'_>, mix: Mix, number: usize, time: Duration) -> Result<Value> {
    let zipf = Zipf::new(RECORDS.count, YCSB_THETA);
    let mut client = Client::with_keys(mix, zipf, RECORDS.value_bytes, number as u64 + 1);
    let (mut operations, mut missing, mut nanos) = (0_u64, 0_u64, Vec::new());
    let start = Instant::now();
    while start.elapsed() < time {
        for turn in 0..BATCH {
            let timed = turn % SAMPLE == 0 && nanos.len() < SAMPLES;
            let began = timed.then(Instant::now);
            missing += u64::from(client.step(target)? == Done::Missing);
            if let Some(began) = began {
                nanos.push(workload::nanos(began.elapsed()));
            }
        }
        operations += BATCH;
    }
    let seconds = start.elapsed().as_secs_f64();
    Ok(json!({
        "operations": operations, "missing": missing, "seconds": seconds, "nanos": nanos,
    }))
}
