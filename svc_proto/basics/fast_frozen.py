"""Value classes not meant to change: compared and hashed by their fields, and cheap to create.

A frozen class of attrs refuses assignments at run time, which makes each value more expensive. Here mypy refuses
assignments, since it sees `attrs.frozen`. In a program that begins with `enforce_immutability`, as each run of the
tests does, the classes are frozen indeed.
Comparison, hash and repr are written once for all classes, where attrs would generate them for each class.
"""

from __future__ import annotations

from functools import cache, partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from attrs import define, fields

__all__ = ["fast_frozen", "enforce_immutability"]

if TYPE_CHECKING:
    from collections.abc import Callable

    from attrs import frozen as fast_frozen
else:

    def fast_frozen(cls: type | None = None, *, kw_only: bool = False) -> Any:
        """Make a class one of immutable values, in place of `attrs.frozen`; its instances are cheaper to create."""
        if cls is None:
            return partial(fast_frozen, kw_only=kw_only)
        made = define(cls, eq=False, repr=False, kw_only=kw_only, frozen=bool(_enforcing))
        made.__eq__, made.__hash__, made.__repr__ = _equal, _hash, _show
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
    """Return a getter of all fields but those with `eq=False`."""
    names = [one.name for one in fields(cls) if one.eq]
    return attrgetter(*names) if names else lambda _: ()


_enforcing: list[bool] = []


def enforce_immutability() -> None:
    """Refuse changes of values with attrs' `FrozenInstanceError`, for the classes that `fast_frozen` makes from now on.

    Creating a value then takes longer.
    """
    _enforcing.append(True)
