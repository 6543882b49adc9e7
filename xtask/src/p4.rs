//! The switch program in P4 with the real compilers and the software switch,
//! where they are on the PATH: they are in no registry, so each one that is missing is said,
//! and is no failure.

use std::path::Path;
use std::process::Command;

use crate::Failure;
use crate::workspace::{Workspace, cargo};

/// A compiler, and how it is asked for its version and for the program.
struct Target {
    name: &'static str,
    compiler: &'static str,
    options: &'static [&'static str],
    shape: &'static [&'static str],
    source: &'static str,
    output: &'static str,
}

const TARGETS: &[Target] = &[
    Target {
        name: "v1model",
        compiler: "p4c-bm2-ss",
        options: &["--arch", "v1model", "--Wdisable=unused"],
        shape: &[],
        source: "switch/p4/v1model/rackmem.p4",
        output: "v1model.json",
    },
    tna("tna", &[], "tofino"),
    tna(
        "tna, blocks alone",
        &["-DLOCK_WAYS=0", "-DWAYS=4"],
        "tofino-blocks",
    ),
    tna("tna, locks alone", &["-DWAYS=0"], "tofino-locks"),
];

/// One shape of the program for Tofino: both directories beside each other,
/// or all of its stages for one of them.
const fn tna(name: &'static str, shape: &'static [&'static str], output: &'static str) -> Target {
    Target {
        name,
        compiler: "p4c",
        shape,
        options: &[
            "--target",
            "tofino",
            "--arch",
            "tna",
            "-g",
            "--Wdisable=unused",
        ],
        source: "switch/p4/tna/rackmem.p4",
        output,
    }
}

/// What of the Tofino compiler's `metrics.json` is shown: key, and what it counts.
const METRICS: &[(&str, &str)] = &[
    ("logical_tables", "logical tables"),
    ("srams", "SRAM blocks of 16 KiB"),
    ("map_rams", "map RAMs"),
    ("tcams", "TCAM blocks"),
];

/// Lines of a failed compiler's output that are shown, and how many after one with an error.
const CAUSE_LINES: usize = 40;
const CAUSE_CONTEXT: usize = 3;

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
        .args(target.shape)
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
            // The driver of a compiler that was built without Tofino says that it knows no such
            // target.
            if name.starts_with("tna") && said.contains("Unknown") {
                println!("skipped: {name}: this {compiler} does not compile for Tofino");
                return true;
            }
            println!("FAIL  {name}");
            for line in causes(&said) {
                println!("      {line}");
            }
            false
        }
        Err(error) => {
            println!("FAIL  {name}: {error}");
            false
        }
    }
}

/// What of a failed compiler's words is shown: its errors, each with the lines that point at the
/// place, and not the warnings before them.
fn causes(said: &str) -> Vec<&str> {
    let lines: Vec<&str> = said.lines().collect();
    let is_error = |line: &str| line.contains("error:") || line.contains("Bug:");
    let found: Vec<&str> = (0..lines.len())
        .filter(|&at| (at.saturating_sub(CAUSE_CONTEXT)..=at).any(|near| is_error(lines[near])))
        .map(|at| lines[at])
        .take(CAUSE_LINES)
        .collect();
    if found.is_empty() {
        lines[lines.len().saturating_sub(CAUSE_LINES)..].to_vec()
    } else {
        found
    }
}

/// What the Tofino compiler says that the program takes.
fn report(output: &Path) {
    let read = |path: &str| std::fs::read_to_string(output.join(path)).unwrap_or_default();
    let stages = stages(&read("pipe/rackmem.bfa"));
    let alus = stateful_alus(&read("pipe/logs/resources.json"));
    let figures = figures(&read("pipe/logs/metrics.json"));
    for line in stages.into_iter().chain(alus).chain(figures) {
        println!("      {line}");
    }
}

/// From the assembly: how many stages each direction takes.
fn stages(assembly: &str) -> Vec<String> {
    let count = |gress: &str| {
        let head = |line: &&str| line.starts_with("stage ") && line.ends_with(gress);
        assembly.lines().filter(head).count()
    };
    [
        ("ingress", count(" ingress:")),
        ("egress", count(" egress:")),
    ]
    .into_iter()
    .filter(|(_, stages)| *stages > 0)
    .map(|(gress, stages)| format!("{stages:>6} stages of the {gress}"))
    .collect()
}

/// From `resources.json`: units that read, change and write a register.
fn stateful_alus(resources: &str) -> Option<String> {
    let resources: serde_json::Value = serde_json::from_str(resources).ok()?;
    let stages = resources["resources"]["mau"]["mau_stages"].as_array()?;
    let used =
        |stage: &serde_json::Value| stage["meter_alus"]["meters"].as_array().map_or(0, Vec::len);
    let used: usize = stages.iter().map(used).sum();
    Some(format!("{used:>6} stateful ALUs"))
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
    let parsers = ["ingress", "egress"].into_iter().filter_map(|gress| {
        let rows = metrics["parser"][gress]["tcam_rows"].as_u64()?;
        Some(format!("{rows:>6} rows of the {gress} parser"))
    });
    numbers.chain(containers).chain(parsers).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_found_in_the_compilers_metrics() {
        let metrics = r#"{"mau": {"srams": 210, "tcams": 9},
            "parser": {"ingress": {"tcam_rows": 13}},
            "phv": {"normal": [{"bit_width": 8, "containers_occupied": 31}]}}"#;
        let wanted = [
            "   210 SRAM blocks of 16 KiB",
            "     9 TCAM blocks",
            "    31 PHV containers of 8 bits",
            "    13 rows of the ingress parser",
        ];
        assert_eq!(figures(metrics), wanted);
        assert!(figures("nothing").is_empty());
    }

    #[test]
    fn stages_and_stateful_units_are_counted() {
        let assembly = "stage 0 ingress:\n  dependency: match\nstage 1 ingress:\nstage 0 egress:\n";
        let wanted = [
            "     2 stages of the ingress",
            "     1 stages of the egress",
        ];
        assert_eq!(stages(assembly), wanted);
        let resources = r#"{"resources": {"mau": {"mau_stages": [
            {"meter_alus": {"meters": [{}, {}]}}, {"meter_alus": {"meters": [{}]}}]}}}"#;
        assert_eq!(
            stateful_alus(resources).as_deref(),
            Some("     3 stateful ALUs")
        );
        assert_eq!(stateful_alus("nothing"), None);
    }

    #[test]
    fn of_a_failure_the_errors_are_shown_and_not_the_warnings() {
        let said = "a.p4(1): warning: x\n line\na.p4(2): error: y\n  here\n  ^^\n\nwarning: z\n";
        assert_eq!(causes(said), ["a.p4(2): error: y", "  here", "  ^^", ""]);
        assert_eq!(causes("no such file"), ["no such file"]);
    }
}
