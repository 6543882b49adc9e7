//! LATENCY: how long commands take at this node.

use std::time::{SystemTime, UNIX_EPOCH};

use super::{Call, Failure, Outcome, Subcommand, help};
use crate::memory::Memory;
use crate::resp::args::Args;
use crate::server::latency::History;

/// Bytes of an event's name in an answer.
const SHOWN: usize = 64;
/// Samples in a graph, and lines of it.
const COLUMNS: usize = 80;
const LINES: u64 = 4;

pub(super) const fn subcommands<M: Memory>() -> &'static [Subcommand<M>] {
    const {
        &[
            ("latest", 2..=2, latest),
            ("history", 3..=3, history),
            ("reset", 2..=usize::MAX, reset),
            ("graph", 3..=3, graph),
            ("histogram", 2..=usize::MAX, histogram),
            ("doctor", 2..=2, doctor),
            ("help", 2..=2, help),
        ]
    }
}

/// The samples of the event that is word 2.
fn of<M: Memory>(call: &Call<'_, '_, M>) -> Option<(&'static str, History)> {
    let mut all = call.shared.control.latency.all().into_iter();
    all.find(|(name, _)| call.args.is(2, name))
}

fn latest<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let all = call.shared.control.latency.all();
    call.reply.array(all.len());
    for (name, history) in all {
        call.reply.array(4);
        call.reply.bulk(name.as_bytes());
        let last = history.samples.back();
        call.reply.int(last.map_or(0, |last| last.at) as i64);
        call.reply.int(last.map_or(0, |last| last.millis) as i64);
        call.reply.int(history.most as i64);
    }
    Ok(())
}

fn history<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let samples = of(call).map_or_else(Default::default, |(_, history)| history.samples);
    call.reply.array(samples.len());
    for sample in samples {
        call.reply.array(2);
        call.reply.int(sample.at as i64);
        call.reply.int(sample.millis as i64);
    }
    Ok(())
}

fn reset<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let named = |name: &str| (2..call.args.len()).any(|i| call.args.is(i, name));
    let all = call.args.len() == 2;
    let forgotten = call
        .shared
        .control
        .latency
        .forget(|name| all || named(name));
    call.reply.count(forgotten);
    Ok(())
}

fn graph<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let Some((name, history)) = of(call) else {
        let event = call.word(2);
        let event = &event[..event.len().min(SHOWN)];
        let text = [b"ERR No samples available for event '", event, b"'"];
        return Err(Failure::from(text.concat()));
    };
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.unwrap_or_default().as_secs();
    call.reply.text(&drawn(name, &history, now));
    Ok(())
}

/// The last samples as a graph of letters: a bar each, and below it how long ago that was.
fn drawn(name: &str, history: &History, now: u64) -> String {
    let skipped = history.samples.len().saturating_sub(COLUMNS);
    let shown: Vec<_> = history.samples.iter().skip(skipped).collect();
    let high = shown.iter().map(|one| one.millis).max().unwrap_or(0);
    let low = shown.iter().map(|one| one.millis).min().unwrap_or(0);
    let most = history.most;
    let mut text = format!("{name} - high {high} ms, low {low} ms (all time high {most} ms)\n");
    text.push_str(&"-".repeat(COLUMNS));
    let level = |millis: u64| (millis - low) * (LINES - 1) / (high - low).max(1) + 1;
    for line in (1..=LINES).rev() {
        text.push('\n');
        text.extend(shown.iter().map(|one| match level(one.millis) {
            top if top == line => '_',
            top if top > line => '#',
            _ => ' ',
        }));
    }
    let ages: Vec<Vec<char>> = shown
        .iter()
        .map(|one| age(now.saturating_sub(one.at)).chars().collect())
        .collect();
    for line in 0..ages.iter().map(Vec::len).max().unwrap_or(0) {
        text.push('\n');
        text.extend(ages.iter().map(|age| age.get(line).unwrap_or(&' ')));
    }
    text.push('\n');
    text
}

/// Seconds in the largest unit that they fill.
fn age(seconds: u64) -> String {
    let units = [(86_400, 'd'), (3600, 'h'), (60, 'm')];
    let unit = units.into_iter().find(|(length, _)| seconds >= *length);
    let (length, unit) = unit.unwrap_or((1, 's'));
    format!("{}{unit}", seconds / length)
}

/// How long the calls of a command took, cumulated: see [`crate::server::counts`].
fn histogram<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let catalog = call.shared.control.users.catalog();
    let wanted =
        |unit: usize| call.args.len() == 2 || is_named(call.args, &catalog.units[unit].name);
    let found: Vec<_> = (0..catalog.units.len())
        .filter(|unit| wanted(*unit))
        .map(|unit| (unit, call.shared.took(unit)))
        .filter(|(_, took)| took.iter().any(|calls| *calls != 0))
        .collect();
    let reply = &mut call.reply;
    reply.map(found.len());
    for (unit, took) in found {
        reply.bulk(catalog.units[unit].name.as_bytes());
        reply.map(2);
        reply.bulk(b"calls");
        reply.int(took.iter().sum::<u64>() as i64);
        reply.bulk(b"histogram_usec");
        let steps = took.iter().enumerate().filter(|(_, calls)| **calls != 0);
        reply.map(steps.clone().count());
        let mut sum = 0;
        for (power, calls) in steps {
            sum += calls;
            reply.int(1 << power);
            reply.int(sum as i64);
        }
    }
    Ok(())
}

/// Whether a command, or the one that it is a part of, is among the words from the third on.
fn is_named(args: Args<'_>, unit: &str) -> bool {
    let family = unit.split('|').next().unwrap_or(unit);
    (2..args.len()).any(|i| args.is(i, unit) || args.is(i, family))
}

fn doctor<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let (control, mut text) = (&call.shared.control, String::new());
    for (name, history) in control.latency.all() {
        let count = history.samples.len() as u64;
        let sum: u64 = history.samples.iter().map(|one| one.millis).sum();
        let (mean, most) = (sum / count.max(1), history.most);
        text.push_str(&format!(
            "{name}: {count} samples, {mean} ms on average, {most} ms at most\n"
        ));
    }
    text.push_str(match (control.settings.latency_threshold(), text.is_empty()) {
        (0, true) => {
            "Nothing is sampled. CONFIG SET latency-monitor-threshold says from how many milliseconds \
             on an event is; LATENCY HISTOGRAM shows how long commands took without that.\n"
        }
        (_, true) => "Nothing took that long yet.\n",
        _ => "SLOWLOG GET shows which commands these were; one that waits for other nodes takes their time, too.\n",
    });
    call.reply.text(&text);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::latency::Sample;

    #[test]
    fn a_graph_has_a_bar_for_each_sample() {
        let samples = [(1000, 10), (3940, 30), (3998, 20)];
        let history = History {
            samples: samples.map(|(at, millis)| Sample { at, millis }).into(),
            most: 50,
        };
        let graph = drawn("command", &history, 4000);
        let lines: Vec<&str> = graph.lines().collect();
        assert_eq!(
            lines[0],
            "command - high 30 ms, low 10 ms (all time high 50 ms)"
        );
        assert_eq!(
            lines[2..],
            [" _ ", " # ", " #_", "_##", "512", "0ms", "m  "]
        );
    }
}
