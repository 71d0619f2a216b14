"""Stateful tests of relay and API with Hypothesis: the rules of `fuzz.cores` hold for every sequence of facts.

The rules are checked after every fact: `handle` never raises, and every command is permitted by the contract. Nothing
exceeds its limit, no secret is logged, HTTP requests get HTTP responses, and in the end the process ends.
"""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from fuzz.cores.driver import MAX_CHANNELS
from fuzz.cores.script import CoreScriptRun, ServiceKind

WHO = st.integers(0, 255)
WHAT = st.integers(0, 255)


class AnyCore(RuleBasedStateMachine):
    """State machine of Hypothesis: random actions on one service, from its start to its end."""

    play: CoreScriptRun
    kind: ServiceKind

    @initialize(http2=st.booleans())
    def start(self, http2: bool) -> None:
        self.play = CoreScriptRun(self.kind)
        self.play.connect(int(http2), 0)
        self.play.send_request(0, 0)

    @rule(who=st.integers(0, 2), what=st.integers(0, 1))
    def come(self, who: int, what: int) -> None:
        self.play.connect(who, what)

    @rule(who=WHO, what=WHAT)
    def ask(self, who: int, what: int) -> None:
        self.play.send_request(who, what)

    @rule(who=WHO, what=WHAT)
    def say(self, who: int, what: int) -> None:
        self.play.send_envelope(who, what)

    @rule(who=WHO, what=WHAT)
    def speak(self, who: int, what: int) -> None:
        self.play.send_bytes(who, what)

    @rule(who=WHO, what=WHAT)
    def answer(self, who: int, what: int) -> None:
        self.play.answer(who, what)

    @rule()
    def answer_all(self) -> None:
        self.play.answer_all(0, 0)

    @rule(who=WHO, what=WHAT)
    def take(self, who: int, what: int) -> None:
        self.play.drain(who, what)

    @rule(who=WHO, what=WHAT)
    def trickle(self, who: int, what: int) -> None:
        self.play.deliver_some(who, what)

    @rule(who=WHO, what=WHAT)
    def give_up(self, who: int, what: int) -> None:
        self.play.reset_stream(who, what)

    @rule(late=st.booleans(), what=st.integers(0, 11))
    def wait(self, late: bool, what: int) -> None:
        self.play.wait(0 if late else 1, what)

    @rule(who=WHO)
    def close_read(self, who: int) -> None:
        self.play.close_read(who, 0)

    @rule(who=WHO, what=st.integers(0, 2))
    def close(self, who: int, what: int) -> None:
        self.play.close(who, what)

    @rule(who=WHO, what=WHAT)
    def disturb(self, who: int, what: int) -> None:
        self.play.inject_noise(who, what)

    @rule(often=st.integers(0, 7))
    def stop(self, often: int) -> None:
        self.play.stop(0, often)

    @invariant()
    def nobody_is_left_over(self) -> None:
        driver = self.play.driver
        assert len(driver.accepted_peers) <= MAX_CHANNELS
        if not driver.exits:
            known = driver.engine.channel_count
            assert known >= len([peer for peer in driver.peers.values() if not peer.aborted]), "a channel has no peer"

    def teardown(self) -> None:
        if hasattr(self, "play"):
            self.play.driver.finish()


class AnyRelay(AnyCore):
    kind = ServiceKind.RELAY


class AnyApi(AnyCore):
    kind = ServiceKind.API


TestAnyRelay = AnyRelay.TestCase
TestAnyRelay.settings = settings(max_examples=25, stateful_step_count=40)
TestAnyApi = AnyApi.TestCase
TestAnyApi.settings = settings(max_examples=25, stateful_step_count=40)
