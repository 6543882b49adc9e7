//! `wire ← proto ← {sim, rackmem}` and `wire ← fabric ← rackmem ← {cli, apps, bench}`.

use super::Finding;
use super::tree::Tree;
use crate::workspace::{Dependency, Workspace};

/// What a package may depend on.
struct Layer {
    /// The folder of the package, or the start of the folders of several.
    folder: &'static str,
    /// Packages of this workspace that it may build on.
    below: &'static [&'static str],
    /// Packages of this workspace that its tests may use as well.
    tests: &'static [&'static str],
    /// Packages from elsewhere that it may build on; `None` leaves the choice to review.
    outside: Option<&'static [&'static str]>,
}

const WIRE: &str = "rackmem-wire";
const PROTO: &str = "rackmem-proto";
const SIM: &str = "rackmem-sim";
const FABRIC: &str = "rackmem-fabric";
const JOURNAL: &str = "rackmem-journal";
const RACKMEM: &str = "rackmem";
const BASELINES: &str = "rackmem-baselines";
const KV: &str = "rackmem-kv";
const GRAPH: &str = "rackmem-graph";
const TXN: &str = "rackmem-txn";
const DBM: &str = "rackmem-dbm";
const BENCH: &str = "rackmem-bench";
const HOSTS: &str = "rackmem-hosts";
const XDP: &str = "rackmem-xdp";
const CONFORMANCE: &str = "rackmem-conformance";

/// The first row whose folder fits is the one that counts.
const LAYERS: &[Layer] = &[
    Layer {
        folder: "crates/wire",
        below: &[],
        tests: &[],
        outside: Some(&["zerocopy"]),
    },
    Layer {
        folder: "crates/proto",
        below: &[WIRE],
        tests: &[SIM],
        outside: Some(&[]),
    },
    Layer {
        folder: "bench/baselines",
        below: &[WIRE, PROTO],
        tests: &[],
        outside: Some(&[]),
    },
    Layer {
        folder: "crates/sim",
        below: &[WIRE, PROTO, BASELINES],
        tests: &[],
        outside: None,
    },
    Layer {
        folder: "crates/fabric",
        below: &[WIRE],
        tests: &[],
        outside: None,
    },
    Layer {
        folder: "crates/journal",
        below: &[WIRE, PROTO],
        tests: &[],
        outside: Some(&[]),
    },
    Layer {
        folder: "crates/xdp",
        below: &[WIRE, PROTO],
        tests: &[CONFORMANCE, HOSTS, FABRIC],
        outside: Some(&["aya", "fastrand"]),
    },
    Layer {
        folder: "crates/rackmem",
        below: &[WIRE, PROTO, FABRIC, JOURNAL, XDP],
        tests: &[SIM, HOSTS, BASELINES],
        outside: None,
    },
    Layer {
        folder: "crates/hosts",
        below: &[],
        tests: &[SIM],
        outside: Some(&["nix"]),
    },
    Layer {
        folder: "crates/dropin",
        below: &[RACKMEM],
        tests: &[HOSTS],
        outside: Some(&["libc"]),
    },
    Layer {
        folder: "apps/",
        below: &[RACKMEM],
        tests: &[SIM, HOSTS],
        outside: None,
    },
    Layer {
        folder: "bench",
        below: &[
            WIRE, PROTO, BASELINES, SIM, FABRIC, RACKMEM, KV, GRAPH, TXN, DBM, HOSTS, XDP,
        ],
        tests: &[],
        outside: None,
    },
    Layer {
        folder: "crates/cli",
        below: &[
            WIRE, PROTO, SIM, FABRIC, RACKMEM, KV, GRAPH, TXN, BENCH, HOSTS,
        ],
        tests: &[],
        outside: None,
    },
    Layer {
        folder: "tests/conformance",
        below: &[WIRE, PROTO],
        tests: &[],
        outside: None,
    },
    Layer {
        folder: "tests/outside",
        below: &[RACKMEM],
        tests: &[],
        outside: Some(&[]),
    },
    Layer {
        folder: "c",
        below: &[RACKMEM],
        tests: &[],
        outside: Some(&[]),
    },
    Layer {
        folder: "python",
        below: &[RACKMEM],
        tests: &[],
        outside: Some(&["pyo3"]),
    },
    Layer {
        folder: "fuzz",
        below: &[WIRE, PROTO, BASELINES, SIM, JOURNAL, RACKMEM, KV],
        tests: &[],
        outside: None,
    },
    Layer {
        folder: "xtask",
        below: &[HOSTS],
        tests: &[],
        outside: None,
    },
];

