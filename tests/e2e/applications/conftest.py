"""What the tests of applications share: one rack, emptied before each, and their programs."""

import contextlib
import os
import pathlib
import subprocess
import sys
import time

import pytest

HERE = pathlib.Path(__file__).resolve().parent
# How long a program may take, in seconds.
PATIENCE = 60


def pytest_configure(config):
    config.addinivalue_line("markers", "needs(*commands): skipped while the store has none of these")


@pytest.fixture
def nodes(request, one_rack):
    """The nodes' addresses as URLs, on an empty store that has the commands the test needs."""
    redis = pytest.importorskip("redis")
    wanted = [name for marker in request.node.iter_markers("needs") for name in marker.args]
    with redis.Redis(port=one_rack[0]) as client:
        missing = [name for name in wanted if name not in client.command()]
        if missing:
            pytest.skip(f"rackmem kv does not have {', '.join(missing)}")
        client.flushall()
    return [f"redis://127.0.0.1:{port}" for port in one_rack]


@pytest.fixture
def program(nodes):
    """Starts a program of Python beside the test. It finds the nodes in NODES and modules in
    `programs`, and is ended with the test."""

    @contextlib.contextmanager
    def started(*arguments):
        environment = os.environ | {
            "NODES": " ".join(nodes),
            "PYTHONPATH": str(HERE / "programs"),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        process = subprocess.Popen([sys.executable, *arguments], env=environment)
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    return started


@pytest.fixture
def eventually():
    """Waits for a condition that another program brings about."""

    def wait(condition):
        deadline = time.monotonic() + PATIENCE
        while not (found := condition()):
            assert time.monotonic() < deadline, "it did not come about"
            time.sleep(0.05)
        return found

    return wait
