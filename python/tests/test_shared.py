import math
import multiprocessing
import os
import pickle
import signal
import threading
import time

import numpy as np
import pytest
from conftest import addresses

import rackmem


def test_counters(rack):
    here, there = (rackmem.Counter(rack.node(n), "done") for n in (0, 2))
    assert here.add() == 1 and there.add(5) == 6 and here.add(-10) == -4
    assert there.value == -4
    there.value = 7
    assert here.value == 7

    def add(counter):
        for _ in range(1000):
            counter.add()

    threads = [threading.Thread(target=add, args=[c]) for c in (here, there)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert here.value == 2007
    here.value = -1
    assert here.add(np.int64(1)) == 0 and here.add(2**63) == -(2**63) and int(here) == -(2**63)


def test_a_counter_with_copies(rack):
    here, there = (rackmem.Counter(rack.node(n), "c", copies=3) for n in (0, 2))
    assert here.add(5) == 5 and there.add(-7) == -2
    assert pickle.loads(pickle.dumps(here)).value == -2
    with pytest.raises(rackmem.MismatchError, match="3 copies"):
        rackmem.Counter(rack, "c")


def test_locks(rack):
    here, there = (rackmem.Lock(rack.node(n), "l") for n in (0, 1))
    with here:
        first = here.token
        assert here.locked() and not there.locked()
        assert not there.acquire(blocking=False)
        assert not there.acquire(timeout=0.05)
    with there:
        assert there.token > first
    with pytest.raises(RuntimeError):
        there.release()
    with pytest.raises(RuntimeError):
        there.token


def test_a_lock_takes_what_a_lock_of_threads_takes(rack):
    lock = rackmem.Lock(rack, "l")
    for wrong in ({"timeout": -5}, {"timeout": math.nan}, {"blocking": False, "timeout": 5}):
        with pytest.raises(ValueError):
            threading.Lock().acquire(**wrong)
        with pytest.raises(ValueError):
            lock.acquire(**wrong)
    assert lock.acquire(False) and lock.locked()


def test_a_wait_that_fails_says_why(rack):
    with pytest.raises(rackmem.ClosedError):
        with rackmem.Condition(rack, "c") as condition:
            rack.close()
            condition.wait(10)


def test_a_lock_guards(rack):
    values = [rackmem.array(rack.node(n), "values", 2, "i8") for n in range(3)]

    def work(n):
        lock, mine = rackmem.Lock(rack.node(n), "guard"), values[n].mapped()
        for _ in range(300):
            with lock:
                assert mine[0] == mine[1]
                mine[0] += 1
                mine[1] += 1

    threads = [threading.Thread(target=work, args=[n]) for n in range(3)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert list(values[0]) == [900, 900]


@pytest.fixture
def interrupts():
    """SIGINT interrupts: a shell that starts the tests in the background lets them ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_a_wait_for_a_lock_can_be_interrupted(rack, interrupts):
    with rackmem.Lock(rack.node(0), "l"):
        timer = threading.Timer(0.3, signal.raise_signal, [signal.SIGINT])
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            rackmem.Lock(rack.node(1), "l").acquire()


def test_shared_memory(rack):
    made = rackmem.SharedMemory("buf", create=True, size=10_000, rack=rack.node(0))
    found = rackmem.SharedMemory("buf", track=False, rack=rack.node(1))
    assert made.size == found.size == 10_000
    made.buf[9_990:] = b"0123456789"
    assert bytes(found.buf[9_995:]) == b"56789"
    for size in (10_000, 20_000):
        with pytest.raises(FileExistsError):
            rackmem.SharedMemory("buf", create=True, size=size, rack=rack)
    with pytest.raises(FileNotFoundError):
        rackmem.SharedMemory("other", rack=rack)
    found.close()
    made.unlink()
    with pytest.raises(FileNotFoundError):
        rackmem.SharedMemory("buf", rack=rack)


def test_errors_have_codes_and_kinds(rack):
    region = rack.node(0).region("r", 100)
    with pytest.raises(rackmem.ArgumentError) as caught:
        region.read(90, 20)
    assert isinstance(caught.value, ValueError) and caught.value.code == "region-out-of-bounds"
    with pytest.raises(rackmem.MismatchError):
        rack.node(1).region("r", 200)
    with pytest.raises(rackmem.NotFoundError) as caught:
        rack.node(1).region("s", 200, create=False)
    # No key in quotes.
    assert str(caught.value) == caught.value.args[0]
    with pytest.raises(ValueError):
        region.load(4)
    with pytest.raises(rackmem.Error):
        rack.node(7)
    rack.close()
    with pytest.raises(rackmem.ClosedError):
        rack.node(0)
    with pytest.raises(rackmem.ClosedError):
        rackmem.array(rack, "a", 3)
    with pytest.raises(rackmem.ClosedError) as ours:
        rackmem.current()
    with pytest.raises(rackmem.ClosedError) as caught:
        rack.node(0)
    assert ours.value.code == caught.value.code


def test_a_fork_is_no_member(rack):
    array = rackmem.array(rack, "a", 4, "i8")
    lock, counter = rackmem.Lock(rack, "l"), rackmem.Counter(rack, "c")
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        told = []
        for call in (
            lambda: rack.node(),
            lambda: lock.acquire(),
            lambda: counter.add(),
            lambda: array.read(),
            lambda: rackmem.array(None, "a"),
        ):
            try:
                call()
                told.append("went on")
            except rackmem.ClosedError:
                told.append("refused")
        os.write(writer, pickle.dumps(told))
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert pickle.loads(os.read(reader, 1000)) == ["refused"] * 5
    assert counter.add() == 1


def test_a_rack_has_so_many_nodes():
    with pytest.raises(rackmem.ArgumentError, match="1 to 32 nodes, not 33"):
        rackmem.local(33)


def test_what_is_of_a_closed_rack_says_so(rack):
    array, lock = rackmem.array(rack, "a", 4, "i8"), rackmem.Lock(rack, "l")
    counter, mapping = rackmem.Counter(rack, "c"), rackmem.Dict(rack, "d")
    array[1] = 1
    rack.close()
    assert "closed" in repr(rack)
    for call in (
        lambda: array.read(),
        lambda: array.write(0, [1]),
        lambda: array.mapped(),
        lambda: array[1],
        lambda: array.__setitem__(1, 2),
        lambda: array + 1,
        lambda: array.touch(),
        lambda: lock.acquire(),
        lambda: counter.add(),
        lambda: mapping.get("key"),
        lambda: rackmem.SharedMemory("s", create=True, size=10, rack=rack),
    ):
        with pytest.raises(rackmem.ClosedError):
            call()


def _worker(path, node, array, lock):
    # `array` and `lock` came by their names, for the rack that this process has joined.
    counter = rackmem.Counter(None, "steps")
    for _ in range(200):
        with lock:
            array[0] += 1
        array[node] += 1
        counter.add()
    # The others need this node's part of the memory no longer when all are done.
    while counter.value < 3 * 200:
        time.sleep(0.01)


@pytest.mark.parametrize("fabric", ["udp", "shm"])
def test_processes_change_one_array(tmp_path, fabric):
    path = tmp_path / "rack.toml"
    path.write_text(f'fabric = "{fabric}"\nnodes = {addresses(3)}\n')
    spawn = multiprocessing.get_context("spawn")
    # A rack of processes is open when all have come: names are made by the first.
    names = _names()
    others = [spawn.Process(target=_start_by_name, args=(path, node, names)) for node in (1, 2)]
    [other.start() for other in others]
    with rackmem.join(path, 0) as rack:
        array = rackmem.array(rack, names[0], 512 * 3, "i8")
        _worker(path, 3, array, rackmem.Lock(rack, names[1]))
        for other in others:
            other.join(120)
            assert other.exitcode == 0
        assert list(array[:4]) == [600, 200, 200, 200]


def _names():
    return "shared", "shared/lock"


def _start_by_name(path, node, names):
    rack = rackmem.join(path, node)
    array = rackmem.array(rack, names[0], 512 * 3, "i8")
    array = pickle.loads(pickle.dumps(array))
    lock = pickle.loads(pickle.dumps(rackmem.Lock(rack, names[1])))
    _worker(path, node, array, lock)


def test_the_environment_says_which_node(monkeypatch, tmp_path):
    monkeypatch.delenv("RACKMEM_CONFIG", raising=False)
    with pytest.raises(rackmem.ArgumentError, match="RACKMEM_CONFIG"):
        rackmem.from_env()
    path = tmp_path / "rack.toml"
    path.write_text(f'fabric = "udp"\nnodes = {addresses(1)}\n')
    monkeypatch.setenv("RACKMEM_CONFIG", str(path))
    monkeypatch.setenv("SLURM_PROCID", "zero")
    with pytest.raises(rackmem.ArgumentError, match="SLURM_PROCID"):
        rackmem.from_env()
    monkeypatch.setenv("RACKMEM_NODE", "0")
    with rackmem.from_env() as rack:
        assert rack.own == 0
        assert rackmem.current() is rack
