import socket

import pytest

import rackmem


@pytest.fixture
def rack():
    with rackmem.local(3, memory=64 << 20, cache=4 << 20) as rack:
        yield rack


def ports(count):
    """So many UDP ports that nobody has."""
    sockets = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    numbers = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return numbers
