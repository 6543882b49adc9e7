import itertools
import os

import pytest

import rackmem


@pytest.fixture
def rack():
    with rackmem.local(3, memory=64 << 20, cache=4 << 20) as rack:
        yield rack


_taken = itertools.count(16_384)


def addresses(count):
    """Addresses as a list of TOML that no other process is given: an IP address of this process,
    and ports below those that the kernel gives to others."""
    pid = os.getpid()
    ip = f"127.{64 | pid >> 16 & 63}.{pid >> 8 & 255}.{pid & 255}"
    return "[" + ", ".join(f'"{ip}:{next(_taken)}"' for _ in range(count)) + "]"
