//! Errors of the library as exceptions: one hierarchy, and beside it what Python calls such things.

use pyo3::exceptions::{
    PyException, PyKeyError, PyMemoryError, PyOSError, PyRuntimeError, PyTimeoutError, PyValueError,
};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyTuple, PyType};
use std::fmt::Display;

/// A kind of exception: its name, what it is of Python's own, what it is for.
struct Kind {
    name: &'static str,
    of: fn(Python<'_>) -> Bound<'_, PyType>,
    about: &'static str,
    /// The codes of the library's errors that are one.
    codes: &'static [&'static str],
}

/// Errors whose code is in no row are `Error`.
const KINDS: &[Kind] = &[
    Kind {
        name: "NotFoundError",
        of: |py| py.get_type::<PyKeyError>(),
        about: "Nothing has this name.",
        codes: &["name-not-found"],
    },
    Kind {
        name: "MismatchError",
        of: |py| py.get_type::<PyValueError>(),
        about: "The name is of something else: another size, shape, type or contract.",
        codes: &["name-mismatch", "wrong-contract", "other-copies"],
    },
    Kind {
        name: "ArgumentError",
        of: |py| py.get_type::<PyValueError>(),
        about: "What was asked for cannot be.",
        codes: &[
            "bad-name",
            "bad-address",
            "bad-range",
            "out-of-bounds",
            "region-out-of-bounds",
            "bad-copies",
            "config",
            "no-node",
            "too-large",
        ],
    },
    Kind {
        name: "MemoryFullError",
        of: |py| py.get_type::<PyMemoryError>(),
        about: "The rack has no memory left for this.",
        codes: &["out-of-memory"],
    },
    Kind {
        name: "NoAnswerError",
        of: |py| py.get_type::<PyTimeoutError>(),
        about: "A node or a majority has not answered in the rack's patience.",
        codes: &["timeout", "busy", "no-quorum", "no-lease", "interrupted"],
    },
    Kind {
        name: "LostError",
        of: |py| py.get_type::<PyOSError>(),
        about: "It has died with the node that had it.",
        codes: &[
            "node-lost",
            "name-lost",
            "block-lost",
            "owner-died",
            "region-removed",
        ],
    },
    Kind {
        name: "ClosedError",
        of: |py| py.get_type::<PyRuntimeError>(),
        about: "The rack is closed here, or goes on without this process.",
        codes: &["closed", "fenced"],
    },
    Kind {
        name: "NoPagingError",
        of: |py| py.get_type::<PyOSError>(),
        about: "The system does not let this process map coherent memory: read and write by calls.",
        codes: &["no-paging", "not-mappable", "too-many-mappings"],
    },
];

struct Classes {
    base: Py<PyType>,
    kinds: Vec<Py<PyType>>,
}

static CLASSES: PyOnceLock<Classes> = PyOnceLock::new();

fn class<'py>(
    py: Python<'py>,
    name: &str,
    about: &str,
    bases: &Bound<'py, PyTuple>,
) -> PyResult<Bound<'py, PyType>> {
    let contents = pyo3::types::PyDict::new(py);
    contents.set_item("__doc__", about)?;
    contents.set_item("__module__", "rackmem")?;
    let class = py.get_type::<PyType>().call1((name, bases, contents))?;
    Ok(class.cast_into::<PyType>()?)
}

/// Adds the classes to the module.
pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    let about =
        "What rackmem could not do. `code` is a word that stays the same in later versions.";
    let base = class(
        py,
        "Error",
        about,
        &PyTuple::new(py, [py.get_type::<PyException>()])?,
    )?;
    module.add("Error", &base)?;
    let mut kinds = Vec::new();
    for kind in KINDS {
        let bases = PyTuple::new(py, [base.clone(), (kind.of)(py)])?;
        let class = class(py, kind.name, kind.about, &bases)?;
        module.add(kind.name, &class)?;
        kinds.push(class.unbind());
    }
    let base = base.unbind();
    let _ = CLASSES.set(py, Classes { base, kinds });
    Ok(())
}

/// The exception of an error with this code and text.
pub fn raise(code: &'static str, text: String) -> PyErr {
    Python::attach(|py| {
        let Some(classes) = CLASSES.get(py) else {
            return PyRuntimeError::new_err(text);
        };
        let kind = KINDS.iter().position(|kind| kind.codes.contains(&code));
        let class = kind
            .and_then(|nth| classes.kinds.get(nth))
            .unwrap_or(&classes.base);
        match class.bind(py).call1((text,)) {
            Ok(error) => match error.setattr("code", code) {
                Ok(()) => PyErr::from_value(error),
                Err(error) => error,
            },
            Err(error) => error,
        }
    })
}

/// The exception of an error of any family.
pub fn of<E: Display>(code: impl Fn(&E) -> &'static str) -> impl FnOnce(E) -> PyErr {
    move |error| raise(code(&error), error.to_string())
}

/// Of each family.
macro_rules! families {
    ($($name:ident: $family:ty),*) => {
        $(pub fn $name(error: $family) -> PyErr {
            of(<$family>::code)(error)
        })*
    };
}

families!(
    open: rackmem::OpenError,
    region: rackmem::RegionError,
    access: rackmem::AccessError,
    rack: rackmem::RackError,
    lock: rackmem::LockError
);
