//! A rack whose node 0 is a thread of the test's, which keeps the files, and whose other nodes are
//! programs that know nothing of racks.

use rackmem::{Config, Rack};
use rackmem_hosts::{Hosts, Place};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Longer than any program here takes, on a machine that has much else to do.
const PATIENCE: Duration = Duration::from_secs(300);
const LOOK: Duration = Duration::from_millis(10);

/// Where its nodes are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Where {
    /// On this host, by shared memory.
    Shm,
    /// On this host, by UDP.
    Udp,
    /// Each on a host of its own.
    Hosts,
}

pub const ALL: [Where; 3] = [Where::Shm, Where::Udp, Where::Hosts];

/// See the module.
pub struct Files {
    // Before the hosts: its sockets are there.
    keeper: Option<Rack>,
    hosts: Option<Hosts>,
    folder: PathBuf,
}

pub fn skip(why: &str) {
    println!("skipped: {why}");
}

impl Files {
    /// A rack for so many programs. `None`: there cannot be one here, which is said.
    pub fn new(name: &str, place: Where, programs: usize) -> Option<Files> {
        let nodes = programs + 1;
        let hosts = match place {
            Where::Hosts => match Hosts::start(nodes) {
                Ok(hosts) => Some(hosts),
                Err(why) => {
                    skip(&format!("no rack of hosts: {why}"));
                    return None;
                }
            },
            _ => None,
        };
        let folder = std::env::temp_dir().join(format!(
            "rackmem-dropin-{name}-{place:?}-{}",
            std::process::id()
        ));
        std::fs::create_dir_all(&folder).unwrap();
        let addresses: Vec<String> = match &hosts {
            Some(_) => (0..nodes)
                .map(|host| format!("{}:7400", rackmem_hosts::address(Place::Host(host))))
                .collect(),
            None => rackmem_hosts::addresses(nodes)
                .iter()
                .map(ToString::to_string)
                .collect(),
        };
        let fabric = if place == Where::Shm { "shm" } else { "udp" };
        let members = folder.join("members");
        let text = format!(
            "nodes = {addresses:?}\nfabric = \"{fabric}\"\nmembership = \"dir:{}\"\nlease_ms = 3000\nmemory = \"256M\"\n",
            members.display()
        );
        std::fs::write(folder.join("rack.toml"), text).unwrap();
        let config = Config::load(&folder.join("rack.toml")).unwrap();
        let join = || Rack::join(&config, 0).unwrap();
        let keeper = match &hosts {
            Some(hosts) => hosts.within(Place::Host(0), join).unwrap(),
            None => join(),
        };
        Some(Files {
            keeper: Some(keeper),
            hosts,
            folder,
        })
    }

