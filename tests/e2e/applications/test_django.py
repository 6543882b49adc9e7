"""Django: its own Redis cache and django-redis, and sessions in them, with a cache for each node."""

import threading

import pytest

django = pytest.importorskip("django")
pytest.importorskip("redis")
pytest.importorskip("django_redis")

BACKENDS = {
    "built-in": "django.core.cache.backends.redis.RedisCache",
    "django-redis": "django_redis.cache.RedisCache",
}


def settings(nodes):
    """A cache for every node and backend; those of one backend hold the same."""
    caches = {
        f"{name}-{number}": {"BACKEND": backend, "LOCATION": url, "KEY_PREFIX": name}
        for name, backend in BACKENDS.items()
        for number, url in enumerate(nodes)
    }
    return {"default": caches["built-in-0"], **caches}


@pytest.fixture
def caches(nodes):
    from django.conf import settings as django_settings

    if not django_settings.configured:
        django_settings.configure(
            CACHES=settings(nodes), SESSION_ENGINE="django.contrib.sessions.backends.cache"
        )
        django.setup()
    from django.core.cache import caches

    return caches


@pytest.fixture(params=BACKENDS)
def spread(request, caches, nodes):
    """The same cache at every node."""
    return [caches[f"{request.param}-{number}"] for number in range(len(nodes))]


def test_values(spread):
    first, second, third = spread
    first.set("person", {"name": "Ada", "born": 1815}, 60)
    assert [cache.get("person")["born"] for cache in spread] == [1815] * 3
    assert not second.add("person", "another")
    assert third.add("fresh", 1, 60)
    assert first.get_or_set("fresh", 2) == 1
    second.set_many({"a": 1, "b": [2], "c": None}, timeout=60)
    assert third.get_many(["a", "b", "c", "d"]) == {"a": 1, "b": [2], "c": None}
    assert first.has_key("a") and "b" in first
    assert second.touch("a", 120) and not second.touch("absent")
    third.delete_many(["a", "b"])
    assert first.get("a", "gone") == "gone"
    assert second.set("version", "two", version=2) is not False
    assert third.get("version") is None and third.get("version", version=2) == "two"
    first.set("brief", 1, timeout=0)
    assert second.get("brief") is None
    first.clear()
    assert third.get("person") is None


@pytest.mark.needs("eval")
def test_counters_lose_nothing(spread):
    spread[0].set("visits", 0, timeout=None)
    rounds = 100

    def visit(cache):
        for _ in range(rounds):
            cache.incr("visits")

    threads = [threading.Thread(target=visit, args=(cache,)) for cache in spread * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [cache.get("visits") for cache in spread] == [rounds * len(threads)] * 3
    assert spread[1].decr("visits", 100) == 500
    with pytest.raises(ValueError):
        spread[2].incr("absent")


@pytest.mark.needs("evalsha")
def test_what_only_django_redis_has(caches):
    first, second, third = (caches[f"django-redis-{number}"] for number in range(3))
    for number in range(50):
        first.set(f"page:{number}", number, 60)
    assert sorted(second.keys("page:1?")) == sorted(f"page:{n}" for n in range(10, 20))
    assert second.delete_pattern("page:*") == 50
    assert third.ttl("page:1") == 0
    third.set("kept", 1, timeout=None)
    assert first.ttl("kept") is None
    assert first.expire("kept", 60) and 0 < second.ttl("kept") <= 60
    assert third.persist("kept") and first.ttl("kept") is None
    with first.lock("door", timeout=60):
        assert not second.lock("door", timeout=60, blocking=False).acquire()
    assert second.lock("door", timeout=60, blocking=False).acquire()


@pytest.mark.parametrize("backend", BACKENDS)
def test_sessions(caches, backend):
    from django.contrib.sessions.backends.cache import SessionStore
    from django.test.utils import override_settings

    with override_settings(SESSION_CACHE_ALIAS=f"{backend}-0"):
        session = SessionStore()
        session["basket"] = ["apples"]
        session.create()
    with override_settings(SESSION_CACHE_ALIAS=f"{backend}-1"):
        elsewhere = SessionStore(session.session_key)
        elsewhere["basket"] += ["pears"]
        elsewhere.save(must_create=False)
        assert not SessionStore("made-up").exists("made-up")
    with override_settings(SESSION_CACHE_ALIAS=f"{backend}-2"):
        last = SessionStore(session.session_key)
        assert last["basket"] == ["apples", "pears"]
        last.flush()
        assert not last.exists(session.session_key)
