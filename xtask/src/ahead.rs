//! What later steps run is compiled while the tests run.
//!
//! Most tests wait: for processes, leases, and deaths to be noticed. The builds beside them have
//! the lowest priority and take what is left of the processors. They decide nothing: a step finds
//! its program compiled, or compiles it then, and what does not compile fails there.

use std::process::{Command, Stdio};
use std::time::Instant;

use crate::workspace::Workspace;
use crate::{fuzz, process, races, step};

/// As `nice` counts it.
const LOWEST: u8 = 19;

/// What one step runs.
struct Build {
    name: &'static str,
    command: fn(&Workspace) -> Command,
}

/// In the order in which the steps come.
const BUILDS: &[Build] = &[
    Build {
        name: "races",
        command: races::build,
    },
    Build {
        name: "races under miri",
        command: races::build_under_miri,
    },
    Build {
        name: "libFuzzer",
        command: fuzz::build_libfuzzer,
    },
];

/// Compiles all of it.
pub fn compile(workspace: &Workspace) {
    for Build { name, command } in BUILDS {
        let begin = Instant::now();
        let mut build = process::nice(&command(workspace), LOWEST);
        build.stderr(Stdio::null());
        let ended = process::quietly(build, step::BUILD_LIMIT);
        let said = match ended {
            Ok(status) if status.success() => "built",
            _ => "not built, its step will tell why:",
        };
        let time = begin.elapsed().as_secs_f64();
        println!("   ahead: {said} {name}, {time:.0} s");
    }
}
