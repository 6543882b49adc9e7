//! Commands at every moment: whatever another client does in the middle of a command, both are told
//! what they would have been told one after the other, and the keys are left as they would have
//! been.
//!
//! `cases.rs` has the commands and what others do meanwhile, `world.rs` two clients at two nodes,
//! `planted.rs` commands that look before they hold what they look at, which must be noticed.

mod cases;
#[path = "../../../tests/support/interrupted.rs"]
mod interrupted;
mod planted;
mod world;

use cases::{Cases, PARTS, SORTED, STRINGS};
use planted::PLANTED;
use world::{Overrides, Script, World};

/// More moments than any command has.
const MOST_MOMENTS: usize = 400;

/// Buckets: one, which all keys share, and several, which they do not.
const BUCKETS: [usize; 2] = [1, 4];

/// What is known afterwards: what each of the two was told, and what is there.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Outcome {
    mine: Vec<String>,
    theirs: Vec<String>,
    left: Vec<String>,
}

/// A contradiction, and when it arises.
struct Found {
    moment: usize,
    got: Outcome,
    explained: Vec<Outcome>,
}

/// The outcomes of doing one after the other: the script's command before,
/// between or behind what the other client says.
fn one_after_the_other(
    buckets: usize,
    before: &[&str],
    script: &Script,
    others: &[&str],
) -> Vec<Outcome> {
    let order = |at: usize| {
        let mut world = World::new(buckets, before, &Overrides::default());
        let mut mine = world.slow.say_all(&script.before);
        let mut theirs = world.other().say_all(&others[..at]);
        mine.push(world.slow.say(script.command));
        theirs.extend(world.other().say_all(&others[at..]));
        mine.extend(world.slow.say_all(&script.after));
        let left = world.left();
        Outcome { mine, theirs, left }
    };
    (0..=others.len()).map(order).collect()
}

/// Lets the other client do what it does at each moment of the command. How many moments there
/// were, or what no order explains.
fn at_every_moment(
    buckets: usize,
    before: &[&str],
    script: &Script,
    others: &'static [&'static str],
    overrides: &Overrides,
) -> Result<usize, Box<Found>> {
    let explained = one_after_the_other(buckets, before, script, others);
    for moment in 0..MOST_MOMENTS {
        let mut world = World::new(buckets, before, overrides);
        let mut mine = world.slow.say_all(&script.before);
        let Some((reply, theirs)) = world.during(moment, script.command, others) else {
            return Ok(moment);
        };
        mine.push(reply);
        mine.extend(world.slow.say_all(&script.after));
        let left = world.left();
        let got = Outcome { mine, theirs, left };
        if !explained.contains(&got) {
            return Err(Box::new(Found {
                moment,
                got,
                explained,
            }));
        }
    }
    panic!("{}: more than {MOST_MOMENTS} moments", script.command)
}

/// A command in every state with every other client's deeds; the first contradiction, in words.
fn judged(cases: &Cases, text: &'static str, overrides: &Overrides) -> Result<usize, String> {
    let script = Script::new(text);
    let mut moments = 0;
    for buckets in BUCKETS {
        for before in cases.before {
            for others in cases.others {
                match at_every_moment(buckets, before, &script, others, overrides) {
                    Ok(count) => moments += count,
                    Err(found) => {
                        let Found {
                            moment,
                            got,
                            explained,
                        } = *found;
                        return Err(format!(
                            "{buckets} buckets, {before:?}: {others:?} at moment {moment} of {text:?} \
                             comes to\n{got:?}\nno order of them does:\n{explained:#?}"
                        ));
                    }
                }
            }
        }
    }
    Ok(moments)
}

/// Judges all commands, which have so many moments together at least.
fn are_one_step(cases: &Cases, enough: usize) {
    let (mut moments, mut wrong) = (0, Vec::new());
    for command in cases.commands {
        match judged(cases, command, &Overrides::default()) {
            Ok(count) => {
                assert!(count > 0, "{command} has no moments");
                moments += count;
            }
            Err(found) => wrong.push(found),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    assert!(moments > enough, "{moments} moments: this shows little");
}

#[test]
fn commands_of_strings_are_one_step_whatever_happens_meanwhile() {
    are_one_step(&STRINGS, 20_000);
}

#[test]
fn those_of_lists_and_bits_are() {
    are_one_step(&PARTS, 4_000);
}

#[test]
fn those_of_sorted_sets_are() {
    are_one_step(&SORTED, 4_000);
}

#[test]
fn every_command_that_looks_before_it_holds_is_noticed() {
    for (name, command, run) in PLANTED {
        let overrides = Overrides::of(name, *run);
        let found = judged(&STRINGS, command, &overrides);
        assert!(
            found.is_err(),
            "{command:?} looks first, and nobody notices"
        );
        let again = judged(&STRINGS, command, &overrides);
        assert_eq!(found, again, "the same is noticed every time");
    }
}
