"""Dramatiq and Huey: messages are sent at one node and worked on at another."""

import threading

import pytest

pytest.importorskip("redis")
pytestmark = pytest.mark.needs("evalsha", "blpop", "zadd", "hset")


def test_dramatiq(nodes):
    dramatiq = pytest.importorskip("dramatiq")
    from dramatiq.brokers.redis import RedisBroker
    from dramatiq.results import Results
    from dramatiq.results.backends import RedisBackend

    def at(url):
        """A broker at a node, and the actors as a program there declares them."""
        broker = RedisBroker(url=url)
        broker.add_middleware(Results(backend=RedisBackend(url=nodes[2])))

        @dramatiq.actor(broker=broker, store_results=True)
        def add(left, right):
            return left + right

        @dramatiq.actor(broker=broker, store_results=True, max_retries=2, min_backoff=1)
        def thrice():
            tries.append(1)
            if len(tries) < 3:
                raise ValueError("again")
            return len(tries)

        return broker, add, thrice

    tries = []
    here, add, thrice = at(nodes[0])
    there, _, _ = at(nodes[1])
    worker = dramatiq.Worker(there, worker_threads=2)
    worker.start()
    try:
        messages = [add.send(number, 1) for number in range(20)]
        later = add.send_with_options(args=(20, 22), delay=300)
        result = {"backend": RedisBackend(url=nodes[2]), "block": True, "timeout": 60_000}
        assert [message.get_result(**result) for message in messages] == list(range(1, 21))
        assert later.get_result(**result) == 42
        thrice.send()
        while len(tries) < 3:
            here.join(add.queue_name, timeout=60_000)
        here.join(add.queue_name, timeout=60_000)
    finally:
        worker.stop()
        here.close()
        there.close()


@pytest.mark.parametrize("kind", ["RedisHuey", "PriorityRedisHuey", "RedisExpireHuey"])
def test_huey(nodes, kind):
    huey = pytest.importorskip("huey")
    done = threading.Event()

    def at(url):
        queue = getattr(huey, kind)("chores", url=url)

        @queue.task()
        def add(left, right):
            return left + right

        @queue.task(retries=2)
        def fail():
            raise ValueError("no such luck")

        @queue.task()
        @queue.lock_task("door")
        def alone():
            done.set()

        return queue, add, fail, alone

    here, add, fail, alone = at(nodes[0])
    there, *_ = at(nodes[1])
    consumer = there.create_consumer(workers=2, check_worker_health=False)
    consumer.start()
    try:
        results = [add(number, number) for number in range(10)]
        assert [result.get(blocking=True, timeout=60) for result in results] == [
            2 * number for number in range(10)
        ]
        assert add.schedule((20, 22), delay=1).get(blocking=True, timeout=60) == 42
        with pytest.raises(huey.exceptions.TaskException, match="no such luck"):
            fail().get(blocking=True, timeout=60)
        alone()
        assert done.wait(60)
    finally:
        consumer.stop(graceful=True)
        here.storage.conn.close()
        there.storage.conn.close()
