"""Lifecycles as data: a table from (state, trigger) to the next state, and the one function that follows it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import TypeAlias, TypeVar

from svc_proto.basics.errors import LocalProtocolError

__all__ = ["Table", "step"]

State = TypeVar("State", bound=Enum)
Trigger = TypeVar("Trigger", bound=Enum)

Table: TypeAlias = Mapping[tuple[State, Trigger], State]
"""Every transition there is. A pair that is missing cannot happen; whoever asks for it has a bug."""


def step(table: Table[State, Trigger], state: State, trigger: Trigger) -> State:
    """The next state; `LocalProtocolError` when the table has no such row."""
    try:
        return table[state, trigger]
    except KeyError:
        raise LocalProtocolError(f"{trigger} cannot happen in {state}") from None