pub fn check(workspace: &Workspace, _: &Tree) -> Vec<Finding> {
    let names: Vec<&str> = workspace
        .packages
        .iter()
        .map(|package| package.name.as_str())
        .collect();
    let mut findings = Vec::new();
    for package in &workspace.packages {
        let folder = package.folder(workspace);
        let manifest = format!("{folder}/Cargo.toml");
        match layer_of(&folder) {
            None => findings.push(Finding::error(
                &manifest,
                0,
                "the package has no layer: give it one in xtask",
            )),
            Some(layer) => findings.extend(
                (package.dependencies.iter())
                    .filter_map(|dependency| refuse(layer, dependency, &names))
                    .map(|message| Finding::error(&manifest, 0, message)),
            ),
        }
    }
    findings
}

fn layer_of(folder: &str) -> Option<&'static Layer> {
    LAYERS.iter().find(|layer| {
        let several = layer.folder.ends_with('/');
        if several {
            folder.starts_with(layer.folder)
        } else {
            folder == layer.folder
        }
    })
}

fn refuse(layer: &Layer, dependency: &Dependency, workspace: &[&str]) -> Option<String> {
    let name = dependency.name.as_str();
    let for_tests = dependency.kind.as_deref() == Some("dev");
    if workspace.contains(&name) {
        let allowed = layer.below.contains(&name) || (for_tests && layer.tests.contains(&name));
        return (!allowed).then(|| format!("must not depend on {name}"));
    }
    let outside = layer.outside.filter(|_| !for_tests)?;
    (!outside.contains(&name)).then(|| format!("is kept pure and must not depend on {name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORKSPACE: &[&str] = &[WIRE, PROTO, SIM, FABRIC, RACKMEM, KV];

    fn refused(folder: &str, name: &str, kind: Option<&str>) -> bool {
        let dependency = Dependency {
            name: name.into(),
            kind: kind.map(String::from),
        };
        refuse(layer_of(folder).unwrap(), &dependency, WORKSPACE).is_some()
    }

    #[test]
    fn the_core_never_sees_how_packets_move() {
        assert!(refused("crates/proto", FABRIC, None));
        assert!(refused("crates/proto", FABRIC, Some("dev")));
        assert!(!refused("crates/proto", WIRE, None));
        assert!(refused("crates/wire", PROTO, None));
    }

    #[test]
    fn the_core_takes_nothing_from_outside_but_its_tests_may() {
        assert!(refused("crates/proto", "fastrand", None));
        assert!(!refused("crates/proto", "fastrand", Some("dev")));
        assert!(!refused("crates/wire", "zerocopy", None));
        assert!(!refused("crates/rackmem", "libc", None));
    }

    #[test]
    fn applications_see_the_library_only() {
        assert!(!refused("apps/kv", RACKMEM, None));
        assert!(refused("apps/kv", PROTO, None));
        assert!(refused("apps/kv", SIM, None));
        assert!(!refused("apps/kv", SIM, Some("dev")));
        assert!(!refused("apps/anything", RACKMEM, None));
    }

    #[test]
    fn an_unknown_package_has_no_layer() {
        assert!(layer_of("crates/other").is_none());
        assert!(layer_of("crates/wireless").is_none());
    }
}
