//! A map on objects, beside the same buckets in coherent memory and beside a thread at the home
//! that is asked for each key.

use super::{BenchError, Progress, Result};
use crate::objects::rpc::{Far, Near, Serve};
use crate::report::Report;
use crate::timing;
use rackmem::object::{Map, MapSpec};
use rackmem::{Contract, Fabric, Mode, Node, Rack, RegionSpec};
use rackmem_fabric::Whole;
use std::collections::HashMap;
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Entries, and bytes of their values.
const ENTRIES: usize = 2_000;
const VALUE: usize = 64;
/// Bytes of a bucket of the coherent table, and its entries.
const BUCKET: usize = 1008;
const EACH: usize = 16 + VALUE;

fn key(nth: usize) -> [u8; 16] {
    let mut key = *b"user000000000000";
    key[4..12].copy_from_slice(&(nth % ENTRIES).to_le_bytes());
    key
}

/// A table whose buckets are ranges of coherent memory: entries of one length, one after the other.
struct Coherent {
    node: Node,
    first: u64,
    stride: usize,
    buckets: usize,
}

impl Coherent {
    fn create(node: &Node) -> Result<u64> {
        let table = Coherent::at(node, 0);
        let addr = node.alloc_bytes(table.stride * table.buckets)?;
        let table = Coherent::at(node, addr);
        for nth in 0..ENTRIES {
            table.put(&key(nth), &[7; VALUE])?;
        }
        Ok(addr)
    }

    fn at(node: &Node, first: u64) -> Self {
        // No bucket is in two blocks.
        let stride = BUCKET.next_power_of_two().min(node.block_size());
        Coherent {
            node: node.clone(),
            first,
            stride,
            buckets: ENTRIES * EACH * 10 / 6 / BUCKET,
        }
    }

    fn bucket(&self, key: &[u8; 16]) -> u64 {
        let [a, b] = [&key[..8], &key[8..]]
            .map(|half| u64::from_le_bytes(half.try_into().expect("eight bytes")));
        let hash = (a ^ b.rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let nth = ((u128::from(hash) * self.buckets as u128) >> 64) as usize;
        self.first + (nth * self.stride) as u64
    }

    fn get(&self, key: &[u8; 16], value: &mut [u8; VALUE]) -> Result<bool> {
        let found = self.node.snapshot(self.bucket(key), BUCKET, |view| {
            let count = (view.u64(0) as usize).min((BUCKET - 8) / EACH);
            let at = (0..count)
                .map(|nth| 8 + nth * EACH)
                .find(|at| view.eq(*at, key));
            at.map(|at| view.read(at + 16, value))
        })?;
        Ok(found.is_some())
    }

    fn put(&self, key: &[u8; 16], value: &[u8; VALUE]) -> Result<bool> {
        Ok(self.node.update(self.bucket(key), BUCKET, |view| {
            let count = view.u64(0) as usize;
            let known = (0..count)
                .map(|nth| 8 + nth * EACH)
                .find(|at| view.eq(*at, key));
            let at = known.unwrap_or(8 + count * EACH);
            if known.is_none() {
                view.set_u64(0, count as u64 + 1);
            }
            view.write(at, key) && view.write(at + 16, value)
        })?)
    }
}

/// A table of a thread at the home.
fn table() -> (Serve, Table) {
    let all = (0..ENTRIES).map(|nth| (key(nth), vec![7; VALUE])).collect();
    let table: Table = Arc::new(Mutex::new(all));
    let mine = table.clone();
    let serve: Serve = Box::new(move |question, answer| {
        answer.clear();
        let key: Option<[u8; 16]> = question.try_into().ok();
        if let Some(value) = key.and_then(|key| mine.lock().whole().get(&key).cloned()) {
            answer.extend(value);
        }
    });
    (serve, table)
}

/// Changes the value of a key.
type Writer<'a> = &'a mut (dyn FnMut(usize) + Send);

/// The writer, if there is to be one.
fn only<'a>(writes: bool, write: &'a mut (dyn FnMut(usize) + Send)) -> Option<Writer<'a>> {
    writes.then_some(write)
}

/// What a thread at the home has.
type Table = Arc<Mutex<HashMap<[u8; 16], Vec<u8>>>>;

/// A time of each way: a lookup in microseconds.
struct Times {
    objects: f64,
    coherent: f64,
    rpc: Option<f64>,
}

struct Bench {
    duration: Duration,
}

/// Runs it: lookups by a node that is not the home, alone and beside a thread of the home that
/// changes values all the time.
pub fn run(duration: Duration, report: &mut Report, progress: Progress<'_>) -> Result<()> {
    let bench = Bench { duration };
    for (name, fabric) in [
        ("inline", Fabric::Inline),
        ("shm", Fabric::Shm),
        ("udp", Fabric::Udp),
    ] {
        progress(&format!("map, {name}"));
        let rack = Rack::builder(2).fabric(fabric).mode(Mode::HomeOnly);
        let rack = rack.memory(64 << 20).cache(8 << 20).build()?;
        for (case, writes) in [("get", false), ("get-beside-a-writer", true)] {
            let times = bench.one(&rack, fabric, (case, writes))?;
            let case = format!("map/{name}/{case}");
            let base = format!("{case}/coherent");
            report.add(&base, times.coherent, "us")?;
            report.add_against(&format!("{case}/objects"), times.objects, "us", &base)?;
            if let Some(rpc) = times.rpc {
                report.add_against(&format!("{case}/rpc"), rpc, "us", &base)?;
            }
        }
        if fabric == Fabric::Udp {
            bench.many(&rack, report)?;
        }
    }
    Ok(())
}

