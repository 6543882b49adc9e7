//! rackmem for Python: racks, regions, pages, maps and locks. What is nicer in Python is in Python,
//! in the package beside this.

mod errors;
mod lock;
mod map;
mod pages;
mod process;
mod rack;
mod region;

use pyo3::prelude::*;

#[pymodule]
fn _rackmem(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<rack::Rack>()?;
    module.add_class::<rack::Node>()?;
    module.add_class::<region::Region>()?;
    module.add_class::<pages::Pages>()?;
    module.add_class::<pages::Pinned>()?;
    module.add_class::<lock::Lock>()?;
    module.add_class::<lock::Condition>()?;
    module.add_class::<map::Map>()?;
    module.add_function(wrap_pyfunction!(rack::local, module)?)?;
    module.add_function(wrap_pyfunction!(rack::join, module)?)?;
    module.add_function(wrap_pyfunction!(rack::from_env, module)?)?;
    module.add_function(wrap_pyfunction!(process::close_all, module)?)?;
    errors::add(module)
}
