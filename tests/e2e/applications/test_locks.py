"""Locks that programs make of a store: redis-py's own, and Redlock as pottery has it."""

import threading

import pytest

redis = pytest.importorskip("redis")
pytestmark = pytest.mark.needs("evalsha", "hset", "lpush")


@pytest.fixture
def connections(nodes):
    opened = [redis.Redis.from_url(url) for url in nodes]
    yield opened
    for connection in opened:
        connection.close()


def exclusive(locks, rounds):
    """How often the most threads were inside at once, and how often one was inside at all."""
    inside, most, entries = 0, 0, 0

    def enter(lock):
        nonlocal inside, most, entries
        for _ in range(rounds):
            with lock():
                inside += 1
                most = max(most, inside)
                entries += 1
                inside -= 1

    threads = [threading.Thread(target=enter, args=(lock,)) for lock in locks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return most, entries


def test_the_lock_of_redis_py(connections):
    first, second, third = connections
    lock = first.lock("door", timeout=60)
    assert lock.acquire()
    assert not second.lock("door", blocking=False).acquire()
    assert third.lock("door").locked()
    assert lock.extend(60) and lock.reacquire() and lock.owned()
    assert 0 < second.pttl("door") <= 60_000
    lock.release()
    with pytest.raises(redis.exceptions.LockError):
        lock.release()
    stolen = second.lock("door", timeout=60)
    assert stolen.acquire()
    third.delete("door")
    with pytest.raises(redis.exceptions.LockNotOwnedError):
        stolen.release()

    def waiting(connection):
        return lambda: connection.lock("gate", timeout=60, sleep=0.002)

    locks = [waiting(connection) for connection in connections]
    assert exclusive(locks, 20) == (1, 60)


def test_redlock_of_pottery(connections):
    pottery = pytest.importorskip("pottery")
    first, second, third = connections
    lock = pottery.Redlock(key="door", masters={first}, auto_release_time=60)
    assert lock.acquire()
    other = pottery.Redlock(key="door", masters={second}, auto_release_time=60)
    assert not other.acquire(blocking=False)
    assert lock.locked() > 0
    lock.extend()
    lock.release()
    assert other.acquire(blocking=False)
    other.release()
    visits = pottery.RedisCounter(redis=first, key="visits")
    visits["page"] += 2
    assert pottery.RedisCounter(redis=third, key="visits")["page"] == 2
    people = pottery.RedisDict({"name": "Ada"}, redis=second, key="people")
    assert pottery.RedisDict(redis=third, key="people") == {"name": "Ada"}
    assert len(people) == 1
    chores = pottery.RedisDeque(["wash"], redis=first, key="chores")
    chores.append("dry")
    assert pottery.RedisDeque(redis=second, key="chores").popleft() == "wash"
    ids = [pottery.NextID(key="id", masters={connection}) for connection in connections]
    assert [next(number) for number in ids] == [1, 2, 3]
