//! Installs what the tests and the benches need and this machine lacks.
//! A second run finds everything.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::Failure;
use crate::workspace::Workspace;

/// A program from a Debian package.
struct Tool {
    program: &'static str,
    package: &'static str,
    /// The commands that need it, as in `cargo xtask setup test`.
    wanted_by: &'static [&'static str],
    /// What is lost without it.
    lost: &'static str,
}

/// What the switch in the kernel includes. It is no program, but a file all the same.
pub const BPF_HEADERS: &str = "/usr/include/bpf/bpf_helpers.h";

const TOOLS: &[Tool] = &[
    Tool {
        program: "redis-cli",
        package: "redis-tools",
        wanted_by: &["test", "bench"],
        lost: "tests with the clients that Redis users have, redis-benchmark",
    },
    Tool {
        program: "redis-server",
        package: "redis-server",
        wanted_by: &["test", "bench"],
        lost: "comparisons of answers and of speed with Redis itself",
    },
    Tool {
        program: "etcd",
        package: "etcd-server",
        wanted_by: &["test"],
        lost: "tests of the membership with a real etcd",
    },
    Tool {
        program: "promtool",
        package: "prometheus",
        wanted_by: &["test"],
        lost: "what Prometheus' own checker says about the metrics",
    },
    Tool {
        program: "tcpdump",
        package: "tcpdump",
        wanted_by: &["test"],
        lost: "a second opinion on captures of packets",
    },
    Tool {
        program: "ip",
        package: "iproute2",
        wanted_by: &["test", "bench"],
        lost: "racks of hosts in network namespaces",
    },
    Tool {
        program: "ethtool",
        package: "ethtool",
        wanted_by: &["test", "bench"],
        lost: "racks of hosts in network namespaces",
    },
    Tool {
        program: "clang",
        package: "clang",
        wanted_by: &["test", "bench"],
        lost: "the switch in the kernel (XDP)",
    },
    Tool {
        program: BPF_HEADERS,
        package: "libbpf-dev",
        wanted_by: &["test", "bench"],
        lost: "the switch in the kernel (XDP)",
    },
    Tool {
        program: "mpirun",
        package: "openmpi-bin",
        wanted_by: &["test"],
        lost: "tests under the launcher of MPI",
    },
    Tool {
        program: "srun",
        package: "slurm-client",
        wanted_by: &["test"],
        lost: "tests under Slurm",
    },
    Tool {
        program: "slurmctld",
        package: "slurmctld",
        wanted_by: &["test"],
        lost: "tests under Slurm",
    },
    Tool {
        program: "slurmd",
        package: "slurmd",
        wanted_by: &["test"],
        lost: "tests under Slurm",
    },
    Tool {
        program: "c++",
        package: "g++",
        wanted_by: &["test"],
        lost: "tests of the library for C",
    },
    Tool {
        program: "pkg-config",
        package: "pkg-config",
        wanted_by: &["test"],
        lost: "tests of the library for C",
    },
    Tool {
        program: "/usr/include/lmdb.h",
        package: "liblmdb-dev",
        wanted_by: &["test", "bench"],
        lost: "tests of the drop-in with LMDB",
    },
    Tool {
        program: "/usr/include/boost/interprocess/interprocess_fwd.hpp",
        package: "libboost-dev",
        wanted_by: &["test"],
        lost: "tests of the drop-in with Boost.Interprocess",
    },
    Tool {
        program: "sqlite3",
        package: "sqlite3",
        wanted_by: &["test"],
        lost: "tests of the drop-in with SQLite",
    },
    Tool {
        program: "kchashmgr",
        package: "kyotocabinet-utils",
        wanted_by: &["test"],
        lost: "tests of the drop-in with Kyoto Cabinet",
    },
    Tool {
        program: "python3",
        package: "python3",
        wanted_by: &["test"],
        lost: "tests with redis-py",
    },
];

/// What the tests in Python import, and what builds the Python package.
const PYTHON_PACKAGES: &[&str] = &[
    "maturin>=1.9,<2",
    "pytest>=8,<9",
    "redis>=5,<8",
    // Applications that keep what they know in a Redis (tests/e2e/applications).
    "aiocache[redis]>=0.12,<0.13",
    "cachelib>=0.13,<1",
    "celery>=5.5,<6",
    "django>=5,<6",
    "django-redis>=6,<8",
    "dramatiq[redis]>=2,<3",
    "flask-caching>=2.3,<3",
    "huey>=2.5,<4",
    // Schemas of Kubernetes, for the manifests (tests/e2e/test_manifests.py).
    "kubernetes-validate>=1.31,<2",
    "limits[redis]>=5,<6",
    "pottery>=3,<4",
    "rq>=2,<3",
];

