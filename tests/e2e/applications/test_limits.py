"""Rate limits in Lua, as the package `limits` (Flask-Limiter, slowapi) has them."""

import pytest

pytest.importorskip("redis")
limits = pytest.importorskip("limits")
pytestmark = pytest.mark.needs("evalsha", "lpush")

STRATEGIES = [
    limits.strategies.FixedWindowRateLimiter,
    limits.strategies.MovingWindowRateLimiter,
    limits.strategies.SlidingWindowCounterRateLimiter,
]


@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda strategy: strategy.__name__)
def test_a_limit_holds_for_all_nodes_together(nodes, strategy):
    limiters = [strategy(limits.storage.storage_from_string(url)) for url in nodes]
    ten_an_hour = limits.parse("10/hour")
    answers = [limiters[turn % 3].hit(ten_an_hour, "ada") for turn in range(15)]
    assert answers == [True] * 10 + [False] * 5
    assert limiters[1].test(ten_an_hour, "bob")
    assert limiters[2].get_window_stats(ten_an_hour, "ada").remaining == 0
    limiters[0].clear(ten_an_hour, "ada")
    assert limiters[1].hit(ten_an_hour, "ada")
