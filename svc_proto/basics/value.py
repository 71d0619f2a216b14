"""Values: compared and hashed by what they hold, changed by nobody, and cheap to make.

A frozen class of attrs says no to an assignment at run time, and pays for it with each value that is made: two to four
times what it costs otherwise, and a request takes a dozen of them. Here the no is said before: by mypy, for which this
is `attrs.frozen`, and in whatever calls `refuse_changes`, as all tests do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attrs import define
from attrs.exceptions import FrozenInstanceError

__all__ = ["fixed", "refuse_changes"]

if TYPE_CHECKING:
    from attrs import frozen as fixed
else:

    def fixed(cls: type) -> type:
        """A class decorator, in place of `attrs.frozen`."""
        made = define(cls, unsafe_hash=True)
        _made.append(made)
        if _refusing:
            _refuse(made)
        return made


_made: list[type[Any]] = []
_refusing: list[bool] = []


def refuse_changes() -> None:
    """From now on whoever changes a value gets attrs' `FrozenInstanceError`, and values are as dear as frozen ones."""
    if not _refusing:
        _refusing.append(True)
        for cls in _made:
            _refuse(cls)


def _refuse(cls: type[Any]) -> None:
    cls.__setattr__, cls.__delattr__ = _set_once, _keep  # type: ignore[assignment]


def _set_once(self: object, name: str, to: object) -> None:
    if hasattr(self, name):
        raise FrozenInstanceError
    object.__setattr__(self, name, to)


def _keep(self: object, name: str) -> None:
    raise FrozenInstanceError
