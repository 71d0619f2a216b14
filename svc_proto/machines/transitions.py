"""Lifecycles as data: a table from (state, trigger) to the next state, and the function that applies it."""

from collections.abc import Mapping
from enum import Enum
from typing import TypeAlias, TypeVar

from svc_proto.basics.errors import LocalProtocolError

__all__ = ["Table", "step"]

State = TypeVar("State", bound=Enum)
Trigger = TypeVar("Trigger", bound=Enum)

Table: TypeAlias = Mapping[tuple[State, Trigger], State]
"""All transitions. A missing pair is impossible; a call with it is a bug."""


def step(table: Table[State, Trigger], state: State, trigger: Trigger) -> State:
    """Return the next state; raise `LocalProtocolError` if the table has no such row."""
    try:
        return table[state, trigger]
    except KeyError:
        raise LocalProtocolError(f"{trigger} cannot happen in {state}") from None
