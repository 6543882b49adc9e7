#!/usr/bin/env python3
"""Runs Redis's own test suite against a rack of `rackmem kv`, or against a redis-server.

The suite is not part of this repository. `--from` names a folder that has its `tests/`:
    git -C redis archive 7.0.15 tests | tar x -C /tmp/redis-suite
Every connection of the suite goes to a random node of the rack. Printed are, for every file, the
tests that passed, that failed (another answer) and that ended in an error (a command was refused),
and those left out: by `plan.toml`, or by the suite itself, which knows what an outside server
cannot be asked. Needs tclsh 8.5 or newer.
"""

import argparse
import contextlib
import json
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import tomllib

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PLAN = tomllib.loads((HERE / "plan.toml").read_text())
# A file may take this long, and be silent this long; then a test waits for what does not come.
FILE_SECONDS = 600
SILENT_SECONDS = 100
# Tests of a file that may wait for ever before the file is given up.
HANGS = 2
# How long servers may take to end.
END_SECONDS = 30
# What the suite prints in front of each test's name.
LINE = re.compile(r"^\[(ok|err|skip|ignore|exception)\]: (.*)$")
# What it prints when nothing happens any more, with the test's name.
WAITS = re.compile(r"\(IN PROGRESS\) (.*)$")
# A test that ended in an error shows where; one that failed shows what it expected.
TRACE = re.compile(r"^ {4}(while executing|invoked from within)", re.M)
# Where it shows the command that was refused.
ASKED = re.compile(r'^"(r|\$\w+) .*$', re.M)
OF = {"skip": "skipped", "ignore": "outside", "exception": "errors", "hung": "errors"}
COUNTS = ("ok", "failed", "errors", "skipped", "outside")


def program(given):
    """The `rackmem` to test: the one that is given, or that was built last."""
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    built = [target / profile / "rackmem" for profile in ("release", "debug")]
    candidates = [path for path in built if path.is_file()]
    if given or candidates:
        return given or max(candidates, key=lambda path: path.stat().st_mtime)
    sys.exit("rackmem is not built: cargo build -p rackmem-cli")


