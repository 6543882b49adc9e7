//! A figure's lines, as SVG: drawn from the cases of a report by the parts of their names.
//!
//! `sim/gcp/nodes-8/reads-50` has its place to the right by the part that the plot names (`nodes`),
//! and belongs to the line named by all other parts that vary.

use rackmem_bench::report::{Case, number};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 300.0;
/// Left, right, above and below the lines.
const MARGINS: [f64; 4] = [64.0, 150.0, 16.0, 44.0];
/// Lines across, about.
const RULES: f64 = 5.0;
/// Lines that can be told apart: the page has so many colours.
pub const COLOURS: usize = 8;
/// The unit of cases that a plot of no quantity draws.
const RATE: &str = "ops/s";
/// Sizes further apart than this are drawn by their logarithms.
const FAR: f64 = 32.0;

/// What is drawn of a report.
#[derive(Clone, Copy, Debug)]
pub struct Plot {
    /// Above it; nothing where the figure's own title says it.
    pub title: &'static str,
    /// Parts of a name that a case must have.
    pub keep: &'static [&'static str],
    /// The part to the right; `bytes` is one that is only a number.
    pub x: &'static str,
    pub x_label: &'static str,
    /// The end of a case's name, or its unit; with none, rates are drawn.
    pub of: &'static str,
    pub y_label: &'static str,
    /// Values are divided by this.
    pub divide: f64,
}

/// Lines by their names; each has its points from left to right.
pub type Lines = Vec<(String, Vec<(f64, f64)>)>;

impl Plot {
    /// What is drawn.
    pub fn lines(&self, cases: &[Case]) -> Lines {
        let kept: Vec<(Vec<&str>, f64)> = (cases.iter())
            .filter_map(|case| Some((self.parts(case)?, case.value / self.divide)))
            .collect();
        let mut seen: Vec<BTreeSet<&str>> = Vec::new();
        for (parts, _) in &kept {
            seen.resize(seen.len().max(parts.len()), BTreeSet::new());
            for (set, part) in seen.iter_mut().zip(parts) {
                set.insert(part);
            }
        }
        let mut lines: BTreeMap<String, Vec<(f64, f64)>> = BTreeMap::new();
        for (parts, value) in &kept {
            let Some(x) = parts.iter().find_map(|part| self.place(part)) else {
                continue;
            };
            let varies = |(part, seen): &(&&str, &BTreeSet<&str>)| {
                seen.len() > 1 && self.place(part).is_none()
            };
            let name: Vec<&str> = parts
                .iter()
                .zip(&seen)
                .filter(varies)
                .map(|it| *it.0)
                .collect();
            lines.entry(name.join(", ")).or_default().push((x, *value));
        }
        for points in lines.values_mut() {
            points.sort_by(|one, other| one.0.total_cmp(&other.0));
        }
        lines.into_iter().collect()
    }

    /// The parts of a case's name, without its quantity; nothing if it is not drawn.
    fn parts<'a>(&self, case: &'a Case) -> Option<Vec<&'a str>> {
        let name = match self.of {
            "" if case.unit == RATE => case.case.as_str(),
            "" => return None,
            of if case.unit == of => case.case.as_str(),
            of => case.case.strip_suffix(of)?.strip_suffix('/')?,
        };
        let parts: Vec<&str> = name.split('/').collect();
        (self.keep.iter().all(|part| parts.contains(part))).then_some(parts)
    }

    fn place(&self, part: &str) -> Option<f64> {
        match self.x {
            "bytes" => part.parse().ok(),
            x => part.strip_prefix(x)?.strip_prefix('-')?.parse().ok(),
        }
    }

    /// The picture.
    pub fn svg(&self, cases: &[Case]) -> String {
        let lines = self.lines(cases);
        let frame = Frame::of(&lines);
        let mut text = format!(
            "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">\n",
            escaped(&format!("{} by {}", self.y_label, self.x_label))
        );
        frame.axes(&mut text, self);
        for (nth, (name, points)) in lines.iter().enumerate() {
            frame.line(&mut text, nth, name, points);
        }
        text.push_str("</svg>\n");
        text
    }
}

/// What is drawn, and where.
struct Frame {
    /// Places to the right, each once.
    places: Vec<f64>,
    by_logarithm: bool,
    high: f64,
    step: f64,
}

impl Frame {
    fn of(lines: &Lines) -> Frame {
        let points = || lines.iter().flat_map(|line| &line.1);
        let mut places: Vec<f64> = points().map(|point| point.0).collect();
        places.sort_by(f64::total_cmp);
        places.dedup();
        let most = points().map(|point| point.1).fold(0.0, f64::max);
        // A picture of nothing has a frame as well.
        let most = if most > 0.0 { most } else { 1.0 };
        let step = round(most / RULES);
        let least = places.first().copied().unwrap_or(0.0);
        let last = places.last().copied().unwrap_or(0.0);
        Frame {
            by_logarithm: least > 0.0 && last / least > FAR,
            places,
            high: (most / step).ceil() * step,
            step,
        }
    }

    fn x(&self, place: f64) -> f64 {
        let [left, right, ..] = MARGINS;
        let scale = |place: f64| if self.by_logarithm { place.ln() } else { place };
        let first = self.places.first().copied().map_or(0.0, scale);
        let last = self.places.last().copied().map_or(0.0, scale);
        let share = match last > first {
            true => (scale(place) - first) / (last - first),
            false => 0.5,
        };
        left + share * (WIDTH - left - right)
    }

