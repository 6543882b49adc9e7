"""The rack of a process."""

import os

from . import _rackmem

_current = None


def local(nodes=1, *, memory=None, cache=None):
    """A rack of so many nodes in this process, for tests and for threads. `memory` and `cache` are
    bytes that each node gives; they are taken as they are used."""
    return _remember(_rackmem.local(nodes, memory=memory, cache=cache))


def join(path, node):
    """Joins the rack that the file `path` describes, as node number `node`."""
    return _remember(_rackmem.join(path, node))


def from_env():
    """Joins as the environment says: the file is `RACKMEM_CONFIG`, the node `RACKMEM_NODE` or the rank
    that Slurm, MPI or a Kubernetes job has given; else the ordinal at the end of the host's name."""
    return _remember(_rackmem.from_env())


def current():
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


def coded(error, code):
    """An error of this package's own with the `code` that all have."""
    error.code = code
    return error


def _remember(rack):
    global _current
    _current = (os.getpid(), rack)
    return rack


def node_of(rack):
    """A rack's own node, or the node itself; `None`: the current rack's."""
    if rack is None:
        rack = current()
    return rack if isinstance(rack, _rackmem.Node) else rack.node()
