//! The switch program in P4 with the real compilers and the software switch, where they are on the PATH: they are in no
//! registry, so each one that is missing is said, and is no failure.

use std::path::Path;
use std::process::Command;

use crate::Failure;
use crate::workspace::{Workspace, cargo};

/// A compiler, and how it is asked for its version and for the program.
struct Target {
    name: &'static str,
    compiler: &'static str,
    options: &'static [&'static str],
    source: &'static str,
    output: &'static str,
}

const TARGETS: &[Target] = &[
    Target {
        name: "v1model",
        compiler: "p4c-bm2-ss",
        options: &["--arch", "v1model", "--Wdisable=unused"],
        source: "switch/p4/v1model/rackmem.p4",
        output: "v1model.json",
    },
    Target {
        name: "tna",
        compiler: "p4c",
        options: &["--target", "tofino", "--arch", "tna"],
        source: "switch/p4/tna/rackmem.p4",
        output: "tofino",
    },
];

/// What of the Tofino compiler's `metrics.json` is shown: key, and what it counts.
const METRICS: &[(&str, &str)] = &[
    ("logical_tables", "logical tables"),
    ("srams", "SRAM blocks of 16 KiB"),
    ("map_rams", "map RAMs"),
    ("tcams", "TCAM blocks"),
];

/// `cargo xtask p4`.
pub fn command(workspace: &Workspace, arguments: &[String]) -> Result<bool, Failure> {
    if !arguments.is_empty() {
        return Err("p4 takes no options".into());
    }
    let folder = workspace.target.join("p4");
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut fine = true;
    for target in TARGETS {
        fine &= compile(workspace, target, &folder);
    }
    let mut tests = workspace.command(cargo());
    tests.args([
        "test",
        "--quiet",
        "--package",
        "rackmem-conformance",
        "--test",
        "p4",
    ]);
    let status = tests.status();
    let status = status.map_err(|error| format!("cargo did not start: {error}"))?;
    Ok(fine && status.success())
}

/// Compiles for a target. False when the compiler is there and refuses.
fn compile(workspace: &Workspace, target: &Target, folder: &Path) -> bool {
    let Target { name, compiler, .. } = target;
    let version = match Command::new(compiler).arg("--version").output() {
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stdout);
            said.split_whitespace().collect::<Vec<_>>().join(" ")
        }
        Err(_) => {
            println!("skipped: {name}: {compiler} was not found");
            return true;
        }
    };
    let output = folder.join(target.output);
    let compiled = workspace
        .command(compiler)
        .args(target.options)
        .arg("-o")
        .arg(&output)
        .arg(target.source)
        .output();
    match compiled {
        Ok(compiled) if compiled.status.success() => {
            println!(
                "ok    {name}: {}",
                version.lines().next().unwrap_or(compiler)
            );
            report(&output);
            true
        }
        Ok(compiled) => {
            let said = String::from_utf8_lossy(&compiled.stderr).into_owned();
            // The driver of a compiler that was built without Tofino says that it knows no such target.
            if *name == "tna" && said.contains("Unknown") {
                println!("skipped: {name}: this {compiler} does not compile for Tofino");
                return true;
            }
            println!("FAIL  {name}\n{said}");
            false
        }
        Err(error) => {
            println!("FAIL  {name}: {error}");
            false
        }
    }
}

/// What the Tofino compiler says that the program takes.
fn report(output: &Path) {
    let metrics = std::fs::read_to_string(output.join("pipe/logs/metrics.json"));
    for line in metrics.map(|text| figures(&text)).unwrap_or_default() {
        println!("      {line}");
    }
}

/// The compiler's figures, a line each.
fn figures(metrics: &str) -> Vec<String> {
    let metrics: serde_json::Value = serde_json::from_str(metrics).unwrap_or_default();
    let numbers = METRICS.iter().filter_map(|(key, what)| {
        let number = metrics["mau"][key].as_u64()?;
        Some(format!("{number:>6} {what}"))
    });
    let containers = metrics["phv"]["normal"].as_array().into_iter().flatten();
    let containers = containers.filter_map(|row| {
        let (width, occupied) = (
            row["bit_width"].as_u64()?,
            row["containers_occupied"].as_u64()?,
        );
        Some(format!("{occupied:>6} PHV containers of {width} bits"))
    });
    numbers.chain(containers).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_found_in_the_compilers_metrics() {
        let metrics = r#"{"mau": {"srams": 210, "tcams": 9},
            "phv": {"normal": [{"bit_width": 8, "containers_occupied": 31}]}}"#;
        let wanted = [
            "   210 SRAM blocks of 16 KiB",
            "     9 TCAM blocks",
            "    31 PHV containers of 8 bits",
        ];
        assert_eq!(figures(metrics), wanted);
        assert!(figures("nothing").is_empty());
    }
}
