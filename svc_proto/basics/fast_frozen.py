"""Values: compared and hashed by what they hold, changed by nobody, and cheap to make.

A frozen class of attrs says no to an assignment at run time, and pays for it with each value that is made: two to four
times what it costs otherwise, and a request takes a dozen of them. Here the no is said before: by mypy, for which this
is `attrs.frozen`, and in whatever calls `enforce_immutability`, as all tests do.

How they are compared, hashed and shown is written once, for all: attrs would write and compile it for each class, which
takes a twelfth of a server's start.
"""

from __future__ import annotations

from functools import cache, partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from attrs import define, fields
from attrs.exceptions import FrozenInstanceError

__all__ = ["fast_frozen", "enforce_immutability"]

if TYPE_CHECKING:
    from collections.abc import Callable

    from attrs import frozen as fast_frozen
else:

    def fast_frozen(cls: type | None = None, *, kw_only: bool = False) -> Any:
        """A class decorator, in place of `attrs.frozen`."""
        if cls is None:
            return partial(fast_frozen, kw_only=kw_only)
        made = define(cls, eq=False, repr=False, kw_only=kw_only)
        made.__eq__, made.__hash__, made.__repr__ = _equal, _hash, _show
        _made.append(made)
        if _refusing:
            _refuse(made)
        return made


def _equal(self: Any, other: object) -> Any:
    if type(other) is not type(self):
        return NotImplemented
    cls: Any = type(self)
    held = _comparison_getter(cls)
    return held(self) == held(other)


def _hash(self: Any) -> int:
    cls: Any = type(self)
    return (cls, _comparison_getter(cls)(self)).__hash__()  # for sets and dicts, which keep the order of insertion


def _show(self: Any) -> str:
    cls: Any = type(self)
    shown = ", ".join(f"{one.name}={getattr(self, one.name)!r}" for one in fields(cls) if one.repr)
    return f"{cls.__qualname__.rpartition('>.')[2]}({shown})"


@cache
def _comparison_getter(cls: Any) -> Callable[[object], object]:
    """Reads what makes a value the one that it is: all of it, but for fields with `eq=False`."""
    names = [one.name for one in fields(cls) if one.eq]
    return attrgetter(*names) if names else lambda _: ()


_made: list[type[Any]] = []
_refusing: list[bool] = []


def enforce_immutability() -> None:
    """From now on whoever changes a value gets attrs' `FrozenInstanceError`, and values are as dear as frozen ones."""
    if not _refusing:
        _refusing.append(True)
        for cls in _made:
            _refuse(cls)


def _refuse(cls: type[Any]) -> None:
    cls.__setattr__, cls.__delattr__ = _set_once, _refuse_delete  # type: ignore[assignment]


def _set_once(self: object, name: str, to: object) -> None:
    if hasattr(self, name):
        raise FrozenInstanceError
    object.__setattr__(self, name, to)


def _refuse_delete(self: object, name: str) -> None:
    raise FrozenInstanceError
