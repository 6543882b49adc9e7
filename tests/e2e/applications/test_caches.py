"""Flask-Caching, cachelib and aiocache, with a cache at each node."""

import asyncio

import pytest

pytest.importorskip("redis")


def test_flask_caching(nodes):
    flask = pytest.importorskip("flask")
    flask_caching = pytest.importorskip("flask_caching")
    calls = []

    def application(url):
        """One of three processes that serve the same site, as far as the cache can tell."""
        app = flask.Flask("site")
        cache = flask_caching.Cache(app, config={"CACHE_TYPE": "RedisCache", "CACHE_REDIS_URL": url})

        @app.route("/page")
        @cache.cached(timeout=60)
        def page():
            calls.append("page")
            return f"page {len(calls)}"

        @cache.memoize(60)
        def square(number):
            calls.append(number)
            return number * number

        return app, cache, square

    (first, cache, square), (second, _, same), (third, other, _) = map(application, nodes)
    assert [app.test_client().get("/page").text for app in (first, second, third)] == ["page 1"] * 3
    with first.app_context():
        assert square(7) == 49
    with second.app_context():
        assert same(7) == 49 and same(8) == 64
    assert calls == ["page", 7, 8]
    with first.app_context():
        cache.delete_memoized(square)
    with second.app_context():
        assert same(7) == 49
    assert calls == ["page", 7, 8, 7]
    with third.app_context():
        other.set_many({"a": 1, "b": 2})
    with first.app_context():
        assert cache.get_many("a", "b") == [1, 2]
        cache.clear()
    assert second.test_client().get("/page").text == "page 5"


def test_cachelib(nodes):
    cachelib = pytest.importorskip("cachelib")
    caches = [cachelib.RedisCache(port=int(url.rsplit(":")[-1]), key_prefix="c:") for url in nodes]
    first, second, third = caches
    assert first.set("k", {"v": 1}, timeout=60) and second.get("k") == {"v": 1}
    assert third.add("n", 1) and not first.add("n", 2)
    assert first.inc("n", 4) == 5 and second.dec("n") == 4
    assert second.set_many({"a": 1, "b": 2}) and third.get_dict("a", "b") == {"a": 1, "b": 2}
    assert first.has("a") and first.delete_many("a", "b") and not third.has("a")
    assert third.clear() and first.get("k") is None


@pytest.mark.needs("eval")
def test_aiocache(nodes):
    aiocache = pytest.importorskip("aiocache")
    from aiocache.lock import RedLock

    async def everything():
        caches = [
            aiocache.RedisCache(
                endpoint="127.0.0.1",
                port=int(url.rsplit(":")[-1]),
                namespace="a:",
                serializer=aiocache.serializers.JsonSerializer(),
            )
            for url in nodes
        ]
        first, second, third = caches
        await first.set("k", {"v": 1}, ttl=60)
        assert await second.get("k") == {"v": 1}
        await second.multi_set([("a", 1), ("b", 2)])
        assert await third.multi_get(["a", "b", "absent"]) == [1, 2, None]
        with pytest.raises(ValueError):
            await third.add("k", 2)
        assert await first.increment("hits", 3) == 3 and await third.increment("hits") == 4
        assert await second.expire("k", 30) and await third.exists("k")
        assert await third.delete("a") == 1

        async with RedLock(first, "door", lease=60):
            assert await third.exists("door-lock")
        assert not await second.exists("door-lock")
        assert await first.clear()
        assert await second.get("k") is None
        for cache in caches:
            await cache.close()

    asyncio.run(everything())
