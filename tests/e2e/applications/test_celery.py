"""Celery, with the rack as its broker and its store of results: client, broker and results are at
different nodes."""

import pathlib

import pytest

celery = pytest.importorskip("celery")
pytest.importorskip("redis")
TIMEOUT = 60
pytestmark = pytest.mark.needs("brpop", "zadd", "publish", "sadd", "hset")


@pytest.fixture
def tasks(nodes, program, eventually, monkeypatch):
    """The tasks, as a client at another node than the worker's calls them."""
    monkeypatch.setenv("NODES", " ".join([nodes[1], nodes[0], nodes[2]]))
    monkeypatch.syspath_prepend(pathlib.Path(__file__).parent / "programs")
    import celery_app

    worker = ["-m", "celery", "-A", "celery_app", "worker", "-P", "threads", "-c", "2", "-l", "ERROR"]
    with program(*worker):
        eventually(lambda: celery_app.app.control.ping(timeout=0.5))
        yield celery_app
    celery_app.app.close()


def test_tasks(tasks):
    """One worker for all: starting it takes seconds."""
    assert tasks.add.delay(2, 3).get(TIMEOUT) == 5
    with pytest.raises(ValueError, match="no such luck"):
        tasks.fail.delay("no such luck").get(TIMEOUT)
    assert tasks.stubborn.delay().get(TIMEOUT) == 2
    assert tasks.add.apply_async((1, 1), countdown=0.5).get(TIMEOUT) == 2

    group = celery.group(tasks.add.s(n, n) for n in range(10))
    assert group.apply_async().get(TIMEOUT) == [2 * n for n in range(10)]
    chord = celery.chord((tasks.add.s(n, 1) for n in range(5)), tasks.total.s())
    assert chord.apply_async().get(TIMEOUT) == 15
    chain = tasks.add.s(1, 2) | tasks.add.s(3) | tasks.add.s(4)
    assert chain.apply_async().get(TIMEOUT) == 10

    # Commands to workers and their answers travel by publish and subscribe.
    inspected = tasks.app.control.inspect(timeout=2).registered()
    assert any("celery_app.add" in names for names in inspected.values())
    kept = tasks.add.delay(20, 22)
    kept.get(TIMEOUT)
    kept.forget()
    assert tasks.app.backend.get(tasks.app.backend.get_key_for_task(kept.id)) is None
