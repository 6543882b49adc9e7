"""Scripts: the conversations of the Rust tests, held again with a real redis-server and with the nodes of a rack."""

import pathlib
import threading

import pytest

from test_same_as_redis import Connection, redis_port  # noqa: F401 (a fixture)

SCRIPTS = pathlib.Path(__file__).resolve().parents[2] / "apps/kv/tests/scripts"
# Increments of one thread.
TURNS = 200


def said(name):
    lines = (SCRIPTS / name).read_text().splitlines()
    return [line[2:] for line in lines if line.startswith("> ")]


class Typist(Connection):
    """Types lines, and hears plain values."""

    def say(self, line):
        self.socket.sendall(line.encode() + b"\r\n")
        return self.reply()


@pytest.mark.parametrize("name", ["resp2.txt", "functions.txt"])
def test_scripts_answer_as_in_redis(ports, redis_port, name):  # noqa: F811
    lines = said(name)
    assert len(lines) > 50
    theirs, ours = Typist(redis_port), [Typist(port) for port in ports]
    for line in ("FLUSHALL", "SCRIPT FLUSH", "FUNCTION FLUSH"):
        assert theirs.say(line) == ours[0].say(line)
    # A transaction belongs to a connection: from there on one node is asked.
    alone = lines.index("MULTI") if "MULTI" in lines else len(lines)
    for turn, line in enumerate(lines):
        # Functions that count calls do so in a variable of the library, which each node has.
        counts = line.lower().startswith("fcall c ")
        node = 0 if turn >= alone or counts else turn % len(ours)
        assert ours[node].say(line) == theirs.say(line), line
    for connection in [theirs, *ours]:
        connection.close()


def test_a_counter_in_a_script_is_exact_whichever_nodes_count(ports):
    """As django-redis' incr: only a key that is there is counted up."""
    text = "if redis.call('exists', KEYS[1]) == 1 then return redis.call('incrby', KEYS[1], ARGV[1]) else return -1 end"
    first = Connection(ports[0])
    first.call("FLUSHALL")
    assert first.call("EVAL", text, 1, "count", 1) == -1
    first.call("SET", "count", 0)

    def count(port):
        connection = Connection(port)
        for _ in range(TURNS):
            assert connection.call("EVAL", text, 1, "count", 1) > 0
        connection.close()

    threads = [threading.Thread(target=count, args=[port]) for port in ports for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert first.call("GET", "count") == str(TURNS * len(threads)).encode()
    first.close()


def test_a_lock_is_released_by_its_owner_alone(ports):
    """As redis-py's Lock and Redlock: the token is compared and the key deleted in one step."""
    text = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end"
    first = Connection(ports[0])
    first.call("FLUSHALL")
    inside, entered, wrong = [], [0], []

    def work(number, port):
        connection = Connection(port)
        for turn in range(20):
            token = f"{number}:{turn}"
            while connection.call("SET", "lock", token, "NX", "PX", 60000) is None:
                pass
            inside.append(token)
            if inside != [token]:
                wrong.append(list(inside))
            entered[0] += 1
            inside.remove(token)
            if connection.call("EVAL", text, 1, "lock", "somebody else") != 0:
                wrong.append("released by somebody else")
            if connection.call("EVAL", text, 1, "lock", token) != 1:
                wrong.append("not released")
        connection.close()

    threads = [threading.Thread(target=work, args=[i, port]) for i, port in enumerate(ports)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert entered[0] == 20 * len(threads)
    first.close()
