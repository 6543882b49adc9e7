"""Locks by name."""

from ._racks import node_of


class Lock:
    """A lock that one thread of all nodes holds at a time, as `threading.Lock`, with a `token` that
    rises with each holder: what is guarded outside the rack can refuse a lower one."""

    def __init__(self, rack, name):
        self.name = name
        self._lock = node_of(rack).lock(name)

    def acquire(self, blocking=True, timeout=-1):
        if not blocking:
            return self._lock.acquire(0)
        return self._lock.acquire(None if timeout < 0 else timeout)

    def release(self):
        self._lock.release()

    def locked(self):
        """Whether this handle holds it."""
        return self._lock.locked

    @property
    def token(self):
        return self._lock.token

    def __enter__(self):
        self.acquire()
        return self

    def __exit__(self, *_):
        self.release()

    def __repr__(self):
        return f"<rackmem.Lock {self.name!r}>"

    def __reduce__(self):
        return _attach, (self.name,)


def _attach(name):
    return Lock(None, name)
