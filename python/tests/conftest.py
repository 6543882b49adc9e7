import pytest

import rackmem


@pytest.fixture
def rack():
    with rackmem.local(3, memory=64 << 20, cache=4 << 20) as rack:
        yield rack