impl Bench {
    fn map(&self, rack: &Rack, name: &str) -> Result<[Map; 2]> {
        let spec = RegionSpec::new(name, 8 << 20).contract(Contract::Object);
        let region = rack.node(0).create_region(&spec)?;
        let spec = MapSpec::new(ENTRIES, EACH);
        let map = rack.node(0).create_map(&[region.addr()], spec)?;
        for nth in 0..ENTRIES {
            map.insert(&key(nth), &[7; VALUE])?;
        }
        let far = rack.node(1).attach_map(map.at())?;
        Ok([map, far])
    }

    fn one(&self, rack: &Rack, fabric: Fabric, (case, writes): (&str, bool)) -> Result<Times> {
        let [near, far] = self.map(rack, case)?;
        let mut out = Vec::new();
        let mut write = |nth: usize| {
            let _ = near.insert(&key(nth), &[nth as u8; VALUE]);
        };
        let objects = self.beside(only(writes, &mut write), &mut |nth| {
            Ok(far.get_into(&key(nth), &mut out)?)
        })?;
        let addr = Coherent::create(&rack.node(0))?;
        let [near, far] = [0, 1].map(|node| Coherent::at(&rack.node(node), addr));
        let mut out = [0; VALUE];
        let mut write = |nth: usize| {
            let _ = near.put(&key(nth), &[nth as u8; VALUE]);
        };
        let coherent = self.beside(only(writes, &mut write), &mut |nth| {
            far.get(&key(nth), &mut out)
        })?;
        let (serve, table) = table();
        let mut write = |nth: usize| {
            table
                .lock()
                .whole()
                .insert(key(nth), vec![nth as u8; VALUE]);
        };
        let write = only(writes, &mut write);
        let mut out = Vec::new();
        let rpc = match fabric {
            Fabric::Inline => {
                let mut home = Near::new(serve);
                let mut question = Vec::new();
                Some(self.beside(write, &mut |nth| {
                    question.clear();
                    question.extend(key(nth));
                    home.ask(&mut question, &mut out);
                    Ok(!out.is_empty())
                })?)
            }
            Fabric::Udp => {
                let mut home = Far::new(serve)?;
                Some(self.beside(write, &mut |nth| {
                    home.ask(&key(nth), &mut out)?;
                    Ok(!out.is_empty())
                })?)
            }
            _ => None,
        };
        Ok(Times {
            objects,
            coherent,
            rpc,
        })
    }

    /// Sixteen keys at a time, a key, beside one at a time.
    fn many(&self, rack: &Rack, report: &mut Report) -> Result<()> {
        let [_, far] = self.map(rack, "many")?;
        let mut first = 0;
        let together = self.beside(None, &mut |_| {
            first += 16;
            let keys: Vec<[u8; 16]> = (first..first + 16).map(key).collect();
            let keys: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
            Ok(far
                .get_many(&keys)
                .into_iter()
                .all(|got| got.is_ok_and(|got| got.is_some())))
        })?;
        let base = "map/udp/get/objects";
        Ok(report.add_against("map/udp/get-many-16/a-key", together / 16.0, "us", base)?)
    }

    /// The mean time of a lookup in microseconds, beside a thread that writes if there is one.
    fn beside(
        &self,
        write: Option<Writer<'_>>,
        get: &mut (dyn FnMut(usize) -> Result<bool> + Send),
    ) -> Result<f64> {
        let over = AtomicBool::new(false);
        let (failed, get) = (Mutex::new(None), Mutex::new(get));
        let done = std::thread::scope(|scope| {
            if let Some(write) = write {
                let over = &over;
                scope.spawn(move || {
                    let mut nth = 0;
                    while !over.load(Relaxed) {
                        nth += 7;
                        write(nth);
                    }
                });
            }
            let done = timing::run(1, self.duration, |_| {
                let (get, failed, mut nth) = (&get, &failed, 0);
                move || {
                    let mut get = get.lock().whole();
                    for _ in 0..16 {
                        nth += 1;
                        match black_box(get(nth)) {
                            Ok(true) => {}
                            Ok(false) => {
                                let lost = BenchError::NotLinearizable("a key is lost".into());
                                failed.lock().whole().get_or_insert(lost);
                            }
                            Err(error) => {
                                failed.lock().whole().get_or_insert(error);
                            }
                        }
                    }
                    16
                }
            });
            over.store(true, Relaxed);
            done
        });
        match failed.into_inner().unwrap_or_default() {
            Some(error) => Err(error),
            None => Ok(done.ns_per_operation() / 1e3),
        }
    }
}
