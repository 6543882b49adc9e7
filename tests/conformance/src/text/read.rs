//! Text to cases.

use super::HEAD;
use crate::{Case, Port, Reply, Sent, Setup, Step};
use rackmem_proto::switch::{Field, Register};
use std::fmt;

/// What is wrong with a golden file, and in which line, from 1.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TextError {
    /// The line.
    pub line: usize,
    /// What is wrong.
    pub what: String,
}

impl fmt::Display for TextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.what)
    }
}

impl std::error::Error for TextError {}

/// The part of a case that a line belongs to.
#[derive(Clone, Copy, PartialEq)]
enum Part {
    Head,
    Prefix,
    Before,
    Packets,
    After,
}

/// The cases of a file.
pub fn read(text: &str) -> Result<Vec<Case>, TextError> {
    let mut lines = text.lines().enumerate();
    match lines.next() {
        Some((_, HEAD)) => {}
        _ => {
            let what = format!("a file of golden packets begins with `{HEAD}`");
            return Err(TextError { line: 1, what });
        }
    }
    let mut cases = Vec::new();
    let mut part = Part::Head;
    for (number, line) in lines {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        take(line, &mut cases, &mut part).map_err(|what| TextError {
            line: number + 1,
            what,
        })?;
    }
    Ok(cases)
}

fn take(line: &str, cases: &mut Vec<Case>, part: &mut Part) -> Result<(), String> {
    let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
    let rest = rest.trim();
    if word == "case" {
        cases.push(empty(rest));
        *part = Part::Head;
        return Ok(());
    }
    let case = cases.last_mut().ok_or("no case has begun")?;
    match (word, rest) {
        ("about", about) => case.about = about.into(),
        ("switch", words) => case.setup = setup(words)?,
        ("prefix", "none") => case.prefix = None,
        ("prefix", "") => *part = Part::Prefix,
        ("before", "") => *part = Part::Before,
        ("packets", "") => *part = Part::Packets,
        ("after", "") => *part = Part::After,
        ("frozen", "") => case.frozen = true,
        ("in", bytes) => steps(case, *part)?.push(Step {
            packet: unhex(bytes)?,
            reply: Reply::Sent(Vec::new()),
        }),
        ("out", rest) => {
            let sent = sent(rest)?;
            match &mut last(case, *part)?.reply {
                Reply::Sent(packets) => packets.push(sent),
                Reply::ControlPlane => return Err("the packet goes to the control plane".into()),
            }
        }
        ("to", "the control plane") => last(case, *part)?.reply = Reply::ControlPlane,
        _ => {
            let register = register(line).ok_or_else(|| format!("what is `{line}`?"))?;
            match *part {
                Part::Before => case.before.push(register),
                Part::After => case.after.push(register),
                _ => return Err("a register stands below `before` or `after`".into()),
            }
        }
    }
    Ok(())
}

fn empty(name: &str) -> Case {
    Case {
        name: name.into(),
        about: String::new(),
        setup: Setup::default(),
        prefix: Some(Vec::new()),
        before: Vec::new(),
        frozen: false,
        steps: Vec::new(),
        after: Vec::new(),
    }
}

fn steps(case: &mut Case, part: Part) -> Result<&mut Vec<Step>, String> {
    match part {
        Part::Prefix => Ok(case.prefix.get_or_insert_default()),
        Part::Packets => Ok(&mut case.steps),
        _ => Err("a packet stands below `prefix` or `packets`".into()),
    }
}

fn last(case: &mut Case, part: Part) -> Result<&mut Step, String> {
    let steps = steps(case, part)?;
    steps.last_mut().ok_or("no packet came in".into())
}

fn setup(words: &str) -> Result<Setup, String> {
    let mut setup = Setup::default();
    for word in words.split_whitespace() {
        let bad = || format!("`{word}` does not say how a switch is set up");
        let (name, value) = word.split_once('=').ok_or_else(bad)?;
        if (name, value) == ("shadow", "none") {
            setup.shadow = None;
            continue;
        }
        if name == "locks" {
            let (ways, sets) = value.split_once('x').ok_or_else(bad)?;
            setup.lock_ways = ways.parse().map_err(|_| bad())?;
            setup.lock_sets = sets.parse().map_err(|_| bad())?;
            continue;
        }
        let number: u32 = value.parse().map_err(|_| bad())?;
        let small = u16::try_from(number).map_err(|_| bad());
        match name {
            "epoch" => setup.epoch = number,
            "ways" => setup.ways = u8::try_from(number).map_err(|_| bad())?,
            "sets" => setup.sets = number,
            "nodes" => setup.nodes = small?,
            "requesters" => setup.requesters = small?,
            "seed" => setup.seed = number,
            "shadow" => setup.shadow = Some(small?),
            "ports" => setup.ports = Some(small?),
            _ => return Err(bad()),
        }
    }
    Ok(setup)
}

fn unhex(text: &str) -> Result<Vec<u8>, String> {
    let digits: Vec<u32> = text
        .chars()
        .filter(|c| !c.is_whitespace())
        .map(|c| c.to_digit(16).ok_or(format!("`{c}` is no hex digit")))
        .collect::<Result<_, _>>()?;
    if !digits.len().is_multiple_of(2) {
        return Err("half a byte is missing".into());
    }
    Ok(digits
        .chunks(2)
        .map(|pair| (pair[0] << 4 | pair[1]) as u8)
        .collect())
}

/// `agent NODE HEX` or `requester NODE:PORT HEX`.
fn sent(text: &str) -> Result<Sent, String> {
    let mut words = text.splitn(3, ' ');
    let (kind, place, bytes) = (words.next(), words.next(), words.next());
    let bad = || format!("`{text}` does not say what leaves by which port");
    let place = place.ok_or_else(bad)?;
    let port = match kind {
        Some("agent") => Port::Agent(place.parse().map_err(|_| bad())?),
        Some("requester") => {
            let (node, port) = place.split_once(':').ok_or_else(bad)?;
            Port::Requester {
                node: node.parse().map_err(|_| bad())?,
                port: port.parse().map_err(|_| bad())?,
            }
        }
        _ => return Err(bad()),
    };
    let bytes = unhex(bytes.ok_or_else(bad)?)?;
    Ok(Sent { port, bytes })
}

/// `NAME [way N] at N = HEX`.
fn register(line: &str) -> Option<Register> {
    let (place, value) = line.split_once('=')?;
    let words: Vec<&str> = place.split_whitespace().collect();
    let field = Field::ALL
        .into_iter()
        .find(|f| words.first() == Some(&f.name()))?;
    let (way, at) = match words[1..] {
        ["way", way, "at", at] if field.of_a_way() => (way.parse().ok()?, at),
        ["at", at] if !field.of_a_way() => (0, at),
        _ => return None,
    };
    Some(Register {
        field,
        way,
        at: at.parse().ok()?,
        value: u64::from_str_radix(value.trim(), 16).ok()?,
    })
}
