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


def alike(ours, theirs):
    """Whether two answers agree: places that were not asked for in an order may come in any."""
    lists = isinstance(ours, list) and isinstance(theirs, list)
    return ours == theirs or (lists and sorted(map(str, ours)) == sorted(map(str, theirs)))


def geo(rng):
    key, member = pool(rng, "g", "g", "g", "h", "s"), pool(rng, *(f"p{i}" for i in range(30)))
    lon, lat = lambda: rng.choice([rng.uniform(-180, 180), 13.4, 179.99, "x", 181]), lambda: rng.uniform(-85.05, 85.05)
    near, low = lambda: rng.uniform(12, 15), lambda: rng.uniform(36, 39)
    size, unit = pool(rng, 0, 1, 100, 250.5, 3000, 9000, "x", -1), pool(rng, "km", "km", "mi", "M", "ft", "parsec")
    order, told = pool(rng, "ASC", "DESC"), pool(rng, "WITHDIST", "WITHHASH", "WITHCOORD", "ASC", "x")
    centre, box = ["FROMLONLAT", near, low], ["BYBOX", size, size, unit]
    table = {
        "COPY": [key, key], "DEL": [key], "SET": [pool(rng, "s"), "x"], "ZRANGE": [key, 0, -1, "WITHSCORES"],
        "GEOADD": [key, near, low, member], "GEOADD ": [key, lon, lat, member, near, low, member],
        "GEOADD  ": [key, pool(rng, "NX", "XX", "CH"), near, low, member, lon, lat, member],
        "GEOPOS": [key, member, member], "GEOHASH": [key, member, member], "GEODIST": [key, member, member],
        "GEODIST ": [key, member, member, unit], "ZREM": [key, member],
        "GEOSEARCH": [key, *centre, "BYRADIUS", size, unit, told, told],
        "GEOSEARCH ": [key, "FROMMEMBER", member, "BYRADIUS", size, "km", order, told],
        "GEOSEARCH  ": [key, "FROMLONLAT", lon, lat, "BYRADIUS", size, unit, order, "WITHDIST"],
        "GEOSEARCH   ": [key, *centre, *box, order, "COUNT", pool(rng, 1, 3, 0, "x")],
        "GEOSEARCH    ": [key, "FROMLONLAT", lon, lat, *box, told],
        "GEOSEARCH     ": [key, *centre, "ASC", pool(rng, "ANY", "DESC"), "WITHDIST", "WITHCOORD"],
        "GEOSEARCHSTORE": [key, key, *centre, "BYRADIUS", size, unit],
        "GEOSEARCHSTORE ": [key, key, "FROMMEMBER", member, *box, pool(rng, "STOREDIST", "WITHDIST")],
        "GEORADIUS": [key, near, low, size, unit, told, told], "GEORADIUS_RO": [key, lon, lat, size, unit, order],
        "GEORADIUS ": [key, near, low, size, unit, pool(rng, "STORE", "STOREDIST"), key],
        "GEORADIUSBYMEMBER": [pool(rng, "g"), member, 500, unit, order],
        "GEORADIUSBYMEMBER_RO": [pool(rng, "g"), member, 500, "km", told, pool(rng, "COUNT", "STORE"), 2],
    }
    return table, alike


FAMILIES = {"geo": geo, "lists": lists}
