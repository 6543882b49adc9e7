//! How many lines there are, of what, and what a protocol costs: `cargo xtask lines`.
//!
//! Lines are those of files, comments and blank ones included. A unit test counts as test,
//! wherever it stands.

use crate::Failure;
use crate::tidy::{Tree, without_tests};
use crate::workspace::Workspace;
use std::collections::BTreeMap;

/// What lines are for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum For {
    /// What people run.
    Product,
    /// What checkers run in place of the library's threads, bytes and ports.
    StandIn,
    /// Checkers, models, and what drives them.
    Checker,
    /// Tests, with what only they use.
    Test,
    /// Benches, and what the product is compared with.
    Bench,
    /// What builds and guards the tree.
    Tool,
}

impl For {
    const ALL: [(For, &'static str); 6] = [
        (For::Product, "product"),
        (For::StandIn, "stand-ins"),
        (For::Checker, "checkers"),
        (For::Test, "tests"),
        (For::Bench, "bench"),
        (For::Tool, "tools"),
    ];
}

/// What files are for, by the start of their path; the first row that fits counts.
const PURPOSES: &[(&str, For)] = &[
    // Planted defects of a requester's host, and of a lock's: nothing of the library is like them.
    ("crates/sim/src/site/mutate.rs", For::Checker),
    // Stories.
    ("crates/sim/src/site/telling.rs", For::Checker),
    // Blocks and packets of simulations that have no bytes.
    ("crates/sim/src/site/bare.rs", For::Checker),
    // The node that worlds, explorer, protocols on trial and fuzzers have,
    // and what each puts around it.
    ("crates/sim/src/site/", For::StandIn),
    // Stories, figures, and what the judge is given.
    ("crates/sim/src/world/node/telling.rs", For::Checker),
    ("crates/sim/src/world/node/", For::StandIn),
    // The control plane of a switch: what `rackmem/src/rack/switch.rs` is in the library.
    ("crates/sim/src/world/switch_host.rs", For::StandIn),
    // What operations there are to do, what is found by them, and counted of them.
    ("crates/sim/src/world/thread/working.rs", For::Checker),
    ("crates/sim/src/world/thread/judging.rs", For::Checker),
    ("crates/sim/src/world/thread/work.rs", For::Checker),
    // Deaths and returns of its node, and what they leave it to do (likewise `gcp/lives.rs`).
    ("crates/sim/src/world/thread/lives.rs", For::Checker),
    ("crates/sim/src/world/thread/", For::StandIn),
    // Packets, and blocks as a simulation has them, are with each network (`packet.rs`,
    // `fabric.rs`, `block.rs`).
    ("crates/sim/src/trial/site.rs", For::StandIn),
    // What may fail, and the moves that this makes, is in `explore/{epoch,inside}.rs`; moves that
    // are clocks' and heat's elsewhere in `choices.rs`; what is seen and judged in `watch.rs`.
    ("crates/sim/src/explore/node.rs", For::StandIn),
    ("crates/sim/src/explore/drive.rs", For::StandIn),
    ("crates/sim/src/explore/rebuild.rs", For::StandIn),
    ("crates/sim/src/explore/thread.rs", For::StandIn),
    // The words of objects, packets, and bytes beside them.
    ("crates/sim/src/sabre/memory.rs", For::StandIn),
    // Likewise `gcp/{epoch,inside,moves}.rs`.
    ("crates/sim/src/gcp/host.rs", For::StandIn),
    ("crates/sim/src/gcp/arriving.rs", For::StandIn),
    ("crates/sim/src/gcp/rebuild.rs", For::StandIn),
    // How a rack is set up is in `model/layout.rs`, how long agents take in `servers.rs`, what
    // threads do with blocks and locks in `working.rs`, `accesses.rs` and `sections`.
    ("crates/sim/src/model/node.rs", For::StandIn),
    ("crates/sim/src/model/thread.rs", For::StandIn),
    ("crates/sim/src/", For::Checker),
    ("fuzz/src/node.rs", For::StandIn),
    ("fuzz/", For::Test),
    ("races/", For::Test),
    ("tests/", For::Test),
    ("bench/", For::Bench),
    ("xtask/", For::Tool),
    ("crates/hosts/", For::Tool),
];

/// A protocol, and where all of it is: what would not be there without it.
struct Protocol {
    name: &'static str,
    places: &'static [&'static str],
}

const PROTOCOLS: &[Protocol] = &[
    Protocol {
        name: "FlowCC",
        places: &[
            "crates/proto/src/flowcc/",
            "crates/proto/src/engine/access.rs",
            "crates/proto/src/engine/coherent.rs",
            "crates/proto/src/engine/copies.rs",
            "crates/proto/src/engine/home.rs",
            "crates/proto/src/engine/long.rs",
            "crates/proto/src/engine/migrating.rs",
            "crates/proto/src/engine/rescuing.rs",
            "crates/rackmem/src/coherent/",
            "crates/rackmem/src/bytes/",
        ],
    },
    Protocol {
        name: "GCP",
        places: &[
            "crates/proto/src/engine/lock/",
            "crates/proto/src/engine/locked.rs",
            "crates/proto/src/gcp/",
            "crates/proto/src/switch/locks",
            "crates/rackmem/src/host/locks/",
            "crates/rackmem/src/locked/",
            "crates/sim/src/gcp/",
        ],
    },
    Protocol {
        name: "ABD",
        places: &[
            "crates/proto/src/abd/",
            "crates/proto/src/engine/replicated.rs",
            "crates/proto/src/switch/quorum",
            "crates/proto/src/switch/stamps",
            "crates/sim/src/abd/",
        ],
    },
    Protocol {
        name: "SABRes",
        places: &[
            "crates/proto/src/sabre/",
            "crates/proto/src/engine/objects.rs",
            "crates/sim/src/sabre/",
        ],
    },
    Protocol {
        name: "BI",
        places: &["crates/proto/src/bi/", "crates/sim/src/bi/"],
    },
];

