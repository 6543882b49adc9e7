"""A mapping that all nodes change."""

from __future__ import annotations

import operator
import pickle
from collections.abc import Callable, Iterator, MutableMapping
from typing import Any

from ._rackmem import Node, Rack
from ._racks import node_of

_MISSING: Any = object()


class Dict(MutableMapping[Any, Any]):
    """A dict of the rack: keys are `str`, `bytes`, whole numbers, or tuples of them, values whatever
    pickles.

    Each operation on one key is one step for all nodes; `change` makes a value of the one before
    as one step. A walk (`iter`, `items`, `len`) sees an entry that stays throughout once, and one that
    comes or goes meanwhile perhaps. `entries` and `bytes` say for how many entries, of how many bytes
    of key and value together, it is made; it never grows, and says `MemoryFullError` when it is full.

    A value is a copy: what is done to a list that was read changes nothing until it is put back.
    Values are unpickled: share it among programs that trust one another only.
    It dies with the node that made it (`LostError`); `renew=True` makes it anew then, empty."""

    def __init__(
        self,
        rack: Rack | Node | None,
        name: str,
        *,
        entries: int = 10_000,
        bytes: int = 128,
        renew: bool = False,
    ) -> None:
        self.name = name
        self._size = (entries, bytes)
        self._map = node_of(rack).map(name, entries, bytes, renew=renew)

    def __getitem__(self, key: Any) -> Any:
        value = self._map.get(_key(key))
        if value is None:
            raise KeyError(key)
        return pickle.loads(value)

    def __setitem__(self, key: Any, value: Any) -> None:
        self._map.put(_key(key), _value(value))

    def __delitem__(self, key: Any) -> None:
        if self._map.put(_key(key), None) is None:
            raise KeyError(key)

    def __contains__(self, key: Any) -> bool:
        return self._map.get(_key(key)) is not None

    def __len__(self) -> int:
        return len(self._map.items())

    def __iter__(self) -> Iterator[Any]:
        return iter([_unkey(key) for key, _ in self._map.items()])

    def items(self) -> list[tuple[Any, Any]]:  # type: ignore[override]
        """A list of the keys and values, by one walk."""
        return [(_unkey(key), pickle.loads(value)) for key, value in self._map.items()]

    def values(self) -> list[Any]:  # type: ignore[override]
        """A list of the values, by one walk."""
        return [value for _, value in self.items()]

    def pop(self, key: Any, default: Any = _MISSING) -> Any:
        value = self._map.put(_key(key), None)
        if value is not None:
            return pickle.loads(value)
        if default is _MISSING:
            raise KeyError(key)
        return default

    def popitem(self) -> tuple[Any, Any]:
        for key, _ in self._map.items():
            value = self._map.put(key, None)
            if value is not None:
                return _unkey(key), pickle.loads(value)
        raise KeyError("popitem(): dictionary is empty")

    def setdefault(self, key: Any, default: Any = None) -> Any:
        before = self._map.swap(_key(key), None, _value(default))
        return default if before is None else pickle.loads(before)

    def change(self, key: Any, function: Callable[[Any], Any], default: Any = None) -> Any:
        """Puts `function(value)` in the value's place, `default` where there is none, as one step, and
        returns it. `function` may run several times, and what it returned last counts."""
        key = _key(key)
        before = self._map.get(key)
        while True:
            after = function(default if before is None else pickle.loads(before))
            found = self._map.swap(key, before, _value(after))
            if found == before:
                return after
            before = found

    def clear(self) -> None:
        for key, _ in self._map.items():
            self._map.put(key, None)

    def unlink(self) -> None:
        """Frees its memory and its name, for all."""
        self._map.unlink()

    def __repr__(self) -> str:
        return f"<rackmem.Dict {self.name!r}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _attach, (self.name, *self._size)


def _attach(name: str, entries: int, bytes: int) -> Dict:
    return Dict(None, name, entries=entries, bytes=bytes)


def _value(value: Any) -> bytes:
    return pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)


def _key(key: Any) -> bytes:
    """The same bytes for keys that are equal: what pickle says depends on more than that."""
    if isinstance(key, str):
        return b"s" + key.encode("utf-8", "surrogatepass")
    if isinstance(key, bytes):
        return b"b" + key
    if isinstance(key, tuple):
        parts = [_key(part) for part in key]
        return b"t" + b"".join(b"%d:%s" % (len(part), part) for part in parts)
    try:
        # NumPy's whole numbers too: they are equal to Python's.
        return b"i%d" % operator.index(key)
    except TypeError:
        raise TypeError(
            f"a key is a str, bytes, int or a tuple of them, not {type(key).__name__}"
        ) from None


def _unkey(key: bytes) -> Any:
    kind, rest = key[:1], key[1:]
    if kind == b"s":
        return rest.decode("utf-8", "surrogatepass")
    if kind == b"i":
        return int(rest)
    if kind == b"b":
        return rest
    parts = []
    while rest:
        size, _, rest = rest.partition(b":")
        parts.append(_unkey(rest[: int(size)]))
        rest = rest[int(size) :]
    return tuple(parts)
