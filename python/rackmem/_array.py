"""Arrays: their first block says their type and shape, the others are their elements."""

import json
import math
import operator

from . import _rackmem
from ._racks import coded, node_of

# Elements begin at a block of their own, so that nobody who changes them takes the head away.
_HEAD = 4096
# What a region of an array holds, in the table of names.
_ELEMENT = int.from_bytes(b"pyarray1", "little")


def _numpy():
    try:
        import numpy
    except ImportError as error:
        raise ImportError("arrays need NumPy: pip install 'rackmem[numpy]'") from error
    return numpy


def array(rack, name, shape=None, dtype="f8", *, copies=1):
    """The array of this name, made of zeros if there is none; without a `shape` it is only found.

    It is the same memory on every node. `copies=3` keeps it alive when machines die."""
    np = _numpy()
    node = node_of(rack)
    if shape is None:
        return _find(node, name)
    shape = tuple(operator.index(n) for n in (shape if np.iterable(shape) else [shape]))
    dtype = np.dtype(dtype)
    if dtype.subdtype:
        # As in NumPy: an array of arrays has their dimensions as its last ones.
        dtype, inner = dtype.subdtype
        shape += inner
    if dtype.hasobject:
        raise TypeError("elements that are Python objects cannot be shared: use a plain dtype")
    if any(n < 0 for n in shape):
        raise ValueError("negative dimensions are not allowed")
    head = json.dumps([_description(dtype), shape]).encode()
    if len(head) > _HEAD - 8:
        raise ValueError("the dtype's description is too long")
    elements = math.prod(shape) * dtype.itemsize
    try:
        region = node.region(name, _HEAD + elements, element=_ELEMENT, copies=copies)
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


def _description(dtype):
    return dtype.descr if dtype.names else dtype.str


def _find(node, name):
    np = _numpy()
    for found, size, element in node.regions():
        if found == name and element == _ELEMENT:
            region = node.region(name, size, element=_ELEMENT, create=False)
            return Array(node, region, *_read_head(np, region))
    error = _rackmem.NotFoundError(
        f"there is no array `{name}`; nothing has changed; say its shape and dtype to make it"
    )
    raise coded(error, "name-not-found")


def _read_head(np, region):
    size = region.load(0)
    if not 0 < size <= _HEAD - 8:
        error = _rackmem.MismatchError(f"`{region.name}` is no array, or is being made just now")
        raise coded(error, "name-mismatch")
    description, shape = json.loads(region.read(8, size))
    return np.lib.format.descr_to_dtype(_fields(description)), tuple(shape)


def _fields(description):
    """A dtype's description as NumPy has it: JSON knows no tuples."""
    if isinstance(description, str):
        return description
    return [
        (name if isinstance(name, str) else tuple(name), _fields(kind), *map(tuple, shape))
        for name, kind, *shape in description
    ]


def _other(node, name, error, dtype, shape):
    try:
        found = _find(node, name)
    except _rackmem.Error:
        return error
    return _mismatch(name, found.dtype, found.shape, dtype, shape)


def _mismatch(name, has_dtype, has_shape, dtype, shape):
    error = _rackmem.MismatchError(
        f"array `{name}` is {has_shape} of {has_dtype}, not {shape} of {dtype}; "
        "nothing has changed; use its shape and dtype, or another name"
    )
    return coded(error, "name-mismatch")


class Array:
    """An array of the rack. It behaves as a NumPy array does whose memory other processes change:
    an element is read and written as one step, a slice element by element."""

    def __init__(self, node, region, dtype, shape):
        self._node = node
        self._region = region
        self._mapped = None
        self.dtype = dtype
        self.shape = shape

    @property
    def name(self):
        return self._region.name

    @property
    def size(self):
        return math.prod(self.shape)

    @property
    def nbytes(self):
        return self.size * self.dtype.itemsize

    @property
    def ndim(self):
        return len(self.shape)

    def mapped(self):
        """A real `numpy.ndarray` on this memory: loads and stores, with no call between.

        Raises `NoPagingError` where the system does not allow it: use `read` and `write` there."""
        if self._mapped is None:
            np = _numpy()
            pages = self._region.map()
            flat = np.frombuffer(pages, self.dtype, self.size, _HEAD)
            self._pages = pages
            self._mapped = flat.reshape(self.shape)
        return self._mapped

    def pinned(self, *, stores=False):
        """Keeps all of it here inside `with`, a second at most, so that system calls find it."""
        self.mapped()
        return self._pages.pin(_HEAD, _HEAD + self.nbytes, stores=stores)

    def on_lost(self, handler):
        """Asks `handler(element, stores, error)` what becomes of an access of `mapped()` whose page
        cannot be had, in the thread that has it, before the access is over. When it is true the
        access is tried again, otherwise the process ends by `SIGBUS`. `a.accept_loss(element)` lets
        it go on with what the page's home has. The handler must not use the array. `None`: nobody
        is asked."""
        self.mapped()
        size = self.dtype.itemsize

        def asked(byte, stores, error):
            return handler(max(0, byte - _HEAD) // size, stores, error)

        self._pages.on_lost(handler and asked)

    def accept_loss(self, element):
        """Goes on with what home has of the page of an element that a node has died with."""
        self._region.accept_loss(_HEAD + element * self.dtype.itemsize)

    def touch(self, *, stores=False):
        """Brings all of it to this process, so that what follows does not wait."""
        self.mapped()
        self._pages.touch(_HEAD, _HEAD + self.nbytes, stores=stores)

    def read(self, start=0, stop=None):
        """A copy of these elements, counted through the whole array, by a call and not by faults."""
        np = _numpy()
        start, stop, _ = slice(start, stop).indices(self.size)
        count = max(0, stop - start)
        size = self.dtype.itemsize
        return np.frombuffer(self._region.read(_HEAD + start * size, count * size), self.dtype)

    def write(self, start, values):
        """Writes elements from one on, counted through the whole array, by a call and not by faults."""
        np = _numpy()
        values = np.ascontiguousarray(values, self.dtype).reshape(-1)
        if not 0 <= start <= self.size - values.size:
            raise IndexError(f"{values.size} elements from {start} on of {self.size}")
        self._region.write(_HEAD + start * self.dtype.itemsize, values.view("u1"))

    def __getitem__(self, key):
        return self.mapped()[key]

    def __setitem__(self, key, value):
        self.mapped()[key] = value

    def __array__(self, dtype=None, copy=None):
        np = _numpy()
        return np.array(self.mapped(), dtype=dtype, copy=copy)

    def __dlpack__(self, **asked):
        """The same memory for other libraries: `torch.from_dlpack(a)`, `numpy.from_dlpack(a)`."""
        return self.mapped().__dlpack__(**asked)

    def __dlpack_device__(self):
        return self.mapped().__dlpack_device__()

    def __len__(self):
        if not self.shape:
            raise TypeError("len() of an array without dimensions")
        return self.shape[0]

    def __iter__(self):
        return iter(self.mapped())

    def __repr__(self):
        return f"<rackmem.Array {self.name!r} {self.shape} of {self.dtype}>"

    def __reduce__(self):
        return _attach, (self.name,)


def _attach(name):
    return array(None, name)
