//! Running the command.

use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, mpsc};
use std::time::{Duration, Instant};

/// How long a process may take to end after it was asked to.
const WIND_DOWN: Duration = Duration::from_secs(60);
/// How long a command that ends by itself may take, on a machine that has much else to do.
const RUN: Duration = Duration::from_secs(400);
/// How long a command may take until it says its next line.
const LINE: Duration = Duration::from_secs(300);
/// Lines that a command says before they are asked for; one that says more waits.
const LINES: usize = 1024;
/// How long a process may take to begin.
const START: Duration = Duration::from_secs(60);
/// In a mask of signals.
const SIGINT: u64 = 1 << 1;

fn rackmem(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rackmem"));
    command.args(args).stdin(Stdio::null());
    command
}

/// Runs it to its end, which is killed and said to hang where that does not come.
pub fn run(args: &[&str]) -> Output {
    let mut command = rackmem(args);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().expect("the command starts");
    let id = child.id();
    let (ended, end) = mpsc::channel();
    let waits = std::thread::spawn(move || {
        let output = child.wait_with_output();
        // Nobody waits any longer where it was killed for hanging.
        let _ = ended.send(());
        output
    });
    let hung = end.recv_timeout(RUN).is_err();
    if hung {
        let _ = Command::new("kill")
            .args(["-KILL", &id.to_string()])
            .status();
    }
    let output = waits.join().expect("a thread").expect("its outputs");
    let said = (stdout(&output), stderr(&output));
    assert!(!hung, "{args:?} still ran after {RUN:?}: {said:#?}");
    output
}

/// What it wrote to its standard output.
pub fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("text")
}

/// What it wrote to its standard error.
pub fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("text")
}

/// A command that serves until it is told to stop. Killed when dropped.
pub struct Running {
    child: Child,
    /// Asked by one thread at a time.
    stdout: Mutex<mpsc::Receiver<String>>,
}

/// The lines of an output, each as it comes.
fn lines(stdout: Option<ChildStdout>) -> mpsc::Receiver<String> {
    let stdout = BufReader::new(stdout.expect("a pipe"));
    let (sender, receiver) = mpsc::sync_channel(LINES);
    std::thread::spawn(move || {
        let mut lines = stdout.lines().map_while(Result::ok);
        lines.all(|line| sender.send(line).is_ok())
    });
    receiver
}

impl Running {
    fn of(mut command: Command) -> Running {
        let mut child = command
            .stdout(Stdio::piped())
            .spawn()
            .expect("the command starts");
        let stdout = Mutex::new(lines(child.stdout.take()));
        Running { child, stdout }
    }

    /// Starts it with `--json`.
    pub fn start(args: &[&str]) -> Running {
        let mut command = rackmem(args);
        command.arg("--json");
        Running::of(command)
    }

    /// Starts what a shell is told.
    pub fn of_shell(script: &str) -> Running {
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdin(Stdio::null());
        Running::of(command)
    }

    /// Its number.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Starts it with `--json`, and a folder of its own for what it leaves in temporary places.
    pub fn start_in(folder: &Path, args: &[&str]) -> Running {
        let mut command = rackmem(args);
        command.arg("--json").env("TMPDIR", folder);
        Running::of(command)
    }