/// The Debian package without which `python3 -m venv` makes nothing.
const VENV_PACKAGE: &str = "python3-venv";

/// `cargo xtask setup test|bench`. What cannot be installed is named; it is no error,
/// since the tests that need it skip themselves and say so.
pub fn command(workspace: &Workspace, arguments: &[String]) -> Result<bool, Failure> {
    let [purpose] = arguments else {
        return Err("say what for: setup test, or setup bench".into());
    };
    if !TOOLS
        .iter()
        .any(|tool| tool.wanted_by.contains(&purpose.as_str()))
    {
        return Err(format!(
            "`{purpose}` is not known: setup test, or setup bench"
        ));
    }
    let missing: Vec<&Tool> = missing(purpose, on_path);
    if !missing.is_empty() {
        let packages: Vec<&str> = missing.iter().map(|tool| tool.package).collect();
        if let Err(why) = install(&packages) {
            println!("{why}");
            for tool in &missing {
                println!("  without {}: no {}", tool.program, tool.lost);
            }
        }
    }
    if purpose == "test"
        && let Err(why) = make_environment(workspace)
    {
        println!("No Python environment, tests with redis-py will be skipped: {why}");
    }
    if purpose == "test"
        && let Err(why) = install_fuzzer(workspace)
    {
        println!("No cargo-fuzz, the run under libFuzzer will be skipped: {why}");
    }
    if purpose == "test"
        && let Err(why) = install_miri()
    {
        println!("No miri, the races under it will be skipped: {why}");
    }
    Ok(true)
}

/// Where programs are installed that only this checkout uses.
pub fn tools(workspace: &Workspace) -> PathBuf {
    workspace.target.join("tools")
}

/// Lets a command find them.
pub fn with_tools<'a>(workspace: &Workspace, command: &'a mut Command) -> &'a mut Command {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let ours = std::iter::once(tools(workspace).join("bin"));
    match std::env::join_paths(ours.chain(std::env::split_paths(&path))) {
        Ok(path) => command.env("PATH", path),
        // A path that cannot be put together was none before.
        Err(_) => command,
    }
}

/// cargo-fuzz, where there is the nightly compiler that it needs.
fn install_fuzzer(workspace: &Workspace) -> Result<(), Failure> {
    let found = quiet(with_tools(
        workspace,
        Command::new("cargo").args(["fuzz", "--version"]),
    ));
    if found || !has_nightly() {
        return Ok(());
    }
    println!("Installing cargo-fuzz in {}", tools(workspace).display());
    let mut cargo = Command::new("cargo");
    // It starts other programs: to optimize it takes longer than all that it does.
    cargo
        .args(["install", "--quiet", "--locked", "--debug"])
        .args(["cargo-fuzz", "--root"])
        .arg(tools(workspace));
    if cargo.status().is_ok_and(|status| status.success()) {
        Ok(())
    } else {
        Err("cargo install cargo-fuzz failed".into())
    }
}

/// Miri, where there is the nightly compiler that it belongs to, and the standard library that it
/// interprets.
fn install_miri() -> Result<(), Failure> {
    let wanted = ["miri", "rust-src"];
    let installed = Command::new("rustup")
        .args(["component", "list", "--installed", "--toolchain", "nightly"])
        .stderr(Stdio::null())
        .output();
    let Ok(installed) = installed else {
        return Ok(());
    };
    let installed = String::from_utf8_lossy(&installed.stdout);
    let here = |name: &str| installed.lines().any(|line| line.starts_with(name));
    if !has_nightly() || wanted.iter().all(|name| here(name)) {
        return Ok(());
    }
    println!("Installing miri");
    let mut rustup = Command::new("rustup");
    rustup.args(["component", "add", "--toolchain", "nightly"]);
    if quiet(rustup.args(wanted)) {
        Ok(())
    } else {
        Err("rustup +nightly component add miri rust-src failed".into())
    }
}

fn has_nightly() -> bool {
    quiet(Command::new("rustup").args(["run", "nightly", "rustc", "--version"]))
}

