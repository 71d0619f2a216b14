"""The relay and the API in the hands of Hypothesis: whatever happens, and whenever, the rules of `fuzz.cores` hold.

They are looked at after every fact: `handle` never raises, every command is one that the contract allows, nothing grows
over its limit, no secret is logged, whoever speaks HTTP is spoken to in HTTP, and in the end the process ends.
"""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from fuzz.cores.driver import MOST_CHANNELS
from fuzz.cores.script import Kind, Play

WHO = st.integers(0, 255)
WHAT = st.integers(0, 255)


class AnyCore(RuleBasedStateMachine):
    """One service from its start to its end."""

    play: Play
    kind: Kind

    @initialize(http2=st.booleans())
    def start(self, http2: bool) -> None:
        self.play = Play(self.kind)
        self.play.come(int(http2), 0)
        self.play.ask(0, 0)

    @rule(who=st.integers(0, 2), what=st.integers(0, 1))
    def come(self, who: int, what: int) -> None:
        self.play.come(who, what)

    @rule(who=WHO, what=WHAT)
    def ask(self, who: int, what: int) -> None:
        self.play.ask(who, what)

    @rule(who=WHO, what=WHAT)
    def say(self, who: int, what: int) -> None:
        self.play.say(who, what)

    @rule(who=WHO, what=WHAT)
    def speak(self, who: int, what: int) -> None:
        self.play.speak(who, what)

    @rule(who=WHO, what=WHAT)
    def answer(self, who: int, what: int) -> None:
        self.play.answer(who, what)

    @rule()
    def answer_all(self) -> None:
        self.play.answer_all(0, 0)

    @rule(who=WHO, what=WHAT)
    def take(self, who: int, what: int) -> None:
        self.play.take(who, what)

    @rule(who=WHO, what=WHAT)
    def trickle(self, who: int, what: int) -> None:
        self.play.trickle(who, what)

    @rule(who=WHO, what=WHAT)
    def give_up(self, who: int, what: int) -> None:
        self.play.give_up(who, what)

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
        self.play.disturb(who, what)

    @rule(often=st.integers(0, 7))
    def stop(self, often: int) -> None:
        self.play.stop(0, often)

    @invariant()
    def nobody_is_left_over(self) -> None:
        driver = self.play.driver
        assert len(driver.visitors) <= MOST_CHANNELS
        if not driver.exits:
            known = driver.engine.channel_count
            assert known >= len([peer for peer in driver.peers.values() if not peer.aborted]), "a channel is nobody's"

    def teardown(self) -> None:
        if hasattr(self, "play"):
            self.play.driver.finish()


class AnyRelay(AnyCore):
    kind = Kind.RELAY


class AnyApi(AnyCore):
    kind = Kind.API


TestAnyRelay = AnyRelay.TestCase
TestAnyRelay.settings = settings(max_examples=25, stateful_step_count=40)
TestAnyApi = AnyApi.TestCase
TestAnyApi.settings = settings(max_examples=25, stateful_step_count=40)
