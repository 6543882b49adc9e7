//! Reads of objects between hosts: by the kernel of the home's host, and by the home's agent,
//! beside a program that copies as many bytes into the same packets and does nothing else.

use super::live::Scene;
use super::part::{AGENT_PORT, Client, at, say, stay};
use super::{Progress, Result, missing};
use crate::report::Report;
use crate::run::child::{Running, signal};
use crate::run::objects_home::{self, HOME, READER};
use rackmem::object::Retry;
use rackmem::{Config, Rack};
use rackmem_hosts::{Hosts, Place, UPLINK};
use rackmem_proto::sabre::GRANULE;
use rackmem_proto::wire::{HEADER_LEN, OWN_LEN};
use rackmem_xdp::{Bare, BareProgram, Mode};
use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

/// Reads of one measurement.
const ROUNDS: u32 = 3_000;

/// What reads of objects of these sizes take. Nothing where there are no namespaces.
pub fn run(
    (sizes, duration): (&[usize], Duration),
    report: &mut Report,
    progress: Progress<'_>,
) -> Result<()> {
    if let Err(why) = Hosts::probe() {
        progress(&format!("no reads in the kernel: {why}"));
        return Ok(());
    }
    let scene = Scene::without_switch()?;
    let file = scene.file.display().to_string();
    let rounds = ROUNDS.to_string();
    // On virtual cables the network stack is the faster one.
    let mode = "skb";
    for &size in sizes {
        progress(&format!("{size} bytes between hosts"));
        let text = size.to_string();
        let read = |reads: &str, stops: bool| {
            scene.median(duration, || {
                let words = ["home", &file, reads, &text];
                let (home, at) = scene.start_at(HOME, &words)?;
                let stops = if stops {
                    home.id().to_string()
                } else {
                    String::new()
                };
                let words = ["read", &file, &at, &text, &rounds, &stops];
                scene.measure_at(Place::Host(READER), &words)
            })
        };
        let bare = scene.median(duration, || {
            let _copy = scene.start_at(HOME, &["copy", mode, &text])?;
            scene.measure_at(Place::Host(READER), &["ask", &text, &rounds])
        })?;
        let name = |who: &str| format!("hosts/{size}/{who}");
        report.add(&name("bare-copy"), bare / 1e3, "us")?;
        // The home's program, behind its interface.
        let by_kernel = format!("{UPLINK}/{mode}");
        let kernel = read(&by_kernel, false)? / 1e3;
        report.add_against(&name("kernel"), kernel, "us", &name("bare-copy"))?;
        let stopped = read(&by_kernel, true)? / 1e3;
        report.add_against(&name("kernel-stopped"), stopped, "us", &name("kernel"))?;
        let agent = read("agent", false)? / 1e3;
        report.add_against(&name("agent"), agent, "us", &name("kernel"))?;
    }
    Ok(())
}

impl Scene {
    /// Starts a part at a host; it, and what it said first.
    pub(super) fn start_at(&self, host: usize, words: &[&str]) -> Result<(Running, String)> {
        Scene::start_saying(self.part(Place::Host(host), words)?)
    }
}

/// Lines that an answer with so many bytes of an object has behind a packet's header.
fn lines(bytes: usize) -> usize {
    (OWN_LEN + bytes).div_ceil(64)
}

/// Plays a part of these benches, if the words name one.
pub fn play(words: &[&str]) -> Option<Result<()>> {
    let number = |word: &str| word.parse::<usize>().map_err(missing);
    Some(match words[..] {
        ["home", file, reads, size] => {
            number(size).and_then(|size| home(Path::new(file), reads, size))
        }
        ["read", file, object, size, rounds, stops] => number(size)
            .and_then(|size| Ok((size, number(rounds)?)))
            .and_then(|row| read(Path::new(file), object, row, stops)),
        ["copy", mode, size] => number(size).and_then(|size| copy(mode, size)),
        ["ask", size, rounds] => number(size)
            .and_then(|size| Ok((size, number(rounds)?)))
            .and_then(ask),
        _ => return None,
    })
}

/// A home with an object, whose kernel answers or does not.
fn home(file: &Path, reads: &str, size: usize) -> Result<()> {
    let mut config = Config::load(file)?;
    if reads != "agent" {
        config.set_kernel_reads(reads)?;
    }
    objects_home::serve(&config, size)
}

/// Reads, beside a process that is stopped first, if there is such.
fn read(file: &Path, object: &str, (size, rounds): (usize, usize), stops: &str) -> Result<()> {
    let rack = Rack::join(&Config::load(file)?, READER)?;
    let object = objects_home::attach(&rack.node(READER), object)?;
    let mut out = vec![0; size];
    let mut times = Vec::with_capacity(rounds);
    // The first answers tell how to ask.
    for round in 0..rounds + 50 {
        if round == 50 && !stops.is_empty() {
            signal(stops.parse().map_err(missing)?, libc::SIGSTOP);
        }
        let began = Instant::now();
        object.read_into(black_box(&mut out), Retry::default())?;
        if round >= 50 {
            times.push(began.elapsed().as_nanos() as u64);
        }
    }
    times.sort_unstable();
    say(&times[times.len() / 2].to_string())
}

fn copy(mode: &str, size: usize) -> Result<()> {
    let mode: Mode = mode.parse().map_err(missing)?;
    let here = at(Place::Host(HOME), AGENT_PORT);
    let mut bare = Bare::load(BareProgram::Copy, here).map_err(missing)?;
    let granule = size.min(GRANULE as usize);
    bare.copy_lines(lines(granule) as u16).map_err(missing)?;
    bare.attach(UPLINK, mode).map_err(missing)?;
    stay()
}

/// Sends what a reader sends, and takes as many packets back.
fn ask((size, rounds): (usize, usize)) -> Result<()> {
    let client = Client::between(
        at(Place::Host(READER), 0),
        at(Place::Host(HOME), AGENT_PORT),
    )?;
    let granule = size.min(GRANULE as usize);
    let packet = vec![0; HEADER_LEN + 64 * lines(granule)];
    let count = size.div_ceil(GRANULE as usize).max(1);
    let mut times = Vec::with_capacity(rounds);
    for _ in 0..rounds {
        let began = Instant::now();
        for _ in 0..count {
            client.send_bytes(&packet)?;
        }
        client.hear(count)?;
        times.push(began.elapsed().as_nanos() as u64);
    }
    times.sort_unstable();
    say(&times[times.len() / 2].to_string())
}
