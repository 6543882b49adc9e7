"""One mutable memory for the processes and machines of a rack.

    import rackmem

    rack = rackmem.local(3)                                  # or rackmem.join("rack.toml", node=1)
    grid = rackmem.array(rack, "grid", (1000, 512), "f8")    # found by name, or made
    grid[10:20] = 1.0                                        # every node sees it
    with rackmem.Lock(rack, "grid/lock"):
        grid[3] *= 2

Everything that is shared is found by a name, takes a rack or one of its nodes, and pickles as its
name: in another process it is what that process' rack has under it (`current`).
"""

from ._rackmem import (
    ArgumentError,
    ClosedError,
    Error,
    LostError,
    MemoryFullError,
    MismatchError,
    NoAnswerError,
    NoPagingError,
    NotFoundError,
    Node,
    Pages,
    Rack,
    Region,
    __version__,
)
from ._array import Array, array
from ._counter import Counter
from ._dict import Dict
from ._lock import Condition, Lock
from ._racks import current, from_env, join, local
from ._shm import SharedMemory

__all__ = [
    "ArgumentError",
    "Array",
    "ClosedError",
    "Condition",
    "Counter",
    "Dict",
    "Error",
    "Lock",
    "LostError",
    "MemoryFullError",
    "MismatchError",
    "NoAnswerError",
    "NoPagingError",
    "Node",
    "NotFoundError",
    "Pages",
    "Rack",
    "Region",
    "SharedMemory",
    "__version__",
    "array",
    "current",
    "from_env",
    "join",
    "local",
]
