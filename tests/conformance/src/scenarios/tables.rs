//! Every request under every shape of an entry: Tables 2 and 3 of the paper, row by row.

use super::build::{Scenario, any, ask, set, who};
use rackmem_proto::flowcc::tables::{CHECK, check};
use rackmem_proto::wire::GlobalStatus::{self, Modified, Shared, Unshared};
use rackmem_proto::wire::NodeId;

/// Who asks.
const ME: NodeId = 0;

/// Shapes of an entry, as `ME` sees them.
const SHAPES: [(&str, GlobalStatus, &[NodeId]); 8] = [
    ("unshared", Unshared, &[]),
    ("shared-by-me", Shared, &[0]),
    ("shared-by-one-other", Shared, &[2]),
    ("shared-by-two-others", Shared, &[1, 3]),
    ("shared-by-me-and-another", Shared, &[0, 2]),
    ("shared-by-all", Shared, &[0, 1, 2, 3]),
    ("modified-by-me", Modified, &[0]),
    ("modified-by-another", Modified, &[2]),
];

fn scenarios(valid: bool) -> Vec<Scenario> {
    let mut scenarios = Vec::new();
    for (kind, _) in CHECK {
        for (shape, status, nodes) in SHAPES {
            if check(kind, ME, status, set(nodes)) != valid {
                continue;
            }
            let name = format!("{}-{shape}", dashed(kind.name()));
            let what = shape.replace('-', " ");
            let outcome = if valid {
                "is forwarded"
            } else {
                "is refused, and its lock given back"
            };
            let about = format!("{} of an entry that is {what} {outcome}", kind.name());
            let request = ask(kind, who(ME, 1), 5, any());
            scenarios.push(
                Scenario::new(name, about)
                    .owns(any(), status, nodes)
                    .packet(request),
            );
        }
    }
    scenarios
}

pub fn refused() -> Vec<Scenario> {
    scenarios(false)
}

pub fn forwarded() -> Vec<Scenario> {
    scenarios(true)
}

/// `ReadMiss` as `read-miss`.
fn dashed(name: &str) -> String {
    let mut dashed = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !dashed.is_empty() {
            dashed.push('-');
        }
        dashed.extend(letter.to_lowercase());
    }
    dashed
}
