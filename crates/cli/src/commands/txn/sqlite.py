"""TPC-C's transactions by SQLite in memory: one connection, the same mix. One JSON object on standard output."""
import json, random, sqlite3, sys, time

warehouses, items, customers, seconds, remote, seed = map(int, sys.argv[1:7])
rng = random.Random(seed)
LETTERS = "".join(rng.choices("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", k=1 << 16))
SYLLABLES = "BAR OUGHT ABLE PRI PRES ESE ANTI CALLY ATION EING".split()
NAMES = min(1000, customers)
C_NAME, C_CUSTOMER, C_ITEM = rng.randint(0, 255), rng.randint(0, 1023), rng.randint(0, 8191)

db = sqlite3.connect(":memory:", isolation_level=None)
run = db.execute
db.executescript("""
CREATE TABLE warehouse (w INTEGER PRIMARY KEY, name, address, tax, ytd);
CREATE TABLE district (w, d, name, address, tax, ytd, next_o, PRIMARY KEY (w, d)) WITHOUT ROWID;
CREATE TABLE customer (w, d, c, first, last, address, credit, discount, balance, ytd_payment, payments, deliveries, data,
  PRIMARY KEY (w, d, c)) WITHOUT ROWID;
CREATE INDEX names ON customer (w, d, last, first);
CREATE TABLE history (w, d, c_w, c_d, c, date, amount, data);
CREATE TABLE orders (w, d, o, c, entry, carrier, ol_cnt, all_local, PRIMARY KEY (w, d, o)) WITHOUT ROWID;
CREATE INDEX by_customer ON orders (w, d, c, o);
CREATE TABLE new_orders (w, d, o, PRIMARY KEY (w, d, o)) WITHOUT ROWID;
CREATE TABLE lines (w, d, o, nth, i, supply_w, delivered, quantity, amount, dist, PRIMARY KEY (w, d, o, nth)) WITHOUT ROWID;
CREATE TABLE item (i INTEGER PRIMARY KEY, name, price, data);
CREATE TABLE stock (w, i, quantity, ytd, orders, remotes, dists, data, PRIMARY KEY (w, i)) WITHOUT ROWID;
""")


def text(low, high):
    at = rng.randrange(len(LETTERS) - high)
    return LETTERS[at:at + rng.randint(low, high)]


def brand():
    return text(10, 20) + "ORIGINAL" + text(8, 20) if rng.random() < 0.1 else text(26, 50)


def uneven(a, c, x, y):
    return ((rng.randint(0, a) | rng.randint(x, y)) + c) % (y - x + 1) + x


