//! A process of its own for a part of a test: it can be stopped, or killed with all its threads.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStderr, Command, Stdio};

/// This program again, which runs one of its tests. It is killed when the value is dropped.
pub struct ChildTest {
    /// The process. Its input ends with the value.
    pub child: Child,
    lines: BufReader<ChildStderr>,
}

impl ChildTest {
    /// Runs this test, with a variable that says that it is to do anything.
    pub fn start(test: &str, (variable, value): (&str, impl AsRef<OsStr>)) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test, "--nocapture"])
            .env(variable, value)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap());
        ChildTest { child, lines }
    }

    /// The next line that it tells.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        // A panic begins with an empty line, and says why in the third.
        while self.lines.read_line(&mut line).unwrap() > 0 && line.trim().is_empty() {}
        if line.contains("panicked at") {
            self.lines.read_line(&mut line).unwrap();
        }
        line.trim().to_owned()
    }

    /// Sends it a signal, by its option of `kill`.
    pub fn signal(&self, signal: &str) {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args([signal, &pid]).status();
        assert!(sent.unwrap().success());
    }
}

impl Drop for ChildTest {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
