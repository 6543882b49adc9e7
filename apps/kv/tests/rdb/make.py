"""Makes the files that the tests of the RDB reader read, and beside each what is in it.

    make.py REDIS_6 REDIS_7 VALKEY     # programs of Redis 6.2 and 7.0 and of Valkey 9.1

`redis-6.rdb` and `redis-7.rdb` are files those servers saved. `valkey.rdb` is a file of version 11
made of the values that Valkey dumped, whose encodings are those of Redis 7.2. `oldest.rdb` has
encodings that no server of today writes, made here. The text beside a file is what a server answers
that has loaded it (for Valkey's: that has it), so that the reader is judged by others.
"""

import contextlib
import pathlib
import random
import socket
import struct
import subprocess
import sys
import tempfile
import time

import redis

HERE = pathlib.Path(__file__).parent
FAR = 4102444800123  # ms: 2100
SMALL, BIG = 5, 700


@contextlib.contextmanager
def server(program, file=None):
    with tempfile.TemporaryDirectory() as folder:
        if file:
            (pathlib.Path(folder) / "dump.rdb").write_bytes(pathlib.Path(file).read_bytes())
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        options = ["--port", str(port), "--bind", "127.0.0.1", "--dir", folder, "--save", ""]
        options += ["--enable-debug-command", "yes"] if "6" not in pathlib.Path(program).name else []
        process = subprocess.Popen([program, *options], stdout=subprocess.DEVNULL)
        try:
            client = redis.Redis(port=port, protocol=2)
            for _ in range(200):
                with contextlib.suppress(redis.exceptions.ConnectionError, redis.BusyLoadingError):
                    client.ping()
                    break
                time.sleep(0.05)
            yield client, pathlib.Path(folder) / "dump.rdb"
        finally:
            process.kill()
            process.wait()