/// The interpreter of the tests' own environment, which may not exist yet.
pub fn python(workspace: &Workspace) -> PathBuf {
    environment(workspace).join("bin/python")
}

fn environment(workspace: &Workspace) -> PathBuf {
    workspace.target.join("venv")
}

fn missing(purpose: &str, found: impl Fn(&str) -> bool) -> Vec<&'static Tool> {
    let wanted = TOOLS
        .iter()
        .filter(|tool| tool.wanted_by.contains(&purpose));
    wanted.filter(|tool| !found(tool.program)).collect()
}

/// Whether there is such a program, or, of a name that is a whole path, such a file.
pub fn on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// Installs Debian packages, by sudo where that is needed and possible without a question.
fn install(packages: &[&str]) -> Result<(), Failure> {
    let by_hand = format!(
        "Not installed: {0}. As root: apt-get update && apt-get install -y {0}",
        packages.join(" ")
    );
    let prefix: &[&str] = if is_root() {
        &[]
    } else if quiet(Command::new("sudo").args(["-n", "true"])) {
        &["sudo", "-n"]
    } else {
        return Err(by_hand);
    };
    println!("Installing {}", packages.join(" "));
    let install: Vec<&str> = ["install", "-y", "--no-install-recommends"]
        .iter()
        .chain(packages)
        .copied()
        .collect();
    if apt(prefix, &["update"]) && apt(prefix, &install) {
        Ok(())
    } else {
        Err(by_hand)
    }
}

/// One call of apt-get; its output is shown only when it fails.
fn apt(prefix: &[&str], arguments: &[&str]) -> bool {
    let words = [
        prefix,
        &["env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-q"],
        arguments,
    ]
    .concat();
    let output = Command::new(words[0])
        .args(&words[1..])
        .stdin(Stdio::null())
        .output();
    match output {
        Ok(output) if output.status.success() => true,
        Ok(output) => {
            println!("{}", String::from_utf8_lossy(&output.stderr).trim_end());
            false
        }
        Err(error) => {
            println!("{}: {error}", words[0]);
            false
        }
    }
}

/// Makes the Python environment, or leaves it alone when it holds what is wanted.
fn make_environment(workspace: &Workspace) -> Result<(), Failure> {
    let environment = environment(workspace);
    let stamp = environment.join("packages.txt");
    let wanted = PYTHON_PACKAGES.join("\n");
    if std::fs::read_to_string(&stamp).is_ok_and(|found| found == wanted) {
        return Ok(());
    }
    println!("Making a Python environment in {}", environment.display());
    if !create(&environment) {
        install(&[VENV_PACKAGE])?;
        if !create(&environment) {
            return Err("python3 -m venv failed".into());
        }
    }
    let mut pip = Command::new(python(workspace));
    pip.args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
    ]);
    if !pip
        .args(PYTHON_PACKAGES)
        .status()
        .is_ok_and(|status| status.success())
    {
        return Err("pip could not install the packages".into());
    }
    std::fs::write(&stamp, wanted).map_err(|error| format!("{}: {error}", stamp.display()))
}

fn create(environment: &Path) -> bool {
    quiet(
        Command::new("python3")
            .args(["-m", "venv", "--clear"])
            .arg(environment),
    )
}

fn is_root() -> bool {
    Command::new("id")
        .arg("-u")
        .output()
        .is_ok_and(|output| output.stdout.starts_with(b"0\n"))
}

fn quiet(command: &mut Command) -> bool {
    let command = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_command_wants_and_lacks_is_missing() {
        let names = |tools: Vec<&Tool>| tools.iter().map(|tool| tool.program).collect::<Vec<_>>();
        let bench = names(missing("bench", |_| false));
        assert!(bench.contains(&"redis-server") && bench.contains(&BPF_HEADERS));
        assert!(!bench.contains(&"etcd"));
        let test = names(missing("test", |program| program == "python3"));
        assert!(test.contains(&"redis-server") && test.contains(&"etcd"));
        assert!(!test.contains(&"python3"));
        // Each is looked for once.
        let mut programs: Vec<&str> = TOOLS.iter().map(|tool| tool.program).collect();
        programs.sort_unstable();
        assert!(programs.windows(2).all(|two| two[0] != two[1]));
        assert!(missing("test", |_| true).is_empty());
    }

    #[test]
    fn the_path_is_searched() {
        assert!(on_path("sh"));
        assert!(!on_path("a-program-nobody-has"));
    }
}
