"""Starts racks for the tests: the program of RACKMEM_BIN, or the one that was built last."""

import contextlib
import json
import os
import pathlib
import signal
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Nodes of every rack under test.
NODES = 3
# How long a rack may take to end, in seconds.
WIND_DOWN = 60


def binary():
    """The program under test, or None."""
    given = os.environ.get("RACKMEM_BIN")
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    built = [target / profile / "rackmem" for profile in ("release", "debug")]
    candidates = [pathlib.Path(given)] if given else built
    return next((path for path in candidates if path.is_file()), None)


@contextlib.contextmanager
def rack(options):
    """The ports of a rack's nodes. Afterwards the rack must end as it should. RACKMEM_PORTS names
    servers that run already, such as a redis-server three times, to see what it answers."""
    if given := os.environ.get("RACKMEM_PORTS"):
        yield [int(port) for port in given.split(",")]
        return
    program = binary()
    if program is None:
        pytest.skip("rackmem is not built: cargo build -p rackmem-cli, or set RACKMEM_BIN")
    size = ["--nodes", str(NODES), "--port", "0", "--buckets", "1024", "--memory", "512M"]
    command = [program, "--json", "kv", *size, *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        listening = json.loads(process.stdout.readline())["listening"]
        yield [int(address.rsplit(":", 1)[1]) for address in listening]
        process.send_signal(signal.SIGINT)
        assert process.wait(WIND_DOWN) == 130
    finally:
        process.kill()
        process.wait()
