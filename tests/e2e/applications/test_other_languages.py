"""Clients and applications of other languages: the programs in `node`, `go` and `java`.

What they need is installed into target/, the first time from the languages' registries."""

import os
import pathlib
import shutil
import subprocess

import pytest

pytestmark = pytest.mark.needs(
    "evalsha", "blpop", "zadd", "publish", "hset", "sadd", "xreadgroup"
)
HERE = pathlib.Path(__file__).resolve().parent
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", HERE.parents[2] / "target"))
# How long an installation may take, and how long a program, in seconds.
INSTALL_SECONDS = 120
RUN_SECONDS = 300
# The files that name what a language's programs need.
LISTS = ("package-lock.json", "go.sum", "pom.xml")


def copied(language):
    """The folder under target/ with the language's programs and what they need."""
    folder = TARGET / "applications" / language
    shutil.copytree(HERE / language, folder, dirs_exist_ok=True)
    return folder


def install(folder, command, made, **environment):
    """Runs an installation, once for each state of the files that name what is wanted."""
    wanted = "".join((folder / name).read_text() for name in LISTS if (folder / name).exists())
    stamp = folder / "installed.txt"
    if stamp.exists() and stamp.read_text() == wanted and (folder / made).exists():
        return
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env=os.environ | environment,
            timeout=INSTALL_SECONDS,
            capture_output=True,
            text=True,
        )
    except subprocess.TimeoutExpired:
        pytest.skip(f"{command[0]} took more than {INSTALL_SECONDS} s to install")
    if done.returncode != 0:
        why = (done.stderr or done.stdout).strip().splitlines() or ["no reason given"]
        pytest.skip(f"{command[0]} could not install: {why[-1]}")
    stamp.write_text(wanted)


def need(*programs):
    for name in programs:
        if shutil.which(name) is None:
            pytest.skip(f"{name} was not found")


def run(folder, command, nodes, **environment):
    """The program must end well."""
    environment = os.environ | environment | {"NODES": " ".join(nodes)}
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        timeout=RUN_SECONDS,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("program", ["ioredis", "bullmq", "sessions"])
def test_node(nodes, program):
    need("node", "npm")
    folder = copied("node")
    quietly = ["--no-audit", "--no-fund", "--ignore-scripts"]
    install(folder, ["npm", "ci", *quietly], "node_modules")
    run(folder, ["node", "--test", f"{program}.mjs"], nodes)


def test_go(nodes):
    need("go")
    folder = copied("go")
    own = {"GOPATH": str(folder / "path"), "GOFLAGS": "-modcacherw -mod=readonly", "GOWORK": "off"}
    install(folder, ["go", "mod", "download"], "path", **own)
    run(folder, ["go", "test", "-count=1", "."], nodes, **own)


def test_java(nodes):
    need("java", "mvn")
    folder = copied("java")
    own = [f"-Dmaven.repo.local={folder / 'repository'}", f"-DoutputDirectory={folder / 'jars'}"]
    install(folder, ["mvn", "-q", "-B", *own, "dependency:copy-dependencies"], "jars")
    run(folder, ["java", "-cp", f"{folder / 'jars'}/*", "Applications.java"], nodes)
