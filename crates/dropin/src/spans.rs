//! Locks of bytes of a file, as `fcntl` and `flock` have them: who may have which together, and
//! what becomes of one who locks or unlocks a part. Nothing here knows a rack.

use rackmem::{Window, WindowMut};

/// Bytes that somebody has locked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span {
    pub start: u64,
    /// The first byte behind it; `u64::MAX`: all that there will ever be.
    pub end: u64,
    /// Alone.
    pub alone: bool,
    /// Whose it is: which life of which node, and what of it.
    pub owner: (u64, u32),
    /// Of a process, as `F_GETLK` tells it.
    pub pid: u32,
}

/// Spans that a file has at a time.
pub const MOST: usize = 1600;

const COUNT: usize = 8;
/// Rises with each change.
pub const VERSION: usize = 16;
const FIRST: usize = 24;
const SPAN: usize = 40;
const ALONE: u64 = 1 << 32;

impl Span {
    fn meets(&self, other: &Span) -> bool {
        self.start < other.end && other.start < self.end
    }
}

/// The spans in a page that is of this file, or of none.
pub fn load(view: &Window<'_>, life: u64) -> Vec<Span> {
    let count = match view.u64(0) == life {
        true => (view.u64(COUNT) as usize).min(MOST),
        false => 0,
    };
    let span = |nth: usize| {
        let word = |word: usize| view.u64(FIRST + nth * SPAN + word * 8);
        Span {
            start: word(0),
            end: word(1),
            owner: (word(2), word(3) as u32),
            pid: word(4) as u32,
            alone: word(4) & ALONE != 0,
        }
    };
    (0..count).map(span).collect()
}

/// Puts them there. False: they are too many, and nothing has changed.
pub fn store(view: &mut WindowMut<'_>, life: u64, spans: &[Span]) -> bool {
    if spans.len() > MOST {
        return false;
    }
    view.grow(FIRST + spans.len() * SPAN);
    view.set_u64(0, life);
    view.set_u64(COUNT, spans.len() as u64);
    view.set_u64(VERSION, view.u64(VERSION).wrapping_add(1));
    for (nth, span) in spans.iter().enumerate() {
        let last = u64::from(span.pid) | if span.alone { ALONE } else { 0 };
        let words = [
            span.start,
            span.end,
            span.owner.0,
            span.owner.1.into(),
            last,
        ];
        for (word, value) in words.into_iter().enumerate() {
            view.set_u64(FIRST + nth * SPAN + word * 8, value);
        }
    }
    true
}

/// Who has what another wants.
pub fn in_the_way<'a>(spans: &'a [Span], wanted: &Span) -> Option<&'a Span> {
    spans.iter().find(|span| {
        span.owner != wanted.owner && span.meets(wanted) && (span.alone || wanted.alone)
    })
}

/// What there is when an owner has locked a span, or unlocked it: nothing else of it changes.
pub fn changed(spans: &[Span], wanted: &Span, locks: bool) -> Vec<Span> {
    let mut out = Vec::with_capacity(spans.len() + 2);
    let mut new = *wanted;
    for span in spans {
        if span.owner != wanted.owner {
            out.push(*span);
            continue;
        }
        let touches = span.start <= new.end && new.start <= span.end;
        if locks && touches && span.alone == new.alone {
            // One with what it touches.
            new.start = new.start.min(span.start);
            new.end = new.end.max(span.end);
            continue;
        }
        if !span.meets(wanted) {
            out.push(*span);
            continue;
        }
        if span.start < wanted.start {
            out.push(Span {
                end: wanted.start,
                ..*span
            });
        }
        if span.end > wanted.end {
            out.push(Span {
                start: wanted.end,
                ..*span
            });
        }
    }
    if locks {
        out.push(new);
    }
    out
}
