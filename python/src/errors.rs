//! Errors of the library as exceptions: one hierarchy, and beside it what Python calls such things.

use pyo3::exceptions::{
    PyException, PyKeyError, PyMemoryError, PyOSError, PyRuntimeError, PyTimeoutError, PyValueError,
};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyTuple, PyType};
use rackmem::ErrorKind;
use std::fmt::Display;

/// A kind of exception: its name, what it is of Python's own, what it is for.
struct Kind {
    kind: ErrorKind,
    name: &'static str,
    of: fn(Python<'_>) -> Bound<'_, PyType>,
    about: &'static str,
}

/// Errors whose kind is in no row are `Error`.
const KINDS: &[Kind] = &[
    Kind {
        kind: ErrorKind::NotFound,
        name: "NotFoundError",
        of: |py| py.get_type::<PyKeyError>(),
        about: "Nothing has this name.",
    },
    Kind {
        kind: ErrorKind::Mismatch,
        name: "MismatchError",
        of: |py| py.get_type::<PyValueError>(),
        about: "The name is of something else: another size, shape, type or contract.",
    },
    Kind {
        kind: ErrorKind::Argument,
        name: "ArgumentError",
        of: |py| py.get_type::<PyValueError>(),
        about: "What was asked for cannot be.",
    },
    Kind {
        kind: ErrorKind::Full,
        name: "MemoryFullError",
        of: |py| py.get_type::<PyMemoryError>(),
        about: "The rack has no memory left for this.",
    },
    Kind {
        kind: ErrorKind::NoAnswer,
        name: "NoAnswerError",
        of: |py| py.get_type::<PyTimeoutError>(),
        about: "A node or a majority has not answered in the rack's patience.",
    },
    Kind {
        kind: ErrorKind::Lost,
        name: "LostError",
        of: |py| py.get_type::<PyOSError>(),
        about: "It has died with the node that had it.",
    },
    Kind {
        kind: ErrorKind::Closed,
        name: "ClosedError",
        of: |py| py.get_type::<PyRuntimeError>(),
        about: "The rack is closed here, or goes on without this process.",
    },
    Kind {
        kind: ErrorKind::NoPaging,
        name: "NoPagingError",
        of: |py| py.get_type::<PyOSError>(),
        about: "The system does not let this process map coherent memory: read and write by calls.",
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
    // Errors of keys would put their text in quotes.
    contents.set_item("__str__", py.get_type::<PyException>().getattr("__str__")?)?;
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
        let kind = KINDS.iter().position(|row| row.kind == ErrorKind::of(code));
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
    alloc: rackmem::AllocError,
    rack: rackmem::RackError,
    lock: rackmem::LockError,
    leave: rackmem::LeaveError
);
