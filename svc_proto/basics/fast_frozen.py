"""Value classes not meant to change: compared and hashed by their fields, and cheap to create.

A frozen class of attrs refuses assignments at run time, which makes each value more expensive. Here mypy refuses
assignments, since it sees `attrs.frozen`. So does any program that calls `enforce_immutability`, as all tests do.
Comparison, hash and repr are written once for all classes, where attrs would generate them for each class.
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
        """Make a class one of immutable values, in place of `attrs.frozen`; its instances are cheaper to create."""
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
    """Return a getter of all fields but those with `eq=False`."""
    names = [one.name for one in fields(cls) if one.eq]
    return attrgetter(*names) if names else lambda _: ()


_made: list[type[Any]] = []
_refusing: list[bool] = []


def enforce_immutability() -> None:
    """Refuse to change or delete a set attribute, from now on, with attrs' `FrozenInstanceError`.

    It holds for the instances of all classes that `fast_frozen` has made or makes; creating one then takes longer.
    """
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
