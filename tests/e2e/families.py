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
        "TTL": [key], "TYPE": [key],
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
    key, member = pool(rng, *"ggggggggghs"), pool(rng, *(f"p{i}" for i in range(30)))
    lon, lat = lambda: rng.choice([*(rng.uniform(-180, 180) for _ in range(20)), 179.99, "x", 181]), lambda: rng.uniform(-85.05, 85.05)
    near, low = lambda: rng.uniform(12, 15), lambda: rng.uniform(36, 39)
    size, unit = pool(rng, 0, 1, 100, 100, 250.5, 250.5, 3000, 9000, 20000, "x", -1), pool(rng, *["km", "mi", "KM"] * 4, "M", "ft", "parsec")
    order, told = pool(rng, "ASC", "DESC"), pool(rng, *["WITHDIST", "WITHHASH", "WITHCOORD", "ASC"] * 4, "x")
    centre, box = ["FROMLONLAT", near, low], ["BYBOX", size, size, unit]
    table = {
        "COPY": [key, "h"], "DEL": ["h"], "SET": [pool(rng, "s"), "x"], "ZRANGE": [key, 0, -1, "WITHSCORES"],
        "GEOADD": [key, near, low, member], "GEOADD   ": ["g", near, low, member, near, low, member, lon, lat, member], "GEOADD ": [key, lon, lat, member, near, low, member],
        "GEOADD  ": [key, pool(rng, "NX", "XX", "CH"), near, low, member, lon, lat, member],
        "GEOPOS": [key, member, member], "GEOHASH": [key, member, member], "GEODIST": [key, member, member],
        "GEODIST ": [key, member, member, unit], "ZREM": [key, member],
        "GEOSEARCH": [key, *centre, "BYRADIUS", size, unit, told, told],
        "GEOSEARCH ": [key, "FROMMEMBER", member, "BYRADIUS", size, "km", order, told],
        "GEOSEARCH  ": [key, "FROMLONLAT", lon, lat, "BYRADIUS", size, unit, order, "WITHDIST"],
        "GEOSEARCH   ": [key, *centre, *box, order, "COUNT", pool(rng, 1, 3, 0, "x")],
        "GEOSEARCH    ": [key, "FROMLONLAT", lon, lat, *box, told],
        "GEOSEARCH     ": [key, *centre, "ASC", pool(rng, "ANY", "DESC"), "WITHDIST", "WITHCOORD"],
        "GEOSEARCHSTORE": ["h", key, *centre, "BYRADIUS", size, unit],
        "GEOSEARCHSTORE ": ["h", key, "FROMMEMBER", member, *box, pool(rng, "STOREDIST", "WITHDIST")],
        "GEORADIUS": [key, near, low, size, unit, told, told], "GEORADIUS_RO": [key, lon, lat, size, unit, order],
        "GEORADIUS ": [key, near, low, size, unit, pool(rng, "STORE", "STOREDIST"), "h"],
        "GEORADIUSBYMEMBER": ["g", member, 500, "km", order],
        "GEORADIUSBYMEMBER_RO": ["g", member, 500, "km", told, pool(rng, "COUNT", "STORE"), 2],
    }
    return table, alike