@contextlib.contextmanager
def rack(rackmem, nodes, options):
    """The ports of a rack's nodes."""
    size = ["--nodes", str(nodes), "--port", "0", "--buckets", "1024"]
    command = [rackmem, "--json", "kv", *size, *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        listening = json.loads(process.stdout.readline())["listening"]
        yield [int(address.rsplit(":", 1)[1]) for address in listening]
        if process.poll() is not None:
            print(f"the rack has ended with {process.returncode}", file=sys.stderr)
    finally:
        end(process)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def redis_server():
    """The port of a fresh redis-server, for comparison."""
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        command = ["redis-server", "--port", str(port), "--save", "", "--dir", folder]
        command += ["--enable-debug-command", "yes"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            for line in process.stdout:
                if "Ready to accept connections" in line:
                    break
            yield [port]
        finally:
            end(process)


def end(process):
    process.send_signal(signal.SIGINT)
    try:
        process.wait(END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def tests(table, file):
    """The names, or patterns, of the file's tests that are in a table of the plan."""
    return [name for row in PLAN[table] if row["file"] == file for name in row["tests"]]


def output(suite, file, ports, seed, strict, left_out, only):
    """What the suite prints when it runs a file."""
    arguments = ["--host", "127.0.0.1", "--port", str(ports[0]), "--durable", "--single", file]
    # The suite's parent listens on one of the 32 ports below this one: two runs want two.
    base = random.randrange(12_000, 20_000)
    arguments += ["--timeout", str(SILENT_SECONDS), "--baseport", str(base)]
    arguments += [] if strict else ["--ignore-encoding", "--ignore-digest"]
    arguments += ["--tags", " ".join(f"-{row['tag']}" for row in PLAN["tag"])]
    for name in left_out:
        arguments += ["--skiptest", name]
    for name in only:
        arguments += ["--only", name]
    environment = os.environ | {
        "RACK_PORTS": " ".join(map(str, ports)),
        "RACK_SEED": str(seed),
        "RACK_FRESH": " ".join(PLAN["fresh"]),
        "RACK_FORGIVEN": " ".join(f"{{config set {name}}}" for name in PLAN["forgiven"]["settings"]),
        "TERM": "dumb",
    }
    with tempfile.TemporaryFile("w+", errors="replace") as printed:
        process = subprocess.Popen(
            ["tclsh", HERE / "spread.tcl", *arguments],
            cwd=suite,
            env=environment,
            stdout=printed,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(FILE_SECONDS)
        # Its workers too.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        printed.seek(0)
        return printed.read()


def judge(text):
    """The verdict on each test in what the suite has printed, and the test it waited for."""
    verdicts, hung = [], None
    for line in text.partition("The End")[0].splitlines():
        if found := LINE.match(line):
            verdicts.append([found[1], found[2]])
        elif waits := WAITS.search(line):
            hung = waits[1]
        elif verdicts and verdicts[-1][0] == "err" and not line.startswith("["):
            verdicts[-1][1] += "\n" + line
    return verdicts, hung


def run(suite, file, ports, options, left_out=(), only=()):
    """Every test's verdict. Tests that wait for ever are left out, one by one, and the file
    starts again without them."""
    hangs = []
    while True:
        skips = [*tests("skip", file), *left_out, *hangs]
        text = output(suite, file, ports, options.seed, options.strict, skips, only)
        verdicts, hung = judge(text)
        whole = "The End" in text and hung is None
        if whole or hung is None or hung in hangs or len(hangs) == HANGS:
            break
        hangs.append(hung)
    elsewhere = {*hangs, *left_out}
    verdicts = [row for row in verdicts if row[1] not in elsewhere]
    if only:
        verdicts = [row for row in verdicts if row[0] not in ("skip", "ignore")]
    verdicts += [["hung", name] for name in hangs]
    if not whole:
        verdicts.append(["hung", "the file did not end"])
    return verdicts


def count(verdicts):
    """The counts of a file, and what is to be told of those that did not pass."""
    counts, told = dict.fromkeys(COUNTS, 0), []
    for kind, text in verdicts:
        if kind == "err":
            kind = "errors" if TRACE.search(text) else "failed"
        elif kind in OF:
            kind = OF[kind]
        counts[kind] += 1
        if kind in ("failed", "errors"):
            asked = ASKED.search(text)
            told.append(f"{kind}: {TRACE.split(text)[0]}{asked[0] if asked else ''}")
    return counts, told


def served(file, options, **which):
    """Every test's verdict, from a server of their own: one that ends, or is left in disorder,
    costs one row only."""
    target = redis_server() if options.redis else None
    target = target or rack(program(options.bin), options.nodes, options.extra)
    with target as ports:
        one_node = file in PLAN["one_node"]["files"] or "only" in which
        return run(options.suite, file, ports[:1] if one_node else ports, options, **which)


def main():
    """Runs the files that are named, or all of `plan.toml`, and prints a row for each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--from", dest="suite", required=True, help="the folder with tests/")
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1, help="which node each connection gets")
    parser.add_argument("--strict", action="store_true", help="also OBJECT ENCODING, DEBUG DIGEST")
    parser.add_argument("--redis", action="store_true", help="test a redis-server instead")
    parser.add_argument("--bin", type=pathlib.Path, help="the rackmem to test")
    parser.add_argument("--log", type=pathlib.Path, help="write what failed to files in here")
    parser.add_argument("--with", dest="extra", action="append", default=[], help="option of kv")
    parser.add_argument("files", nargs="*", help="such as unit/type/list")
    options = parser.parse_args()
    if not shutil.which("tclsh"):
        print("skipped: tclsh was not found")
        return
    files = options.files or PLAN["files"]
    total = dict.fromkeys(COUNTS, 0)
    print(f"{'file':28}" + "".join(f"{name:>9}" for name in COUNTS), flush=True)
    for file in files:
        together = tests("together", file)
        verdicts = served(file, options, left_out=together)
        if together:
            verdicts += served(file, options, only=together)
        counts, told = count(verdicts)
        print(f"{file:28}" + "".join(f"{counts[name]:9}" for name in COUNTS), flush=True)
        total = {name: total[name] + counts[name] for name in COUNTS}
        if options.log:
            options.log.mkdir(parents=True, exist_ok=True)
            (options.log / f"{file.replace('/', '.')}.txt").write_text("\n\n".join(told))
    print(f"{'all':28}" + "".join(f"{total[name]:9}" for name in COUNTS))


if __name__ == "__main__":
    main()
