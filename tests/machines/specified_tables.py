"""Comparison of a state machine's table with the rows of its specification, in both directions."""

import re
from collections.abc import Sequence
from enum import Enum
from typing import TypeVar

import pytest

from svc_proto.basics.errors import LocalProtocolError
from svc_proto.machines.transitions import Table, step

S = TypeVar("S", bound=Enum)
T = TypeVar("T", bound=Enum)


def check_table(
    table: Table[S, T], states: type[S], triggers: type[T], rows: Sequence[tuple[str, tuple[T, ...], str]]
) -> None:
    """Check that `table` has exactly the transitions of `rows`: (state's value, triggers, next state's value).

    Check also that `step` raises `LocalProtocolError` for every other trigger.
    """
    expected = {(states(state), trigger): states(after) for state, row, after in rows for trigger in row}
    assert dict(table) == expected
    for state in states:
        for trigger in triggers:
            if (state, trigger) in expected:
                assert step(table, state, trigger) is expected[state, trigger]
            else:
                with pytest.raises(LocalProtocolError, match=re.escape(f"{trigger} cannot happen in {state}")):
                    step(table, state, trigger)