def bitmaps(rng):
    key = pool(rng, "b", "b", "c", "d", "s", "other")
    bit, number = pool(rng, 0, 1, 7, 8, 100, 8191, 20_000, -1, "x", 2**32), pool(rng, *NUMBERS)
    value, unit = pool(rng, 0, 1, 1, 1, 2, "x"), pool(rng, "BIT", "BYTE", "bit", "x")
    width = pool(rng, "u8", "u1", "i5", "i64", "u63", "u64", "i0", "u16", "x", "")
    offset = pool(rng, 0, 3, "#1", "#7", 1000, "#", "-1", "x", 2**32)
    operation, overflow = pool(rng, "AND", "OR", "XOR", "NOT", "x"), pool(rng, "WRAP", "SAT", "FAIL", "x")
    big = pool(rng, 0, 1, -1, 100, 255, 300, -300, 2**63 - 1, -(2**63), "x")
    table = {
        **common(rng, key),
        "SETBIT": [key, bit, value], "SETBIT ": [key, bit, 1], "GETBIT": [key, bit], "BITCOUNT": [key],
        "BITCOUNT ": [key, number, number], "BITCOUNT  ": [key, number, number, unit], "BITPOS": [key, value],
        "BITPOS ": [key, value, number], "BITPOS  ": [key, value, number, number],
        "BITPOS   ": [key, value, number, number, unit], "BITOP": [operation, key, key],
        "BITOP ": [operation, key, key, key], "BITFIELD": [key, "GET", width, offset],
        "BITFIELD ": [key, "SET", width, offset, big, "GET", width, offset],
        "BITFIELD  ": [key, "OVERFLOW", overflow, "INCRBY", width, offset, big, "SET", width, offset, big],
        "BITFIELD   ": [key, "INCRBY", width, offset, big], "BITFIELD_RO": [key, "GET", width, offset],
        "BITFIELD_RO ": [key, "GET", "u8", offset, pool(rng, "GET", "SET"), "i9", offset], "GET": [key], "STRLEN": [key],
        "SETRANGE": [key, pool(rng, 0, 3, 1500), pool(rng, b"\xff" * 8, b"\x80\x01", "x")],
    }
    del table["OBJECT"]  # says how a string came about
    return table, near


def hyperloglogs(rng):
    """The hash, the registers and the estimate are those of Redis, and so are the numbers."""
    key = pool(rng, "h", "h", "i", "j", "s", "other")
    element = functools.partial(rng.randrange, 50_000)
    table = {
        **common(rng, key),
        "PFADD": [key], "PFADD ": [key, *[element] * 5], "PFADD  ": [key, *[element] * 100], "PFCOUNT": [key],
        "PFADD   ": [pool(rng, "h", "i"), *[element] * 3000], "PFCOUNT ": [key, key], "PFMERGE": [key, key],
        "PFMERGE ": [key, key, key],
    }
    # These show how a string came about, and the estimate that Redis keeps in it.
    del table["OBJECT"], table["SET"]
    return table, near


def sorts(rng):
    key, number = pool(rng, "l", "l", "set", "set", "zset", "s", "none"), pool(rng, *NUMBERS)
    element = pool(rng, "1", "2", "10", "-3", "1.5", "1e2", "a", "")
    numeric = pool(rng, "1", "2", "10", "-3", "1.5", "1e2")
    pattern = pool(rng, "w*", "w*", "h*->f", "none", "#", "*", "w*->", "h*->none")
    table = {
        **common(rng, key),
        "RPUSH": [pool(rng, "l"), numeric, numeric], "LPUSH": [pool(rng, "l"), element], "SADD": ["set", numeric, numeric],
        "SADD ": ["set", element], "ZADD": ["zset", pool(rng, 1, 2, 3), numeric],
        "SET": [pool(rng, "w1", "w2", "w10", "wa", "s"), element],
        "HSET": [pool(rng, "h1", "h2", "h10"), "f", element], "SORT": [key], "SORT ": [key, "ALPHA"],
        "SORT  ": [pool(rng, "l", "zset"), "BY", pattern, pool(rng, "ASC", "DESC")],
        "SORT   ": [key, "LIMIT", number, number, pool(rng, "ALPHA", "DESC")],
        "SORT    ": [key, "GET", pattern, "GET", pattern, pool(rng, "ALPHA", "STORE")],
        "SORT     ": [key, "GET", pattern, "STORE", pool(rng, "out", "l")], "LRANGE": [pool(rng, "out"), 0, -1],
        "SORT_RO": [key, pool(rng, "DESC", "STORE", "ALPHA")], "SORT_RO ": [key, "DESC", "ALPHA", "GET", "#"],
        "SORT      ": [key, "BY", pool(rng, "none"), "STORE", "out"],
    }
    del table["OBJECT"]  # sorting changes it
    # A set has no order in which it could stay, so no set gets another key's name.
    del table["RENAME"], table["COPY"]
    return table, near


FAMILIES = {"geo": geo, "lists": lists, "bitmaps": bitmaps, "hyperloglogs": hyperloglogs, "sorts": sorts}
