//! A home of an object in a process of its own, which can be stopped.

use super::child::ends_with_us;
use super::{BenchError, Result};
use rackmem::object::{Object, ObjectRef};
use rackmem::{Config, Contract, Node, Rack, RegionSpec};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// The home's number.
pub const HOME: usize = 0;
/// The reader's number.
pub const READER: usize = 1;

fn missing(why: impl std::fmt::Display) -> BenchError {
    BenchError::Missing(why.to_string())
}

/// Plays the home: makes an object of so many bytes, says where it is, and stays until the process
/// that started this one closes its standard input.
pub fn serve(config: &Config, size: usize) -> Result<()> {
    let rack = Rack::join(config, HOME)?;
    let spec = RegionSpec::new("objects", 1 << 20).contract(Contract::Object);
    let region = rack.node(HOME).create_region(&spec)?;
    let object = region.alloc_bytes(&vec![7; size], 0)?;
    let mut out = std::io::stdout();
    writeln!(out, "{}:{}", object.addr(), object.at().generation()).and_then(|()| out.flush())?;
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

/// The same, by the file that describes the rack.
pub fn play(file: &Path, size: usize) -> Result<()> {
    serve(&Config::load(file)?, size)
}

/// The object that a home has said.
pub fn attach(node: &Node, said: &str) -> Result<Object<[u8]>> {
    let (addr, generation) = said.split_once(':').ok_or_else(|| missing("no object"))?;
    let addr = addr.parse().map_err(missing)?;
    let generation = generation.parse().map_err(missing)?;
    Ok(node.attach_object(ObjectRef::new(addr, generation))?)
}

/// Stops a process, as one that has no processor for long, or lets it go on.
pub fn signal(process: u32, signal: i32) {
    // SAFETY: a signal to a process of this bench, whose parent has not waited for it.
    unsafe { libc::kill(process as i32, signal) };
}

/// A home over shared memory.
pub struct Home {
    process: Child,
    file: PathBuf,
    /// Who reads.
    pub rack: Rack,
    /// An object of the home.
    pub object: Object<[u8]>,
}

impl Home {
    /// Starts it, and joins its rack.
    pub fn start(size: usize) -> Result<Self> {
        let name = format!("rackmem-bench-home-{}.toml", std::process::id());
        let file = std::env::temp_dir().join(name);
        let nodes = rackmem_hosts::addresses(2);
        let text = format!(
            "fabric = \"shm\"\nnodes = [\"{}\", \"{}\"]\ncache = 8388608\nmemory = 33554432\n",
            nodes[HOME], nodes[READER]
        );
        std::fs::write(&file, &text)?;
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["bench", "objects", "--home"]).arg(&file);
        command.args(["--size", &size.to_string()]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = ends_with_us(&mut command).spawn()?;
        let mut said = String::new();
        if let Some(out) = process.stdout.take() {
            BufReader::new(out).read_line(&mut said)?;
        }
        let rack = Rack::join(&Config::parse(&text)?, READER)?;
        let object = attach(&rack.node(READER), said.trim())?;
        Ok(Home {
            process,
            file,
            rack,
            object,
        })
    }

    /// It does not run any more.
    pub fn stop(&self) {
        signal(self.process.id(), libc::SIGSTOP);
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        signal(self.process.id(), libc::SIGCONT);
        // It ends with its standard input, and takes what it has in shared memory along.
        end(&mut self.process);
        // A temporary file in any case.
        let _ = std::fs::remove_file(&self.file);
    }
}

/// Lets a process end by itself, within some seconds.
fn end(process: &mut Child) {
    drop(process.stdin.take());
    for _ in 0..500 {
        if !matches!(process.try_wait(), Ok(None)) {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    // It may have ended meanwhile.
    let _ = process.kill();
    let _ = process.wait();
}
