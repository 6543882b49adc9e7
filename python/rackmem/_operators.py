"""What NumPy's arrays do by operators, for whatever has one under `mapped()`.

NumPy has a class for this; inheriting it would import NumPy for programs that only share locks.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.lib.mixins import NDArrayOperatorsMixin

    class Operators(NDArrayOperatorsMixin):
        def __array_ufunc__(self, *_: Any, **__: Any) -> Any: ...

else:

    class Operators:
        def __divmod__(self, other):
            return divmod(self.mapped(), other)

        def __rdivmod__(self, other):
            return divmod(other, self.mapped())

    def _bind(name: str, function: Callable[..., Any]) -> None:
        function.__name__ = name
        setattr(Operators, name, function)

    def _two(name: str) -> None:
        does = getattr(operator, f"__{name}__")
        _bind(f"__{name}__", lambda self, other: does(self.mapped(), other))

    def _both_ways_and_in_place(name: str) -> None:
        does, in_place = getattr(operator, f"__{name}__"), getattr(operator, f"__i{name}__")

        def stored(self, other):
            # The array's memory, and no new one.
            in_place(self.mapped(), other)
            return self

        _two(name)
        _bind(f"__r{name}__", lambda self, other: does(other, self.mapped()))
        _bind(f"__i{name}__", stored)

    def _one(name: str) -> None:
        does = getattr(operator, f"__{name}__")
        _bind(f"__{name}__", lambda self: does(self.mapped()))

    for _name in "lt le eq ne gt ge".split():
        _two(_name)
    for _name in "add sub mul matmul truediv floordiv mod pow lshift rshift and xor or".split():
        _both_ways_and_in_place(_name)
    for _name in "neg pos abs invert".split():
        _one(_name)
