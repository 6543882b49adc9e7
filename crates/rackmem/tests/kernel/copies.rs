//! All nodes write and read; a member that keeps a copy dies in the middle.

use crate::{eventually, say};
use rackmem::diagnostics::{CopyCounts, Kind};
use rackmem::{Config, KernelSwitch, OpenError, Rack, RegionSpec, Replicated};
use rackmem_hosts::{Hosts, Place, address};
use rackmem_sim::history::{Call, Recorder, Reply};
use rackmem_sim::linear::{Limits, Verdict, check};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::Stdio;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

const HOSTS: usize = 4;
const LINES: usize = 3;
/// A line takes several packets.
const WORDS: usize = 300;
const OPERATIONS: u64 = 150;
fn config(folder: &Path) -> Config {
    let at = |place| format!("\"{}:7400\"", address(place));
    let nodes: Vec<String> = (0..HOSTS).map(|host| at(Place::Host(host))).collect();
    let text = format!(
        "fabric = \"udp\"\nswitch = {}\nnodes = [{}]\nmembership = \"dir:{}\"\n\
         memory = {}\ncache = {}\npatience = '60s'\nlease = '20s'\n",
        at(Place::Switch),
        nodes.join(", "),
        folder.display(),
        64 << 20,
        1 << 20,
    );
    Config::parse(&text).expect("a configuration")
}

/// Serves until it is told to end, and says what it has done then.
pub fn play_switch(mode: &str, folder: &Path, ports: &[String]) {
    let switch = KernelSwitch {
        interfaces: ports.to_vec(),
        mode: mode.parse().expect("a mode"),
    };
    let rack = match Rack::serve_switch_in_kernel(&config(folder), &switch) {
        Ok(rack) => rack,
        Err(OpenError::Kernel { code, why }) => return say(format_args!("refused {code} {why}")),
        Err(error) => panic!("{error}"),
    };
    say(format_args!("ready"));
    let _ = std::io::stdin().lock().read_line(&mut String::new());
    let metrics = rack.metrics().switch.expect("it is the switch");
    let kernel = metrics.kernel.expect("it is in the kernel");
    let received = |kind| {
        let rows = metrics.received.0.iter();
        rows.filter(|row| row.0 == kind)
            .map(|row| row.1)
            .sum::<u64>()
    };
    let answers = received(Kind::AbdWriteAck) + received(Kind::AbdReadAck);
    say(format_args!(
        "{answers} {} {} {}",
        kernel.control,
        kernel.orders,
        kernel.missed + kernel.errors
    ));
}

pub fn run(passed: &mut usize) {
    match Hosts::probe() {
        Ok(()) => {
            for mode in ["skb", "native"] {
                *passed += usize::from(in_mode(mode));
            }
        }
        Err(error) => say(format_args!(
            "skipped: copies behind a switch in the kernel: {error}"
        )),
    }
}

fn in_mode(mode: &str) -> bool {
    let hosts = Hosts::start(HOSTS).expect("namespaces");
    let folder = hosts.folder().join("members");
    std::fs::create_dir_all(&folder).expect("a folder");
    let own = std::env::current_exe().expect("this program");
    let mut command = hosts.command(Place::Switch, own);
    command.args(["play-switch", mode]).arg(&folder);
    command.args(hosts.ports());
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().expect("a process");
    let mut said = BufReader::new(child.stdout.take().expect("piped"));
    let mut line = String::new();
    let _ = said.read_line(&mut line);
    let takes = line.trim() == "ready";
    if takes {
        let (writes, rounds) = story(mode, &hosts, &config(&folder));
        // A word tells it to end.
        let told = child
            .stdin
            .take()
            .map(|mut stdin| stdin.write_all(b"end\n"));
        assert!(told.is_some_and(|told| told.is_ok()));
        let mut rest = String::new();
        let _ = said.read_to_string(&mut rest);
        let figures: Vec<u64> = rest.split_whitespace().flat_map(str::parse).collect();
        let [answers, control, orders, wrong] = figures[..] else {
            panic!("{mode}: {rest}");
        };
        assert!(rounds < 2 * writes, "{mode}: {rounds} rounds of {writes}");
        assert!(answers >= 2 * writes, "{mode}: {answers} of {writes}");
        // Beside pings and what came before the switch had heard of the group, nothing of it
        // went through the switch's process.
        let counts =
            format!("{mode}: {answers} answers, {control} to the process, {orders} orders");
        assert!(control < answers / 2 && orders < answers / 2, "{counts}");
        assert_eq!(wrong, 0, "{mode}");
        say(format_args!("test copies_{mode} ... ok ({counts})"));
    } else {
        // Whoever may not load programs is told so by another kind.
        assert!(line.starts_with("refused permission"), "{mode}: {line}");
        say(format_args!("skipped: copies_{mode}: {}", line.trim()));
    }
    let _ = child.wait();
    hosts.tear_down().expect("nothing is left");
    takes
}

