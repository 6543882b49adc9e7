//! Racks and their nodes.

use crate::errors;
use crate::lock::{Condition, Lock};
use crate::map::Map;
use crate::process::Process;
use crate::region::Region;
use pyo3::prelude::*;
use rackmem::RegionSpec;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// A rack in this process, or this process' part of one.
#[pyclass(frozen, module = "rackmem")]
pub struct Rack {
    /// `None`: closed.
    rack: Mutex<Option<rackmem::Rack>>,
    process: Process,
    /// The node that is meant where none is said.
    #[pyo3(get)]
    own: usize,
}

/// A rack of so many nodes, all in this process.
#[pyfunction]
#[pyo3(signature = (nodes = 1, *, memory = None, cache = None))]
pub fn local(
    py: Python<'_>,
    nodes: usize,
    memory: Option<u64>,
    cache: Option<usize>,
) -> PyResult<Rack> {
    let mut builder = rackmem::Rack::builder(nodes);
    if let Some(bytes) = memory {
        builder = builder.memory(bytes);
    }
    if let Some(bytes) = cache {
        builder = builder.cache(bytes);
    }
    let rack = py.detach(|| builder.build()).map_err(errors::open)?;
    Ok(Rack::new(rack, 0))
}

/// Joins the rack that a file describes, as one of its nodes.
#[pyfunction]
pub fn join(py: Python<'_>, path: PathBuf, node: usize) -> PyResult<Rack> {
    let joined = py.detach(|| {
        let config = rackmem::Config::load(&path)?;
        rackmem::Rack::join(&config, node)
    });
    Ok(Rack::new(joined.map_err(errors::open)?, node))
}

/// Joins as the environment says.
#[pyfunction]
pub fn from_env(py: Python<'_>) -> PyResult<Rack> {
    let joined = py.detach(|| {
        let (config, node) = rackmem::Config::from_env()?;
        Ok((rackmem::Rack::join(&config, node)?, node))
    });
    let (rack, node) = joined.map_err(errors::open)?;
    Ok(Rack::new(rack, node))
}

impl Rack {
    fn new(rack: rackmem::Rack, own: usize) -> Rack {
        Rack {
            rack: Mutex::new(Some(rack)),
            process: Process::this(),
            own,
        }
    }
}

#[pymethods]
impl Rack {
    /// A node that lives in this process.
    #[pyo3(signature = (id = None))]
    fn node(&self, id: Option<usize>) -> PyResult<Node> {
        self.process.check()?;
        let rack = self.rack.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(rack) = rack.as_ref() else {
            return Err(errors::rack(rackmem::RackError::Closed));
        };
        let node = rack
            .try_node(id.unwrap_or(self.own))
            .map_err(errors::rack)?;
        Ok(Node {
            node,
            process: self.process,
        })
    }

    /// Leaves: what this process has changed goes home first.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.process.check()?;
        let rack = self
            .rack
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let closed = py.detach(|| rack.map_or(Ok(()), rackmem::Rack::close));
        closed.map_err(errors::leave)
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        _kind: Bound<'_, PyAny>,
        _value: Bound<'_, PyAny>,
        _trace: Bound<'_, PyAny>,
    ) -> PyResult<()> {
        self.close(py)
    }

    /// Whether it is closed.
    #[getter]
    fn closed(&self) -> bool {
        let rack = self.rack.lock().unwrap_or_else(PoisonError::into_inner);
        rack.is_none()
    }
}

impl Drop for Rack {
    fn drop(&mut self) {
        if !self.process.is_this() {
            // Its threads are the parent's.
            let rack = self
                .rack
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take();
            std::mem::forget(rack);
        }
    }
}

/// A node of a rack: what memory is used through.
#[pyclass(frozen, module = "rackmem")]
pub struct Node {
    node: rackmem::Node,
    process: Process,
}

#[pymethods]
impl Node {
    /// Which node.
    #[getter]
    fn id(&self) -> u16 {
        self.node.id()
    }

    /// How many nodes the rack has.
    #[getter]
    fn nodes(&self) -> usize {
        self.node.nodes()
    }

    /// The region of this name, made if there is none (`create` true), or found (`create` false).
    /// `element` says what it holds: another region of the name with another one is refused.
    #[pyo3(signature = (name, bytes, *, element = 0, create = true, copies = 1))]
    fn region(
        &self,
        py: Python<'_>,
        name: &str,
        bytes: usize,
        element: u64,
        create: bool,
        copies: u8,
    ) -> PyResult<Region> {
        self.process.check()?;
        let mut spec = RegionSpec::new(name, bytes).element(element);
        if copies > 1 {
            spec = spec.contract(rackmem::Contract::Coherent).copies(copies);
        }
        let region = py.detach(|| match create {
            true => self.node.create_region(&spec),
            false => self.node.open_region(&spec),
        });
        let region = region.map_err(errors::region)?;
        Ok(Region::new(&self.node, region, self.process))
    }

    /// Names of regions and locks of the rack, each with its bytes and what it holds.
    fn regions(&self, py: Python<'_>) -> PyResult<Vec<(String, usize, u64)>> {
        self.process.check()?;
        let regions = py.detach(|| self.node.regions()).map_err(errors::region)?;
        let row = |info: &rackmem::RegionInfo| {
            let spec = &info.spec;
            (spec.name().to_string(), spec.bytes(), spec.element_type())
        };
        Ok(regions.iter().map(row).collect())
    }

    /// Removes a region: its memory is free, and handles of all nodes say so.
    fn remove(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        self.process.check()?;
        py.detach(|| self.node.remove_region(name))
            .map_err(errors::region)
    }

    /// The lock of this name, made if there is none.
    fn lock(&self, py: Python<'_>, name: &str) -> PyResult<Lock> {
        self.process.check()?;
        let lock = py.detach(|| rackmem::locked::Mutex::named(&self.node, name, 0u64));
        Ok(Lock::new(lock.map_err(errors::region)?, self.process))
    }

    /// The condition of this name, made if there is none.
    fn condition(&self, py: Python<'_>, name: &str) -> PyResult<Condition> {
        self.process.check()?;
        let condition = py.detach(|| rackmem::locked::Condvar::named(&self.node, name));
        let condition = condition.map_err(errors::region)?;
        Ok(Condition::new(condition, self.process))
    }

    /// The map of this name, made for about so many entries of so many bytes if there is none.
    fn map(&self, py: Python<'_>, name: &str, entries: usize, bytes: usize) -> PyResult<Map> {
        self.process.check()?;
        crate::map::named(py, &self.node, name, (entries, bytes), self.process)
    }

    fn __repr__(&self) -> String {
        format!("<rackmem.Node {} of {}>", self.node.id(), self.node.nodes())
    }
}

/// How long a wait goes on between two looks at signals.
pub const LOOK: Duration = Duration::from_millis(100);