    fn y(&self, value: f64) -> f64 {
        let [_, _, above, below] = MARGINS;
        above + (1.0 - value / self.high) * (HEIGHT - above - below)
    }

    fn axes(&self, text: &mut String, plot: &Plot) {
        let [left, right, above, below] = MARGINS;
        let rules = (self.high / self.step).round() as u32;
        for rule in 0..=rules {
            let value = f64::from(rule) * self.step;
            let y = self.y(value);
            put(
                text,
                format_args!(
                    "<line class=\"rule\" x1=\"{left}\" y1=\"{y:.1}\" x2=\"{}\" y2=\"{y:.1}\"/>\n\
                     <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>\n",
                    WIDTH - right,
                    left - 6.0,
                    y + 4.0,
                    number(value)
                ),
            );
        }
        for place in &self.places {
            let (x, y) = (self.x(*place), HEIGHT - below + 16.0);
            let label = place.to_string();
            put(
                text,
                format_args!(
                    "<text x=\"{x:.1}\" y=\"{y}\" text-anchor=\"middle\">{label}</text>\n"
                ),
            );
        }
        put(
            text,
            format_args!(
                "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n\
                 <text transform=\"translate(14 {}) rotate(-90)\" text-anchor=\"middle\">{}</text>\n",
                (left + WIDTH - right) / 2.0,
                HEIGHT - 8.0,
                escaped(plot.x_label),
                (above + HEIGHT - below) / 2.0,
                escaped(plot.y_label)
            ),
        );
    }

    fn line(&self, text: &mut String, nth: usize, name: &str, points: &[(f64, f64)]) {
        let colour = nth % COLOURS;
        let places = points.iter().map(|(x, y)| (self.x(*x), self.y(*y)));
        let places: Vec<(f64, f64)> = places.collect();
        let path: Vec<String> = places
            .iter()
            .map(|(x, y)| format!("{x:.1},{y:.1}"))
            .collect();
        put(
            text,
            format_args!(
                "<polyline class=\"c{colour}\" points=\"{}\"/>\n",
                path.join(" ")
            ),
        );
        for (x, y) in &places {
            put(
                text,
                format_args!("<circle class=\"c{colour}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\"/>\n"),
            );
        }
        // A line that is alone has no name.
        if name.is_empty() {
            return;
        }
        let (x, y) = (
            WIDTH - MARGINS[1] + 14.0,
            MARGINS[2] + 16.0 * (nth as f64 + 1.0),
        );
        put(
            text,
            format_args!(
                "<circle class=\"c{colour}\" cx=\"{x:.1}\" cy=\"{:.1}\" r=\"4\"/>\n\
                 <text x=\"{:.1}\" y=\"{y:.1}\">{}</text>\n",
                y - 4.0,
                x + 9.0,
                escaped(name)
            ),
        );
    }
}

/// The next of 1, 2, 5, 10 and so on.
fn round(value: f64) -> f64 {
    let power = 10f64.powf(value.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|step| step * power);
    let least = steps.into_iter().find(|step| *step >= value * 0.999);
    least.unwrap_or(10.0 * power)
}

/// Text grows; that cannot fail.
fn put(text: &mut String, what: std::fmt::Arguments<'_>) {
    let _ = text.write_fmt(what);
}

/// Text of a page.
pub fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    text.replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLOT: Plot = Plot {
        title: "",
        keep: &["reads-50"],
        x: "nodes",
        x_label: "nodes",
        of: "",
        y_label: "millions",
        divide: 1e6,
    };

    fn case(name: &str, value: f64, unit: &str) -> Case {
        Case {
            case: name.into(),
            value,
            unit: unit.into(),
            baseline: None,
            ratio: None,
        }
    }

    fn cases() -> Vec<Case> {
        vec![
            case("sim/gcp/nodes-8/reads-50", 3e6, RATE),
            case("sim/gcp/nodes-2/reads-50", 1e6, RATE),
            case("sim/gcp/nodes-2/reads-50/wait", 7.0, "ns"),
            case("sim/mcs/nodes-2/reads-50", 5e5, RATE),
            case("sim/mcs/nodes-2/reads-95", 9e6, RATE),
        ]
    }

    #[test]
    fn lines_are_what_varies_and_points_go_to_the_right() {
        let lines = PLOT.lines(&cases());
        let expected = vec![
            ("gcp".to_owned(), vec![(2.0, 1.0), (8.0, 3.0)]),
            ("mcs".to_owned(), vec![(2.0, 0.5)]),
        ];
        assert_eq!(lines, expected);
        let waits = Plot {
            of: "wait",
            divide: 1.0,
            ..PLOT
        };
        assert_eq!(waits.lines(&cases()), [(String::new(), vec![(2.0, 7.0)])]);
    }

    #[test]
    fn a_picture_of_nothing_has_a_frame_and_no_number_that_is_none() {
        for cases in [&cases()[..], &[]] {
            let picture = PLOT.svg(cases);
            assert!(picture.starts_with("<svg") && picture.ends_with("</svg>\n"));
            assert!(
                !picture.contains("NaN") && !picture.contains("inf"),
                "{picture}"
            );
        }
        assert_eq!(PLOT.svg(&cases()).matches("<polyline").count(), 2);
    }

    #[test]
    fn rules_are_at_round_numbers() {
        for (value, step) in [
            (0.23, 0.5),
            (1.0, 1.0),
            (1.7, 2.0),
            (34.0, 50.0),
            (60.0, 100.0),
        ] {
            assert!((round(value) - step).abs() < 1e-9, "{value}");
        }
    }
}
