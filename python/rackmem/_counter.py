"""A number that all nodes add to."""

from ._racks import node_of

_ELEMENT = int.from_bytes(b"pycount1", "little")
_WRAP = 1 << 64


def _signed(word):
    return word - _WRAP if word >= _WRAP // 2 else word


class Counter:
    """A whole number of 64 bits, zero at first, that wraps."""

    def __init__(self, rack, name, *, copies=1):
        self.name = name
        self._copies = copies
        self._region = node_of(rack).region(name, 8, element=_ELEMENT, copies=copies)

    def add(self, n=1):
        """Adds as one step; the number after that."""
        return _signed((self._region.fetch_add(0, n) + n) % _WRAP)

    @property
    def value(self):
        return _signed(self._region.load(0))

    @value.setter
    def value(self, number):
        self._region.store(0, number % _WRAP)

    def __repr__(self):
        return f"<rackmem.Counter {self.name!r} {self.value}>"

    def __reduce__(self):
        return _attach, (self.name, self._copies)


def _attach(name, copies):
    return Counter(None, name, copies=copies)
