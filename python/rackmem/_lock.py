"""Locks and conditions by name."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self, TypeVar

from ._rackmem import Node, Rack
from ._racks import node_of

_T = TypeVar("_T")


class Lock:
    """A lock that one thread of all nodes holds at a time, as `threading.Lock`, with a `token` that
    rises with each holder: what is guarded outside the rack can refuse a lower one.

    It is at home at the node that made it, and dies with that: `LostError`, until a program that knows
    what to do about what it guards says `renew=True`."""

    def __init__(self, rack: Rack | Node | None, name: str, *, renew: bool = False) -> None:
        self.name = name
        self._lock = node_of(rack).lock(name, renew=renew)

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        # No number is none that is at least zero.
        if not timeout >= 0 and timeout != -1:
            raise ValueError("timeout value must be a non-negative number")
        if not blocking and timeout != -1:
            raise ValueError("can't specify a timeout for a non-blocking call")
        if not blocking:
            return self._lock.acquire(0)
        return self._lock.acquire(None if timeout < 0 else timeout)

    def release(self) -> None:
        self._lock.release()

    def locked(self) -> bool:
        """Whether this handle holds it."""
        return self._lock.locked

    @property
    def token(self) -> int:
        return self._lock.token

    def __enter__(self) -> Self:
        self.acquire()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # A wait that has failed has it no more: what it says is what the program is to see.
        if kind is None or self.locked():
            self.release()

    def __repr__(self) -> str:
        return f"<rackmem.{type(self).__name__} {self.name!r}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _attach, (self.name,)


def _attach(name: str) -> Lock:
    return Lock(None, name)


class Condition(Lock):
    """A condition that threads of all nodes wait for, as `threading.Condition`, with a lock of the
    same name: `with condition: condition.wait_for(lambda: ...)`.

    A wait may end without having been meant, as everywhere: `wait_for` looks again. At most 255
    threads of the rack wait at a time."""

    def __init__(self, rack: Rack | Node | None, name: str, *, renew: bool = False) -> None:
        node = node_of(rack)
        super().__init__(node, f"{name}/lock", renew=renew)
        self.name = name
        self._condition = node.condition(name, renew=renew)

    def wait(self, timeout: float | None = None) -> bool:
        """Lets the lock go until another one notifies, and has it again then; `False` when that took
        longer than so many seconds."""
        return self._condition.wait(self._lock, timeout)

    def wait_for(self, predicate: Callable[[], _T], timeout: float | None = None) -> _T:
        """Waits until this is true; what it said last."""
        limit = None if timeout is None else time.monotonic() + timeout
        while not (result := predicate()):
            left = None if limit is None else limit - time.monotonic()
            if left is not None and left <= 0:
                break
            self.wait(left)
        return result

    def notify(self, n: int = 1) -> None:
        self._condition.notify(self._lock, n)

    def notify_all(self) -> None:
        self._condition.notify(self._lock)

    def __reduce__(self) -> tuple[Any, ...]:
        return _attach_condition, (self.name,)


def _attach_condition(name: str) -> Condition:
    return Condition(None, name)
