"""A paired session over time, compared with the model of lifetimes and grants that the simulation uses, too."""

from __future__ import annotations

import json
from functools import partial
from math import inf

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from fuzz.simulation.models.grant_model import (
    NOTHING,
    OPEN,
    GrantPolicy,
    GrantTerms,
    RequestedTerms,
    paired,
    patched,
    refusal,
)
from svc_proto.basics.errors import LocalProtocolError, Refused
from svc_proto.machines.grants import CHANNELS
from svc_proto.machines.paired_session import PairedSession, SessionState, session_record
from svc_proto.machines.paired_session_registry import PairedSessionRegistry
from svc_proto.relay_config import SessionPolicy
from tests.machines.fixed_inputs import at, source

DAY = 86_400.0
SPANS = st.sampled_from((0.0, 1.0, 60.0, DAY, 7 * DAY, 30 * DAY, 90 * DAY))
GRANTS = st.dictionaries(st.sampled_from(("chat", "bridge", "terminal", "tui")), st.none() | SPANS, max_size=3)
WISHES = st.builds(RequestedTerms, st.none() | SPANS, st.none() | GRANTS)
POLICIES = st.sampled_from((OPEN, OPEN, GrantPolicy(7 * DAY), GrantPolicy(reduce_only=True)))


class SessionAgainstAModel(RuleBasedStateMachine):
    """A paired session beside a model of its lifetime and grants; a new session replaces an ended one."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.entropy = source()
        self._pair(NOTHING, OPEN)

    @property
    def wall(self) -> float:
        return at(self.now).wall

    def _pair(self, wish: RequestedTerms, policy: GrantPolicy) -> None:
        self.sessions = PairedSessionRegistry()
        self.token, self.session = self.sessions.create(
            at(self.now), self.entropy, ttl=wish.ttl, preset=wish.grants, max_ttl=policy.max_ttl
        )
        self.state, self.policy = "Active", policy
        self.terms: GrantTerms = paired(wish, policy, self.wall)
        self.named, self.withheld = {*(wish.grants or ())}, _withheld(wish)

    @rule(wish=WISHES, policy=POLICIES)
    def pair(self, wish: RequestedTerms, policy: GrantPolicy) -> None:
        if self.state != "Active":
            self._pair(wish, policy)

    @rule(wish=WISHES, by_operator=st.booleans())
    def patch(self, wish: RequestedTerms, by_operator: bool) -> None:
        self._look_up()
        policy = GrantPolicy(self.policy.max_ttl) if by_operator else self.policy
        setting = SessionPolicy.REDUCE_ONLY if policy.reduce_only else SessionPolicy.OPEN
        patch = partial(
            self.sessions.patch,
            self.session,
            at(self.now),
            ttl=wish.ttl,
            grants=wish.grants,
            max_ttl=policy.max_ttl,
            policy=None if by_operator else setting,
        )
        if self.state != "Active":
            with pytest.raises((LocalProtocolError, Refused)):
                patch()
            return
        code = "" if by_operator else refusal(self.terms, self.withheld, wish, policy, self.wall)
        if code:
            with pytest.raises(Refused) as caught:
                patch()
            assert (caught.value.status, caught.value.code) == (403, code)
            return
        patch()
        self.terms = patched(self.terms, self.named, wish, policy, self.wall)
        self.named |= {*(wish.grants or ())}
        self.withheld |= _withheld(wish) if by_operator else set()

    @rule()
    def revoke(self) -> None:
        self._look_up()
        if self.state != "Active":
            with pytest.raises(LocalProtocolError):
                self.sessions.revoke(self.session, at(self.now))
            return
        self.sessions.revoke(self.session, at(self.now))
        self.state = "Revoked"

    @precondition(lambda self: self.state == "Active")
    @rule()
    def restart(self) -> None:
        self._look_up()
        record = json.loads(json.dumps(self.session.to_record()))
        assert PairedSession.from_record(record) == self.session or self.state != "Active"
        self.sessions = PairedSessionRegistry()
        loaded = self.sessions.restore(record, at(self.now))
        assert (loaded is not None) is (self.state == "Active")
        self.session = loaded or self.session

    @rule(seconds=st.sampled_from((1.0, 59.0, DAY, 8 * DAY)))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @rule(data=st.data(), before=st.sampled_from((0.0, 1.0)))
    def wait_for_an_end(self, data: st.DataObject, before: float) -> None:
        ends = sorted({end - before for end in self.terms.grants.values() if self.wall < end - before < inf})
        if ends:
            self.now += data.draw(st.sampled_from(ends)) - self.wall

    @rule()
    def the_clock_is_set_back(self) -> None:
        self._look_up()
        self.now = max(0.0, self.now - DAY)

    @invariant()
    def it_holds_what_was_granted_until_its_end(self) -> None:
        # Spec "Grants": "a per-channel permission with its own expiry"; wire core 4.1: one missing "counts as expired".
        is_alive = self.state == "Active" and self.wall < self.terms.expires_at
        assert self.session.is_active(self.wall) is is_alive
        channels = (*CHANNELS, "unheard of")
        held = [channel for channel in channels if is_alive and self.wall < self.terms.until(channel)]
        assert [channel for channel in channels if self.session.holds(channel, self.wall)] == held

    @invariant()
    def no_grant_outlives_it(self) -> None:
        # Spec "Grants": "A grant never outlives its session"; "Paired-device record": "null when it never expires".
        assert all(end <= self.terms.expires_at for end in self.terms.grants.values())
        record = session_record(self.session, is_current=True)
        assert record["grants"] == {channel: _written(end) for channel, end in self.terms.grants.items()}
        assert record["expires_at"] == _written(self.terms.expires_at)

    def _look_up(self) -> None:
        is_alive = self.state == "Active" and self.wall < self.terms.expires_at
        assert self.sessions.lookup(self.token, at(self.now)) is (self.session if is_alive else None)
        if self.state == "Active" and not is_alive:
            self.state = "Expired"
        assert self.session.state is SessionState(self.state)


def _withheld(wish: RequestedTerms) -> set[str]:
    return {channel for channel, span in (wish.grants or {}).items() if span is None}


def _written(end: float) -> float | None:
    return None if end == inf else end


TestSessionAgainstAModel = SessionAgainstAModel.TestCase
TestSessionAgainstAModel.settings = settings(max_examples=40, stateful_step_count=25)
