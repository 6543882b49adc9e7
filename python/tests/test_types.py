"""What checkers of types read: the package's own, and a program's that uses it."""

import pathlib
import shutil
import subprocess
import sys

import rackmem

PROGRAM = """
import numpy as np
import rackmem
from rackmem import Array, Condition, Counter, Dict, Lock, SharedMemory

rack = rackmem.local(3)
array: Array = rackmem.array(rack, "array", (3, 4), np.float64, copies=3)
array += 2
array[0] = array[1] + 1
total: int = Counter(rack, "counter").add(np.int64(3))
with Lock(rack, "lock") as lock, Condition(rack, "condition") as condition:
    token: int = lock.token
    met: bool = condition.wait_for(lambda: True, timeout=0.1)
values: Dict = Dict(rack, "dict")
values["key"] = [1, 2]
memory = SharedMemory("memory", create=True, size=10)
memory.buf[0] = 3
"""


def test_a_program_that_is_checked_strictly(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    # Where it is installed its errors would not be told.
    package = tmp_path / "rackmem"
    shutil.copytree(pathlib.Path(rackmem.__file__).parent, package)
    mypy = [sys.executable, "-m", "mypy", "--strict", package, program]
    checked = subprocess.run(mypy, cwd=tmp_path, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout + checked.stderr
