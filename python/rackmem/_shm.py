"""`multiprocessing.shared_memory.SharedMemory`, across hosts."""

import secrets

from . import _rackmem
from ._racks import node_of

_ELEMENT = int.from_bytes(b"pyshmem1", "little")


class SharedMemory:
    """As the standard library's class of this name: `create=True` with a `size` makes it, without it
    is found; `buf` is its memory. All processes of the rack see one memory. `unlink` removes the name;
    `rack` is the current one unless it is said."""

    def __init__(self, name=None, create=False, size=0, *, rack=None):
        node = node_of(rack)
        if create and size <= 0:
            raise ValueError("'size' must be a positive number different from zero")
        if not create and name is None:
            raise ValueError("'name' can only be None if create is true")
        if create:
            name = name or f"psm_{secrets.token_hex(8)}"
            try:
                region = node.region(name, size, element=_ELEMENT)
            except _rackmem.MismatchError:
                region = None
            if region is None or not region.created:
                raise FileExistsError(f"there is memory of the name `{name}`")
        else:
            sizes = [
                size
                for found, size, element in node.regions()
                if found == name and element == _ELEMENT
            ]
            if not sizes:
                raise FileNotFoundError(f"there is no memory of the name `{name}`")
            region = node.region(name, sizes[0], element=_ELEMENT, create=False)
        self._node = node
        self._name = name
        self._size = len(region)
        self._pages = region.map()
        self._buf = memoryview(self._pages)

    @property
    def name(self):
        return self._name

    @property
    def size(self):
        return self._size

    @property
    def buf(self):
        return self._buf

    def close(self):
        """Gives up this process' access; the memory stays."""
        if self._buf is not None:
            self._buf.release()
            self._buf = None
        self._pages = None

    def unlink(self):
        """Removes the memory from the rack."""
        try:
            self._node.remove(self._name)
        except _rackmem.NotFoundError:
            raise FileNotFoundError(f"there is no memory of the name `{self._name}`") from None

    def __repr__(self):
        return f"SharedMemory({self._name!r}, size={self._size})"

    def __reduce__(self):
        return SharedMemory, (self._name,)
