//! YCSB A, B and C on all nodes: one thread a node, each on the store as its node has it open.

use super::meter::Meter;
use super::processes::Processes;
use super::scene::Scene;
use super::summary::{Phase, Story};
use crate::halt::{Halt, Played, wrong};
use crate::store::NodeStore;
use rackmem_bench::report::number;
use rackmem_bench::ycsb::{Client, Done, KeyValue, Mix, Records};
use rackmem_bench::zipf::{YCSB_THETA, Zipf};
use std::time::{Duration, Instant};

/// The records: 100-byte values, a tenth of YCSB's own, so that the demo fits small machines.
pub const RECORDS: Records = Records {
    count: 50_000,
    value_bytes: 100,
};
/// Operations between two looks at the clock.
const BATCH: u64 = 256;
/// Between two movements of the bar.
const TICK: Duration = Duration::from_millis(100);

/// A node's store, as YCSB sees it.
pub struct Target<'a>(pub &'a NodeStore);

impl KeyValue for Target<'_> {
    type Error = rackmem_kv::Error;

    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> rackmem_kv::Result<bool> {
        self.0.get(key, value)
    }

    fn set(&mut self, key: &[u8], value: &[u8]) -> rackmem_kv::Result<()> {
        self.0.set(key, value)
    }
}

pub fn run(scene: &Scene<'_>, time: Duration, story: &mut Story) -> Played<()> {
    load(scene)?;
    let zipf = Zipf::new(RECORDS.count, YCSB_THETA);
    for mix in Mix::ALL {
        let phase = scene.measure(&format!("ycsb {}", mix.to_string().to_lowercase()), || {
            mixed(scene, mix, zipf, time)
        })?;
        scene.show.done(&format!(
            "YCSB {mix} ({}% reads): {} operations a second",
            mix.read_percent(),
            number(phase.per_second())
        ));
        story.phases.push(phase);
    }
    Ok(())
}

fn load(scene: &Scene<'_>) -> Played<()> {
    let parts = scene.nodes() as u64;
    scene.on_nodes(0..scene.nodes(), |node, store| {
        Ok(RECORDS.load(&mut Target(store), node as u64, parts)?)
    })?;
    if scene.stop.requested() {
        return Err(Halt::Stopped);
    }
    Ok(())
}

/// A time in nanoseconds.
pub fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// The same on the rack of processes, to be compared.
pub fn on_processes(scene: &Scene<'_>, rack: &mut Processes, time: Duration) -> Played<Vec<Phase>> {
    rack.load(scene.stop)?;
    let phase = |mix: Mix| {
        let bar = scene.show.bar(&format!("YCSB {mix}, processes"), 1);
        let phase = rack.run(mix, time, scene.stop)?;
        bar.finish_and_clear();
        scene.show.done(&format!(
            "YCSB {mix} on the rack of processes: {} operations a second",
            number(phase.per_second())
        ));
        Ok(phase)
    };
    Mix::ALL.into_iter().map(phase).collect()
}

/// All nodes for a time.
fn mixed(scene: &Scene<'_>, mix: Mix, zipf: Zipf, time: Duration) -> Played<Vec<Meter>> {
    let end = Instant::now() + time;
    std::thread::scope(|scope| {
        let watcher = scope.spawn(move || watch(scene, mix, time));
        let meters = scene.on_nodes(0..scene.nodes(), |node, store| {
            let mut client = Client::with_keys(mix, zipf, RECORDS.value_bytes, node as u64 + 1);
            let (mut meter, mut target) = (Meter::default(), Target(store));
            while Instant::now() < end {
                if scene.stop.requested() {
                    return Err(Halt::Stopped);
                }
                for _ in 0..BATCH {
                    if meter.time(|| client.step(&mut target))? == Done::Missing {
                        return Err(wrong(format!("node {node} misses a record of YCSB")));
                    }
                }
            }
            Ok(meter)
        });
        // It ends by itself, with the workload's time.
        let _ = watcher.join();
        meters
    })
}

/// Moves the bar while the workload runs.
fn watch(scene: &Scene<'_>, mix: Mix, time: Duration) {
    let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let bar = scene.show.bar(&format!("YCSB {mix}"), millis(time));
    let start = Instant::now();
    while start.elapsed() < time && !scene.stop.requested() {
        bar.set_position(millis(start.elapsed()));
        std::thread::sleep(TICK.min(time.saturating_sub(start.elapsed())));
    }
    bar.finish_and_clear();
}
