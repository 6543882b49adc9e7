//! Everything in the tree that is made from the Rust program: the golden packets,
//! and the headers that C and P4 include.

mod c;
pub mod control;
mod names;
mod p4;
mod ptf;
mod stf;

use crate::scenarios::{TOPICS, golden};
use crate::{quorum, reads, text};
use std::path::Path;

/// A generated file.
pub struct Generated {
    /// From the root of the tree.
    pub path: String,
    /// All of it.
    pub text: String,
}

/// All generated files.
pub fn all() -> Vec<Generated> {
    let mut files: Vec<Generated> = TOPICS
        .iter()
        .map(|topic| Generated {
            path: format!("tests/conformance/golden/{}.txt", topic.name),
            text: text::write(topic.about, &topic.cases()),
        })
        .collect();
    files.push(Generated {
        path: "tests/conformance/golden/quorum.txt".into(),
        text: quorum::write(quorum::scenarios::ABOUT, &quorum::scenarios::all()),
    });
    files.push(Generated {
        path: "tests/conformance/golden/line64.txt".into(),
        text: quorum::write(quorum::ABOUT_HELD, &quorum::held()),
    });
    files.push(Generated {
        path: "tests/conformance/golden/reads.txt".into(),
        text: reads::write(reads::scenarios::ABOUT, &reads::scenarios::all()),
    });
    files.push(Generated {
        path: "switch/generated/wire.h".into(),
        text: c::header(),
    });
    files.push(Generated {
        path: "switch/generated/wire.p4".into(),
        text: p4::header(),
    });
    for topic in TOPICS {
        files.extend(
            topic
                .cases()
                .iter()
                .filter(|c| stf::can_say(c))
                .map(|case| Generated {
                    path: format!("switch/p4/tests/stf/{}-{}.stf", topic.name, case.name),
                    text: stf::write(topic.name, case),
                }),
        );
    }
    files.push(Generated {
        path: "switch/p4/tests/ptf/golden.json".into(),
        text: ptf::write(&golden()),
    });
    files
}

/// The files below `root` that are missing or differ from what would be made now.
pub fn stale(root: &Path) -> Vec<Generated> {
    let fresh = |file: &Generated| {
        std::fs::read_to_string(root.join(&file.path)).is_ok_and(|text| text == file.text)
    };
    all().into_iter().filter(|file| !fresh(file)).collect()
}
