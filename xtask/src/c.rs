//! The library for C: laid out under a prefix as a system has it, and its tests,
//! which find it there.

use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use crate::step::Verdict;
use crate::tally::Tally;
use crate::workspace::{Workspace, cargo};
use crate::{Failure, xdp};

/// What a C program is compiled with, at least.
const STRICT: &[&str] = &[
    "-std=c11", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-pthread",
];
const STRICT_CPP: &[&str] = &["-std=c++17", "-O1", "-g", "-Wall", "-Wextra", "-Werror"];
/// Its own errors, and those of the library that come through it: memory that is used after it was
/// freed or is never freed, and what C leaves undefined.
const CHECKED: &[&str] = &["-fsanitize=address,undefined", "-fno-sanitize-recover=all"];
/// The version of the binary interface, in the name by which programs are bound to the library: it
/// rises when a program that was built before cannot use a newer one. The same as `RM_ABI_VERSION`.
const ABI: u32 = 0;
/// Functions of the shared library, and the version of each.
const MAP: &str = "c/rackmem.map";
/// What Rust's standard library takes of the system.
const SYSTEM: &[&str] = &["-lgcc_s", "-lpthread", "-ldl", "-lm", "-lc"];

/// `cargo xtask c`.
pub fn command(workspace: &Workspace, arguments: &[String]) -> Result<bool, Failure> {
    match arguments {
        [] => tests(workspace).told(),
        [install, prefix] if install == "install" => {
            build(workspace, true)?;
            lay_out(workspace, Path::new(prefix), "release")?;
            println!(
                "rackmem.h and librackmem are under {prefix}: cc $(pkg-config --cflags --libs rackmem)"
            );
            Ok(true)
        }
        _ => Err("c: takes nothing, or `install PREFIX`".into()),
    }
}

/// The library alone as people have it, or with all else that the tests have.
fn build(workspace: &Workspace, release: bool) -> Result<(), Failure> {
    let mut build = match release {
        true => of_release(workspace),
        false => xdp::build(workspace),
    };
    match build.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err("the library does not compile".into()),
        Err(error) => Err(format!("cargo did not start: {error}")),
    }
}

fn of_release(workspace: &Workspace) -> Command {
    let mut build = workspace.command(cargo());
    build.args(["build", "-p", "rackmem-c", "--release"]);
    if xdp::can_be_built() {
        build.args(["--features", "rackmem-c/xdp"]);
    }
    build
}

/// Header, libraries and what pkg-config reads, under a prefix.
fn lay_out(workspace: &Workspace, prefix: &Path, profile: &str) -> Result<(), Failure> {
    let built = workspace.target.join(profile);
    let package = workspace
        .packages
        .iter()
        .find(|package| package.name == "rackmem-c");
    let version = package.map_or("0", |package| package.version.as_str());
    let (lib, include) = (prefix.join("lib"), prefix.join("include"));
    let of = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
    for folder in [&lib.join("pkgconfig"), &include] {
        std::fs::create_dir_all(folder).map_err(|error| of(folder, error))?;
    }
    let (so, of_abi) = (
        format!("librackmem.so.{version}"),
        format!("librackmem.so.{ABI}"),
    );
    let header = workspace.root.join("c/include/rackmem.h");
    for (from, to) in [
        (header, include.join("rackmem.h")),
        (built.join("librackmem_c.a"), lib.join("librackmem.a")),
    ] {
        let _ = std::fs::remove_file(&to);
        std::fs::copy(&from, &to).map_err(|error| of(&from, error))?;
    }
    share(workspace, &lib.join("librackmem.a"), &lib.join(&so))?;
    for (link, to) in [
        (of_abi.as_str(), so.as_str()),
        ("librackmem.so", of_abi.as_str()),
    ] {
        let link = lib.join(link);
        let _ = std::fs::remove_file(&link);
        std::os::unix::fs::symlink(to, &link).map_err(|error| of(&link, error))?;
    }
    let template = workspace.root.join("c/rackmem.pc.in");
    let text = std::fs::read_to_string(&template).map_err(|error| of(&template, error))?;
    let prefix = std::path::absolute(prefix).map_err(|error| of(prefix, error))?;
    let text = text.replace("@PREFIX@", &prefix.display().to_string());
    let place = lib.join("pkgconfig/rackmem.pc");
    std::fs::write(&place, text.replace("@VERSION@", version)).map_err(|error| of(&place, error))
}

/// Functions that the shared library has.
fn functions(workspace: &Workspace) -> Result<Vec<String>, Failure> {
    let path = workspace.root.join(MAP);
    let text = std::fs::read_to_string(&path);
    let text = text.map_err(|error| format!("{}: {error}", path.display()))?;
    let names = text
        .lines()
        .filter_map(|line| line.trim().strip_suffix(';'));
    let names = names.filter(|name| !name.contains(['}', '*']));
    Ok(names.map(str::to_string).collect())
}

