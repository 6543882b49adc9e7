"""`multiprocessing.shared_memory.SharedMemory`, across hosts."""

from __future__ import annotations

import secrets
from typing import Any, cast

from . import _rackmem
from ._rackmem import Node, Rack
from ._racks import node_of

_ELEMENT = int.from_bytes(b"pyshmem1", "little")


class SharedMemory:
    """As the standard library's class of this name: `create=True` with a `size` makes it, without it
    is found; `buf` is its memory. All processes of the rack see one memory. `unlink` removes the name;
    `rack` is the current one unless it is said. `track` is the standard library's: nothing is unlinked
    here that no program has unlinked."""

    def __init__(
        self,
        name: str | None = None,
        create: bool = False,
        size: int = 0,
        *,
        track: bool = True,
        rack: Rack | Node | None = None,
    ) -> None:
        node = node_of(rack)
        if create and size <= 0:
            raise ValueError("'size' must be a positive number different from zero")
        if not create and name is None:
            raise ValueError("'name' can only be None if create is true")
        if name is None or create:
            name = name or f"psm_{secrets.token_hex(8)}"
            try:
                region = node.region(name, size, element=_ELEMENT)
            except _rackmem.MismatchError:
                region = None
            if region is None or not region.created:
                raise FileExistsError(f"there is memory of the name `{name}`")
        else:
            region = node.find(name, _ELEMENT)
            if region is None:
                raise FileNotFoundError(f"there is no memory of the name `{name}`")
        self._node = node
        self._name = name
        self._size = len(region)
        self._pages: _rackmem.Pages | None = region.map()
        self._buf: memoryview | None = memoryview(self._pages)

    @property
    def name(self) -> str:
        return self._name

    @property
    def size(self) -> int:
        return self._size

    @property
    def buf(self) -> memoryview:
        """Its memory; `None` once it is closed, as in the standard library."""
        return cast(memoryview, self._buf)

    def close(self) -> None:
        """Gives up this process' access; the memory stays."""
        if self._buf is not None:
            self._buf.release()
            self._buf = None
        self._pages = None

    def unlink(self) -> None:
        """Removes the memory from the rack."""
        try:
            self._node.remove(self._name)
        except _rackmem.NotFoundError:
            raise FileNotFoundError(f"there is no memory of the name `{self._name}`") from None

    def __repr__(self) -> str:
        return f"SharedMemory({self._name!r}, size={self._size})"

    def __reduce__(self) -> tuple[Any, ...]:
        return SharedMemory, (self._name,)
