"""What processes leave behind that end without `close`."""

import subprocess
import sys
import time

import pytest
from conftest import addresses

import rackmem

# Node 1 uses what node 0 has made.
CHILD = """
import rackmem, sys
def main():
    global rack, array, counter, lock
    rack = rackmem.join(sys.argv[1], 1)
    sys.stdin.readline()
    array, counter = rackmem.array(rack, "array"), rackmem.Counter(rack, "counter")
    lock = rackmem.Lock(rack, "lock")
    lock.acquire()
    array[...] = 7
    counter.add(5)
"""
OWN = """
main()
rackmem.Lock(rack, "own lock").acquire()
rackmem.array(rack, "own array", 10)[:] = 3
"""
FORKED = """
import multiprocessing
child = multiprocessing.get_context("fork").Process(target=main)
child.start()
child.join()
sys.exit(child.exitcode)
"""
ENDS = {
    "after its last line": "main()",
    "by an exception": "main()\nraise SystemExit(3)",
    "with a thread that goes on": """
main()
import threading, time
held = rack, array, counter
threading.Thread(target=lambda held: time.sleep(100), args=[held], daemon=True).start()
""",
    "as a child by fork": FORKED,
}


def _beside(tmp_path, fabric, text):
    """A rack of this process and of one that runs this, until that has ended; its code."""
    path = tmp_path / "rack.toml"
    members = f'membership = "dir:{tmp_path}/members"\n'
    path.write_text(f'fabric = "{fabric}"\n{members}nodes = {addresses(2)}\n')
    child = [sys.executable, "-c", CHILD + text, str(path)]
    child = subprocess.Popen(child, stdin=subprocess.PIPE, text=True)
    rack = rackmem.join(path, 0)
    rackmem.array(rack, "array", 2000, "i8")
    rackmem.Counter(rack, "counter"), rackmem.Lock(rack, "lock")
    child.communicate("go on\n", timeout=100)
    return rack, child.returncode


@pytest.mark.parametrize("how", ENDS)
@pytest.mark.parametrize("fabric", ["udp", "shm"])
def test_what_a_process_has_changed_outlives_it(tmp_path, fabric, how):
    rack, code = _beside(tmp_path, fabric, ENDS[how])
    with rack:
        assert code == (3 if "exception" in how else 0)
        assert set(rackmem.array(rack, "array").read()) == {7}
        assert rackmem.Counter(rack, "counter").value == 5
        assert rackmem.Lock(rack, "lock").acquire(timeout=100)


def test_what_has_died_with_its_node_is_made_anew(tmp_path):
    # It serves its memory for a while, since others might need it.
    rack, _ = _beside(tmp_path, "udp", OWN)
    with rack:
        _until_lost(lambda: rackmem.array(rack, "own array").read())
        for again in ({}, {"renew": True}):
            made = (
                lambda: rackmem.array(rack, "own array", 10, **again),
                lambda: rackmem.Lock(rack, "own lock", **again),
            )
            for make in made:
                if again:
                    make()
                else:
                    with pytest.raises(rackmem.LostError):
                        make()
        assert rackmem.array(rack, "own array").read().sum() == 0
        assert rackmem.Lock(rack, "own lock").acquire(timeout=10)


def _until_lost(look):
    """The members learn of an end after a while."""
    limit = time.monotonic() + 100
    while time.monotonic() < limit:
        try:
            look()
        except rackmem.LostError:
            return
        time.sleep(0.01)
    pytest.fail("the memory of a node that has ended is still there")


def test_a_rack_lives_as_long_as_what_is_used_of_it():
    def made(name):
        return rackmem.array(rackmem.local(2), name, 3)

    first, second = made("first"), made("second")
    first[:] = 1
    assert list(first + second) == [1, 1, 1]
