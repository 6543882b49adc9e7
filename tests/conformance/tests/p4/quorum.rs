//! Replicated memory on BMv2: the same for packets whose answers are counted.

use super::bmv2::{Running, io};
use super::registers::values;
use super::tools::Tools;
use super::{folder, tools};
use rackmem_conformance::Reply;
use rackmem_conformance::generate::control::{self, HELD_WORDS, OF_LINES, OF_OPERATIONS};
use rackmem_conformance::quorum::{
    QuorumCase, QuorumImplementation, held, replay, scenarios, sequence,
};
use rackmem_proto::abd::Config;
use rackmem_proto::switch::{Counted, QuorumField, QuorumRegister};
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

/// What is wrong with the program when it is compiled with `-DPLANT=n`, from [`FIRST_PLANT`].
const PLANTS: [&str; 7] = [
    "a stamp that passes does not raise the highest one of its line",
    "a stamp is chosen while a question still learns",
    "a request that comes again keeps what was counted for it",
    "a copy of a question for stamps learns",
    "members that do not count are counted",
    "of the lines that a read is answered with the first one is held",
    "what an earlier copy of a read has stored is counted",
];
const FIRST_PLANT: u32 = 10;

/// The program, compiled for one number of lines at a time.
struct Counting<'a> {
    tools: &'a Tools,
    folder: PathBuf,
    plant: Option<u32>,
    life: u32,
    groups: BTreeMap<u16, Counted>,
    running: Option<(usize, Running)>,
}

impl<'a> Counting<'a> {
    fn new(tools: &'a Tools, name: &str, plant: Option<u32>) -> Self {
        Counting {
            tools,
            folder: folder(name),
            plant,
            life: 0,
            groups: BTreeMap::new(),
            running: None,
        }
    }

    fn running(&mut self) -> Result<&mut Running, String> {
        let running = self.running.as_mut().ok_or("it has not begun")?;
        Ok(&mut running.1)
    }

    fn start(&self, lines: usize) -> Result<Running, String> {
        fs::create_dir_all(&self.folder).map_err(io("the folder"))?;
        let program = self.folder.join("rackmem.json");
        // There is nothing about blocks and locks here.
        let mut defines: Vec<String> = ["WAYS=1", "SETS=1", "LOCK_WAYS=1", "LOCK_SETS=1"]
            .map(String::from)
            .into();
        defines.push(format!("LINES={lines}"));
        defines.extend(self.plant.map(|plant| format!("PLANT={plant}")));
        self.tools.compile(&defines, &program)?;
        Running::start(self.tools, &self.folder.join("ports"), &program)
    }
}

impl Drop for Counting<'_> {
    fn drop(&mut self) {
        self.running = None;
        let _ = fs::remove_dir_all(&self.folder);
    }
}

