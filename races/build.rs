//! Puts the shipped files into modules: once as they are, and once for each planted defect.

use std::fmt::Write;
use std::path::{Path, PathBuf};

#[allow(dead_code)]
#[path = "src/plants.rs"]
mod plants;

/// Files that scenarios use together: their modules, and where they are.
const GROUPS: &[(&str, &[(&str, &str)])] = &[
    ("cache", &[("cache", "crates/rackmem/src/bytes/cache.rs")]),
    ("whole", &[("whole", "crates/rackmem/src/bytes/whole.rs")]),
    (
        "locked",
        &[("fast", "crates/rackmem/src/host/locks/fast.rs")],
    ),
    ("slots", &[("slots", "crates/rackmem/src/ports/slots.rs")]),
    (
        "places",
        &[("places", "crates/rackmem/src/bounded/places.rs")],
    ),
    (
        "sections",
        &[(
            "open_sections",
            "crates/rackmem/src/bounded/mapped/open_sections.rs",
        )],
    ),
    (
        "shm",
        &[
            ("bell", "crates/fabric/src/shm/bell.rs"),
            ("lane", "crates/fabric/src/shm/lane.rs"),
            ("system", "races/src/scenarios/system.rs"),
        ],
    ),
];

fn main() {
    let here = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo says it"));
    let root = here.parent().expect("it is in the tree").to_owned();
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo says it"));
    println!("cargo::rerun-if-changed=src/plants.rs");
    let mut text = String::new();
    let mut shipped = String::new();
    for (group, files) in GROUPS {
        module(
            &mut text,
            &root,
            group,
            files,
            &format!("shipped_{group}"),
            None,
        );
        let _ = writeln!(
            shipped,
            "    (\"{group}\", shipped_{group}::scenarios::ALL),"
        );
    }
    let mut planted = String::new();
    for (number, plant) in plants::PLANTS.iter().enumerate() {
        let has = |files: &[(&str, &str)]| files.iter().any(|(module, _)| *module == plant.module);
        let (group, files) = GROUPS
            .iter()
            .find(|(_, files)| has(files))
            .expect("a module of a group");
        let path = plant_in(&root, &out, number, plant, files);
        let name = format!("planted_{number}");
        module(
            &mut text,
            &root,
            group,
            files,
            &name,
            Some((plant.module, &path)),
        );
        let _ = writeln!(planted, "    {name}::scenarios::ALL,");
    }
    let _ = writeln!(
        text,
        "/// The scenarios of the files as they ship, by group.\n\
         pub const SHIPPED: &[(&str, &[Scenario])] = &[\n{shipped}];\n\
         /// Those of the files with a planted defect each, in the order of [`plants::PLANTS`].\n\
         pub const PLANTED: &[&[Scenario]] = &[\n{planted}];"
    );
    std::fs::write(out.join("groups.rs"), text).expect("the folder can be written");
}

/// Writes a module of a group's files and scenarios, one of the files being another.
fn module(
    text: &mut String,
    root: &Path,
    group: &str,
    files: &[(&str, &str)],
    name: &str,
    instead: Option<(&str, &Path)>,
) {
    let _ = writeln!(text, "#[allow(unused_imports)]\nmod {name} {{");
    for (module, file) in files {
        let shipped = root.join(file);
        println!("cargo::rerun-if-changed={}", shipped.display());
        let path = match instead {
            Some((wanted, path)) if wanted == *module => path,
            _ => &shipped,
        };
        let _ = writeln!(text, "    #[path = {path:?}] mod {module};");
    }
    let scenarios = root.join(format!("races/src/scenarios/{group}.rs"));
    let _ = writeln!(text, "    #[path = {scenarios:?}] pub mod scenarios;\n}}");
}

/// The file of a module with a defect in it.
fn plant_in(
    root: &Path,
    out: &Path,
    number: usize,
    plant: &plants::Plant,
    files: &[(&str, &str)],
) -> PathBuf {
    let (_, file) = files
        .iter()
        .find(|(module, _)| *module == plant.module)
        .expect("its file");
    let shipped = std::fs::read_to_string(root.join(file)).expect("a shipped file");
    let found = shipped.matches(plant.shipped).count();
    assert!(
        found == 1,
        "{file} has the piece of the planted defect {:?} {found} times, not once:\n{}",
        plant.name,
        plant.shipped
    );
    let path = out.join(format!("planted_{number}.rs"));
    let text = shipped.replace(plant.shipped, plant.planted);
    std::fs::write(&path, text).expect("the folder can be written");
    path
}
