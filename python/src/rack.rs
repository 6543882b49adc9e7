//! Racks and their nodes.

use crate::errors;
use crate::lock::{Condition, Lock};
use crate::map::Map;
use crate::process::Process;
use crate::region::Region;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use rackmem::locked::{Condvar, Mutex};
use rackmem::object::MapSpec;
use rackmem::{RegionError, RegionSpec, Survives, Value};
use std::path::PathBuf;
use std::time::Duration;

/// A rack in this process, or this process' part of one.
#[pyclass(frozen, module = "rackmem")]
pub struct Rack {
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
            process: Process::joined(rack),
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
        Ok(Node {
            node: self.process.node(id.unwrap_or(self.own))?,
            process: self.process.clone(),
        })
    }

    /// Leaves: what this process has changed goes home first.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.process.check()?;
        py.detach(|| self.process.close()).map_err(errors::leave)
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
        self.process.is_closed()
    }

    fn __repr__(&self) -> String {
        let closed = if self.closed() { ", closed" } else { "" };
        format!("<rackmem.Rack, node {}{closed}>", self.own)
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
    /// With 3, 5 or 7 `copies` it outlives as many nodes, as far as it has come home, or
    /// (`survives` "writes") with each write. `renew`: if it has died with its home, it is made
    /// anew.
    #[pyo3(signature = (name, bytes, *, element = 0, create = true, copies = 1, survives = "rest", renew = false))]
    #[expect(clippy::too_many_arguments, reason = "they have names in Python")]
    fn region(
        &self,
        py: Python<'_>,
        name: &str,
        bytes: usize,
        element: u64,
        create: bool,
        copies: u8,
        survives: &str,
        renew: bool,
    ) -> PyResult<Region> {
        self.process.check()?;
        if copies == 0 {
            let text = "memory has 1, 3, 5 or 7 copies, not 0: 1 without a spare";
            return Err(PyValueError::new_err(text));
        }
        let survives = match survives {
            "rest" => Survives::Rest,
            "writes" => Survives::Writes,
            other => {
                let text = format!("what survives is \"rest\" or \"writes\", not {other:?}");
                return Err(PyValueError::new_err(text));
            }
        };
        let mut spec = RegionSpec::new(name, bytes).element(element);
        if copies != 1 {
            spec = spec.copies(copies).survives(survives);
        }
        if renew {
            spec = spec.renew();
        }
        let region = py.detach(|| match create {
            true => self.node.create_region(&spec),
            false => self.node.open_region(&spec),
        });
        let region = region.map_err(errors::region)?;
        Ok(Region::new(&self.node, region, self.process.clone()))
    }

    /// The region of this name that holds such elements, however long it is and with however many
    /// copies, or `None`.
    fn find(&self, py: Python<'_>, name: &str, element: u64) -> PyResult<Option<Region>> {
        self.process.check()?;
        let regions = py.detach(|| self.node.regions()).map_err(errors::region)?;
        let is = |spec: &RegionSpec| spec.name() == name && spec.element_type() == element;
        let Some(found) = regions.iter().find(|info| is(&info.spec)) else {
            return Ok(None);
        };
        let region = py.detach(|| self.node.open_region(&found.spec));
        let region = region.map_err(errors::region)?;
        Ok(Some(Region::new(&self.node, region, self.process.clone())))
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

    /// The lock of this name, made if there is none. `renew`: or if it has died with its home.
    #[pyo3(signature = (name, *, renew = false))]
    fn lock(&self, py: Python<'_>, name: &str, renew: bool) -> PyResult<Lock> {
        self.process.check()?;
        let lock = py.detach(|| mutex(&self.node, name, 0u64, renew));
        Ok(Lock::new(
            lock.map_err(errors::region)?,
            self.process.clone(),
        ))
    }

    /// The condition of this name, made if there is none. `renew`: or if it has died with its home.
    #[pyo3(signature = (name, *, renew = false))]
    fn condition(&self, py: Python<'_>, name: &str, renew: bool) -> PyResult<Condition> {
        self.process.check()?;
        let condition = py.detach(|| match renew {
            true => Condvar::renewed(&self.node, name),
            false => Condvar::named(&self.node, name),
        });
        let condition = condition.map_err(errors::region)?;
        Ok(Condition::new(condition, self.process.clone()))
    }

    /// The map of this name, made for about so many entries of so many bytes if there is none.
    /// `renew`: or if it has died with its home.
    #[pyo3(signature = (name, entries, bytes, *, renew = false))]
    fn map(
        &self,
        py: Python<'_>,
        name: &str,
        entries: usize,
        bytes: usize,
        renew: bool,
    ) -> PyResult<Map> {
        self.process.check()?;
        let spec = MapSpec::new(entries, bytes);
        crate::map::named(py, &self.node, name, (spec, renew), self.process.clone())
    }

    fn __repr__(&self) -> String {
        format!("<rackmem.Node {} of {}>", self.node.id(), self.node.nodes())
    }
}

/// The lock of a name, made anew if that is wanted and it has died.
pub fn mutex<T: Value>(
    node: &rackmem::Node,
    name: &str,
    value: T,
    renew: bool,
) -> Result<Mutex<T>, RegionError> {
    match renew {
        true => Mutex::renewed(node, name, value),
        false => Mutex::named(node, name, value),
    }
}

/// How long a wait goes on between two looks at signals.
pub const LOOK: Duration = Duration::from_millis(100);
