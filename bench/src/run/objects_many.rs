//! Many objects and lines by one thread: one after the other, several in one step, and by futures
//! of which so many are outstanding at a time.

use super::{Progress, Result, executor, ways};
use crate::histogram::Histogram;
use crate::report::Report;
use crate::stop;
use rackmem::diagnostics::Faults;
use rackmem::object::Object;
use rackmem::{AccessError, Contract, Fabric, Mode, Node, Rack, RegionSpec, Replicated};
use std::cell::Cell;
use std::time::{Duration, Instant};

/// Objects and lines that are used in a round.
const COUNT: usize = 64;
/// Bytes of each.
type Value = [u64; 8];
/// Futures that are outstanding at a time.
const OUTSTANDING: [usize; 3] = [1, 4, 16];

/// What is used.
struct Used {
    node: Node,
    objects: Vec<Object<Value>>,
    kept: Vec<Object<Value>>,
    lines: Vec<Replicated<Value>>,
}

type Done = std::result::Result<(), AccessError>;
/// A way to use all of them.
type Way<'a> = (String, Box<dyn Fn() -> Done + 'a>);

impl Used {
    /// Used by a node that is the home of none and has no copies.
    fn new(rack: &Rack) -> Result<Self> {
        let (home, node) = (rack.node(0), rack.node(3));
        let spec = RegionSpec::new("objects", 1 << 20).contract(Contract::Object);
        let own = home.create_region(&spec)?;
        let spec = RegionSpec::new("kept", COUNT * 128).contract(Contract::Object);
        let kept = home.create_region(&spec.copies(3).line(128))?;
        let spec = RegionSpec::new("lines", COUNT * 64).copies(3);
        let lines = node.open_region(&home.create_region(&spec).map(|_| spec)?)?;
        let mut used = Used {
            node,
            objects: Vec::new(),
            kept: Vec::new(),
            lines: Vec::new(),
        };
        for nth in 0..COUNT {
            for (all, region) in [(&mut used.objects, &own), (&mut used.kept, &kept)] {
                let made: Object<Value> = region.alloc([7; 8])?;
                all.push(used.node.attach_object(made.at())?);
            }
            let line = lines.replicated::<Value>(nth)?;
            line.write([7; 8])?;
            used.lines.push(line);
        }
        Ok(used)
    }

    /// Reads in one step.
    fn together(&self, all: &[Object<Value>]) -> Done {
        let all: Vec<&Object<Value>> = all.iter().collect();
        let read = self.node.read_many(&all);
        read.into_iter().try_for_each(|read| read.map(drop))
    }

    fn reads<'a>(&'a self, all: &'a [Object<Value>]) -> Vec<Way<'a>> {
        let mut ways = ways(
            move |nth| all[nth].read().map(drop),
            async move |nth: usize| all[nth].read_async().await.map(drop),
        );
        let together: Way<'_> = ("read-many".into(), Box::new(move || self.together(all)));
        ways.insert(1, together);
        ways
    }

    /// What is measured: each case with its ways, of which the first is what the others are
    /// compared with.
    fn cases(&self) -> Vec<(&'static str, Vec<Way<'_>>)> {
        vec![
            ("read", self.reads(&self.objects)),
            ("write", {
                let all = &self.objects;
                ways(
                    move |nth| all[nth].write(&[8; 8]).map(drop),
                    async move |nth: usize| all[nth].write_async([8; 8]).await.map(drop),
                )
            }),
            ("copies-3/read", self.reads(&self.kept)),
            ("line/read", {
                let all = &self.lines;
                ways(
                    move |nth| all[nth].read().map(drop),
                    async move |nth: usize| all[nth].read_async().await.map(drop),
                )
            }),
            ("line/write", {
                let all = &self.lines;
                ways(
                    move |nth| all[nth].write([8; 8]),
                    async move |nth: usize| all[nth].write_async([8; 8]).await,
                )
            }),
        ]
    }
}

/// One after the other by calls, and by so many tasks of one thread.
fn ways<'a>(
    call: impl Fn(usize) -> Done + 'a,
    future: impl AsyncFn(usize) -> Done + Copy + 'a,
) -> Vec<Way<'a>> {
    let alone: Way<'a> = (
        "alone".into(),
        Box::new(move || (0..COUNT).try_for_each(&call)),
    );
    let tasks = OUTSTANDING.map(|outstanding| -> Way<'a> {
        let name = format!("futures-{outstanding}");
        (name, Box::new(move || by_tasks(outstanding, future)))
    });
    [alone].into_iter().chain(tasks).collect()
}

fn by_tasks(outstanding: usize, future: impl AsyncFn(usize) -> Done) -> Done {
    let (next, future) = (&Cell::new(0), &future);
    let task = |_| async move {
        loop {
            let nth = next.replace(next.get() + 1);
            if nth >= COUNT {
                return Ok(());
            }
            future(nth).await?;
        }
    };
    executor::join((0..outstanding).map(task))
        .into_iter()
        .collect()
}

/// A network whose packets take a while, any time up to this.
const LATE: Duration = Duration::from_micros(200);

/// Where it is measured.
const NETWORKS: [(&str, Fabric, Option<Duration>); 3] = [
    ("shm", Fabric::Shm, None),
    ("udp", Fabric::Udp, None),
    ("udp-late", Fabric::Udp, Some(LATE)),
];

/// Microseconds for an object or a line, the medians of rounds in turns.
pub fn run(time: Duration, report: &mut Report, progress: Progress<'_>) -> Result<()> {
    for (name, fabric, late) in NETWORKS {
        let rack = Rack::builder(4).fabric(fabric).mode(Mode::HomeOnly);
        let rack = rack.memory(32 << 20).cache(8 << 20);
        let rack = match late {
            Some(delay_up_to) => rack.faults(Faults {
                delay: 1.0,
                delay_up_to,
                ..Faults::NONE
            }),
            None => rack,
        };
        let rack = rack.build()?;
        let used = Used::new(&rack)?;
        for (what, ways) in used.cases() {
            // Over shared memory objects of another home are read where they are.
            if fabric == Fabric::Shm && what == "read" {
                continue;
            }
            let case = format!("many/{name}/{what}");
            progress(&case);
            measure(&case, &ways, time, report)?;
        }
    }
    Ok(())
}

fn measure(case: &str, ways: &[Way<'_>], time: Duration, report: &mut Report) -> Result<()> {
    let mut times: Vec<Histogram> = ways.iter().map(|_| Histogram::new()).collect();
    let (began, all) = (Instant::now(), time * ways.len() as u32);
    // The first round of each is not counted.
    for round in 0u32.. {
        for ((_, way), times) in ways.iter().zip(&mut times) {
            let began = Instant::now();
            way()?;
            if round > 0 {
                times.record(began.elapsed().as_nanos() as u64 / COUNT as u64);
            }
        }
        if round >= 20 && began.elapsed() >= all || round > 0 && stop::requested() {
            break;
        }
    }
    let names = ways.iter().map(|(name, _)| name.as_str());
    ways::add(report, case, names.zip(&times))
}
