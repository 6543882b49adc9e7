"""Random commands on sorted sets, to a real redis-server and to the nodes of a rack: the answers must be the same."""

import random

import pytest
from test_same_as_redis import Connection, redis_port  # noqa: F401

SESSIONS = 12
COMMANDS = 80
KEYS = ["a", "b", "c", "d"]
SCORES = [
    "0", "-0", "1", "2", "3.5", "-1", "-2.25", "0.1", "1e3", "1e20", "-1e-7", "inf", "-inf", "+inf", "0x10", ".5", "5.",
    "12345678901234567", "3.0000000000000004", "1e308",
]  # fmt: skip
BAD_SCORES = ["nan", "x", "", " 1", "1e400", "1e-400", "1 "]
EDGES = [*SCORES, "(1", "(0", "(-inf", "(inf", "(2", "3.5", "(3.5"]
BAD_EDGES = ["x", "((1", "nan", "1 ", "", "(", " 1", "1e400"]
LEX = ["-", "+", "[a", "(a", "[m5", "(m5", "[m1", "(m2", "[", "(", "[zz", "[m10"]
BAD_LEX = ["a", "", "++", "-a", "m5"]
RANKS = ["0", "1", "2", "-1", "-2", "5", "100", "-100", "x", "9223372036854775807", "-9223372036854775808"]
LIMITS = ["0", "1", "2", "-1", "10", "x", "-5"]


def plain(answer):
    """An answer in which -0 is 0: Redis makes it so in small sorted sets, and keeps it in large ones."""
    if isinstance(answer, list):
        return [plain(part) for part in answer]
    return {b"-0": b"0", ",-0": ",0"}.get(answer, answer)


