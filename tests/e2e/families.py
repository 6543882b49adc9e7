"""The commands of each family, with what makes their words, for test_same_as_redis.py.

Every family has keys of its own and two, "s" and "other", that hold something else now and then; and it says
what it takes for two answers to be the same.
"""

import functools

NUMBERS = [0, 1, 2, 3, -1, -2, -3, 5, 100, -100, "x", "", "1.5", 2**63 - 1, -(2**63)]


def pool(rng, *choices):
    """Makes one of the choices."""
    return functools.partial(rng.choice, choices)


def near(ours, theirs):
    """Whether two answers agree, up to some seconds of time left."""
    if isinstance(ours, int) and isinstance(theirs, int) and min(ours, theirs) > 10**5:
        return abs(ours - theirs) <= 10
    if isinstance(ours, list) and isinstance(theirs, list):
        return len(ours) == len(theirs) and all(map(near, ours, theirs))
    return ours == theirs


def common(rng, key):
    """What any family is mixed with."""
    return {
        "COPY": [key, key], "DEL": [key], "DISCARD": [], "EXEC": [], "EXISTS": [key], "EXPIRE": [key, pool(rng, 10**6, 0)],
        "MULTI": [], "OBJECT": [pool(rng, "ENCODING"), key], "RENAME": [key, key],
        "RPUSH": [pool(rng, "other"), pool(rng, "x")], "SET": [pool(rng, "s", "other"), pool(rng, "x", "12")],
        "TTL": [key], "TYPE": [key], "WATCH": [key],
    }


def lists(rng):
    key = pool(rng, "l", "l", "l", "m", "m", "n", "s")
    element = pool(rng, "a", "b", "c", "", "1", "x" * 300, "y" * 3000)
    number, side = pool(rng, *NUMBERS), pool(rng, "LEFT", "RIGHT", "left", "BEFORE")
    count, time = pool(rng, 0, 1, 2, 5, 5, -1, "x"), pool(rng, 0.01, "0.001", "x", -1, "1e400")
    option = pool(rng, "RANK", "COUNT", "MAXLEN")
    table = {
        **common(rng, key),
        "LPUSH": [key, element, element, element], "RPUSH": [key, element, element], "LPUSHX": [key, element],
        "RPUSHX": [key, element, element], "LPOP": [key], "RPOP": [key], "LPOP ": [key, count], "RPOP ": [key, count],
        "LLEN": [key], "LRANGE": [key, number, number], "LINDEX": [key, number], "LSET": [key, number, element],
        "LINSERT": [key, pool(rng, "BEFORE", "AFTER", "LEFT"), element, element], "LREM": [key, number, element],
        "LTRIM": [key, pool(rng, 0, 1, -5, "x"), pool(rng, -1, -2, 5, 10)], "LPOS": [key, element],
        "LPOS ": [key, element, option, number], "LPOS  ": [key, element, option, count, option, count],
        "LMOVE": [key, key, side, side], "RPOPLPUSH": [key, key], "LMPOP": [pool(rng, 1, 1, 0, "x"), key, side],
        "LMPOP ": [pool(rng, 2, 2, 1, 3), key, key, side, pool(rng, "COUNT", "COUNT", "x"), count],
        "BLPOP": [key, key, time], "BRPOP": [key, time], "BLMOVE": [key, key, side, side, time],
        "BRPOPLPUSH": [key, key, time], "BLMPOP": [time, pool(rng, 2, 2, 1, 0), key, key, side],
        "BLMPOP ": [time, 1, key, side, "COUNT", count],
    }
    return table, near


FAMILIES = {"lists": lists}
