"""A number that all nodes add to."""

from __future__ import annotations

from operator import index
from typing import Any, SupportsIndex

from ._rackmem import Node, Rack
from ._racks import node_of

_ELEMENT = int.from_bytes(b"pycount1", "little")
_WRAP = 1 << 64
# Copies are kept in lines of so many bytes.
_LINE = 64


def _signed(word: int) -> int:
    return word - _WRAP if word >= _WRAP // 2 else word


class Counter:
    """A whole number of 64 bits, zero at first, that wraps. With `copies=3` it outlives a node, and
    what was added to it does: a majority has it when `add` returns. `renew=True` makes one anew that
    has died with its node."""

    def __init__(
        self, rack: Rack | Node | None, name: str, *, copies: int = 1, renew: bool = False
    ) -> None:
        self.name = name
        self._copies = copies
        size = 8 if copies == 1 else _LINE
        self._region = node_of(rack).region(
            name, size, element=_ELEMENT, copies=copies, survives="writes", renew=renew
        )

    def add(self, n: SupportsIndex = 1) -> int:
        """Adds as one step; the number after that."""
        n = index(n) % _WRAP
        return _signed((self._region.fetch_add(0, n) + n) % _WRAP)

    @property
    def value(self) -> int:
        return _signed(self._region.load(0))

    @value.setter
    def value(self, number: SupportsIndex) -> None:
        self._region.store(0, index(number) % _WRAP)

    def __int__(self) -> int:
        return self.value

    def __repr__(self) -> str:
        return f"<rackmem.Counter {self.name!r} {self.value}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _attach, (self.name, self._copies)


def _attach(name: str, copies: int) -> Counter:
    return Counter(None, name, copies=copies)
