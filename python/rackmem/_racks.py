"""The rack of a process."""

from __future__ import annotations

import os
from os import PathLike
from typing import TypeVar

from . import _rackmem
from ._rackmem import Node, Rack

_E = TypeVar("_E", bound=_rackmem.Error)

_current: tuple[int, Rack] | None = None
# The process that closes its racks when it ends.
_closing: int | None = None


def local(nodes: int = 1, *, memory: int | None = None, cache: int | None = None) -> Rack:
    """A rack of so many nodes in this process, for tests and for threads. `memory` and `cache` are
    bytes that each node gives; they are taken as they are used."""
    return _remember(_rackmem.local(nodes, memory=memory, cache=cache))


def join(path: str | PathLike[str], node: int) -> Rack:
    """Joins the rack that the file `path` describes, as node number `node`."""
    return _remember(_rackmem.join(path, node))


def from_env() -> Rack:
    """Joins as the environment says: the file is `RACKMEM_CONFIG`, the node `RACKMEM_NODE` or the rank
    that Slurm, MPI or a Kubernetes job has given; else the ordinal at the end of the host's name."""
    return _remember(_rackmem.from_env())


def current() -> Rack:
    """The rack that this process has joined or made last, if it is open; else `from_env()`."""
    if _current is not None and _current[0] == os.getpid() and not _current[1].closed:
        return _current[1]
    if "RACKMEM_CONFIG" in os.environ:
        return from_env()
    raise coded(
        _rackmem.ClosedError(
            "this process has no rack; nothing has changed; call rackmem.join or rackmem.local "
            "first, in a pool's `initializer` for example"
        ),
        "closed",
    )


def coded(error: _E, code: str) -> _E:
    """An error of this package's own with the `code` that all have."""
    error.code = code
    return error


def _remember(rack: Rack) -> Rack:
    global _current
    _current = (os.getpid(), rack)
    _close_at_exit()
    return rack


def _close_at_exit() -> None:
    global _closing
    if _closing == os.getpid():
        return
    _closing = os.getpid()
    # `atexit` does not run in what multiprocessing forks, and this does everywhere; once in each
    # process, after the children have ended that it waits for.
    from multiprocessing.util import Finalize

    Finalize(None, _rackmem.close_all, exitpriority=-1)


def node_of(rack: Rack | Node | None) -> Node:
    """A rack's own node, or the node itself; `None`: the current rack's."""
    if rack is None:
        rack = current()
    return rack if isinstance(rack, Node) else rack.node()