def populate(client, version):
    dice = random.Random(7)
    words = ["word%d" % i for i in range(BIG)]
    for number in (0, -1, 127, -128, 128, 32767, -32769, 2**31 - 1, -(2**31), 2**31, 10**17):
        client.set("int:%d" % number, number)
    client.set("string:empty", "")
    client.set("string:zeros", "007")
    client.set("string:binary", bytes(range(256)))
    client.set("string:repeated", "abcabcabd" * 400)
    client.set("string:random", dice.randbytes(20000))
    client.set("expires", "later", pxat=FAR)
    client.rpush("list:small", "a", "", 1, -5000, 10**12, "x" * 100)
    client.rpush("list:big", *words, *["y" * dice.randrange(300) for _ in range(100)])
    if version == 7:
        client.execute_command("DEBUG", "QUICKLIST-PACKED-THRESHOLD", "100b")
        client.rpush("list:plain", "small", "z" * 3000, "small")
        client.execute_command("DEBUG", "QUICKLIST-PACKED-THRESHOLD", "0")
    client.sadd("set:16", 1, 2, -300)
    client.sadd("set:32", 1, 70000)
    client.sadd("set:64", 1, 2**62, -(2**62))
    client.sadd("set:small", "one", "two", 3)
    client.sadd("set:big", *words)
    client.hset("hash:small", mapping={"a": 1, "b": "", "c": "text", "7": -7, "d": 2**40})
    client.hset("hash:big", mapping={word: word[::-1] for word in words})
    client.zadd("zset:small", {"a": 1, "b": 0.1, "c": "inf", "d": "-inf", "7": -2.5e17})
    client.zadd("zset:big", {word: dice.uniform(-1e9, 1e9) for word in words})
    for i in range(250):
        fields = {"a": i, "b": "value %d" % (i % 7)} if i % 10 else {"other": "x" * i, "": -i}
        client.xadd("stream", fields, id="%d-%d" % (1000 + i // 3, i % 3))
    client.xdel("stream", "1000-1", "1050-0", "1083-0")
    client.xadd("stream:wide", {str(i): i * 10**i for i in range(20)}, id="18446744073709551615-5")
    client.xgroup_create("stream", "g", "0")
    client.xgroup_create("stream", "idle", "1020-0")
    client.xreadgroup("g", "alice", {"stream": ">"}, count=7)
    client.xreadgroup("g", "bob", {"stream": ">"}, count=3)
    client.xgroup_createconsumer("stream", "g", "carol")
    if version > 6:
        client.xgroup_create("stream", "counted", "1010-0", entries_read=30)
    client.xack("stream", "g", "1000-2")
    client.xclaim("stream", "g", "bob", 0, ["1001-0"])
    client.xadd("stream:empty", {"a": 1}, id="5-5")
    client.xdel("stream:empty", "5-5")
    if version == 7:
        client.execute_command(
            "FUNCTION", "LOAD", "#!lua name=l\nredis.register_function('f', function() return 1 end)"
        )
    client.execute_command("SELECT", 3)
    client.set("elsewhere", "third")
    client.expireat("elsewhere", FAR // 1000)
    client.execute_command("SELECT", 0)


def shown(data):
    if isinstance(data, int):
        data = b"%d" % data
    if len(data) > 40:
        mix = 0xCBF29CE484222325
        for byte in data:
            mix = (mix ^ byte) * 0x100000001B3 % 2**64
        return "#%d:%016x" % (len(data), mix)
    plain = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.:"
    return "'" + "".join(chr(b) if b in plain else "\\x%02x" % b for b in data) + "'"


def stream(client, key, old):
    info = client.execute_command("XINFO", "STREAM", key, "FULL", "COUNT", 0)
    if not isinstance(info, dict):
        info = pairs(info)
    info = {name if isinstance(name, str) else name.decode(): v for name, v in info.items()}
    for entry, fields in client.execute_command("XRANGE", key, "-", "+", **{"NEVER_DECODE": True}):
        words = ["%s=%s" % (shown(f), shown(v)) for f, v in zip(fields[::2], fields[1::2])]
        yield "  %s %s" % (entry.decode(), " ".join(words))
    last, gone = info["last-generated-id"], info["max-deleted-entry-id"]
    yield "  last %s deleted %s added %d" % (last.decode(), gone.decode(), info["entries-added"])
    for group in info["groups"]:
        group = pairs(group)
        read = group["entries-read"]
        read = "-" if old or read is None else read
        yield "  group %s last %s read %s" % (shown(group["name"]), group["last-delivered-id"].decode(), read)
        for entry, consumer, when, count in group["pending"]:
            yield "    pending %s %s %d %d" % (entry.decode(), shown(consumer), when, count)
        for consumer in map(pairs, group["consumers"]):
            active = consumer.get("active-time", -1)
            active = "-" if active == -1 else active
            yield "    consumer %s %d %s" % (shown(consumer["name"]), consumer["seen-time"], active)


def pairs(flat):
    if isinstance(flat, dict):
        return {name if isinstance(name, str) else name.decode(): v for name, v in flat.items()}
    return {name.decode(): value for name, value in zip(flat[::2], flat[1::2])}


def describe(client, old=False):
    client.response_callbacks.clear()
    for db in range(16):
        client.execute_command("SELECT", db)
        for key in sorted(client.execute_command("KEYS", "*")):
            kind = client.execute_command("TYPE", key).decode()
            at = client.execute_command("PEXPIRETIME", key)
            yield "%d %s %s %s" % (db, shown(key), "-" if at < 0 else at, kind)
            ask = lambda *words: client.execute_command(*words)
            if kind == "string":
                yield "  " + shown(ask("GET", key))
            elif kind == "list":
                yield from ("  " + shown(one) for one in ask("LRANGE", key, 0, -1))
            elif kind == "set":
                yield from ("  " + shown(one) for one in sorted(ask("SMEMBERS", key)))
            elif kind == "hash":
                flat = ask("HGETALL", key)
                for field, value in sorted(zip(flat[::2], flat[1::2])):
                    yield "  %s=%s" % (shown(field), shown(value))
            elif kind == "zset":
                flat = ask("ZRANGE", key, 0, -1, "WITHSCORES")
                for member, score in sorted(zip(flat[::2], flat[1::2])):
                    yield "  %s=%s" % (shown(member), struct.pack(">d", float(score)).hex())
            else:
                yield from stream(client, key, old)


def write(name, text):
    (HERE / name).write_text("\n".join(text) + "\n")


def crc(data):
    crc = 0
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x95AC9329AC4BC9B5 if crc & 1 else 0)
    return struct.pack("<Q", crc)


def length(n):
    return bytes([n]) if n < 64 else bytes([0x40 | n >> 8, n & 255])


def string(data):
    return length(len(data)) + data


def ziplist(elements):
    body, before, tail = b"", 0, 10
    for element in elements:
        tail = 10 + len(body)
        entry = bytes([before]) if before < 254 else b"\xfe" + struct.pack("<I", before)
        if isinstance(element, bytes):
            n = len(element)
            head = [n] if n < 64 else [0x40 | n >> 8, n & 255]
            head = bytes(head) if n < 16384 else b"\x80" + struct.pack(">I", n)
            entry += head + element
        elif 0 <= element <= 12:
            entry += bytes([0xF1 + element])
        else:
            for code, form, bits in ((0xFE, "<b", 8), (0xC0, "<h", 16), (0xF0, None, 24), (0xD0, "<i", 32), (0xE0, "<q", 64)):
                if -(1 << bits - 1) <= element < 1 << bits - 1:
                    packed = struct.pack(form, element) if form else struct.pack("<i", element)[:3]
                    entry += bytes([code]) + packed
                    break
        body, before = body + entry, len(entry)
    return struct.pack("<IIH", 11 + len(body), tail, len(elements)) + body + b"\xff"


def zipmap(pairs):
    size = lambda n: bytes([n]) if n < 254 else b"\xfe" + struct.pack("<I", n)
    body = b"".join(size(len(f)) + f + size(len(v)) + b"\0" + v for f, v in pairs)
    return bytes([len(pairs)]) + body + b"\xff"


def oldest():
    numbers = [0, 12, 13, -1, 127, -129, 32767, -32769, 8388607, -8388608, 8388608, 2**31, -(2**62)]
    elements = numbers + [b"", b"text", b"x" * 63, b"x" * 64, b"y" * 300, b"z" * 20000, b"last"]
    score = lambda text: bytes([len(text)]) + text
    keys = [
        (1, b"list", length(3) + string(b"a") + string(b"") + b"\xc0\x05"),
        (10, b"list:ziplist", string_long(ziplist(elements))),
        (9, b"hash:zipmap", string(zipmap([(b"a", b"1"), (b"b", b""), (b"long", b"v" * 300)]))),
        (13, b"hash:ziplist", string(ziplist([b"a", 1, 7, b"seven", b"", -70000]))),
        (12, b"zset:ziplist", string(ziplist([b"a", -5, b"b", b"0.25", 3, b"inf"]))),
        (3, b"zset:text", length(4) + string(b"a") + score(b"1.5") + string(b"b") + b"\xff"
         + string(b"c") + b"\xfe" + string(b"d") + score(b"-3e+100")),
        (14, b"list:nodes", length(2) + string(ziplist([b"a", 1])) + string(ziplist([b"b"]))),
    ]
    out = b"REDIS0006\xfe\x00"
    for number, (kind, key, body) in enumerate(keys):
        if number == 1:
            out += b"\xfd" + struct.pack("<i", 2**31 - 1)
        out += bytes([kind]) + string(key) + body
    out += b"\xff"
    return out + crc(out)


def string_long(data):
    return b"\x80" + struct.pack(">I", len(data)) + data


def newest(client):
    out = b"REDIS0011\xfa" + string(b"made-by") + string(b"make.py")
    client.response_callbacks.clear()
    for db in (0, 3):
        client.execute_command("SELECT", db)
        out += b"\xfe" + bytes([db])
        for key in sorted(client.execute_command("KEYS", "*")):
            at = client.execute_command("PEXPIRETIME", key)
            if at > 0:
                out += b"\xfc" + struct.pack("<q", at)
            value = client.execute_command("DUMP", key)[:-10]
            out += value[:1] + string(key) + value[1:]
    out += b"\xff"
    return out + crc(out)


def main():
    redis_6, redis_7, valkey = sys.argv[1:]
    for version, program in ((6, redis_6), (7, redis_7)):
        with server(program) as (client, file):
            populate(client, version)
            client.save()
            (HERE / ("redis-%d.rdb" % version)).write_bytes(file.read_bytes())
    (HERE / "oldest.rdb").write_bytes(oldest())
    for name in ("redis-6", "redis-7", "oldest"):
        with server(redis_7, HERE / (name + ".rdb")) as (client, _):
            write(name + ".txt", describe(client, old=name != "redis-7"))
    with server(valkey) as (client, _):
        populate(client, 8)
        (HERE / "valkey.rdb").write_bytes(newest(client))
        write("valkey.txt", describe(client))


main()
