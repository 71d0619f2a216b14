"""A terminal's life and output beside plain ones: every byte told once, whole characters, nothing after the end."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from svc_proto.basics.errors import LocalProtocolError
from svc_proto.machines.table import step
from svc_proto.machines.terminal import (
    FLUSH_AFTER,
    FLUSH_AT,
    REASONS,
    TERMINAL_TABLE,
    OutputBuffer,
    TerminalState,
    TerminalTrigger,
)

TEXTS = st.text("aé€😀\n\x1b", max_size=40).map(str.encode)
PIECES = st.one_of(TEXTS, TEXTS.map(lambda data: data[:-1]), st.binary(max_size=8), st.just(b"x" * FLUSH_AT)).filter(
    bool
)


class TerminalAgainstAModel(RuleBasedStateMachine):
    """`written` is what the shell wrote, `told` what the client has read of it."""

    def __init__(self) -> None:
        super().__init__()
        self.state = TerminalState.NONE
        self.output = OutputBuffer()
        self.written = b""
        self.told = ""
        self.waiting = 0
        self.written_waits = False
        self.since = 0.0
        self.now = 0.0

    @rule(trigger=st.sampled_from(TerminalTrigger))
    def happens(self, trigger: TerminalTrigger) -> None:
        possible = self.state is TerminalState.LIVE or (
            self.state is TerminalState.NONE and trigger is TerminalTrigger.ATTACH
        )
        if not possible:
            with pytest.raises(LocalProtocolError):
                step(TERMINAL_TABLE, self.state, trigger)
            return
        self.state = step(TERMINAL_TABLE, self.state, trigger)
        assert self.state is (TerminalState.LIVE if trigger is TerminalTrigger.ATTACH else TerminalState.ENDED)
        if self.state is TerminalState.ENDED:
            assert REASONS[trigger]
            self.told += self.output.take(final=True).decode()
            self.waiting = 0
            assert self.told == self.written.decode("utf-8", "replace")

    @precondition(lambda self: self.state is TerminalState.LIVE)
    @rule(data=PIECES, after=st.sampled_from((0.0, 0.001, 0.02)))
    def writes(self, data: bytes, after: float) -> None:
        self.now += after
        if not self.written_waits:
            self.since = self.now
        due = self.output.feed(data, self.now)
        self.written += data
        self.waiting += len(data)
        self.written_waits = True
        assert due == (self.now if self.waiting >= FLUSH_AT else self.since + FLUSH_AFTER)

    @precondition(lambda self: self.state is TerminalState.LIVE)
    @rule()
    def flushes(self) -> None:
        self.told += self.output.take().decode()
        self.waiting = 0
        self.written_waits = False

    @invariant()
    def nothing_is_made_up(self) -> None:
        whole = self.written.decode("utf-8", "replace")
        assert whole.startswith(self.told)


TestTerminal = TerminalAgainstAModel.TestCase
TestTerminal.settings = settings(max_examples=30, stateful_step_count=30, deadline=None)
