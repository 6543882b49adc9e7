"""Examples run as a reader runs them: a process for each node, by the environment."""

import os
import pathlib
import subprocess
import sys

import pytest
from conftest import addresses

EXAMPLES = pathlib.Path(__file__).parent.parent / "examples"


@pytest.mark.parametrize("fabric", ["udp", "shm"])
def test_two_processes_change_one_array(tmp_path, fabric):
    path = tmp_path / "rack.toml"
    path.write_text(f'fabric = "{fabric}"\nnodes = {addresses(2)}\n')
    processes = [
        subprocess.Popen(
            [sys.executable, EXAMPLES / "heat.py", "64", "20"],
            env={**os.environ, "RACKMEM_CONFIG": str(path), "RACKMEM_NODE": str(node)},
            stdout=subprocess.PIPE,
            text=True,
        )
        for node in range(2)
    ]
    told = [process.communicate(timeout=300)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0], told
    assert "the same bits as one process alone" in told[0]
    assert told[1] == ""
