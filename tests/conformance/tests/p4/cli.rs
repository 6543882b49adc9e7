//! The control plane of a running BMv2: its command line, fed through a pipe.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

const PROMPT: &str = "RuntimeCmd: ";

/// A command line that is connected.
pub struct Cli {
    child: Child,
    input: ChildStdin,
    output: ChildStdout,
    text: String,
}

impl Cli {
    /// Connects to the switch whose control plane listens at a TCP port.
    pub fn connect(program: &Path, port: u16) -> Result<Self, String> {
        let failed = |error| format!("{}: {error}", program.display());
        let mut child = Command::new(program)
            .args(["--thrift-port", &port.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(failed)?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("the command line has no pipes".into());
        };
        let mut cli = Cli {
            child,
            input,
            output,
            text: String::new(),
        };
        cli.answer()?;
        Ok(cli)
    }

    fn answer(&mut self) -> Result<String, String> {
        let mut buffer = [0; 1 << 16];
        loop {
            if let Some(end) = self.text.find(PROMPT) {
                let answer = self.text[..end].to_owned();
                self.text.drain(..end + PROMPT.len());
                return Ok(answer);
            }
            match self.output.read(&mut buffer) {
                Ok(0) => return Err(format!("the command line has ended: {}", self.text.trim())),
                Ok(len) => self.text.push_str(&String::from_utf8_lossy(&buffer[..len])),
                Err(error) => return Err(format!("the command line: {error}")),
            }
        }
    }

    /// Runs commands one after the other, and says what they answered.
    pub fn run(&mut self, commands: &[String]) -> Result<Vec<String>, String> {
        // As many at a time as pipes surely hold on both sides.
        let mut answers = Vec::with_capacity(commands.len());
        for some in commands.chunks(16) {
            let mut lines = some.join("\n");
            lines.push('\n');
            self.input
                .write_all(lines.as_bytes())
                .map_err(|error| format!("the command line: {error}"))?;
            for command in some {
                let answer = self.answer()?;
                let refused = ["Invalid", "Error", "rror:", "Unknown", "does not"];
                if refused.iter().any(|word| answer.contains(word)) {
                    return Err(format!("{command}: {}", answer.trim()));
                }
                answers.push(answer);
            }
        }
        Ok(answers)
    }
}

impl Drop for Cli {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
