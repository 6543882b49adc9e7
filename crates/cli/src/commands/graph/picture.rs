//! How the change of each step falls, as a picture: steps to the right, the change upwards, by
//! powers of ten; a line an engine.

use super::row::Row;
use std::fmt::Write;

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 420.0;
/// Left, right, above and below the lines.
const MARGINS: [f64; 4] = [70.0, 20.0, 50.0, 50.0];
/// Of lines, in the order of engines.
const COLOURS: [&str; 4] = ["#4477aa", "#ee6677", "#228833", "#aa3377"];
/// Lines across, at most.
const RULES: i32 = 12;

/// What is drawn, and where.
struct Frame {
    steps: f64,
    /// Powers of ten.
    low: f64,
    high: f64,
}

impl Frame {
    fn of(rows: &[Row]) -> Frame {
        let steps = rows.iter().map(|row| row.steps.len()).max().unwrap_or(0);
        let changes = rows.iter().flat_map(|row| &row.steps);
        let powers = changes.filter_map(|step| power(step.change));
        let (low, high) = powers.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), it| {
            (low.min(it.floor()), high.max(it.ceil()))
        });
        // A picture of nothing has a frame as well.
        let (low, high) = if low > high { (0.0, 1.0) } else { (low, high) };
        Frame {
            steps: steps.max(2) as f64,
            low,
            high: high.max(low + 1.0),
        }
    }

    fn x(&self, step: f64) -> f64 {
        let [left, right, ..] = MARGINS;
        left + (step - 1.0) / (self.steps - 1.0) * (WIDTH - left - right)
    }

    fn y(&self, power: f64) -> f64 {
        let [_, _, above, below] = MARGINS;
        let share = (self.high - power) / (self.high - self.low);
        above + share * (HEIGHT - above - below)
    }
}

/// A step without a change has no place on such an axis.
fn power(change: f64) -> Option<f64> {
    (change > 0.0 && change.is_finite()).then(|| change.log10())
}

/// The picture, as SVG.
pub fn svg(title: &str, rows: &[Row]) -> String {
    let frame = Frame::of(rows);
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"white\"/>\n\
         <text x=\"{}\" y=\"20\" font-size=\"14\">{}</text>\n",
        MARGINS[0],
        escaped(title)
    );
    axes(&mut text, &frame);
    for (nth, row) in rows.iter().enumerate() {
        line(&mut text, &frame, row, nth);
    }
    text.push_str("</svg>\n");
    text
}

fn axes(text: &mut String, frame: &Frame) {
    let (left, right) = (frame.x(1.0), frame.x(frame.steps));
    let (low, high) = (frame.low as i32, frame.high as i32);
    let between = ((high - low) / RULES).max(1);
    for power in (low..=high).step_by(between as usize) {
        let y = frame.y(f64::from(power));
        put(
            text,
            format_args!(
                "<line x1=\"{left:.1}\" y1=\"{y:.1}\" x2=\"{right:.1}\" y2=\"{y:.1}\" stroke=\"#dddddd\"/>\n\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">1e{power}</text>\n",
                left - 6.0,
                y + 4.0
            ),
        );
    }
    let below = HEIGHT - MARGINS[3];
    for (step, anchor) in [(1.0, "start"), (frame.steps, "end")] {
        put(
            text,
            format_args!(
                "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">{step}</text>\n",
                frame.x(step),
                below + 18.0
            ),
        );
    }
    put(
        text,
        format_args!(
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">step</text>\n",
            (left + right) / 2.0,
            below + 34.0
        ),
    );
}

fn line(text: &mut String, frame: &Frame, row: &Row, nth: usize) {
    let colour = COLOURS[nth % COLOURS.len()];
    let steps = (1..).zip(&row.steps);
    let points = steps.filter_map(|(step, it)| {
        let power = power(it.change)?;
        Some(format!(
            "{:.1},{:.1}",
            frame.x(f64::from(step)),
            frame.y(power)
        ))
    });
    let points: Vec<String> = points.collect();
    put(
        text,
        format_args!(
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.5\"/>\n\
         <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\" fill=\"{colour}\">{}: {} steps</text>\n",
            points.join(" "),
            WIDTH - MARGINS[1],
            MARGINS[2] + 16.0 * (nth as f64 + 1.0),
            escaped(&row.engine),
            row.steps.len()
        ),
    );
}

/// Text grows; that cannot fail.
fn put(text: &mut String, what: std::fmt::Arguments<'_>) {
    let _ = text.write_fmt(what);
}

fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    text.replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::super::row::StepRow;
    use super::*;

    fn row(changes: &[f64]) -> Row {
        let step = |change: &f64| StepRow {
            change: *change,
            changed: 1,
            seconds: 0.0,
        };
        Row {
            engine: "a < b".into(),
            seconds: 0.0,
            is_done: true,
            steps: changes.iter().map(step).collect(),
            packets: 0,
            agreement: None,
            summary: String::new(),
            top: Vec::new(),
        }
    }

    #[test]
    fn a_line_goes_from_the_first_step_to_the_last() {
        let picture = svg("x & y", &[row(&[1.0, 0.1, 0.01]), row(&[1.0])]);
        assert!(
            picture.contains("points=\"70.0,50.0 385.0,210.0 700.0,370.0\""),
            "{picture}"
        );
        assert_eq!(picture.matches("<polyline").count(), 2);
        assert!(picture.contains("x &amp; y") && picture.contains("a &lt; b: 3 steps"));
    }

    #[test]
    fn steps_without_a_change_and_no_steps_at_all_are_drawn() {
        for changes in [&[][..], &[0.0][..], &[5.0, 0.0][..]] {
            let picture = svg("", &[row(changes)]);
            assert!(picture.ends_with("</svg>\n"));
            assert!(
                !picture.contains("NaN") && !picture.contains("inf"),
                "{picture}"
            );
        }
        assert!(svg("", &[]).contains("<svg"));
    }
}