    /// A program as a node of it, counted from 1, which waits to be started.
    pub fn command(&self, node: usize, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = match &self.hosts {
            Some(hosts) => hosts.command(Place::Host(node), program),
            None => Command::new(program),
        };
        command
            .env("RACKMEM_CONFIG", self.folder.join("rack.toml"))
            .env("RACKMEM_NODE", node.to_string())
            .env("LD_PRELOAD", library())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Starts it.
    pub fn start(&self, node: usize, words: &[&str]) -> Running {
        let mut command = self.command(node, words[0]);
        command.args(&words[1..]);
        Running::start(command)
    }
}

impl Files {
    /// Kills what else a node's host runs: `ip`, which starts programs there, is not the program.
    pub fn kill_all_of(&self, node: usize) {
        if let Some(hosts) = &self.hosts {
            hosts.kill(Place::Host(node)).unwrap();
        }
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        self.keeper = None;
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// A program; killed when it is dropped.
pub struct Running {
    child: Child,
    out: BufReader<ChildStdout>,
    err: Option<JoinHandle<String>>,
}

/// How a program has ended: by itself, by a signal, or not in time.
#[derive(Debug)]
pub struct Ended {
    pub status: Option<ExitStatus>,
    pub out: String,
    pub err: String,
}

impl Ended {
    pub fn code(&self) -> Option<i32> {
        self.status.and_then(|status| status.code())
    }
}

fn all_of(mut from: impl Read) -> String {
    let mut text = String::new();
    from.read_to_string(&mut text).unwrap();
    text
}

impl Running {
    pub fn start(mut command: Command) -> Running {
        let mut child = command.spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let err = child.stderr.take().unwrap();
        let err = Some(std::thread::spawn(|| all_of(err)));
        Running { child, out, err }
    }

    /// The next line that it prints.
    pub fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        self.out.read_line(&mut line).ok().filter(|len| *len > 0)?;
        Some(line.trim_end().into())
    }

    /// Kills it, as nothing else does.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Waits for its end, or ends it. What it prints fits a pipe.
    pub fn wait(mut self) -> Ended {
        let end = Instant::now() + PATIENCE;
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break Some(status);
            }
            if Instant::now() > end {
                self.kill();
                break None;
            }
            std::thread::sleep(LOOK);
        };
        let out = all_of(&mut self.out);
        let err = self.err.take().unwrap().join().unwrap();
        Ended { status, out, err }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Where this build's libraries are.
fn built() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    // target/debug/deps/dropin-…
    test.parent().and_then(Path::parent).unwrap().to_owned()
}

/// The library, built from this checkout: where who runs the tests says that it is, or by cargo.
pub fn library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        if let Some(library) = std::env::var_os("RACKMEM_TEST_DROPIN") {
            return library.into();
        }
        let mut build = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        build
            .args(["build", "-q", "-p", "rackmem-dropin"])
            .current_dir(env!("CARGO_MANIFEST_DIR"));
        assert!(
            build.status().unwrap().success(),
            "the library does not compile"
        );
        built().join("librackmem_pthread.so")
    })
}

/// A program of `tests/programs`, compiled. `None`: it cannot be here, which is said.
pub fn compiled(source: &str, options: &[&str]) -> Option<PathBuf> {
    let compiler = if source.ends_with(".cpp") {
        "c++"
    } else {
        "cc"
    };
    let from = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/programs")
        .join(source);
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let number = NUMBER.fetch_add(1, Relaxed);
    let name = format!("{}-{number}", source.replace('.', "-"));
    let to = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let mut command = Command::new(compiler);
    command
        .args(["-O1", "-g", "-Wall", "-Werror", "-pthread"])
        .arg(from)
        .arg("-o")
        .arg(&to)
        .args(options);
    match command.output() {
        Err(_) => {
            skip(&format!("no {compiler}"));
            None
        }
        Ok(output) if !output.status.success() => {
            let text = String::from_utf8_lossy(&output.stderr).into_owned();
            let missing = ["lmdb.h: No such file", "boost/interprocess"];
            assert!(
                missing.iter().any(|what| text.contains(what)),
                "{source}: {text}"
            );
            skip(&format!(
                "{source}: its library is not installed (liblmdb-dev, libboost-dev)"
            ));
            None
        }
        Ok(_) => Some(to),
    }
}

/// A Python that has NumPy: the system's, or one that is made beside this build. `None`: there is
/// none, which is said.
pub fn python() -> Option<PathBuf> {
    let has = |python: &Path| {
        let mut asks = Command::new(python);
        asks.args(["-c", "import numpy"]).stderr(Stdio::null());
        asks.status().is_ok_and(|status| status.success())
    };
    let folder = built().join("dropin-python");
    let own = folder.join("bin/python");
    let pick = || {
        [PathBuf::from("python3"), own.clone()]
            .into_iter()
            .find(|python| has(python))
    };
    if let Some(python) = pick() {
        return Some(python);
    }
    let quietly = |command: &mut Command| {
        let done = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
        done.is_ok_and(|status| status.success())
    };
    quietly(
        Command::new("python3")
            .args(["-m", "venv", "--clear"])
            .arg(&folder),
    );
    quietly(Command::new(&own).args(["-m", "pip", "install", "--quiet", "numpy>=1.26,<3"]));
    let python = pick();
    if python.is_none() {
        skip("no Python with NumPy, and pip could not install it");
    }
    python
}

/// Whether a program is installed; if it is not, that is said.
pub fn is_there(program: &str, package: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).any(|folder| folder.join(program).is_file());
    if !found {
        skip(&format!("no {program} (Debian's {package})"));
    }
    found
}