/// Writes that have been done, and their rounds.
fn story(mode: &str, hosts: &Hosts, config: &Config) -> (u64, u64) {
    let spec = RegionSpec::new("history", 4096 * LINES)
        .copies(3)
        .line(4096);
    let recorder = Recorder::new(2 * OPERATIONS as usize);
    let (made, done) = (Barrier::new(HOSTS), Barrier::new(HOSTS - 1));
    let dies = AtomicBool::new(false);
    let (made, done, dies) = (&made, &done, &dies);
    let (spec, record) = (&spec, &recorder);
    let lives = &|host: usize| {
        let rack = Rack::join(config, host).expect("a place");
        let node = rack.node(host);
        if host == 0 {
            eventually("all are members", || {
                (0..HOSTS as u16).all(|n| node.is_member(n))
            });
            node.create_region(spec).expect("a region");
        }
        made.wait();
        if host == 2 {
            // It keeps a copy, and asks for nothing.
            eventually("it is to die", || dies.load(SeqCst));
            return CopyCounts::default();
        }
        let region = node.open_region(spec).expect("the region");
        let lines: Vec<Replicated<[u64; WORDS]>> = (0..LINES)
            .map(|line| region.replicated(line).expect("a line"))
            .collect();
        let mut log = record.client(host as u32);
        for number in 1..=2 * OPERATIONS {
            if number == OPERATIONS {
                dies.store(true, SeqCst);
            }
            let at = (number as usize * 7 + host) % LINES;
            let name = at.to_string();
            if number % 3 == 0 {
                let ticket = log.begin(&name, Call::Get).expect("room");
                let read = lines[at].read().expect("a majority");
                // Never a part of one write and a part of another.
                assert!(read.iter().all(|word| *word == read[0]), "torn: {read:?}");
                log.ok(
                    ticket,
                    match read[0] {
                        0 => Reply::Nil,
                        value => Reply::Text(value.to_string()),
                    },
                );
            } else {
                let fresh = (host as u64 + 1) << 32 | number;
                let value = fresh.to_string();
                let ticket = log.begin(&name, Call::Set { value }).expect("room");
                lines[at].write([fresh; WORDS]).expect("a majority");
                log.ok(ticket, Reply::Nil);
            }
        }
        assert!(node.groups()[0].one_round, "{mode}");
        // Of two members that keep copies and live, both are needed.
        done.wait();
        rack.metrics().nodes[0].copies
    };
    let counts: Vec<CopyCounts> = std::thread::scope(|scope| {
        let thread = |host| scope.spawn(move || hosts.within(Place::Host(host), || lives(host)));
        let threads: Vec<_> = (0..HOSTS).map(thread).collect();
        let ended = threads
            .into_iter()
            .map(|thread| thread.join().expect("it ends"));
        ended.map(|counts| counts.expect("a namespace")).collect()
    });
    let history = recorder.into_history();
    match check(&history, Limits::default()) {
        Verdict::Linearizable(summary) => assert_eq!(summary.keys, LINES, "{mode}"),
        verdict => panic!("{mode}: {verdict}"),
    }
    let sum = |of: fn(&CopyCounts) -> u64| counts.iter().map(of).sum();
    (sum(|c| c.writes), sum(|c| c.write_rounds))
}
