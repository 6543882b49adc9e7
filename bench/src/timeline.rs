//! How many operations are done in each step of a run, and what happens meanwhile.

use serde::{Serialize, Serializer, ser::SerializeStruct};
use std::fmt::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// A step.
pub const STEP: Duration = Duration::from_millis(50);
/// Steps over which a speed counts as lasting.
const LASTING: usize = 4;
/// Steps in a line of the plot.
const LINE: usize = 80;
const BARS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// What happens.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Mark {
    /// A member is killed.
    Killed,
    /// It is started again.
    Restarted,
}

/// Counts of operations, step by step. Any thread may count.
#[derive(Debug)]
pub struct Timeline {
    name: String,
    start: Instant,
    steps: Box<[AtomicU64]>,
    /// Whole steps, once the run is over.
    ended: AtomicUsize,
    marks: Mutex<Vec<(Duration, Mark)>>,
}

impl Timeline {
    /// Begins now, and has room for so long; what comes later is not counted.
    pub fn new(name: &str, room: Duration) -> Self {
        let steps = room.as_millis() / STEP.as_millis();
        Timeline {
            name: name.to_owned(),
            start: Instant::now(),
            steps: (0..steps).map(|_| AtomicU64::new(0)).collect(),
            ended: AtomicUsize::new(0),
            marks: Mutex::default(),
        }
    }

    /// The time since it began.
    pub fn now(&self) -> Duration {
        self.start.elapsed()
    }

    /// An operation is done.
    #[inline]
    pub fn count(&self) {
        if let Some(step) = self.steps.get(step(self.now())) {
            step.fetch_add(1, Relaxed);
        }
    }

    /// Something happens now.
    pub fn mark(&self, mark: Mark) -> Duration {
        let now = self.now();
        if let Ok(mut marks) = self.marks.lock() {
            marks.push((now, mark));
        }
        now
    }

    /// The run is over.
    pub fn end(&self) {
        self.ended
            .store(step(self.now()).min(self.steps.len()), Relaxed);
    }

    fn counts(&self) -> Vec<u64> {
        let steps = &self.steps[..self.ended.load(Relaxed)];
        steps.iter().map(|step| step.load(Relaxed)).collect()
    }

    /// Operations a second between two times, in the whole steps between them;
    /// 0 when there are none.
    pub fn rate(&self, from: Duration, to: Duration) -> f64 {
        let first = from.as_nanos().div_ceil(STEP.as_nanos()) as usize;
        let steps = self.steps.get(first..step(to));
        let steps = steps.unwrap_or_default();
        let sum: u64 = steps.iter().map(|step| step.load(Relaxed)).sum();
        sum as f64 / (steps.len().max(1) as f64 * STEP.as_secs_f64())
    }

    /// From when on, not before `from`, the speed was for a while this share of what it had been in
    /// the second half of the time up to `before`.
    pub fn full_speed(&self, from: Duration, before: Duration, share: f64) -> Option<Duration> {
        let wanted = self.rate(before / 2, before) * share * STEP.as_secs_f64();
        let counts = self.counts();
        let first = step(from) + 1;
        let lasting = counts
            .get(first..)?
            .windows(LASTING)
            .position(|window| window.iter().sum::<u64>() as f64 >= wanted * LASTING as f64)?;
        Some(STEP * (first + lasting) as u32)
    }

    /// A bar a step, with the marks where they are.
    pub fn plot(&self) -> String {
        let counts = self.counts();
        let most = counts.iter().copied().max().unwrap_or(0).max(1);
        let rate = most as f64 / STEP.as_secs_f64();
        let mut text = format!(
            "{}: {} ms a bar, the highest is {rate:.0} ops/s\n",
            self.name,
            STEP.as_millis()
        );
        let marks = self
            .marks
            .lock()
            .map(|marks| marks.clone())
            .unwrap_or_default();
        for (row, line) in counts.chunks(LINE).enumerate() {
            let from = row * LINE;
            let bar = |count: &u64| BARS[(count * 8).div_ceil(most).min(8) as usize];
            let bars: String = line.iter().map(bar).collect();
            let ms = from as u128 * STEP.as_millis();
            // Writing to a string does not fail.
            let _ = writeln!(text, "{ms:>6} ms {bars}");
            for (time, mark) in &marks {
                let at = step(*time);
                if (from..from + LINE).contains(&at) {
                    let gap = " ".repeat(at - from);
                    let _ = writeln!(text, "{:>9} {gap}↑ {mark:?}", "");
                }
            }
        }
        text
    }
}

fn step(time: Duration) -> usize {
    (time.as_nanos() / STEP.as_nanos()) as usize
}

impl Serialize for Timeline {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let marks = self
            .marks
            .lock()
            .map(|marks| marks.clone())
            .unwrap_or_default();
        let marks: Vec<(u128, Mark)> = marks
            .into_iter()
            .map(|(time, mark)| (time.as_millis(), mark))
            .collect();
        let mut object = serializer.serialize_struct("Timeline", 4)?;
        object.serialize_field("victim", &self.name)?;
        object.serialize_field("step_ms", &(STEP.as_millis() as u64))?;
        object.serialize_field("operations", &self.counts())?;
        object.serialize_field("marks_ms", &marks)?;
        object.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(counts: &[u64]) -> Timeline {
        let timeline = Timeline::new("test", STEP * counts.len() as u32);
        for (step, count) in timeline.steps.iter().zip(counts) {
            step.store(*count, Relaxed);
        }
        timeline.ended.store(counts.len(), Relaxed);
        timeline
    }

    #[test]
    fn full_speed_is_when_it_lasts() {
        let counts = [100, 100, 0, 0, 100, 0, 0, 95, 95, 95, 95, 0];
        let timeline = of(&counts);
        assert_eq!(timeline.rate(Duration::ZERO, STEP * 2), 2000.0);
        let full = |share| timeline.full_speed(STEP * 2, STEP * 2, share);
        assert_eq!(full(0.9), Some(STEP * 7));
        assert_eq!(full(0.99), None);
    }

    #[test]
    fn a_plot_has_a_bar_a_step_and_no_bar_for_nothing() {
        let timeline = of(&[8, 4, 0, 1]);
        let plot = timeline.plot();
        assert!(plot.contains("0 ms █▄ ▁\n"), "{plot}");
        assert!(plot.contains("160 ops/s"), "{plot}");
    }
}