/// Lines by purpose.
type Counts = BTreeMap<For, usize>;

/// Tells it, of every package and protocol.
pub fn command(workspace: &Workspace, arguments: &[String]) -> Result<bool, Failure> {
    let json = match arguments {
        [] => false,
        [only] if only == "--json" => true,
        _ => return Err("lines: takes --json, and nothing else".into()),
    };
    let tree = Tree::read(&workspace.root)?;
    let mut packages: BTreeMap<String, Counts> = BTreeMap::new();
    let mut protocols = vec![Counts::new(); PROTOCOLS.len()];
    for file in tree.rust() {
        let counts = count(&file.path, &file.text);
        add(packages.entry(package(&file.path)).or_default(), &counts);
        for (protocol, sum) in PROTOCOLS.iter().zip(&mut protocols) {
            if protocol.places.iter().any(|at| file.path.starts_with(at)) {
                add(sum, &counts);
            }
        }
    }
    let mut total = Counts::new();
    packages.values().for_each(|counts| add(&mut total, counts));
    let mut rows: Vec<(String, Counts)> = packages.into_iter().collect();
    rows.push(("all".into(), total));
    let prices = (PROTOCOLS.iter().zip(protocols)).map(|(p, counts)| (p.name.into(), counts));
    rows.extend(prices);
    print(&rows, json);
    Ok(true)
}

fn count(path: &str, text: &str) -> Counts {
    let purpose = purpose(path);
    let all = text.lines().count();
    let tests = match purpose {
        For::Test => 0,
        _ => all - without_tests(text).lines().count(),
    };
    BTreeMap::from([(purpose, all - tests), (For::Test, tests)])
        .into_iter()
        .chain((purpose == For::Test).then_some((For::Test, all)))
        .collect()
}

fn purpose(path: &str) -> For {
    let test =
        path.contains("/tests/") || path.contains("/benches/") || path.ends_with("/tests.rs");
    let row = PURPOSES.iter().find(|(start, _)| path.starts_with(start));
    match row {
        Some((_, purpose)) if !test => *purpose,
        _ if test => For::Test,
        _ => For::Product,
    }
}

/// The folder of a file's package.
fn package(path: &str) -> String {
    let deep = ["crates/", "apps/", "tests/"]
        .iter()
        .any(|start| path.starts_with(start));
    let parts: Vec<&str> = path.split('/').take(if deep { 2 } else { 1 }).collect();
    parts.join("/")
}

fn add(sum: &mut Counts, counts: &Counts) {
    for (purpose, lines) in counts {
        *sum.entry(*purpose).or_default() += lines;
    }
}

fn print(rows: &[(String, Counts)], json: bool) {
    let of = |counts: &Counts, purpose| counts.get(&purpose).copied().unwrap_or(0);
    if json {
        let rows = rows.iter().map(|(name, counts)| {
            let cells = For::ALL.map(|(p, title)| format!("\"{title}\": {}", of(counts, p)));
            format!("  \"{name}\": {{{}}}", cells.join(", "))
        });
        return println!("{{\n{}\n}}", rows.collect::<Vec<_>>().join(",\n"));
    }
    let titles = For::ALL.map(|(_, title)| format!("{title:>10}"));
    println!("{:<20}{}{:>10}", "lines", titles.concat(), "sum");
    for (name, counts) in rows {
        let cells = For::ALL.map(|(purpose, _)| format!("{:>10}", of(counts, purpose)));
        let sum: usize = counts.values().sum();
        println!("{name:<20}{}{sum:>10}", cells.concat());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unit_tests_are_tests_wherever_they_stand() {
        let text = "fn a() {}\n\n#[cfg(test)]\nmod tests {\n}\n";
        let counts = count("crates/rackmem/src/a.rs", text);
        assert_eq!((counts[&For::Product], counts[&For::Test]), (2, 3));
        let counts = count("crates/sim/src/world/node/mod.rs", text);
        assert_eq!((counts[&For::StandIn], counts[&For::Test]), (2, 3));
        assert_eq!(count("fuzz/src/dice.rs", text)[&For::Test], 5);
        assert_eq!(count("apps/kv/tests/a.rs", text)[&For::Test], 5);
    }

    #[test]
    fn every_place_of_a_table_is_there() {
        let workspace = Workspace::load().unwrap();
        let tree = Tree::read(&workspace.root).unwrap();
        let places = PURPOSES.iter().map(|row| row.0);
        // The trait's own part of GCP may be a file or a folder.
        for place in places.chain(PROTOCOLS.iter().flat_map(|p| p.places).copied()) {
            let found = tree.files.iter().any(|file| file.path.starts_with(place));
            assert!(found, "{place} is not there");
        }
    }
}
