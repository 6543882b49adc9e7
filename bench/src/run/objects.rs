//! `bench objects`: what a read of a whole object costs, by who answers it, beside a plain copy and
//! beside other ways to tell a torn one.

use super::objects_home::{Home, READER};
use super::{Progress, Result, missing};
use crate::objects::rpc::{Far, Near, Serve};
use crate::objects::{Crc64, Layout, Locked, Plain, Versions};
use crate::report::Report;
use crate::timing;
use rackmem::locked::RwLockArray;
use rackmem::object::{Object, Retry};
use rackmem::{Contract, Fabric, Mode, Node, Rack, Region, RegionSpec};
use rackmem_fabric::Whole;
use std::hint::black_box;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// What to measure.
#[derive(Clone, Debug)]
pub struct Options {
    /// Bytes of objects, multiples of eight.
    pub sizes: Vec<usize>,
    /// Time of one case.
    pub duration: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            sizes: vec![64, 128, 1024, 8192, 65_520],
            duration: Duration::from_millis(300),
        }
    }
}

/// Bytes of the objects that a case goes through, at most: they stay in a core's cache.
const SET: usize = 16 << 10;
/// Bytes copied between two looks at the clock.
const BATCH: usize = 4 << 20;

/// Runs it.
pub fn run(options: &Options, report: &mut Report, progress: Progress<'_>) -> Result<()> {
    let bench = Bench { options };
    for &size in &options.sizes {
        progress(&format!("{size} bytes, local"));
        bench.local(report, size)?;
        progress(&format!("{size} bytes, mapped"));
        bench.mapped(report, size)?;
        progress(&format!("{size} bytes, mapped, and the home is stopped"));
        bench.stopped(report, size)?;
    }
    for &size in &options.sizes {
        progress(&format!("{size} bytes, by the home's agent"));
        bench.agent(report, size)?;
        progress(&format!("{size} bytes, with copies"));
        bench.copies(report, size)?;
        progress(&format!("{size} bytes, beside a writer"));
        bench.contended(report, size)?;
        progress(&format!(
            "{size} bytes, beside writers of a hundred objects"
        ));
        super::objects_crew::run((size, options.duration), report)?;
    }
    #[cfg(feature = "xdp")]
    super::dataplane::reads::run((&options.sizes, options.duration), report, progress)?;
    super::objects_many::run(options.duration, report, progress)?;
    super::objects_map::run(options.duration, report, progress)
}

struct Bench<'a> {
    options: &'a Options,
}

/// Objects of one size that a reader goes through.
fn objects(region: &Region, size: usize) -> Result<Vec<Object<[u8]>>> {
    let count = (SET / size).clamp(1, 64);
    let made = (0..count).map(|nth| region.alloc_bytes(&vec![nth as u8 + 1; size], 0));
    Ok(made.collect::<rackmem::Result<_, rackmem::AllocError>>()?)
}

fn region(rack: &Rack) -> Result<Region> {
    let spec = RegionSpec::new("objects", 8 << 20).contract(Contract::Object);
    Ok(rack.node(0).create_region(&spec)?)
}

fn rack(fabric: Fabric) -> Result<Rack> {
    let rack = Rack::builder(2).fabric(fabric).mode(Mode::HomeOnly);
    Ok(rack.memory(32 << 20).cache(8 << 20).build()?)
}

/// Pages under our own locks, new ones or those at this address.
fn pages(node: &Node, at: Option<u64>, count: usize, size: usize) -> Result<(u64, RwLockArray)> {
    let addr = match at {
        Some(addr) => addr,
        None => node.alloc_bytes(count * RwLockArray::STRIDE)?,
    };
    Ok((addr, RwLockArray::attach(node, addr, count, size)?))
}

/// An object of a thread at the home, which reads it under a lock for who asks.
fn object_of(size: usize) -> Serve {
    let object = Mutex::new(vec![7; size]);
    Box::new(move |_, answer| {
        answer.clear();
        answer.extend_from_slice(&object.lock().whole());
    })
}

/// What this gives, if nobody at a home was asked by this node for it: memory that is mapped.
fn unasked<T>(node: &Node, read: impl FnOnce() -> T) -> Result<T> {
    let asked = || node.metrics().objects.asked;
    let (before, value) = (asked(), read());
    match asked() == before {
        true => Ok(value),
        false => Err(missing("the home's memory could not be mapped")),
    }
}

