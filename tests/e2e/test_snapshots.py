"""Keys that move between a rack and a server of Redis, and stay over a restart."""

import json
import signal
import shutil
import socket
import subprocess
import time

import pytest

from racks import WIND_DOWN, binary

redis = pytest.importorskip("redis")


class Rack:
    """A rack of two nodes in one process."""

    def __init__(self, *options):
        size = ["--nodes", "2", "--port", "0", "--buckets", "1024", "--memory", "256M"]
        command = [binary(), "--json", "kv", *size, *map(str, options)]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True)

    def clients(self):
        listening = json.loads(self.process.stdout.readline())["listening"]
        ports = [int(address.rsplit(":", 1)[1]) for address in listening]
        return [redis.Redis(port=port) for port in ports]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGINT)
        self.process.wait(WIND_DOWN)


@pytest.fixture(autouse=True)
def built():
    if binary() is None:
        pytest.skip("rackmem is not built: cargo build -p rackmem-cli, or set RACKMEM_BIN")


@pytest.fixture
def theirs(tmp_path):
    """A server of Redis, and a way to start it again on its file."""
    program = shutil.which("redis-server")
    if program is None:
        pytest.skip("there is no redis-server here")
    servers = []

    def start():
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        options = ["--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(tmp_path)]
        servers.append(subprocess.Popen([program, *options], stdout=subprocess.DEVNULL))
        client = redis.Redis(port=port)
        for _ in range(200):
            try:
                client.ping()
                return client
            except (redis.ConnectionError, redis.BusyLoadingError):
                time.sleep(0.05)
        raise AssertionError("redis-server does not come")

    yield start
    for server in servers:
        server.kill()
        server.wait()


def fill(client):
    client.set("text", "value")
    client.set("number", 12345)
    client.set("binary", bytes(range(256)) * 40)
    client.set("expires", "later", pxat=4102444800123)
    client.rpush("list", *range(2000))
    client.sadd("set", *[f"member {i}" for i in range(1000)])
    client.sadd("numbers", *range(100))
    client.hset("hash", mapping={f"field {i}": i for i in range(1000)})
    client.zadd("sorted", {f"member {i}": i * 1.5 for i in range(1000)})
    client.zadd("ends", {"first": float("-inf"), "last": float("inf")})
    for i in range(300):
        client.xadd("stream", {"field": i}, id=f"{i + 1}-0")
    client.xgroup_create("stream", "group", "0")
    client.xreadgroup("group", "consumer", {"stream": ">"}, count=10)


def pending(client, key):
    entries = client.xpending_range(key, "group", "-", "+", 99)
    return [(one["message_id"], one["consumer"], one["times_delivered"]) for one in entries]


def everything(client):
    kinds = {
        b"string": client.get,
        b"list": lambda key: client.lrange(key, 0, -1),
        b"set": client.smembers,
        b"hash": client.hgetall,
        b"zset": lambda key: client.zrange(key, 0, -1, withscores=True),
        b"stream": lambda key: (client.xrange(key), pending(client, key)),
    }
    return {key: (kinds[client.type(key)](key), client.pexpiretime(key)) for key in client.keys()}


def saved(client):
    client.bgsave()
    while client.info("persistence")["rdb_bgsave_in_progress"]:
        time.sleep(0.02)
    assert client.info("persistence")["rdb_last_bgsave_status"] == "ok"


def test_keys_move_in_and_out(theirs, tmp_path):
    original = theirs()
    fill(original)
    original.save()
    file = tmp_path / "dump.rdb"
    with Rack("--load", file, "--save-to", file) as rack:
        first, second = rack.clients()
        assert everything(second) == everything(original)
        file.unlink()
        first.set("ours", "too")
        saved(second)
    again = theirs()
    want = everything(original)
    want[b"ours"] = (b"too", -1)
    assert everything(again) == want


def test_a_rack_keeps_its_keys_over_a_restart(tmp_path):
    file = tmp_path / "kept.rdb"
    for run in range(3):
        with Rack("--load", file, "--save-to", file) as rack:
            first, second = rack.clients()
            assert first.dbsize() == run
            second.set(f"run {run}", "x")
        assert rack.process.returncode == 130
    assert file.stat().st_size > 0


def test_a_damaged_file_is_an_error_that_names_the_place(tmp_path):
    file = tmp_path / "kept.rdb"
    with Rack("--save-to", file) as rack:
        rack.clients()[0].set("key", "x" * 1000)
    content = file.read_bytes()
    file.write_bytes(content[:500])
    with Rack("--load", file) as rack:
        _, said = rack.process.communicate(timeout=WIND_DOWN)
    assert rack.process.returncode == 1
    assert "at byte" in said and "end too early" in said and "next:" in said


def test_a_file_is_imported_into_a_rack_in_use(theirs, tmp_path):
    original = theirs()
    fill(original)
    original.rpush("long", *["x" * 50] * 50_000)
    original.save()
    want = everything(original)
    with Rack() as rack:
        first, second = rack.clients()
        port = first.connection_pool.connection_kwargs["port"]
        command = [binary(), "kv", "import", tmp_path / "dump.rdb", "--into", f"127.0.0.1:{port}"]
        done = subprocess.run(command, capture_output=True, text=True)
        assert f"imported {len(want)} keys" in done.stdout
        assert everything(second) == want
        again = subprocess.run(command, capture_output=True, text=True)
        assert again.returncode == 1 and "has keys already" in again.stderr
        second.set("text", "changed")
        assert subprocess.run([*command, "--replace"]).returncode == 0
        assert everything(first) == want
