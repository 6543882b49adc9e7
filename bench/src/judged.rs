//! What the paper says of a figure, what the model says, and how far apart that is.

use crate::report::number;
use serde::Serialize;
use std::fmt;

/// From the least to the most of several values.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Range {
    /// The least.
    pub least: f64,
    /// The most; nothing, where the text names none.
    pub most: Option<f64>,
}

impl Range {
    /// From one to another.
    pub const fn of(least: f64, most: f64) -> Self {
        Range {
            least,
            most: Some(most),
        }
    }

    /// Exactly this.
    pub const fn one(value: f64) -> Self {
        Self::of(value, value)
    }

    /// From here on.
    pub const fn from(least: f64) -> Self {
        Range { least, most: None }
    }

    /// This at most.
    pub const fn up_to(most: f64) -> Self {
        Self::of(0.0, most)
    }

    /// Whether it is a bound, on one side of which everything agrees.
    fn is_bound(self) -> bool {
        self.most.is_none() || self.least <= 0.0
    }

    /// The geometric middle.
    fn middle(self) -> Option<f64> {
        let both = self.most.filter(|_| self.least > 0.0);
        both.map(|most| (self.least * most).sqrt())
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let least = number(self.least);
        match self.most {
            None => write!(f, "over {least}"),
            Some(most) if number(most) == least => f.write_str(&least),
            Some(most) if self.is_bound() => write!(f, "up to {}", number(most)),
            Some(most) => write!(f, "{least} – {}", number(most)),
        }
    }
}

/// What came of a claim.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Within 20%; of a bound, on its right side.
    Agrees,
    /// Within 50%.
    Near,
    /// Neither.
    Differs,
}

/// The largest ratio, or its inverse, that still agrees, and that is still near.
const AGREES: f64 = 1.2;
const NEAR: f64 = 1.5;

/// A claim and what came of it.
#[derive(Clone, Debug, Serialize)]
pub struct Judged {
    /// Where the paper says so.
    pub place: &'static str,
    /// What it says.
    pub says: &'static str,
    /// Its figure.
    pub paper: Range,
    /// Ours.
    pub ours: Range,
    /// Ours by the paper's, middle by middle.
    pub ratio: Option<f64>,
    /// In words.
    pub verdict: Verdict,
    /// Whether the model's parameters were calibrated with it, so that agreeing proves nothing.
    pub calibrated: bool,
}

impl Judged {
    /// The verdict in a word; that a figure agrees which the model was calibrated with is none.
    pub fn word(&self) -> &'static str {
        match (self.verdict, self.calibrated) {
            (Verdict::Agrees, true) => "calibrated",
            (Verdict::Agrees, false) => "agrees",
            (Verdict::Near, _) => "near",
            (Verdict::Differs, _) => "differs",
        }
    }

    /// Judges what the model says to a claim by all values that the claim is about; nothing,
    /// if there are none.
    pub fn new(
        place: &'static str,
        says: &'static str,
        paper: Range,
        calibrated: bool,
        values: &[f64],
    ) -> Option<Self> {
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let most = values.iter().copied().fold(0.0, f64::max);
        let finite = least.is_finite() && most.is_finite();
        let ours = Range {
            least,
            most: Some(most),
        };
        finite.then(|| Judged {
            place,
            says,
            paper,
            ours,
            ratio: ratio(ours, paper),
            verdict: verdict(ours, paper),
            calibrated,
        })
    }
}

fn ratio(ours: Range, paper: Range) -> Option<f64> {
    Some(ours.middle()? / paper.middle()?)
}

fn verdict(ours: Range, paper: Range) -> Verdict {
    let off = match (ratio(ours, paper), paper.most) {
        (Some(ratio), _) => ratio.max(1.0 / ratio),
        // Only a bound: how far on the wrong side of it we are.
        (None, None) => paper.least / ours.least,
        (None, Some(most)) if paper.is_bound() => ours.most.unwrap_or(f64::INFINITY) / most,
        (None, Some(_)) => f64::INFINITY,
    };
    match off {
        off if paper.is_bound() && off > 1.0 => Verdict::Differs,
        off if off <= AGREES => Verdict::Agrees,
        off if off <= NEAR => Verdict::Near,
        _ => Verdict::Differs,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_are_what_they_say() {
        let cases = [
            (Range::one(1.19), Range::one(1.0), Verdict::Agrees),
            (Range::one(1.0), Range::one(1.19), Verdict::Agrees),
            (Range::one(1.3), Range::one(1.0), Verdict::Near),
            (Range::one(1.6), Range::one(1.0), Verdict::Differs),
            (Range::one(0.6), Range::one(1.0), Verdict::Differs),
            (Range::of(1.0, 4.0), Range::of(2.0, 2.1), Verdict::Agrees),
            (Range::one(1.01), Range::from(1.0), Verdict::Agrees),
            (Range::one(0.99), Range::from(1.0), Verdict::Differs),
            (Range::one(0.0), Range::up_to(2.0), Verdict::Agrees),
            (Range::one(1.9), Range::up_to(2.0), Verdict::Agrees),
            (Range::of(1.9, 2.1), Range::up_to(2.0), Verdict::Differs),
            (Range::one(0.0), Range::one(2.0), Verdict::Differs),
        ];
        for (ours, paper, expected) in cases {
            assert_eq!(verdict(ours, paper), expected, "{ours:?} {paper:?}");
        }
    }
}
