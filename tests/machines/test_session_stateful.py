"""What a session may do over time, beside plain numbers: each grant to exactly its end, none beyond the session's."""

from __future__ import annotations

import json
from math import inf

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from svc_proto.basics.errors import LocalProtocolError
from svc_proto.machines.session import Session, SessionState, session_record
from svc_proto.machines.sessions import Sessions
from tests.machines.sources import WALL, at, source

DAY = 86_400.0
# Wire core 4.1, the table of default expiries: the least of the session's and these.
DEFAULTS = {
    "chat": inf,
    "terminal": 30 * DAY,
    "bridge": 7 * DAY,
    "tui": 30 * DAY,
    "voice:config": inf,
    "voice:stt": inf,
    "voice:tts": inf,
    "voice:realtime": inf,
}
CHANNELS = (*DEFAULTS, "unheard of")
SPANS = st.sampled_from((0.0, 1.0, 60.0, DAY, 7 * DAY, 30 * DAY, 90 * DAY))
PRESETS = st.dictionaries(st.sampled_from(("chat", "bridge", "terminal", "tui")), SPANS, max_size=3)


class SessionAgainstAModel(RuleBasedStateMachine):
    """`ends` is when the session does, `granted` when its grants do, in seconds since it all began (`inf`: never).

    `named` are the channels that somebody has set; a session that is over makes room for the next.
    """

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.entropy = source()
        self._pair(30 * DAY, {})

    def _pair(self, ttl: float, preset: dict[str, float]) -> None:
        self.sessions = Sessions()
        self.token, self.session = self.sessions.create(at(self.now), self.entropy, ttl=ttl, preset=preset)
        self.state = "Active"
        self.named: set[str] = set()
        self.granted: dict[str, float] = {}
        self._set(self._after(ttl), preset)

    @rule(ttl=SPANS, preset=PRESETS)
    def pair(self, ttl: float, preset: dict[str, float]) -> None:
        if self.state != "Active":
            self._pair(ttl, preset)

    @rule(ttl=st.none() | SPANS, grants=PRESETS)
    def patch(self, ttl: float | None, grants: dict[str, float]) -> None:
        self._see()
        if self.state != "Active":
            with pytest.raises(LocalProtocolError):
                self.sessions.patch(self.session, at(self.now), ttl=ttl, grants=grants)
            return
        self.sessions.patch(self.session, at(self.now), ttl=ttl, grants=grants)
        self._set(self.ends if ttl is None else self._after(ttl), grants)

    @rule()
    def revoke(self) -> None:
        self._see()
        if self.state != "Active":
            with pytest.raises(LocalProtocolError):
                self.sessions.revoke(self.session, at(self.now))
            return
        self.sessions.revoke(self.session, at(self.now))
        self.state = "Revoked"

    @precondition(lambda self: self.state == "Active")
    @rule()
    def is_stored_and_loaded(self) -> None:
        self._see()
        record = json.loads(json.dumps(self.session.to_record()))
        assert Session.from_record(record) == self.session or self.state != "Active"
        self.sessions = Sessions()
        loaded = self.sessions.restore(record, at(self.now))
        assert (loaded is not None) is (self.state == "Active")
        self.session = loaded or self.session

    @rule(seconds=st.sampled_from((1.0, 59.0, DAY, 8 * DAY)))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @rule(data=st.data(), before=st.sampled_from((0.0, 1.0)))
    def wait_for_an_end(self, data: st.DataObject, before: float) -> None:
        """To exactly the end of something, or just before it."""
        ends = sorted({end - before for end in self.granted.values() if self.now < end - before < inf})
        if ends:
            self.now = data.draw(st.sampled_from(ends))

    @rule()
    def the_clock_is_set_back(self) -> None:
        self._see()
        self.now = max(0.0, self.now - DAY)

    @invariant()
    def it_may_what_was_granted_to_its_end(self) -> None:
        # Spec "Grants": "a per-channel permission with its own expiry"; wire core 4.1: one missing "counts as expired".
        alive = self.state == "Active" and self.now < self.ends
        assert self.session.is_active(WALL + self.now) is alive
        may = [channel for channel in CHANNELS if alive and self.now < self.granted.get(channel, 0.0)]
        assert [channel for channel in CHANNELS if self.session.holds(channel, WALL + self.now)] == may

    @invariant()
    def no_grant_outlives_it(self) -> None:
        # Spec "Grants": "A grant never outlives its session".
        assert all(end <= self.ends for end in self.granted.values())
        shown = session_record(self.session, is_current=True)
        never = None  # spec "Paired-device record": "null when the session never expires"
        written = {channel: never if end == inf else WALL + end for channel, end in self.granted.items()}
        assert shown["grants"] == written
        assert shown["expires_at"] == (never if self.ends == inf else WALL + self.ends)

    def _see(self) -> None:
        """Somebody asks for it, which is when its end is noticed; there is no way back."""
        alive = self.state == "Active" and self.now < self.ends
        assert self.sessions.lookup(self.token, at(self.now)) is (self.session if alive else None)
        if self.state == "Active" and not alive:
            self.state = "Expired"
        assert self.session.state is SessionState(self.state)

    def _set(self, ends: float, preset: dict[str, float]) -> None:
        """Wire core 4.1 and 4.4: what is named counts from now, what was named is clamped, the rest is as at first."""
        kept = {channel: min(end, ends) for channel, end in self.granted.items() if channel in self.named}
        usual = {channel: inf if ends == inf else min(ends, self.now + span) for channel, span in DEFAULTS.items()}
        asked = {channel: min(ends, self._after(span)) for channel, span in preset.items()}
        self.ends, self.granted, self.named = ends, {**usual, **kept, **asked}, {*self.named, *preset}

    def _after(self, span: float) -> float:
        """Wire core 0.1: 0 means never."""
        return inf if span == 0 else self.now + span


TestSessionAgainstAModel = SessionAgainstAModel.TestCase
TestSessionAgainstAModel.settings = settings(max_examples=25, stateful_step_count=25)
