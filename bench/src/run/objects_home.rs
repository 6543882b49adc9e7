//! A home of an object in a process of its own, which can be stopped.

use super::child::{Running, ends_with_us, signal};
use super::{Result, missing};
use rackmem::object::{Object, ObjectRef};
use rackmem::{Config, Contract, Node, Rack, RegionSpec};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// The home's number.
pub const HOME: usize = 0;
/// The reader's number.
pub const READER: usize = 1;

/// It ends with its standard input, and takes what it has in shared memory along.
const ENDS_WITHIN: Duration = Duration::from_secs(5);

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

/// A home over shared memory.
pub struct Home {
    process: Running,
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
        let command = ends_with_us(&mut command);
        let (process, said) = Running::start_saying(command, ENDS_WITHIN)?;
        let rack = Rack::join(&Config::parse(&text)?, READER)?;
        let object = attach(&rack.node(READER), &said)?;
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
        // A temporary file in any case.
        let _ = std::fs::remove_file(&self.file);
    }
}
