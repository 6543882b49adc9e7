//! `rackmem top`: a rack that works, on a screen: what its nodes do a second, and its locks.

mod frame;
mod page;
mod sample;
mod screen;

use super::load;
use crate::ended::Ended;
use crate::failure::{Failure, Result};
use crate::out;
use crate::stop::Stop;
use clap::Args;
use frame::Sort;
use rackmem::Config;
use rackmem_bench::table::Look;
use sample::Sample;
use screen::Screen;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

pub const EXAMPLES: &str = "\
Examples:
  rackmem top --rack rack.toml                 a live screen: q ends it, n m p sort by node, misses, packets
  rackmem top --rack rack.toml --once          one frame as text, of one second
  rackmem top --rack rack.toml --page 127.0.0.1:8080    the same in a browser
  rackmem top --rack rack.toml --interval 5 --json | jq .nodes[0].per_second

Run it on a host of the rack; the fabric must be UDP. Nodes are queried one after the other and keep running. Rates are
a second, since the sample before. Hits are not counted: a hit is a few loads. The screen needs 80 columns and 24 lines.";

/// Between two looks at keys.
const KEYS: Duration = Duration::from_millis(50);
/// Columns of a frame where there is no window.
const WIDTH: usize = 120;

/// Options of `rackmem top`.
#[derive(Debug, Args)]
pub struct TopArgs {
    /// Read the rack's description from FILE
    #[arg(long, value_name = "FILE")]
    rack: PathBuf,
    /// Take a sample every SECONDS
    #[arg(long, value_name = "SECONDS", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..=86_400))]
    interval: u32,
    /// Print one frame as text, of one interval, and exit
    #[arg(long)]
    once: bool,
    /// Show it in browsers of this host at http://ADDR/, without authentication
    #[arg(
        long,
        value_name = "ADDR",
        conflicts_with = "once",
        value_parser = |text: &str| rackmem::look_up("--page", text).map_err(|error| error.what())
    )]
    page: Option<SocketAddr>,
    /// Sort nodes by this at first
    #[arg(long, value_enum, default_value = "node")]
    sort: Sort,
}

/// Shows until told to stop.
pub fn run(args: &TopArgs, json: bool) -> Result<Ended> {
    let config = load(&args.rack)?;
    let stop = Stop::on_signals()?;
    let mut before = Sample::take(&config)?;
    if let Some(addr) = args.page {
        return page::serve(addr, (&config, args.interval), before, &stop, json);
    }
    if args.once || json {
        return print(args, &config, before, &stop, json);
    }
    let screen = Screen::open()?;
    let samples = sampler(config, args.interval, &stop);
    let (mut now, mut sort) = (None, args.sort);
    draw(&screen, &before, &before, sort);
    loop {
        if stop.requested() {
            return Ok(Ended::Interrupted);
        }
        let keys = screen.keys(KEYS);
        for key in &keys {
            match key {
                b'q' => return Ok(Ended::Done),
                &screen::CTRL_C => return Ok(Ended::Interrupted),
                key => sort = Sort::of_key(*key).unwrap_or(sort),
            }
        }
        let sample = samples.try_recv().ok().transpose()?;
        let news = sample.is_some() || !keys.is_empty();
        if let Some(sample) = sample {
            let old = now.replace(sample);
            before = old.unwrap_or(before);
        }
        if news {
            draw(&screen, now.as_ref().unwrap_or(&before), &before, sort);
        }
    }
}

fn draw(screen: &Screen, now: &Sample, before: &Sample, sort: Sort) {
    let look = Look {
        width: screen::size().0,
        colour: false,
    };
    let mut lines = frame::lines(now, before, sort, look);
    lines[1] = "q quit   sort by: n node, m misses, p packets".into();
    screen.show(&lines);
}

/// Samples, one an interval: keys do not wait for nodes that do not answer.
fn sampler(config: Config, seconds: u32, stop: &Stop) -> Receiver<Result<Sample>> {
    // One that nobody has taken is enough.
    let (give, samples) = sync_channel(1);
    let stop = stop.clone();
    std::thread::spawn(move || {
        while stop.sleep(Duration::from_secs(seconds.into())) {
            if give.send(Sample::take(&config)).is_err() {
                return;
            }
        }
    });
    samples
}

/// Frames or samples as text.
fn print(
    args: &TopArgs,
    config: &Config,
    mut before: Sample,
    stop: &Stop,
    json: bool,
) -> Result<Ended> {
    loop {
        if !stop.sleep(Duration::from_secs(args.interval.into())) {
            return Ok(Ended::Interrupted);
        }
        let now = Sample::take(config)?;
        if args.once && now.is_silent() {
            let cause = format!("none of the rack's {} nodes answers", now.nodes.len());
            let next = "start its processes, or check the addresses in the file";
            return Err(Failure::new(cause, next));
        }
        if json {
            out::line(now.json(&before));
        } else {
            let look = Look {
                width: WIDTH,
                colour: false,
            };
            frame::lines(&now, &before, args.sort, look)
                .iter()
                .for_each(out::line);
        }
        if args.once {
            return Ok(Ended::Done);
        }
        before = now;
    }
}