def last_name(n):
    return SYLLABLES[n // 100 % 10] + SYLLABLES[n // 10 % 10] + SYLLABLES[n % 10]


def some_name():
    return last_name(uneven(255, C_NAME, 0, NAMES - 1))


def a_customer():
    return uneven(1023, C_CUSTOMER, 1, customers)


def rows(table, count, of):
    marks = ",".join("?" * count)
    db.executemany(f"INSERT INTO {table} VALUES ({marks})", of)


def load():
    run("BEGIN")
    rows("item", 4, ((i, text(14, 24), rng.randint(100, 10000), brand()) for i in range(1, items + 1)))
    old = customers - customers * 3 // 10
    for w in range(1, warehouses + 1):
        rows("warehouse", 5, [(w, text(6, 10), text(70, 80), rng.randint(0, 2000), 10 * customers * 1000)])
        rows("stock", 8, ((w, i, rng.randint(10, 100), 0, 0, 0, text(240, 240), brand()) for i in range(1, items + 1)))
        for d in range(1, 11):
            rows("district", 7, [(w, d, text(6, 10), text(70, 80), rng.randint(0, 2000), customers * 1000, customers + 1)])
            rows("customer", 13, ((w, d, c, text(8, 16), last_name(c - 1) if c <= NAMES else some_name(), text(70, 80),
                 "BC" if rng.random() < 0.1 else "GC", rng.randint(0, 5000), -1000, 1000, 1, 0, text(300, 500))
                for c in range(1, customers + 1)))
            rows("history", 8, ((w, d, w, d, c, 1, 1000, text(12, 24)) for c in range(1, customers + 1)))
            buyers = rng.sample(range(1, customers + 1), customers)
            counts = [rng.randint(5, 15) for _ in buyers]
            rows("orders", 8, ((w, d, o, c, 1, rng.randint(1, 10) if o <= old else None, n, 1)
                for o, c, n in zip(range(1, customers + 1), buyers, counts)))
            rows("new_orders", 3, ((w, d, o) for o in range(old + 1, customers + 1)))
            rows("lines", 10, ((w, d, o, nth, rng.randint(1, items), w, 1 if o <= old else None, 5,
                 0 if o <= old else rng.randint(1, 999999), text(24, 24))
                for o, n in enumerate(counts, 1) for nth in range(1, n + 1)))
    run("COMMIT")


def elsewhere(w):
    if warehouses == 1:
        return w
    other = rng.randint(1, warehouses - 1)
    return other + (other >= w)


def find(w, d):
    if rng.random() < 0.4:
        return a_customer()
    found = run("SELECT c FROM customer WHERE w=? AND d=? AND last=? ORDER BY first", (w, d, some_name())).fetchall()
    return found[(len(found) + 1) // 2 - 1][0]


def new_order(w, now):
    d, c, count = rng.randint(1, 10), a_customer(), rng.randint(5, 15)
    wrong, share = rng.random() < 0.01, rng.random() * 100 < remote
    (tax,) = run("SELECT tax FROM warehouse WHERE w=?", (w,)).fetchone()
    (dtax, o) = run("SELECT tax, next_o FROM district WHERE w=? AND d=?", (w, d)).fetchone()
    run("UPDATE district SET next_o = next_o + 1 WHERE w=? AND d=?", (w, d))
    run("SELECT discount, last, credit FROM customer WHERE w=? AND d=? AND c=?", (w, d, c)).fetchone()
    run("INSERT INTO orders VALUES (?,?,?,?,?,NULL,?,?)", (w, d, o, c, now, count, 1))
    run("INSERT INTO new_orders VALUES (?,?,?)", (w, d, o))
    for nth in range(1, count + 1):
        i = items + 1 if wrong and nth == count else uneven(8191, C_ITEM, 1, items)
        away = share if remote >= 0 else rng.random() < 0.01
        supply, quantity = elsewhere(w) if away else w, rng.randint(1, 10)
        found = run("SELECT price, data FROM item WHERE i=?", (i,)).fetchone()
        if found is None:
            return False
        (has, dists, _) = run("SELECT quantity, dists, data FROM stock WHERE w=? AND i=?", (supply, i)).fetchone()
        left = has - quantity if has >= quantity + 10 else has - quantity + 91
        run("UPDATE stock SET quantity=?, ytd=ytd+?, orders=orders+1, remotes=remotes+? WHERE w=? AND i=?",
            (left, quantity, supply != w, supply, i))
        run("INSERT INTO lines VALUES (?,?,?,?,?,?,NULL,?,?,?)",
            (w, d, o, nth, i, supply, quantity, quantity * found[0], dists[24 * d - 24:24 * d]))
    return True


def payment(w, now):
    d, amount = rng.randint(1, 10), rng.randint(100, 500000)
    away = rng.random() * 100 < (remote if remote >= 0 else 15)
    c_w, c_d = (elsewhere(w), rng.randint(1, 10)) if away else (w, d)
    run("UPDATE warehouse SET ytd=ytd+? WHERE w=?", (amount, w))
    run("UPDATE district SET ytd=ytd+? WHERE w=? AND d=?", (amount, w, d))
    (wname,) = run("SELECT name FROM warehouse WHERE w=?", (w,)).fetchone()
    (dname,) = run("SELECT name FROM district WHERE w=? AND d=?", (w, d)).fetchone()
    c = find(c_w, c_d)
    run("UPDATE customer SET balance=balance-?, ytd_payment=ytd_payment+?, payments=payments+1 WHERE w=? AND d=? AND c=?",
        (amount, amount, c_w, c_d, c))
    (credit, data) = run("SELECT credit, data FROM customer WHERE w=? AND d=? AND c=?", (c_w, c_d, c)).fetchone()
    if credit == "BC":
        data = f"{c} {c_d} {c_w} {d} {w} {amount} {data}"[:500]
        run("UPDATE customer SET data=? WHERE w=? AND d=? AND c=?", (data, c_w, c_d, c))
    run("INSERT INTO history VALUES (?,?,?,?,?,?,?,?)", (w, d, c_w, c_d, c, now, amount, wname + "    " + dname))
    return True


def order_status(w, now):
    d = rng.randint(1, 10)
    c = find(w, d)
    run("SELECT balance FROM customer WHERE w=? AND d=? AND c=?", (w, d, c)).fetchone()
    last = run("SELECT o, carrier FROM orders WHERE w=? AND d=? AND c=? ORDER BY o DESC LIMIT 1", (w, d, c)).fetchone()
    run("SELECT * FROM lines WHERE w=? AND d=? AND o=?", (w, d, last[0])).fetchall()
    return True


def delivery(w, now):
    carrier = rng.randint(1, 10)
    for d in range(1, 11):
        found = run("SELECT o FROM new_orders WHERE w=? AND d=? ORDER BY o LIMIT 1", (w, d)).fetchone()
        if found is None:
            continue
        of = (w, d, found[0])
        run("DELETE FROM new_orders WHERE w=? AND d=? AND o=?", of)
        (c,) = run("SELECT c FROM orders WHERE w=? AND d=? AND o=?", of).fetchone()
        run("UPDATE orders SET carrier=? WHERE w=? AND d=? AND o=?", (carrier, *of))
        run("UPDATE lines SET delivered=? WHERE w=? AND d=? AND o=?", (now, *of))
        (amount,) = run("SELECT sum(amount) FROM lines WHERE w=? AND d=? AND o=?", of).fetchone()
        run("UPDATE customer SET balance=balance+?, deliveries=deliveries+1 WHERE w=? AND d=? AND c=?", (amount, w, d, c))
    return True


def stock_level(w, now):
    d = rng.randint(1, 10)
    (o,) = run("SELECT next_o FROM district WHERE w=? AND d=?", (w, d)).fetchone()
    run("SELECT count(*) FROM stock WHERE w=? AND quantity<? AND i IN"
        " (SELECT DISTINCT i FROM lines WHERE w=? AND d=? AND o>=? AND o<?)",
        (w, rng.randint(10, 20), w, d, o - 20, o)).fetchone()
    return True


MIX = [new_order] * 45 + [payment] * 43 + [order_status] * 4 + [delivery] * 4 + [stock_level] * 4
began = time.perf_counter()
load()
loading = time.perf_counter() - began
counts, times = {}, {kind.__name__: [] for kind in MIX}
began = time.perf_counter()
while (at := time.perf_counter()) - began < seconds:
    kind = rng.choice(MIX)
    run("BEGIN")
    done = kind(rng.randint(1, warehouses), int((at - began) * 1000) + 2)
    run("COMMIT" if done else "ROLLBACK")
    name = kind.__name__
    counts[name] = counts.get(name, 0) + done
    times[name].append(time.perf_counter() - at)
took = time.perf_counter() - began


def within(of, percent):
    return sorted(of)[min(len(of) - 1, len(of) * percent // 100)] * 1e6 if of else 0


def holds():
    one = run("SELECT count(*) FROM warehouse WHERE ytd != (SELECT sum(ytd) FROM district WHERE w = warehouse.w)")
    two = run("SELECT count(*) FROM district WHERE next_o - 1 !="
        " (SELECT max(o) FROM orders WHERE w = district.w AND d = district.d)")
    return one.fetchone() == (0,) and two.fetchone() == (0,)


rows = [{"transaction": name.replace("_", "-"), "committed": counts.get(name, 0),
    "p50_us": within(of, 50), "p99_us": within(of, 99)} for name, of in times.items()]
json.dump({"name": "SQLite, from Python", "version": sqlite3.sqlite_version, "loading_seconds": loading, "seconds": took,
    "tpmC": counts.get("new_order", 0) * 60 / took, "transactions": rows, "holds": holds()}, sys.stdout)
