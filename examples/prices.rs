//! `prices`: a process writes prices, two read copies that are 50 ms old at most. One of them is
//! stopped in the middle, and says what it may read when it wakes.

#![allow(clippy::print_stdout)]

use rackmem::bounded::Domain;
use rackmem::{AccessError, Config, Contract, Rack, RegionSpec};
use std::io::{BufRead, BufReader, Write};
use std::net::UdpSocket;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

type Main<T = ()> = Result<T, Box<dyn std::error::Error>>;

const BOUND: Duration = Duration::from_millis(50);

fn spec() -> RegionSpec {
    RegionSpec::new("prices", 64 * 100).contract(Contract::Bounded)
}

fn main() -> Main {
    let mut args = std::env::args().skip(1);
    if let (Some(file), Some(node)) = (args.next(), args.next()) {
        return read(&file, node.parse()?);
    }
    let folder = std::env::temp_dir().join(format!("rackmem-prices-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let ports: Vec<UdpSocket> = (0..3)
        .map(|_| UdpSocket::bind("127.0.0.1:0"))
        .collect::<Result<_, _>>()?;
    let nodes: Vec<String> = ports
        .iter()
        .map(|port| Ok(format!("'{}'", port.local_addr()?)))
        .collect::<std::io::Result<_>>()?;
    drop(ports);
    let text = format!(
        "nodes = [{}]\nmembership = 'dir:{}'\npatience = '30s'\nlease = '15s'\n",
        nodes.join(", "),
        folder.display()
    );
    let file = folder.join("rack.toml");
    std::fs::write(&file, &text)?;

    // This process is node 0, and the prices are in its memory.
    let rack = Rack::join(&Config::parse(&text)?, 0)?;
    let prices: Domain<u64> = Domain::of(&rack.node(0).create_region(&spec())?, BOUND)?;
    let mut readers = Vec::new();
    for node in ["1", "2"] {
        readers.push(Reader::start(&file, node)?);
    }
    for reader in &mut readers {
        reader.line()?; // it has a copy
    }
    readers[1].signal("-STOP")?;
    let mut writer = prices.writer()?; // a lock of the rack
    for price in 1..=1000 {
        writer.set(7, &price)?; // waits for no reader, not for the one that is stopped either
    }
    drop(writer);
    println!("1000 prices are written while node 2 is stopped");
    std::thread::sleep(2 * BOUND);
    readers[1].signal("-CONT")?;
    for (reader, node) in readers.iter_mut().zip(1..) {
        let said = reader.ask()?;
        println!("node {node} {said}");
    }
    drop((readers, rack));
    std::fs::remove_dir_all(folder)?;
    Ok(())
}

/// A reader: a section that is open while its process is stopped, and one afterwards.
fn read(file: &str, node: usize) -> Main {
    let rack = Rack::join(&Config::load(file.as_ref())?, node)?;
    let prices: Domain<u64> = Domain::of(&rack.node(node).open_region(&spec())?, BOUND)?;
    let section = loop {
        let section = prices.enter()?;
        if section.get(7).is_ok() {
            break section;
        }
    };
    println!("ready");
    std::io::stdin().lines().next();
    let before = match section.finish() {
        Ok(()) => "may use what it has read".to_owned(),
        Err(error) => format!("throws away what it has read ({})", error.code()),
    };
    let now = loop {
        match prices.read(7) {
            Err(AccessError::Stale { .. }) => {} // the machine is slower than the bound
            read => break read?,
        }
    };
    let counts = rack.node(node).metrics().bounded;
    println!("{before}, reads {now}; news came {} times", counts.news);
    Ok(())
}

/// A process that ends with this one.
struct Reader {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Reader {
    fn start(file: &std::path::Path, node: &str) -> Main<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .arg(file)
            .arg(node)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let input = child.stdin.take().ok_or("no input")?;
        let output = BufReader::new(child.stdout.take().ok_or("no output")?);
        Ok(Reader {
            child,
            input,
            output,
        })
    }

    fn line(&mut self) -> Main<String> {
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        Ok(line.trim().to_owned())
    }

    fn ask(&mut self) -> Main<String> {
        self.input.write_all(b"\n")?;
        self.line()
    }

    fn signal(&self, signal: &str) -> Main {
        let process = self.child.id().to_string();
        Command::new("kill").args([signal, &process]).status()?;
        Ok(())
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