/// Makes the shared library of the static one: the map's functions with their versions, and what
/// they need.
fn share(workspace: &Workspace, archive: &Path, so: &Path) -> Result<(), Failure> {
    let mut link = linker(&workspace.root.join(MAP));
    link.args(["-Wl,--gc-sections", "-Wl,-z,defs"]);
    link.args(
        functions(workspace)?
            .iter()
            .map(|name| format!("-Wl,-u,{name}")),
    );
    link.arg(archive).args(SYSTEM).arg("-o").arg(so);
    links(link, "the shared library")
}

/// What makes a shared library of the name that programs look for, with versions by a map.
fn linker(map: &Path) -> Command {
    let mut link = Command::new("cc");
    link.arg("-shared")
        .arg(format!("-Wl,-soname,librackmem.so.{ABI}"))
        .arg(format!("-Wl,--version-script={}", map.display()));
    link
}

fn links(mut link: Command, what: &str) -> Result<(), Failure> {
    match link.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err(format!("{what} does not link")),
        Err(error) => Err(format!("cc did not start: {error}")),
    }
}

/// A program of the tests: where it is, and how it is compiled.
struct Program {
    source: &'static str,
    compiler: &'static str,
    options: &'static [&'static [&'static str]],
}

const PROGRAMS: &[Program] = &[
    Program {
        source: "c/tests/all.c",
        compiler: "cc",
        options: &[STRICT, CHECKED],
    },
    Program {
        source: "c/tests/cpp.cpp",
        compiler: "c++",
        options: &[STRICT_CPP, CHECKED],
    },
];

/// Builds the library, and compiles and runs programs that find it as any program does.
pub fn tests(workspace: &Workspace) -> Verdict {
    for program in ["cc", "c++", "pkg-config"] {
        if Command::new(program).arg("--version").output().is_err() {
            return Verdict::Skipped(format!("no {program}: run `cargo xtask setup test`"));
        }
    }
    let prefix = workspace.target.join("c-prefix");
    let ready = build(workspace, false).and_then(|()| lay_out(workspace, &prefix, "debug"));
    if let Err(why) = ready {
        return Verdict::Failed(why);
    }
    let mut tally = Tally::default();
    let mut failed = Vec::new();
    let mut count = |name: &str, result: Result<(), Failure>| match result {
        Ok(()) => {
            println!("test {name} ... ok");
            tally += Tally::PASS;
        }
        Err(why) => {
            println!("test {name} ... FAILED: {why}");
            tally += Tally::FAIL;
            failed.push(name.to_string());
        }
    };
    count("symbols have versions", have_versions(workspace, &prefix));
    count(
        "a library of another version is refused",
        refuses_another(workspace, &prefix),
    );
    for program in PROGRAMS {
        let done = compile(workspace, &prefix, program).and_then(|path| runs(&prefix, &path));
        count(program.source, done);
    }
    for (source, argument, told) in examples(workspace) {
        for fabric in ["udp", "shm"] {
            let done = plays(workspace, &prefix, fabric, (source, &argument, &told));
            count(&format!("{source} over {fabric}"), done);
        }
    }
    Verdict::Told(tally, failed, Vec::new())
}

/// What the shared library has is the map's functions, each with its version.
fn have_versions(workspace: &Workspace, prefix: &Path) -> Result<(), Failure> {
    let so = prefix.join("lib/librackmem.so");
    let nm = Command::new("nm")
        .args(["-D", "--defined-only"])
        .arg(so)
        .output();
    let nm = nm.map_err(|error| format!("nm did not start: {error}"))?;
    let told = String::from_utf8_lossy(&nm.stdout).into_owned();
    // Of each an address, a kind, and a name.
    let symbols = told
        .lines()
        .filter_map(|line| line.split_whitespace().nth(2));
    let version = format!("RACKMEM_{ABI}");
    let mut has: Vec<&str> = symbols.filter(|name| *name != version).collect();
    has.sort();
    let functions = functions(workspace)?;
    let wanted = functions.iter().map(|name| format!("{name}@@{version}"));
    let mut wanted: Vec<String> = wanted.collect();
    wanted.sort();
    match has == wanted {
        true => Ok(()),
        false => Err(format!("it has {has:?}, and {MAP} {wanted:?}")),
    }
}

/// A program does not start with a library of the same name that lacks the version it needs.
fn refuses_another(workspace: &Workspace, prefix: &Path) -> Result<(), Failure> {
    let folder = prefix.join("another");
    let of = |error: std::io::Error| format!("{}: {error}", folder.display());
    std::fs::create_dir_all(&folder).map_err(of)?;
    let (source, map) = (folder.join("another.c"), folder.join("another.map"));
    std::fs::write(&source, "void rm_another(void) {}\n").map_err(of)?;
    std::fs::write(&map, "RACKMEM_9 { global: rm_another; };\n").map_err(of)?;
    let so = format!("librackmem.so.{ABI}");
    let mut link = linker(&map);
    link.arg("-fPIC").arg(&source);
    link.arg("-o").arg(folder.join(&so));
    links(link, "the other library")?;
    let example = Program {
        source: "c/examples/counter.c",
        compiler: "cc",
        options: &[STRICT],
    };
    let program = compile(workspace, prefix, &example)?;
    let ran = Command::new(program)
        .env("LD_LIBRARY_PATH", &folder)
        .output();
    let ran = ran.map_err(|error| error.to_string())?;
    let told = String::from_utf8_lossy(&ran.stderr).into_owned();
    match !ran.status.success() && told.contains(&format!("version `RACKMEM_{ABI}' not found")) {
        true => Ok(()),
        false => Err(format!("{}: {told}", ran.status)),
    }
}

fn compile(workspace: &Workspace, prefix: &Path, program: &Program) -> Result<PathBuf, Failure> {
    let flags = Command::new("pkg-config")
        .args(["--cflags", "--libs", "rackmem"])
        .env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig"))
        .output();
    let flags = flags.map_err(|error| format!("pkg-config did not start: {error}"))?;
    let flags = String::from_utf8_lossy(&flags.stdout).into_owned();
    let source = workspace.root.join(program.source);
    let path = prefix.join(source.file_stem().unwrap_or_default());
    let mut compiler = Command::new(program.compiler);
    compiler.args(program.options.iter().copied().flatten());
    compiler
        .arg(&source)
        .args(flags.split_whitespace())
        .arg("-o")
        .arg(&path);
    match compiler.status() {
        Ok(status) if status.success() => Ok(path),
        Ok(_) => Err("it does not compile".into()),
        Err(error) => Err(format!("{} did not start: {error}", program.compiler)),
    }
}

fn run(prefix: &Path, program: &Path) -> Command {
    let mut command = Command::new(program);
    command.env("LD_LIBRARY_PATH", prefix.join("lib"));
    command
}

fn runs(prefix: &Path, program: &Path) -> Result<(), Failure> {
    match run(prefix, program).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{status}")),
        Err(error) => Err(error.to_string()),
    }
}

