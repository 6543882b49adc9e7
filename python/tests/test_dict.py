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


def test_a_dict_is_a_dict_at_every_node(rack):
    dicts = [rackmem.Dict(rack.node(n), "state") for n in range(3)]
    here, _, there = dicts
    here["epoch"] = 7
    there[b"raw"] = [1, 2.5, None]
    there[("a", 1, (b"", "ü"))] = {"x": 1}
    here[-(2**70)] = "large"
    wanted = {"epoch": 7, b"raw": [1, 2.5, None], ("a", 1, (b"", "ü")): {"x": 1}, -(2**70): "large"}
    for each in dicts:
        assert dict(each.items()) == wanted == dict(each) and len(each) == 4
        assert "epoch" in each and b"epoch" not in each and each.get("none") is None
        assert each == wanted
    # True is 1, as in a dict of Python's.
    here[True] = "one"
    assert there.pop(1) == "one" and there.pop(1, "gone") == "gone"
    here[np.int64(9)] = "NumPy's"
    assert there.pop(9) == "NumPy's"
    for missing in (lambda: here["none"], lambda: here.__delitem__("none"), lambda: here.pop("none")):
        with pytest.raises(KeyError):
            missing()
    with pytest.raises(TypeError, match="a key is"):
        here[1.5] = 0
    assert here.setdefault("epoch", 8) == 7 and here.setdefault("new", []) == []
    assert there.change("epoch", lambda n: n + 1) == 8
    assert there.change("count", lambda n: n + 1, default=0) == 1
    del here["new"]
    there.update(a=1, b=2)
    assert here["b"] == 2 and sorted(map(str, there)) == sorted(map(str, here.keys()))
    seen = set()
    while here:
        key, _ = there.popitem()
        seen.add(key)
    assert {"a", "b", "epoch", "count", b"raw"} <= seen
    with pytest.raises(KeyError):
        here.popitem()
    there.update(wanted)
    here.clear()
    assert len(there) == 0


def test_changes_of_all_nodes_count_once(rack):
    def work(node):
        counts = rackmem.Dict(node, "counts")
        for n in range(200):
            counts.change(n % 3, lambda count: count + 1, default=0)

    threads = [threading.Thread(target=work, args=[rack.node(n)]) for n in range(3)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert sum(rackmem.Dict(rack, "counts").values()) == 600


def test_a_full_dict_says_so_and_keeps_what_it_has(rack):
    small = rackmem.Dict(rack, "small", entries=10, bytes=40)
    small["kept"] = 1
    with pytest.raises(rackmem.MemoryFullError):
        for n in range(100_000):
            small[n] = b"x" * 1000
    assert small["kept"] == 1 and small[0] == b"x" * 1000
    with pytest.raises(rackmem.Error):
        small["long"] = b"x" * 100_000
    before = rackmem.Dict(rack.node(1), "small")
    small.unlink()
    with pytest.raises(rackmem.Error):
        before["kept"]
    again = rackmem.Dict(rack.node(2), "small")
    assert len(again) == 0
    assert again.name == "small" and "small" in repr(again)


def _other(path, node):
    rackmem.join(path, node=node)
    state = rackmem.Dict(None, "state")
    done = pickle.loads(pickle.dumps(rackmem.Condition(None, "done")))
    for n in range(100):
        state.change("sum", lambda total: total + 1, default=0)
    with done:
        state[node] = "done"
        done.notify_all()
    time.sleep(60)


def test_processes_share_a_dict_and_wait_for_one_another(tmp_path):
    path = tmp_path / "rack.toml"
    path.write_text(f'mode = "home-only"\nfabric = "udp"\nnodes = {addresses(3)}\n')
    spawn = multiprocessing.get_context("spawn")
    others = [spawn.Process(target=_other, args=[path, n], daemon=True) for n in (1, 2)]
    [other.start() for other in others]
    try:
        with rackmem.join(path, node=0) as rack:
            state = rackmem.Dict(rack, "state")
            done = rackmem.Condition(rack, "done")
            with done:
                everybody = lambda: 1 in state and 2 in state
                assert done.wait_for(everybody, timeout=60)
            assert state["sum"] == 200
            # One that is killed while it waits or works leaves the dict as it is.
            os.kill(others[0].pid, signal.SIGKILL)
            assert state.change("sum", lambda total: total + 1) == 201
    finally:
        [other.kill() for other in others]
        [other.join() for other in others]


def test_conditions(rack):
    here, there = (rackmem.Condition(rack.node(n), "c") for n in (0, 2))
    with here:
        started = time.monotonic()
        assert not here.wait(timeout=0.25)
        assert time.monotonic() - started >= 0.25
        assert here.wait_for(lambda: False, timeout=0.05) is False
    for wrong in (here.wait, here.notify, there.notify_all, here.release):
        with pytest.raises(RuntimeError):
            wrong()
    turns = []

    def take(condition, mine, rounds):
        for _ in range(rounds):
            with condition:
                assert condition.wait_for(lambda: len(turns) % 2 == mine, timeout=60)
                turns.append(mine)
                condition.notify()

    threads = [threading.Thread(target=take, args=[c, n, 100]) for n, c in enumerate((here, there))]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert turns == [0, 1] * 100


def test_a_notification_between_two_looks_is_not_lost(rack):
    """A wait looks at signals ten times a second, and is off the list for a moment then."""
    here, there = (rackmem.Condition(rack.node(n), "c") for n in (0, 1))
    for delay in (0.0995, 0.1, 0.1005, 0.101, 0.102):
        ready = []

        def tell():
            time.sleep(delay)
            with there:
                ready.append(1)
                there.notify()

        thread = threading.Thread(target=tell)
        with here:
            thread.start()
            # Without a limit: one that is lost would be waited for without end.
            here.wait_for(lambda: ready, timeout=60)
        thread.join()
        assert ready


def test_a_wait_for_a_condition_can_be_interrupted(rack):
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        condition = rackmem.Condition(rack, "c")
        threading.Timer(0.3, signal.raise_signal, [signal.SIGINT]).start()
        with pytest.raises(KeyboardInterrupt), condition:
            condition.wait()
        # The lock was held again, and has been left.
        assert condition.acquire(blocking=False)
        condition.release()
    finally:
        signal.signal(signal.SIGINT, before)
