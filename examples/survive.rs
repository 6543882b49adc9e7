//! `survive`: three processes keep a ledger, one is killed, and nothing is lost.

#![allow(clippy::print_stdout)]

use rackmem::{Config, Rack, RegionSpec, Replicated};
use std::net::UdpSocket;
use std::os::unix::process::parent_id;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

const ACCOUNTS: usize = 100;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    if let (Some(file), Some(node)) = (args.next(), args.next()) {
        // A member: its memory is a part of the rack until it is killed, or the first one ends.
        let (_rack, first) = (
            Rack::join(&Config::load(file.as_ref())?, node.parse()?)?,
            parent_id(),
        );
        while parent_id() == first {
            std::thread::sleep(Duration::from_millis(200));
        }
        return Ok(());
    }

    let folder = std::env::temp_dir().join(format!("rackmem-survive-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let file = folder.join("rack.toml");
    let ports: Vec<UdpSocket> = (0..3)
        .map(|_| UdpSocket::bind("127.0.0.1:0"))
        .collect::<Result<_, _>>()?;
    let nodes: Vec<String> = ports
        .iter()
        .map(|p| Ok(format!("'{}'", p.local_addr()?)))
        .collect::<std::io::Result<_>>()?;
    drop(ports);
    let text = format!(
        "nodes = [{}]\nmembership = 'dir:{}'\npatience = '30s'\n",
        nodes.join(", "),
        folder.display()
    );
    std::fs::write(&file, &text)?;

    // This process is node 0; nodes 1 and 2 are two more.
    let mut others = Members(Vec::new());
    let rack = Rack::join(&Config::parse(&text)?, 0)?;
    for node in ["1", "2"] {
        others.0.push(
            Command::new(std::env::current_exe()?)
                .arg(&file)
                .arg(node)
                .spawn()?,
        );
    }
    let node = rack.node(0);
    while !(node.is_member(1) && node.is_member(2)) {
        std::thread::sleep(Duration::from_millis(20));
    }

    let ledger = node.create_region(&RegionSpec::new("ledger", 64 * ACCOUNTS).copies(3))?;
    let accounts: Vec<Replicated<u64>> = (0..ACCOUNTS)
        .map(|n| ledger.replicated(n))
        .collect::<Result<_, _>>()?;
    for account in &accounts {
        account.write(1000)?; // when this returns, two of three processes have it
    }
    println!("{ACCOUNTS} accounts are written; node 2 is killed");
    others.0[1].kill()?; // as kill -9 does

    let mut longest = Duration::ZERO;
    for account in &accounts {
        let began = Instant::now();
        assert_eq!(account.read()?, 1000);
        account.write(1001)?;
        longest = longest.max(began.elapsed());
    }
    let sum: u64 = accounts
        .iter()
        .map(Replicated::read)
        .sum::<Result<u64, _>>()?;
    assert_eq!(sum, 1001 * ACCOUNTS as u64);
    println!(
        "nothing is lost: {ACCOUNTS} accounts hold {sum}; the longest read and write took {longest:?}"
    );
    drop((rack, others));
    std::fs::remove_dir_all(folder)?;
    Ok(())
}

/// Processes that end with this one.
struct Members(Vec<Child>);

impl Drop for Members {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
