"""Arrays: their first block says their type and shape, the others are their elements."""

from __future__ import annotations

import json
import math
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, SupportsIndex

from . import _rackmem
from ._operators import Operators
from ._rackmem import Node, Rack, Region
from ._racks import coded, node_of

if TYPE_CHECKING:
    import numpy
    from numpy.typing import ArrayLike, DTypeLike, NDArray

# Elements begin at a block of their own, so that nobody who changes them takes the head away.
_HEAD = 4096
# Copies of memory are kept in lines of so many bytes.
_LINE = 64
# What a region of an array holds, in the table of names.
_ELEMENT = int.from_bytes(b"pyarray1", "little")


def _numpy() -> Any:
    try:
        import numpy
    except ImportError as error:
        raise ImportError("arrays need NumPy: pip install 'rackmem[numpy]'") from error
    return numpy


def array(
    rack: Rack | Node | None,
    name: str,
    shape: SupportsIndex | Sequence[SupportsIndex] | None = None,
    dtype: DTypeLike = "f8",
    *,
    copies: int = 1,
    renew: bool = False,
) -> Array:
    """The array of this name, made of zeros if there is none; without a `shape` it is only found.

    It is the same memory on every node. `copies=3` keeps it alive when machines die: what a node
    that dies has changed last, and no other node has read since, is as it was before. `renew=True`
    makes one anew, of zeros, that has died with the node that made it."""
    np = _numpy()
    node = node_of(rack)
    if shape is None:
        return _find(node, name)
    each: Any = shape if np.iterable(shape) else [shape]
    dimensions = tuple(operator.index(n) for n in each)
    elements = np.dtype(dtype)
    if elements.subdtype:
        # As in NumPy: an array of arrays has their dimensions as its last ones.
        elements, inner = elements.subdtype
        dimensions += inner
    return _made(node, name, elements, dimensions, (copies, renew))


def _made(node: Node, name: str, dtype: Any, shape: tuple[int, ...], how: tuple[int, bool]) -> Array:
    np = _numpy()
    if not dtype.itemsize:
        raise TypeError(f"elements of {dtype} have no bytes: say how many, as in 'U8'")
    if dtype.hasobject:
        raise TypeError("elements that are Python objects cannot be shared: use a plain dtype")
    if any(n < 0 for n in shape):
        raise ValueError("negative dimensions are not allowed")
    head = json.dumps([_description(dtype), shape]).encode()
    if len(head) > _HEAD - 8:
        raise ValueError("the dtype's description is too long")
    elements = math.prod(shape) * dtype.itemsize
    copies, renew = how
    try:
        region = node.region(
            name, _bytes(elements, copies), element=_ELEMENT, copies=copies, renew=renew
        )
    except _rackmem.MismatchError as error:
        raise _other(node, name, error, dtype, shape) from None
    # Whoever comes first writes the head; all write the same one or learn that it is another.
    if region.load(0) == 0:
        region.write(8, head)
        region.compare_exchange(0, 0, len(head))
    found = _read_head(np, region)
    if found != (dtype, shape):
        raise _mismatch(name, *found, dtype, shape)
    return Array(node, region, dtype, shape)


