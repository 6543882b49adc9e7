"""A rack of every kind, for the tests, and clients of its nodes."""

import pytest

from racks import rack


@pytest.fixture(
    scope="session",
    params=[
        pytest.param([], id="inline"),
        pytest.param(["--fabric", "udp"], id="udp"),
        pytest.param(["--mode", "home-only"], id="no-switch"),
    ],
)
def ports(request):
    """The ports of a rack's nodes: one rack of each kind."""
    with rack(request.param) as ports:
        yield ports


@pytest.fixture(scope="session")
def one_rack():
    """The ports of one rack's nodes, for tests of what does not depend on the kind of rack."""
    with rack([]) as ports:
        yield ports


@pytest.fixture
def clients(ports):
    """A redis-py client for every node, on an empty store."""
    redis = pytest.importorskip("redis")
    clients = [redis.Redis(port=port, decode_responses=True) for port in ports]
    clients[0].flushall()
    yield clients
    for client in clients:
        client.close()
