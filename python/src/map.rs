//! Named maps of bytes.

use crate::errors;
use crate::process::Process;
use crate::rack::mutex;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use rackmem::locked::Mutex;
use rackmem::object::{Map as Table, MapSpec, ObjectRef};
use rackmem::{AllocError, Contract, ErrorKind, Node, RegionSpec};
use std::sync::{Mutex as LocalMutex, PoisonError};

/// What a map's objects take, in percent of its buckets: their headers, and tails.
const ROOM: usize = 250;
/// Bytes beside its buckets: a slab of 64 KiB for each length of objects that it has, which are its
/// root, its lists and the tails.
const BESIDE: usize = 1 << 20;

type Pair<'py> = (Bound<'py, PyBytes>, Bound<'py, PyBytes>);

/// A table of keys and values, both bytes.
#[pyclass(frozen, module = "rackmem")]
pub struct Map {
    table: Table,
    /// Where it is, or zeros: what is under its name.
    named: LocalMutex<Option<Mutex<[u64; 2]>>>,
    node: Node,
    objects: String,
    process: Process,
}

/// The map of a name, made if there is none.
pub fn named(
    py: Python<'_>,
    node: &Node,
    name: &str,
    (spec, renew): (MapSpec, bool),
    process: Process,
) -> PyResult<Map> {
    let objects = format!("{name}/objects");
    py.detach(|| {
        let named = mutex(node, name, [0u64; 2], renew).map_err(errors::region)?;
        let mut held = named.lock().map_err(errors::lock)?;
        let found = match held.get() {
            [0, _] => None,
            [addr, generation] => {
                let found = node.attach_map(ObjectRef::new(addr, generation as u32));
                match found {
                    Err(error) if renew && ErrorKind::of(error.code()) == ErrorKind::Lost => None,
                    found => Some(found.map_err(errors::access)?),
                }
            }
        };
        let table = match found {
            Some(table) => table,
            // Whoever makes it holds the lock: one that died in between has told nobody.
            None => {
                let table = make(node, &objects, spec)?;
                let at = table.at();
                held.set([at.addr(), u64::from(at.generation())]);
                table
            }
        };
        drop(held);
        Ok(Map {
            table,
            named: LocalMutex::new(Some(named)),
            node: node.clone(),
            objects,
            process,
        })
    })
}

fn make(node: &Node, objects: &str, spec: MapSpec) -> PyResult<Table> {
    let buckets = spec.buckets().saturating_mul(spec.bucket_bytes());
    let bytes = buckets.saturating_mul(ROOM) / 100;
    // Those of a map that has died may still have the name.
    let region = RegionSpec::new(objects, bytes.saturating_add(BESIDE)).renew();
    let region = node.create_region(&region.contract(Contract::Object));
    let region = region.map_err(errors::region)?;
    node.create_map(&[region.addr()], spec)
        .map_err(errors::alloc)
}

fn optional<'py>(py: Python<'py>, value: Option<Vec<u8>>) -> Option<Bound<'py, PyBytes>> {
    value.map(|value| PyBytes::new(py, &value))
}

#[pymethods]
impl Map {
    /// The value of a key, or `None`.
    fn get<'py>(&self, py: Python<'py>, key: &[u8]) -> PyResult<Option<Bound<'py, PyBytes>>> {
        self.process.check()?;
        let value = py.detach(|| self.table.get(key)).map_err(errors::access)?;
        Ok(optional(py, value))
    }

    /// Gives a key a value, or none; the one that it had.
    #[pyo3(signature = (key, value))]
    fn put<'py>(
        &self,
        py: Python<'py>,
        key: &[u8],
        value: Option<&[u8]>,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let before = self.change(py, key, |_| value.map(<[u8]>::to_vec))?;
        Ok(optional(py, before))
    }

    /// Gives a key a value, or none, if it has this one, or none, now; the one that it had.
    #[pyo3(signature = (key, old, new))]
    fn swap<'py>(
        &self,
        py: Python<'py>,
        key: &[u8],
        old: Option<&[u8]>,
        new: Option<&[u8]>,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let change = |has: Option<&[u8]>| match has == old {
            true => new.map(<[u8]>::to_vec),
            false => has.map(<[u8]>::to_vec),
        };
        let before = self.change(py, key, change)?;
        Ok(optional(py, before))
    }

    /// All keys and values. Those of one bucket are of one moment.
    fn items<'py>(&self, py: Python<'py>) -> PyResult<Vec<Pair<'py>>> {
        self.process.check()?;
        let all: Result<Vec<_>, _> = py.detach(|| self.table.entries().collect());
        let pair =
            |(key, value): (Vec<u8>, Vec<u8>)| (PyBytes::new(py, &key), PyBytes::new(py, &value));
        Ok(all.map_err(errors::access)?.into_iter().map(pair).collect())
    }

    /// Frees its memory and its name. Handles of all processes say so from then on.
    fn unlink(&self, py: Python<'_>) -> PyResult<()> {
        self.process.check()?;
        py.detach(|| {
            // It stays where something fails, to be tried again.
            let mut place = self.named.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(named) = place.as_ref() else {
                return Ok(());
            };
            let mut held = named.lock().map_err(errors::lock)?;
            if held.get()[0] != 0 {
                self.table.clone().free().map_err(errors::access)?;
                held.set([0; 2]);
            }
            self.node
                .remove_region(&self.objects)
                .map_err(errors::region)?;
            drop(held);
            let named = place.take().map(Mutex::free);
            named.unwrap_or(Ok(())).map_err(errors::lock)
        })
    }
}

impl Map {
    fn change(
        &self,
        py: Python<'_>,
        key: &[u8],
        f: impl FnMut(Option<&[u8]>) -> Option<Vec<u8>> + Send,
    ) -> PyResult<Option<Vec<u8>>> {
        self.process.check()?;
        let changed: Result<_, AllocError> = py.detach(|| self.table.update(key, f));
        changed.map_err(errors::alloc)
    }
}
