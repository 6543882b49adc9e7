//! Members of a rack as processes of their own: this test binary again, with one of its tests.

use crate::LONG;
use rackmem::Config;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

const CONFIG: &str = "RACKMEM_TEST_MEMBER_CONFIG";
const TEST: &str = "RACKMEM_TEST_MEMBER_TEST";
const NODE: &str = "RACKMEM_TEST_MEMBER_NODE";
const ARGUMENT: &str = "RACKMEM_TEST_MEMBER_ARGUMENT";

/// A folder that goes with this value.
pub struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The text of a rack's file, and the folder that its members meet in.
pub fn config(fabric: &str, nodes: usize) -> (String, Folder) {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let nth = COUNT.fetch_add(1, Relaxed);
    let folder = format!("rackmem-objects-{}-{nth}", std::process::id());
    let folder = std::env::temp_dir().join(folder);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    let addresses = rackmem_hosts::addresses(nodes);
    let addresses: Vec<String> = addresses.iter().map(|a| format!("\"{a}\"")).collect();
    let text = format!(
        "fabric = \"{fabric}\"\nnodes = [{}]\nmembership = \"dir:{}\"\nmemory = {}\ncache = {}\n\
         patience = \"{}s\"\nlease = \"2s\"\n",
        addresses.join(", "),
        folder.display(),
        64 << 20,
        1 << 20,
        LONG.as_secs(),
    );
    (text, Folder(folder))
}

/// The same for members that live as long as they do, on a machine that is busy with other things.
pub fn patient_config(fabric: &str, nodes: usize) -> (String, Folder) {
    let (text, folder) = config(fabric, nodes);
    (text.replace("lease = \"2s\"", "lease = \"6s\""), folder)
}

/// In such a process: its rack, its node and what it was given; nothing in the test's own.
pub fn started(test: &str) -> Option<(Config, usize, String)> {
    let is = |name| std::env::var(name).ok();
    (is(TEST)? == test).then_some(())?;
    let config = Config::parse(&is(CONFIG)?).unwrap();
    Some((config, is(NODE)?.parse().unwrap(), is(ARGUMENT)?))
}

/// A member that is a process.
pub struct Member {
    child: Child,
    lines: BufReader<std::process::ChildStderr>,
}

impl Member {
    /// Starts the binary again, with this test.
    pub fn start(test: &str, config: &str, node: usize, argument: &str) -> Member {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test, "--nocapture"])
            .env(TEST, test)
            .env(CONFIG, config)
            .env(NODE, node.to_string())
            .env(ARGUMENT, argument)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap());
        Member { child, lines }
    }

    /// The next line that it says.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        assert!(self.lines.read_line(&mut line).unwrap() > 0, "it has ended");
        line.trim().to_owned()
    }

    /// What it has said until its end.
    pub fn rest(&mut self) -> impl Iterator<Item = String> + '_ {
        // The last line may have been cut off.
        (&mut self.lines)
            .split(b'\n')
            .map_while(Result::ok)
            .filter_map(|line| String::from_utf8(line).ok())
    }

    pub fn signal(&self, signal: &str) {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args([signal, &pid]).status();
        assert!(sent.unwrap().success());
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