class Words:
    """Makes commands. Members come from a pool of this size, and all have one score where they are compared."""

    def __init__(self, rng, members):
        self.rng = rng
        self.names = [f"m{i}" for i in range(members)]
        self.table = {
            "ZADD": self.zadd, "ZINCRBY": lambda: [self.key(), self.score(), self.member()],
            "ZREM": lambda: [self.key(), *self.some(self.member)], "ZCARD": lambda: [self.key()],
            "ZSCORE": lambda: [self.key(), self.member()], "ZMSCORE": lambda: [self.key(), *self.some(self.member)],
            "ZRANK": lambda: [self.key(), self.member()], "ZREVRANK": lambda: [self.key(), self.member()],
            "ZCOUNT": lambda: [self.key(), self.edge(), self.edge()],
            "ZLEXCOUNT": lambda: ["lex", self.lex(), self.lex()],
            "ZRANGE": self.zrange, "ZRANGESTORE": lambda: [self.key(), *self.zrange()],
            "ZREVRANGE": lambda: [self.key(), self.rank(), self.rank(), *self.maybe("WITHSCORES")],
            "ZRANGEBYSCORE": lambda: [self.key(), self.edge(), self.edge(), *self.maybe("WITHSCORES"), *self.limit()],
            "ZREVRANGEBYSCORE": lambda: [self.key(), self.edge(), self.edge(), *self.limit(), *self.maybe("WITHSCORES")],
            "ZRANGEBYLEX": lambda: ["lex", self.lex(), self.lex(), *self.limit()],
            "ZREVRANGEBYLEX": lambda: ["lex", self.lex(), self.lex(), *self.limit()],
            "ZPOPMIN": lambda: [self.key(), *self.count()], "ZPOPMAX": lambda: [self.key(), *self.count()],
            "ZMPOP": lambda: [*self.keys(), self.rng.choice(["MIN", "MAX", "x"]), *self.maybe("COUNT", "2", "0")],
            "ZREMRANGEBYRANK": lambda: [self.key(), self.rank(), self.rank()],
            "ZREMRANGEBYSCORE": lambda: [self.key(), self.edge(), self.edge()],
            "ZREMRANGEBYLEX": lambda: ["lex", self.lex(), self.lex()],
            "ZUNION": lambda: [*self.keys(), *self.options(), *self.maybe("WITHSCORES")],
            "ZINTER": lambda: [*self.keys(), *self.options(), *self.maybe("WITHSCORES")],
            "ZDIFF": lambda: [*self.keys(), *self.maybe("WITHSCORES", "WEIGHTS")],
            "ZUNIONSTORE": lambda: [self.key(), *self.keys(), *self.options()],
            "ZINTERSTORE": lambda: [self.key(), *self.keys(), *self.options()],
            "ZDIFFSTORE": lambda: [self.key(), *self.keys()],
            "ZINTERCARD": lambda: [*self.keys(), *self.maybe("LIMIT", "1", "-1", "x", "0")],
            "ZRANDMEMBER": lambda: ["absent", *self.count(), *self.maybe("WITHSCORES", "x")],
            "SADD": lambda: [self.rng.choice(["s", "a"]), *self.some(self.member)],
            "SET": lambda: [self.rng.choice(["d", "t"]), "x"], "DEL": lambda: [self.key()], "TYPE": lambda: [self.key()],
            "COPY": lambda: [self.key(), self.key(), "REPLACE"], "RENAME": lambda: [self.key(), self.key()],
            "EXPIRE": lambda: [self.key(), "100000"], "PERSIST": lambda: [self.key()], "EXISTS": lambda: [self.key()],
        }  # fmt: skip

    def key(self):
        return self.rng.choice(KEYS if self.rng.random() < 0.97 else ["s", "t", "nothing"])

    def member(self):
        return self.rng.choice(self.names)

    def word(self, good, bad):
        return self.rng.choice(good if self.rng.random() < 0.97 else bad)

    def score(self):
        return self.word(SCORES, BAD_SCORES) if self.rng.random() < 0.5 else str(self.rng.randrange(-50, 50))

    def edge(self):
        return self.word(EDGES, BAD_EDGES)

    def lex(self):
        return self.word(LEX, BAD_LEX)

    def rank(self):
        return self.rng.choice(RANKS)

    def some(self, make):
        return [make() for _ in range(self.rng.choice([1, 1, 2, 3, 20]))]

    def maybe(self, name, *values):
        if self.rng.random() < 0.6:
            return []
        return [name, self.rng.choice(values)] if values else [name]

    def count(self):
        return self.rng.choice([[], ["0"], ["1"], ["3"], ["-1"], ["x"], ["70"]])

    def limit(self):
        if self.rng.random() < 0.6:
            return []
        return ["LIMIT", self.rng.choice(LIMITS), self.rng.choice(LIMITS)]

    def keys(self):
        keys = self.some(lambda: self.rng.choice([*KEYS, *KEYS, "s", "nothing"]))[:3]
        count = len(keys) if self.rng.random() < 0.95 else self.rng.choice(["0", "-1", "x", "9", "1"])
        return [count, *keys]

    def options(self):
        words = []
        if self.rng.random() < 0.3:
            words += ["WEIGHTS", *(self.score() for _ in range(self.rng.choice([1, 2, 3])))]
        return words + self.maybe("AGGREGATE", "SUM", "MIN", "MAX", "x")

    def zadd(self):
        if self.rng.random() < 0.2:
            return ["lex", *(word for _ in range(5) for word in ("0", self.member()))]
        options = [word for word in ("NX", "XX", "GT", "LT", "CH", "INCR") if self.rng.random() < 0.12]
        pairs = [word for _ in self.some(self.member) for word in (self.score(), self.member())]
        return [self.key(), *options, *pairs]

    def zrange(self):
        form = self.rng.choice(["rank", "rank", "score", "lex"])
        options = {"rank": [], "score": ["BYSCORE"], "lex": ["BYLEX"]}[form]
        end = {"rank": self.rank, "score": self.edge, "lex": self.lex}[form]
        key = "lex" if form == "lex" else self.key()
        return [key, end(), end(), *options, *self.maybe("REV"), *self.limit(), *self.maybe("WITHSCORES")]

    def draw(self):
        name = self.rng.choice(sorted(self.table))
        words = self.table[name]()
        if self.rng.random() < 0.02:
            words.pop()
        return name, words


@pytest.mark.parametrize("members", [30, 900])
@pytest.mark.parametrize("protocol", [2, 3])
def test_random_commands_on_sorted_sets_get_the_same_answers(ports, redis_port, members, protocol):  # noqa: F811
    rng = random.Random(members * protocol)
    words = Words(rng, members)
    nodes = [Connection(port) for port in ports]
    redis = Connection(redis_port)
    for connection in [*nodes, redis]:
        connection.call("HELLO", protocol)
    for connection in (nodes[0], redis):
        connection.call("FLUSHALL")
    history = []

    def ask(node, name, *words):
        history.append([name, *(str(word)[:20] for word in words)][:30])
        ours, theirs = plain(node.call(name, *words)), plain(redis.call(name, *words))
        assert ours == theirs, (str(ours)[:300], str(theirs)[:300], history[-1], history[-12:-1])

    for _ in range(SESSIONS):
        for key in KEYS:
            pairs = [word for name in words.names for word in (rng.choice(SCORES[:12]), name)]
            ask(rng.choice(nodes), "ZADD", key, *pairs)
            if members > 100 and rng.random() < 0.5:
                ask(rng.choice(nodes), "ZREMRANGEBYRANK", key, 20, -20)
        for _ in range(COMMANDS):
            name, given = words.draw()
            ask(rng.choice(nodes), name, *given)
        for key in KEYS:
            ask(nodes[0], "ZRANGE", key, 0, -1, "WITHSCORES")
            if rng.random() < 0.5:
                ask(nodes[0], "DEL", key)
    for connection in [*nodes, redis]:
        connection.close()