impl QuorumImplementation for Counting<'_> {
    fn begin(&mut self, life: u32, lines: usize) -> Result<(), String> {
        if self.running.as_ref().is_none_or(|(of, _)| *of != lines) {
            self.running = None;
            self.running = Some((lines, self.start(lines)?));
        }
        self.life = life;
        self.groups.clear();
        self.running()?.cli.run(&control::no_groups()).map(drop)
    }

    fn group(&mut self, group: u16, config: Option<&Config>) -> Result<(), String> {
        let counted = config.map(Counted::new);
        if self.groups.get(&group).copied() == counted {
            return Ok(());
        }
        match counted {
            Some(counted) => self.groups.insert(group, counted),
            None => self.groups.remove(&group),
        };
        let groups: Vec<_> = self.groups.iter().map(|row| (*row.0, *row.1)).collect();
        let commands = control::counted(&groups, self.life);
        self.running()?.cli.run(&commands).map(drop)
    }

    fn packet(&mut self, bytes: &[u8]) -> Result<Reply, String> {
        let window = self.running()?.window(&[bytes]);
        if window.is_err() {
            // What of it is still on its way would be taken for the next packet's.
            self.running = None;
        }
        let reply = window?.pop().ok_or("no reply")?;
        Ok(reply.sorted())
    }

    fn registers(&mut self) -> Result<Vec<QuorumRegister>, String> {
        let arrays = OF_OPERATIONS.iter().chain(&OF_LINES);
        let arrays = arrays.map(|array| format!("RackmemIngress.{array}"));
        let arrays = arrays.chain((0..HELD_WORDS).map(control::held_word));
        let commands: Vec<String> = arrays
            .map(|array| format!("register_read {array}"))
            .collect();
        let answers = self.running()?.cli.run(&commands)?;
        let arrays: Result<Vec<Vec<u64>>, String> =
            answers.iter().map(|answer| values(answer)).collect();
        let arrays = arrays?;
        let [
            life,
            number,
            what,
            max_high,
            max_low,
            answered,
            agree,
            chosen_high,
            chosen_low,
            stored,
            tag,
            learner_row,
            learner_number,
            learning,
            stamp_high,
            stamp_low,
            words @ ..,
        ] = &arrays[..]
        else {
            return Err("too few answers".into());
        };
        let operations = (0..life.len()).flat_map(|at| {
            [
                (QuorumField::Life, at, life[at]),
                (QuorumField::Operation, at, number[at] << 32 | what[at]),
                (QuorumField::Max, at, max_high[at] << 32 | max_low[at]),
                (QuorumField::Answered, at, answered[at]),
                (QuorumField::Agree, at, agree[at]),
                (
                    QuorumField::Chosen,
                    at,
                    chosen_high[at] << 32 | chosen_low[at],
                ),
                (QuorumField::Stored, at, stored[at]),
            ]
        });
        let learner = |at: usize| match learning[at] & 1 {
            0 => 0,
            _ => learner_row[at] << 48 | learner_number[at] << 16 | learning[at] >> 1 << 8 | 1,
        };
        // Of an entry that there is not, nothing else says anything.
        let lines = (0..tag.len()).filter(|&at| tag[at] != 0).flat_map(|at| {
            [
                (QuorumField::Line, at, tag[at]),
                (QuorumField::Learner, at, learner(at)),
                (QuorumField::Stamp, at, stamp_high[at] << 32 | stamp_low[at]),
            ]
        });
        let held = words.iter().enumerate().flat_map(|(nth, word)| {
            let rows = word.iter().enumerate();
            rows.map(move |(row, word)| (QuorumField::Held, row * HELD_WORDS + nth, *word))
        });
        let all = operations.chain(lines).chain(held).filter(|row| row.2 != 0);
        let register = |(field, at, value): (QuorumField, usize, u64)| QuorumRegister {
            field,
            at: at as u32,
            value,
        };
        Ok(all.map(register).collect())
    }
}

/// What is counted, and what the switch carries out.
fn all() -> Vec<QuorumCase> {
    [scenarios::all(), held()].concat()
}

#[test]
fn answers_are_counted() {
    let Some(tools) = tools() else { return };
    let mut bmv2 = Counting::new(&tools, "counted", None);
    let cases = all();
    assert!(cases.len() > 45);
    let played = cases.iter().map(|case| replay(&mut bmv2, case));
    let differences: Vec<String> = played.filter_map(Result::err).collect();
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[test]
fn random_questions_and_answers() {
    let Some(tools) = tools() else { return };
    let mut bmv2 = Counting::new(&tools, "random-questions", None);
    for seed in 0..3 {
        if let Err(difference) = replay(&mut bmv2, &sequence(seed, 1_000)) {
            panic!("{difference}");
        }
    }
}

#[test]
fn planted_differences_of_counting() {
    let Some(tools) = tools() else { return };
    for (plant, what) in (FIRST_PLANT..).zip(PLANTS) {
        let mut bmv2 = Counting::new(&tools, "counting-plant", Some(plant));
        let cases = all();
        let caught = cases.iter().find_map(|case| replay(&mut bmv2, case).err());
        assert!(caught.is_some(), "no golden packet shows that {what}");
    }
}