    /// Waits until something is so.
    pub fn until(&mut self, what: &str, so: impl Fn(&Running) -> bool) {
        let end = Instant::now() + START;
        while !so(self) {
            let ended = self.child.try_wait().expect("a child");
            assert!(ended.is_none(), "it has ended, and never: {what}");
            assert!(Instant::now() < end, "never: {what}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// The processes that it has started and that run.
    pub fn children(&self) -> Vec<u32> {
        let parent = self.child.id().to_string();
        let processes = std::fs::read_dir("/proc").expect("the kernel tells");
        let numbers = processes
            .flatten()
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        numbers
            .filter(|number| {
                let stat = std::fs::read_to_string(format!("/proc/{number}/stat"));
                // After the name, which is in brackets: the state, the parent.
                let stat = stat.unwrap_or_default();
                let fields = stat.rsplit(')').next().unwrap_or_default();
                fields.split_whitespace().nth(1) == Some(&parent)
            })
            .collect()
    }

    /// Waits until it catches SIGINT: before, the signal just kills it.
    pub fn catches_interrupts(self) -> Running {
        let end = Instant::now() + START;
        let path = format!("/proc/{}/status", self.child.id());
        loop {
            let status = std::fs::read_to_string(&path).unwrap_or_default();
            let caught = status.lines().find_map(|it| it.strip_prefix("SigCgt:"));
            let caught = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
            if caught.is_some_and(|mask| mask & SIGINT != 0) {
                return self;
            }
            assert!(Instant::now() < end, "it does not catch SIGINT: {status}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// The next line it prints, as JSON.
    pub fn line(&mut self) -> Value {
        let line = match self.stdout.get_mut().expect("no panic").recv_timeout(LINE) {
            Ok(line) => line,
            Err(mpsc::RecvTimeoutError::Timeout) => panic!("no line for {LINE:?}"),
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                panic!("the command ended before it said anything")
            }
        };
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    /// The addresses it says it serves clients on.
    pub fn listening(&mut self) -> Vec<SocketAddr> {
        let said = self.line();
        let list = said["listening"].as_array().expect("a list of addresses");
        let addr = |value: &Value| value.as_str().and_then(|text| text.parse().ok());
        list.iter()
            .map(|value| addr(value).expect("an address"))
            .collect()
    }

    /// The same after it has become another program with the same output.
    pub fn listening_again(&mut self) -> Vec<SocketAddr> {
        loop {
            let said = self.line();
            if let Some(list) = said["listening"].as_array() {
                let addr = |value: &Value| value.as_str().and_then(|text| text.parse().ok());
                return list.iter().filter_map(addr).collect();
            }
        }
    }

    /// Waits until it has ended by itself; its exit code.
    pub fn ended(&mut self) -> Option<i32> {
        let end = Instant::now() + WIND_DOWN;
        while Instant::now() < end {
            if let Some(status) = self.child.try_wait().expect("a child") {
                return status.code();
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("it still runs after {WIND_DOWN:?}");
    }

    /// Sends SIGINT, as Ctrl-C does.
    pub fn signal(&self) {
        self.send("INT");
    }

    /// Sends a signal.
    pub fn send(&self, signal: &str) {
        let script = format!("kill -{signal} {}", self.child.id());
        let status = Command::new("sh").args(["-c", &script]).status();
        assert!(status.is_ok_and(|status| status.success()));
    }

    /// Ends it by SIGINT; its exit code.
    pub fn interrupt(mut self) -> Option<i32> {
        self.signal();
        let end = Instant::now() + WIND_DOWN;
        while Instant::now() < end {
            if let Some(status) = self.child.try_wait().expect("a child") {
                return status.code();
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("it still runs {WIND_DOWN:?} after SIGINT");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Already ended, as a rule.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A file that is there for one test.
pub struct TempFile(PathBuf);

static FILES: AtomicU32 = AtomicU32::new(0);

impl TempFile {
    /// A file with this text.
    pub fn new(text: &str) -> TempFile {
        let number = FILES.fetch_add(1, Ordering::Relaxed);
        let name = format!("rackmem-test-{}-{number}.toml", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, text).expect("a file");
        TempFile(path)
    }

    /// An empty folder.
    pub fn folder() -> TempFile {
        let file = TempFile::new("");
        std::fs::remove_file(&file.0).expect("a file");
        std::fs::create_dir(&file.0).expect("a folder");
        file
    }

    /// Its text.
    pub fn text(&self) -> String {
        std::fs::read_to_string(&self.0).expect("a file")
    }

    /// Its path.
    pub fn path(&self) -> &str {
        self.0.to_str().expect("a path in UTF-8")
    }
}

impl AsRef<Path> for TempFile {
    fn as_ref(&self) -> &Path {
        &self.0
    }
}

impl Drop for TempFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A folder that is there for one test.
pub struct TempDir(PathBuf);

impl TempDir {
    /// An empty folder.
    pub fn new() -> TempDir {
        let number = FILES.fetch_add(1, Ordering::Relaxed);
        let name = format!("rackmem-test-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).expect("a folder");
        TempDir(path)
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Says that a test is skipped, past the test runner's capture,
/// in the form that `cargo xtask test` counts.
pub fn skip(reason: &str) {
    let _ = writeln!(std::io::stdout(), "skipped: {reason}");
}

/// Whether a program of others is there; says so if not.
pub fn has(program: &str) -> bool {
    let found = has_quietly(program);
    if !found {
        skip(&format!(
            "{program} is not installed (apt-get install redis-tools)"
        ));
    }
    found
}

/// Whether a program of others is there.
pub fn has_quietly(program: &str) -> bool {
    let found = Command::new(program)
        .arg("--version")
        .stdout(Stdio::null())
        .status();
    found.is_ok()
}