impl Bench<'_> {
    /// Nanoseconds that a thread takes for one object of so many.
    fn time(&self, size: usize, read: impl Fn(usize, &mut [u8]) + Sync) -> f64 {
        timing::run(1, self.options.duration, |_| {
            let (read, mut out) = (&read, vec![0; size]);
            let rounds = (BATCH / size).min(1 << 14);
            move || {
                for nth in 0..rounds {
                    read(nth, black_box(&mut out));
                }
                rounds as u64
            }
        })
        .ns_per_operation()
    }

    fn layout<L: Layout>(&self, size: usize) -> f64 {
        let count = (SET / size).clamp(1, 64);
        let all: Vec<L> = (0..count).map(|_| L::new(size)).collect();
        for object in &all {
            object.write(&vec![7; size]);
        }
        let all = &all;
        self.time(size, move |nth, out| {
            black_box(all[nth % count].read(out));
        })
    }

    fn ours(&self, all: &[Object<[u8]>], size: usize) -> f64 {
        let count = all.len();
        self.time(size, move |nth, out| {
            let _ = black_box(all[nth % count].read_into(out, Retry::default()));
        })
    }

    /// A thread of the home reads.
    fn local(&self, report: &mut Report, size: usize) -> Result<()> {
        let rack = rack(Fabric::Inline)?;
        let all = objects(&region(&rack)?, size)?;
        let plain = format!("local/{size}/plain");
        report.add(&plain, self.layout::<Plain>(size), "ns")?;
        let rows: [(&str, f64); 6] = [
            ("ours", self.ours(&all, size)),
            ("versions", self.layout::<Versions>(size)),
            ("crc64", self.layout::<Crc64>(size)),
            ("lock", self.layout::<Locked>(size)),
            ("gcp", self.under_our_lock(&rack, size)?),
            ("rpc", self.asked(size)),
        ];
        for (name, time) in rows {
            report.add_against(&format!("local/{size}/{name}"), time, "ns", &plain)?;
        }
        let known: Vec<u64> = (all.iter().map(|object| object.read_versioned()))
            .map(|read| read.map(|(version, _)| version))
            .collect::<rackmem::Result<_, _>>()?;
        let count = all.len();
        let (all, known) = (&all, &known);
        let newer = self.time(size, move |nth, _| {
            let _ = black_box(all[nth % count].read_if_newer(known[nth % count]));
        });
        let name = format!("local/{size}/not-modified");
        Ok(report.add_against(&name, newer, "ns", &plain)?)
    }

    /// A reader's lock of this rack (GCP) around a copy; the node has the locks and the pages.
    fn under_our_lock(&self, rack: &Rack, size: usize) -> Result<f64> {
        let count = (SET / size).clamp(1, 64);
        let (_, locks) = pages(&rack.node(0), None, count, size)?;
        for nth in 0..count {
            locks.write(nth)?.view_mut(size).write(0, &vec![7; size]);
        }
        let locks = &locks;
        Ok(self.time(size, move |nth, out| {
            if let Ok(page) = locks.read(nth % count) {
                page.view().read(0, out);
            }
        }))
    }

    /// The home's thread reads for others.
    fn asked(&self, size: usize) -> f64 {
        let near = Mutex::new(Near::new(object_of(size)));
        let time = timing::run(1, self.options.duration, |_| {
            let (near, mut question, mut out) = (&near, Vec::new(), Vec::new());
            move || {
                let mut near = near.lock().whole();
                for _ in 0..64 {
                    near.ask(&mut question, black_box(&mut out));
                }
                64
            }
        });
        time.ns_per_operation()
    }

    /// Another process of the host: the memory is mapped, and nobody at the home is asked.
    fn mapped(&self, report: &mut Report, size: usize) -> Result<()> {
        let rack = rack(Fabric::Shm)?;
        let all = objects(&region(&rack)?, size)?;
        let far: Vec<Object<[u8]>> = (all.iter())
            .map(|object| rack.node(1).attach_object(object.at()))
            .collect::<rackmem::Result<_, _>>()?;
        let time = unasked(&rack.node(1), || self.ours(&far, size))?;
        let (name, plain) = (format!("shm/{size}/mapped"), format!("local/{size}/plain"));
        Ok(report.add_against(&name, time, "ns", &plain)?)
    }

    /// The home is a process of its own, which then does not run.
    fn stopped(&self, report: &mut Report, size: usize) -> Result<()> {
        let home = Home::start(size)?;
        let (node, all) = (home.rack.node(READER), std::slice::from_ref(&home.object));
        let runs = unasked(&node, || self.ours(all, size))?;
        home.stop();
        let stopped = unasked(&node, || self.ours(all, size))?;
        let name = format!("shm/{size}/process");
        report.add(&name, runs, "ns")?;
        Ok(report.add_against(&format!("{name}-stopped"), stopped, "ns", &name)?)
    }

    /// The home's agent answers by packets; beside it, a coherent block of as many bytes that the
    /// reader's cache has not.
    fn agent(&self, report: &mut Report, size: usize) -> Result<()> {
        let rack = rack(Fabric::Udp)?;
        let (here, there) = (rack.node(0), rack.node(1));
        let near = region(&rack)?.alloc_bytes(&vec![7; size], 0)?;
        let far: Object<[u8]> = there.attach_object(near.at())?;
        let plain = format!("udp/{size}/coherent-miss");
        let addr = here.alloc_bytes(size)?;
        here.write(addr, &vec![7; size])?;
        let mut out = vec![0; size];
        let blocks = size.div_ceil(there.block_size());
        let miss = self.each(&mut || {
            for nth in 0..blocks {
                there.evict(addr + (nth * there.block_size()) as u64)?;
            }
            let began = std::time::Instant::now();
            there.read(addr, black_box(&mut out))?;
            Ok(began.elapsed())
        })?;
        report.add(&plain, miss, "us")?;
        let mut read = |retry| {
            self.each(&mut || {
                let began = std::time::Instant::now();
                far.read_into(black_box(&mut out), retry)?;
                Ok(began.elapsed())
            })
        };
        let ours = read(Retry::default())?;
        report.add_against(&format!("udp/{size}/agent"), ours, "us", &plain)?;
        self.other_ways(report, &rack, size, &plain)?;
        let (version, _) = far.read_versioned()?;
        let newer = self.each(&mut || {
            let began = std::time::Instant::now();
            black_box(far.read_if_newer(version)?);
            Ok(began.elapsed())
        })?;
        let name = format!("udp/{size}/not-modified");
        Ok(report.add_against(&name, newer, "us", &plain)?)
    }

    /// Over UDP, a reader's lock whose page the home has just written, and a thread at the home
    /// that is asked.
    fn other_ways(&self, report: &mut Report, rack: &Rack, size: usize, plain: &str) -> Result<()> {
        let (here, there) = (rack.node(0), rack.node(1));
        let (addr, home) = pages(&here, None, 1, size)?;
        let (_, reader) = pages(&there, Some(addr), 1, size)?;
        let mut out = vec![0; size];
        let locked = self.each(&mut || {
            home.write(0)?.view_mut(size).write(0, &[8; 8]);
            let began = std::time::Instant::now();
            reader.read(0)?.view().read(0, black_box(&mut out));
            Ok(began.elapsed())
        })?;
        report.add_against(&format!("udp/{size}/gcp-written"), locked, "us", plain)?;
        let mut home = Far::new(object_of(size))?;
        let mut failed = None;
        let asked = self.each(&mut || {
            let began = std::time::Instant::now();
            failed = home.ask(&[], black_box(&mut out)).err().or(failed.take());
            Ok(began.elapsed())
        })?;
        match failed {
            Some(error) => Err(error.into()),
            None => Ok(report.add_against(&format!("udp/{size}/rpc"), asked, "us", plain)?),
        }
    }

    /// Objects that a majority of three nodes has: a read by the agent of the node that serves
    /// them, a write, and a transaction that writes two, beside those of objects that die with
    /// their home. `mixed`: it writes one of either.
    fn copies(&self, report: &mut Report, size: usize) -> Result<()> {
        let line = (size as u32 + 32).next_power_of_two().max(64);
        if line > 64 << 10 {
            return Ok(());
        }
        let rack = Rack::builder(4).fabric(Fabric::Udp).mode(Mode::HomeOnly);
        let rack = rack.memory(32 << 20).cache(8 << 20).build()?;
        let spec = RegionSpec::new("kept", 2 * line as usize).contract(Contract::Object);
        let kept = rack.node(1).create_region(&spec.copies(3).line(line))?;
        let far = |region: &Region| {
            let made = region.alloc_bytes(&vec![7; size], 0)?;
            let far = rack.node(3).attach_object::<[u8]>(made.at());
            far.map_err(super::BenchError::from)
        };
        let homes = [region(&rack)?, kept];
        let ([own, kept], value) = ([far(&homes[0])?, far(&homes[1])?], vec![8; size]);
        let others = [far(&homes[0])?, far(&homes[1])?];
        let mut out = vec![0; size];
        let mut read = |object: &Object<[u8]>| {
            self.each(&mut || {
                let began = std::time::Instant::now();
                object.read_into(black_box(&mut out), Retry::default())?;
                Ok(began.elapsed())
            })
        };
        let reads = [read(&own)?, read(&kept)?];
        let write = |object: &Object<[u8]>| {
            self.each(&mut || {
                let began = std::time::Instant::now();
                object.write(black_box(&value))?;
                Ok(began.elapsed())
            })
        };
        let writes = [write(&own)?, write(&kept)?];
        // Two objects, read and written as one step.
        let both = |first: &Object<[u8]>, second: &Object<[u8]>| {
            self.each(&mut || {
                let began = std::time::Instant::now();
                let done = rack.node(3).transaction(|t| {
                    for object in [first, second] {
                        black_box(t.read(object)?);
                        t.write_bytes(object, black_box(&value))?;
                    }
                    Ok(())
                });
                done?;
                Ok(began.elapsed())
            })
        };
        let mixed = both(&own, &kept)?;
        let both = [both(&own, &others[0])?, both(&kept, &others[1])?];
        let rows = [("read", reads), ("write", writes), ("transaction", both)];
        for (what, [own, kept]) in rows {
            let plain = format!("udp/{size}/{what}/one-home");
            report.add(&plain, own, "us")?;
            report.add_against(&format!("udp/{size}/{what}/copies-3"), kept, "us", &plain)?;
        }
        let plain = format!("udp/{size}/transaction/one-home");
        report.add_against(
            &format!("udp/{size}/transaction/mixed"),
            mixed,
            "us",
            &plain,
        )?;
        Ok(())
    }

    /// The median of so many times as fit into the time of a case, in microseconds.
    fn each(&self, once: &mut dyn FnMut() -> rackmem::Result<Duration>) -> Result<f64> {
        let (mut times, began) = (Vec::new(), std::time::Instant::now());
        while times.len() < 20 || (began.elapsed() < self.options.duration && times.len() < 1 << 20)
        {
            times.push(once()?);
            if crate::stop::requested() {
                return Err(super::BenchError::Stopped);
            }
        }
        times.sort_unstable();
        Ok(times[times.len() / 2].as_nanos() as f64 / 1e3)
    }

    /// One reader, and one thread that writes the same object as fast as it can: reads a second,
    /// and attempts that failed beside those that did not (Fig. 8 on this machine's cores).
    fn contended(&self, report: &mut Report, size: usize) -> Result<()> {
        let rack = rack(Fabric::Inline)?;
        let object = region(&rack)?.alloc_bytes(&vec![7; size], 0)?;
        let refused = || {
            let counts = rack.node(0).metrics().objects;
            counts.torn + counts.locked
        };
        let before = refused();
        let write = |bytes: &[u8]| {
            let _ = object.write(bytes);
        };
        let ours = self.beside(size, &write, &|out| {
            object.read_into(out, Retry::default()).is_ok()
        });
        let ours_failed = refused() - before;
        let versions = Versions::new(size);
        let failed = AtomicU64::new(0);
        let theirs = self.beside(size, &|bytes| versions.write(bytes), &|out| {
            while !versions.read(out) {
                failed.fetch_add(1, Relaxed);
                std::hint::spin_loop();
            }
            true
        });
        let name = |who: &str| format!("writers-1/{size}/{who}");
        report.add(&name("versions"), theirs.0, "reads/s")?;
        report.add_against(&name("ours"), ours.0, "reads/s", &name("versions"))?;
        let share =
            |failed: u64, reads: u64| 100.0 * failed as f64 / (failed + reads.max(1)) as f64;
        let rows = [
            ("versions", share(failed.load(Relaxed), theirs.1)),
            ("ours", share(ours_failed, ours.1)),
        ];
        for (who, share) in rows {
            report.add(&format!("{}/failed", name(who)), share, "%")?;
        }
        Ok(())
    }

    /// Reads a second, and how many.
    fn beside(
        &self,
        size: usize,
        write: &(dyn Fn(&[u8]) + Sync),
        read: &(dyn Fn(&mut [u8]) -> bool + Sync),
    ) -> (f64, u64) {
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut nth = 0u8;
                while !over.load(Relaxed) {
                    nth = nth.wrapping_add(1);
                    write(&vec![nth; size]);
                }
            });
            let done = timing::run(1, self.options.duration, |_| {
                let mut out = vec![0; size];
                move || u64::from(read(black_box(&mut out)))
            });
            over.store(true, Relaxed);
            (done.per_second(), done.operations())
        })
    }
}