def _bytes(elements: int, copies: int) -> int:
    """How long a region is for so many bytes of elements."""
    lines = 1 if copies == 1 else _LINE
    return -(-(_HEAD + elements) // lines) * lines


def _description(dtype: numpy.dtype[Any]) -> Any:
    return dtype.descr if dtype.names else dtype.str


def _find(node: Node, name: str) -> Array:
    np = _numpy()
    region = node.find(name, _ELEMENT)
    if region is not None:
        return Array(node, region, *_read_head(np, region))
    error = _rackmem.NotFoundError(
        f"there is no array `{name}`; nothing has changed; say its shape and dtype to make it"
    )
    raise coded(error, "name-not-found")


def _read_head(np: Any, region: Region) -> tuple[Any, tuple[int, ...]]:
    size = region.load(0)
    if not 0 < size <= _HEAD - 8:
        error = _rackmem.MismatchError(f"`{region.name}` is no array, or is being made just now")
        raise coded(error, "name-mismatch")
    description, shape = json.loads(region.read(8, size))
    return np.lib.format.descr_to_dtype(_fields(description)), tuple(shape)


def _fields(description: Any) -> Any:
    """A dtype's description as NumPy has it: JSON knows no tuples."""
    if isinstance(description, str):
        return description
    return [
        (name if isinstance(name, str) else tuple(name), _fields(kind), *map(tuple, shape))
        for name, kind, *shape in description
    ]


def _other(
    node: Node, name: str, error: _rackmem.Error, dtype: Any, shape: tuple[int, ...]
) -> _rackmem.Error:
    try:
        found = _find(node, name)
    except _rackmem.Error:
        return error
    if (found.dtype, found.shape) == (dtype, shape):
        # It has other copies.
        return error
    return _mismatch(name, found.dtype, found.shape, dtype, shape)


def _mismatch(
    name: str, has_dtype: Any, has_shape: tuple[int, ...], dtype: Any, shape: tuple[int, ...]
) -> _rackmem.MismatchError:
    error = _rackmem.MismatchError(
        f"array `{name}` is {has_shape} of {has_dtype}, not {shape} of {dtype}; "
        "nothing has changed; use its shape and dtype, or another name"
    )
    return coded(error, "name-mismatch")


class Array(Operators):
    """An array of the rack. It behaves as a NumPy array does whose memory other processes change:
    an element is read and written as one step, a slice element by element. What it does not have
    itself (`a.sum()`, `a.T`) is that of `a.mapped()`."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(
        self, node: Node, region: Region, dtype: numpy.dtype[Any], shape: tuple[int, ...]
    ) -> None:
        self._node = node
        self._region = region
        self._pages: _rackmem.Pages | None = None
        self._mapped: NDArray[Any] | None = None
        self.dtype = dtype
        self.shape = shape

    @property
    def name(self) -> str:
        return self._region.name

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def mapped(self) -> NDArray[Any]:
        """A real `numpy.ndarray` on this memory: loads and stores, with no call between.

        Raises `NoPagingError` where the system does not allow it: use `read` and `write` there.
        Once the rack is closed, who still uses such an array is ended by `SIGBUS`."""
        if self._mapped is None or self._pages is None:
            return self._map()[1]
        self._pages.check()
        return self._mapped

    def _map(self) -> tuple[_rackmem.Pages, NDArray[Any]]:
        np = _numpy()
        pages = self._pages or self._region.map()
        flat = np.frombuffer(pages, self.dtype, self.size, _HEAD)
        self._pages, self._mapped = pages, flat.reshape(self.shape)
        return pages, self._mapped

    def pinned(self, *, stores: bool = False) -> _rackmem.Pinned:
        """Keeps all of it here inside `with`, a second at most, so that system calls find it."""
        pages = self._pages or self._map()[0]
        return pages.pin(_HEAD, _HEAD + self.nbytes, stores=stores)

    def on_lost(self, handler: Callable[[int, bool, _rackmem.Error], object] | None) -> None:
        """Asks `handler(element, stores, error)` what becomes of an access of `mapped()` whose page
        cannot be had, in the thread that has it, before the access is over. When it is true the
        access is tried again, otherwise the process ends by `SIGBUS`. `a.accept_loss(element)` lets
        it go on with what the page's home has. The handler must not use the array. `None`: nobody
        is asked."""
        pages = self._pages or self._map()[0]
        size = self.dtype.itemsize
        if handler is None:
            return pages.on_lost(None)

        def asked(byte: int, stores: bool, error: _rackmem.Error) -> object:
            return handler(max(0, byte - _HEAD) // size, stores, error)

        pages.on_lost(asked)

    def accept_loss(self, element: int) -> None:
        """Goes on with what home has of the page of an element that a node has died with."""
        self._region.accept_loss(_HEAD + element * self.dtype.itemsize)

    def touch(self, *, stores: bool = False) -> None:
        """Brings all of it to this process, so that what follows does not wait."""
        pages = self._pages or self._map()[0]
        pages.touch(_HEAD, _HEAD + self.nbytes, stores=stores)

    def read(self, start: int = 0, stop: int | None = None) -> NDArray[Any]:
        """A copy of these elements, counted through the whole array, by a call and not by faults."""
        np = _numpy()
        start, stop, _ = slice(start, stop).indices(self.size)
        count = max(0, stop - start)
        size = self.dtype.itemsize
        elements = self._region.read_bytearray(_HEAD + start * size, count * size)
        copied: NDArray[Any] = np.frombuffer(elements, self.dtype)
        return copied

    def write(self, start: int, values: ArrayLike) -> None:
        """Writes elements from one on, counted through the whole array, by a call and not by faults."""
        np = _numpy()
        elements = np.ascontiguousarray(values, self.dtype).reshape(-1)
        if not 0 <= start <= self.size - elements.size:
            raise IndexError(f"{elements.size} elements from {start} on of {self.size}")
        self._region.write(_HEAD + start * self.dtype.itemsize, elements.view("u1"))

    def __getitem__(self, key: Any) -> Any:
        return self.mapped()[key]

    def __setitem__(self, key: Any, value: Any) -> None:
        self.mapped()[key] = value

    def __getattr__(self, name: str) -> Any:
        # Those with underscores say what an object is, and an array of the rack is not NumPy's.
        if name.startswith("_"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self.mapped(), name)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        np = _numpy()
        found: NDArray[Any] = np.array(self.mapped(), dtype=dtype, copy=copy)
        return found

    def __dlpack__(self, **asked: Any) -> Any:
        """The same memory for other libraries: `torch.from_dlpack(a)`, `numpy.from_dlpack(a)`."""
        return self.mapped().__dlpack__(**asked)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.mapped().__dlpack_device__()

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of an array without dimensions")
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.mapped())

    def __contains__(self, value: Any) -> bool:
        return value in self.mapped()

    def __bool__(self) -> bool:
        return bool(self.mapped())

    def __int__(self) -> int:
        return int(self.mapped())

    def __float__(self) -> float:
        return float(self.mapped())

    def __complex__(self) -> complex:
        return complex(self.mapped())

    def __index__(self) -> int:
        return operator.index(self.mapped())

    def __repr__(self) -> str:
        return f"<rackmem.Array {self.name!r} {self.shape} of {self.dtype}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _attach, (self.name,)


def _attach(name: str) -> Array:
    return array(None, name)
