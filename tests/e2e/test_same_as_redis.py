"""Random commands, to a real redis-server and to the nodes of a rack: the answers must be the same.

What is known to differ (docs/differences-from-redis.md) is not asked.
"""

import functools
import random
import shutil
import socket
import subprocess
import time

import pytest
from families import FAMILIES

SESSIONS = 60
COMMANDS = 60
KEYS = ["a", "b", "c", "d", "e"]
VALUES = ["1", "-5", "10.5", "abc", "", "x" * 2000, "9223372036854775807", " 1", "01", "1e3", "y" * 1024, "z" * 50]
# Ends that are in the past or far away, so that no key expires while a test runs.
NUMBERS = [0, -1, -100, 10_000, 50_000, "x", "", 2**63 - 1, -(2**63), "1.5", "+1", "007"]
OFFSETS = [0, 3, 1500, -1, "x", -(2**63), 2**63 - 1]
FUTURE = [4_000_000_000, 4_000_000_000_000, "x", "1.5", 2**63 - 1, 0, -1]
OPTIONS = ["NX", "XX", "GET", "KEEPTTL", "GT", "LT", "REPLACE", "PERSIST", "MATCH", "*", "TYPE", "string", "1.5"]


class Connection:
    """One connection, spoken to in words and heard in plain values; errors are strings that begin with '-'."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=20)
        self.file = self.socket.makefile("rb")

    def call(self, *words):
        words = [word if isinstance(word, bytes) else str(word).encode() for word in words]
        parts = [b"*%d\r\n" % len(words)]
        parts += [b"$%d\r\n%s\r\n" % (len(word), word) for word in words]
        self.socket.sendall(b"".join(parts))
        return self.reply()

    def reply(self):
        line = self.file.readline()[:-2]
        kind, rest = line[:1], line[1:]
        if kind == b"$":
            return None if rest == b"-1" else self.file.read(int(rest) + 2)[:-2]
        if kind in b"*~%":
            count = int(rest) * (2 if kind == b"%" else 1)
            return None if rest == b"-1" else [self.reply() for _ in range(count)]
        return int(rest) if kind == b":" else line.decode()

    def close(self):
        self.file.close()
        self.socket.close()


@pytest.fixture(scope="session")
def redis_port():
    """The port of a redis-server of our own."""
    program = shutil.which("redis-server")
    if program is None:
        pytest.skip("redis-server is not installed")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [program, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        for _ in range(1200):
            try:
                Connection(port).close()
                break
            except OSError:
                time.sleep(0.05)
        yield port
    finally:
        server.terminate()
        server.wait(10)


def commands(rng):
    """Every command that is tested, with what makes its words."""

    def one_of(*pool):
        return functools.partial(rng.choice, pool)

    key, value, number = one_of(*KEYS), one_of(*VALUES), one_of(*NUMBERS)
    offset, future, small = one_of(*OFFSETS), one_of(*FUTURE), one_of("0.5", "-3", "1e2", "x", "", "10.25")
    return {
        "APPEND": [key, value], "COPY": [key, key], "DECR": [key], "DECRBY": [key, number],
        "DEL": [key, key], "DISCARD": [], "ECHO": [value], "EXEC": [], "EXISTS": [key, key],
        "EXPIRE": [key, number], "EXPIREAT": [key, future], "EXPIRETIME": [key],
        "GET": [key], "GETDEL": [key], "GETEX": [key, one_of("EX", "PX"), number],
        "GETRANGE": [key, offset, offset], "GETSET": [key, value], "INCR": [key], "INCRBY": [key, number],
        "INCRBYFLOAT": [one_of("float"), small], "KEYS": [one_of("*", "a", "[ab]", "?")],
        "MGET": [key, key, key], "MSET": [key, value, key, value], "MSETNX": [key, value, key, value],
        "MULTI": [], "PERSIST": [key], "PEXPIRE": [key, one_of(0, -1, 10**8, "x")],
        "PEXPIREAT": [key, one_of(0, 1, 4 * 10**12, "x")], "PING": [], "PSETEX": [key, one_of(10**8), value],
        "RENAME": [key, key], "RENAMENX": [key, key], "SELECT": [one_of(0, 0, 1, 16, "x")],
        "SET": [key, value], "SETEX": [key, number, value], "SETNX": [key, value],
        "SETRANGE": [key, one_of(0, 3, 1500, -1, "x"), value], "STRLEN": [key],
        "SUBSTR": [key, offset, offset], "TOUCH": [key, key], "TTL": [key], "TYPE": [key], "UNLINK": [key],
        "UNWATCH": [], "WATCH": [key],
    }


def draw(rng, table):
    """A command, mostly well-formed."""
    name = rng.choice(sorted(table))
    words = [make() if callable(make) else make for make in table[name]]
    name = name.strip()  # of several rows for one command
    if name in ("SET", "EXPIRE", "PEXPIRE", "COPY", "EXPIREAT") or rng.random() < 0.03:
        while rng.random() < 0.4:
            words.append(rng.choice(OPTIONS))
    if name == "SET" and rng.random() < 0.3:
        words += [rng.choice(["EX", "PX"]), rng.choice([0, 50_000_000, "x"])]
    if words and rng.random() < 0.02:
        words.pop()
    return name, words


def same(ours, theirs):
    """Whether two answers agree, up to a second or two of time and the order of keys."""
    if isinstance(ours, list) and isinstance(theirs, list):
        return len(ours) == len(theirs) and (
            all(map(same, ours, theirs)) or sorted(map(str, ours)) == sorted(map(str, theirs))
        )
    if isinstance(ours, int) and isinstance(theirs, int) and min(ours, theirs) > 5000:
        return abs(ours - theirs) <= 2000
    return ours == theirs


def compare(ports, redis_port, rng, table, agree):
    """Says the same to a node and to Redis, at another node every session."""
    nodes = [Connection(port) for port in ports]
    redis = Connection(redis_port)
    for connection in (nodes[0], redis):
        connection.call("FLUSHALL")
    for _ in range(SESSIONS):
        node, history = rng.choice(nodes), []
        for _ in range(COMMANDS):
            name, words = draw(rng, table)
            history.append([name, *(str(word)[:20] for word in words)])
            ours, theirs = node.call(name, *words), redis.call(name, *words)
            assert agree(ours, theirs), (str(ours)[:300], str(theirs)[:300], history[-12:])
        for connection in (node, redis):
            connection.call("DISCARD")
            connection.call("UNWATCH")
            connection.call("SELECT", 0)
    for connection in [*nodes, redis]:
        connection.close()


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_random_commands_get_the_same_answers(ports, redis_port, seed):
    rng = random.Random(seed)
    compare(ports, redis_port, rng, commands(rng), same)


@pytest.mark.parametrize("family", FAMILIES)
def test_random_commands_of_a_family_get_the_same_answers(ports, redis_port, family):
    rng = random.Random(family)
    compare(ports, redis_port, rng, *FAMILIES[family](rng))
