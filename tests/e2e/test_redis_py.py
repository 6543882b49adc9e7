"""redis-py, as programs in Python use it, against every node of a rack."""

import threading
import time

import pytest

redis = pytest.importorskip("redis")


def test_a_value_set_on_one_node_is_what_every_node_returns(clients):
    for number, writer in enumerate(clients):
        assert writer.set("greeting", f"from {number}")
        assert [reader.get("greeting") for reader in clients] == [f"from {number}"] * len(clients)


def test_counters_lose_nothing(clients):
    """Threads on all nodes add to one counter."""
    rounds = 300

    def count(client):
        for _ in range(rounds):
            client.incr("visits")

    threads = [threading.Thread(target=count, args=(client,)) for client in clients * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {int(client.get("visits")) for client in clients} == {rounds * len(threads)}


def test_options_of_set(clients):
    first, last = clients[0], clients[-1]
    assert first.set("lock", "mine", nx=True, px=60_000)
    assert last.set("lock", "yours", nx=True) is None
    assert last.set("lock", "ours", xx=True, keepttl=True, get=True) == "mine"
    assert 0 < first.pttl("lock") <= 60_000
    assert first.getex("lock", persist=True) == "ours"
    assert last.ttl("lock") == -1
    assert last.getdel("lock") == "ours"
    assert first.get("lock") is None


def test_keys_expire_on_every_node(clients):
    clients[0].set("brief", "x", px=60_000)
    assert all(client.exists("brief") for client in clients)
    assert clients[-1].pexpire("brief", 100)
    time.sleep(0.2)
    assert not any(client.exists("brief") for client in clients)


def test_strings(clients):
    first, last = clients[0], clients[-1]
    assert first.append("s", "Hello") == 5
    assert last.append("s", " World") == 11
    assert first.getrange("s", 0, 4) == "Hello"
    assert last.setrange("s", 6, "Redis") == 11
    assert first.strlen("s") == 11
    assert last.get("s") == "Hello Redis"
    assert first.incrbyfloat("f", "10.5") == 10.5
    assert last.decrby("n", 3) == -3


def test_several_keys_at_once(clients):
    first, last = clients[0], clients[-1]
    first.mset({f"k{n}": n for n in range(50)})
    assert last.mget([f"k{n}" for n in range(50)]) == [str(n) for n in range(50)]
    assert last.msetnx({"k1": "x", "new": "x"}) == 0
    assert first.exists("new") == 0
    assert first.delete(*[f"k{n}" for n in range(50)]) == 50
    assert last.dbsize() == 0


def test_rename_and_copy(clients):
    first, last = clients[0], clients[-1]
    first.set("old", "v")
    assert last.rename("old", "new")
    assert first.get("new") == "v" and first.exists("old") == 0
    assert first.copy("new", "second")
    assert last.get("second") == "v"
    with pytest.raises(redis.ResponseError, match="no such key"):
        last.rename("nowhere", "x")


def test_scan_returns_every_key(clients):
    names = {f"scan:{n}" for n in range(500)}
    clients[0].mset({name: "x" for name in names})
    for client in clients:
        assert set(client.scan_iter("scan:*", count=50)) == names
    assert set(clients[-1].keys("scan:1?")) == {f"scan:{n}" for n in range(10, 20)}


def test_transactions_are_one_step(clients):
    """Money moves between accounts on different nodes; the sum stays."""
    first, last = clients[0], clients[-1]
    first.mset({"a": 100, "b": 100})

    def transfer(client, amount):
        def move(pipe):
            a = int(pipe.get("a"))
            pipe.multi()
            pipe.set("a", a - amount)
            pipe.incrby("b", amount)

        for _ in range(30):
            client.transaction(move, "a")

    threads = [threading.Thread(target=transfer, args=pair) for pair in ((first, 1), (last, -1))]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        assert sum(map(int, clients[1].mget("a", "b"))) == 200
    for thread in threads:
        thread.join()
    assert last.mget("a", "b") == ["100", "100"]


def test_a_watched_key_stops_a_transaction(clients):
    first, last = clients[0], clients[-1]
    first.set("watched", "1")
    with first.pipeline() as pipe:
        pipe.watch("watched")
        last.set("watched", "2")
        pipe.multi()
        pipe.set("watched", "3")
        with pytest.raises(redis.WatchError):
            pipe.execute()
    assert first.get("watched") == "2"


def test_pipelines(clients):
    with clients[0].pipeline(transaction=False) as pipe:
        for n in range(1000):
            pipe.set(f"p{n}", n)
        assert all(pipe.execute())
    with clients[-1].pipeline(transaction=False) as pipe:
        for n in range(1000):
            pipe.get(f"p{n}")
        assert pipe.execute() == [str(n) for n in range(1000)]


def test_large_and_binary_values(ports):
    value = bytes(range(256)) * 4096
    raw = [redis.Redis(port=port) for port in ports]
    raw[0].set(b"\x00\xff key", value)
    assert all(client.get(b"\x00\xff key") == value for client in raw)


def test_resp3(ports):
    client = redis.Redis(port=ports[-1], protocol=3, decode_responses=True)
    client.set("three", "3")
    assert client.get("three") == "3"
    assert client.get("nothing") is None
    assert client.config_get("maxmemory") is not None


def test_databases_are_apart(ports):
    zero, one = (redis.Redis(port=ports[0], db=db, decode_responses=True) for db in (0, 1))
    zero.set("where", "zero")
    one.set("where", "one")
    assert (zero.get("where"), one.get("where")) == ("zero", "one")
    one.flushdb()
    assert (zero.get("where"), one.get("where")) == ("zero", None)


def test_connection_commands(clients):
    for client in clients:
        assert client.ping()
        assert client.echo("hello") == "hello"
        assert client.client_setname("tester") and client.client_getname() == "tester"
        info = client.info()
        assert info["rack_nodes"] == len(clients)
        assert client.time()[0] > 0


def test_errors_are_those_of_redis(clients):
    client = clients[0]
    client.set("text", "abc")
    with pytest.raises(redis.ResponseError, match="not an integer"):
        client.incr("text")
    with pytest.raises(redis.ResponseError, match="unknown command"):
        client.execute_command("NOSUCH")
    with pytest.raises(redis.ResponseError, match="wrong number of arguments"):
        client.execute_command("GET")
    with pytest.raises(redis.ResponseError, match="syntax error"):
        client.execute_command("SET", "a", "b", "PLEASE")


def test_a_key_moves_to_another_database(clients):
    first, last = clients[0], clients[-1]
    elsewhere = redis.Redis(port=last.get_connection_kwargs()["port"], db=1, decode_responses=True)
    first.rpush("list", "a", "b")
    first.pexpire("list", 60_000)
    assert last.move("list", 1)
    assert not first.exists("list")
    assert elsewhere.lrange("list", 0, -1) == ["a", "b"]
    assert 0 < elsewhere.pttl("list") <= 60_000
    first.set("list", "another")
    assert not last.move("list", 1)
    assert first.get("list") == "another"
    with pytest.raises(redis.ResponseError, match="source and destination objects are the same"):
        first.move("list", 0)
    elsewhere.close()


def test_what_two_values_have_in_common(clients):
    first, last = clients[0], clients[-1]
    first.mset({"a": "ohmytext", "b": "mynewtext"})
    assert last.lcs("a", "b") == "mytext"
    assert last.lcs("a", "b", len=True) == 6
    found = first.lcs("a", "b", idx=True, withmatchlen=True, minmatchlen=3)
    matches = found["matches"] if isinstance(found, dict) else found[1]
    assert matches == [[[4, 7], [5, 8], 4]]
    first.rpush("l", "x")
    with pytest.raises(redis.ResponseError, match="must contain string values"):
        last.lcs("a", "l")


def test_there_are_no_replicas(clients):
    assert clients[0].role() == ["master", 0, []]
    assert clients[-1].wait(1, 60_000) == 0