/// Processes of a rack that runs an example.
const NODES: usize = 3;

/// Examples, with an argument, and what one of their processes tells.
fn examples(workspace: &Workspace) -> [(&'static str, String, String); 2] {
    const TIMES: usize = 300;
    let all = NODES * TIMES;
    // A file that is long enough for all.
    let file = workspace.root.join("c/include/rackmem.h");
    let lines = std::fs::read_to_string(&file).map_or(0, |text| text.matches('\n').count());
    let counted = (
        "c/examples/counter.c",
        TIMES.to_string(),
        format!("{all} {all}\n"),
    );
    let file = file.display().to_string();
    [counted, ("c/examples/lines.c", file, format!("{lines}\n"))]
}

fn plays(
    workspace: &Workspace,
    prefix: &Path,
    fabric: &str,
    (source, argument, tells): (&'static str, &str, &str),
) -> Result<(), Failure> {
    let example = Program {
        source,
        compiler: "cc",
        options: &[STRICT],
    };
    let program = compile(workspace, prefix, &example)?;
    let nodes = rackmem_hosts::addresses(NODES);
    let nodes: Vec<String> = nodes.iter().map(|addr| format!("\"{addr}\"")).collect();
    let config = prefix.join(format!("{fabric}.toml"));
    let text = format!("fabric = \"{fabric}\"\nnodes = [{}]\n", nodes.join(", "));
    std::fs::write(&config, text).map_err(|error| error.to_string())?;
    let start = |node: usize| {
        let mut command = run(prefix, &program);
        command
            .arg(argument)
            .env("RACKMEM_CONFIG", &config)
            .env("RACKMEM_NODE", node.to_string());
        command.stdout(std::process::Stdio::piped()).spawn()
    };
    let children: Result<Vec<Child>, _> = (0..NODES).map(start).collect();
    let children = children.map_err(|error| error.to_string())?;
    let mut told = String::new();
    for child in children {
        let output = child
            .wait_with_output()
            .map_err(|error| error.to_string())?;
        if !output.status.success() {
            return Err(format!("a process ended with {}", output.status));
        }
        told += &String::from_utf8_lossy(&output.stdout);
    }
    match told == tells {
        true => Ok(()),
        false => Err(format!("it told {told:?}, not {tells:?}")),
    }
}
