"""An answer on its way to the ear: what counts as the answer and what is told of it; and beside plain lists: nothing
foreign is heard, and nothing of it is lost or doubled. What follows from it: `test_delivery`.
"""

from __future__ import annotations

import re
from itertools import count, cycle

import pytest
from attrs import frozen
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from svc_proto.voice.realtime.mouth import (
    JUDGED_FROM,
    MAX_HELD,
    MAX_TEXT,
    Held,
    Mouth,
    MouthState,
    SpokenAnswer,
    on_script,
)
from svc_proto.voice.realtime.orders import Emit, EmitAudio, Order, ReadAloud, Render
from tests.voice.realtime.book import names

TEXT = "The disk is 62 percent used, and 40 gigabytes are free."
SUMMARY = {"response_id": "r2", "delivery": "forced_summary"}


def judging() -> Mouth:
    """The provider was asked to speak the answer."""
    mouth = Mouth("svc", lambda: "1")
    mouth.take(SpokenAnswer(call_id="k1", run_id="n1", text=f"# {TEXT}", spoken=TEXT))
    assert mouth.ask() == ReadAloud(TEXT)
    return mouth


@pytest.mark.parametrize(
    ("said", "answer", "so"),
    [
        ("Your disk is at 62 percent.", TEXT, True),
        ("Your disk is fine.", TEXT, False),
        ("I could not find anything about that.", TEXT, False),
        ("It is forty-two.", "42", False),
        ("It is 42.", "42", True),
        ("Yes.", "No.", True),  # nothing to compare by
        ("Yes.", "Fan off.", True),  # nothing either
        ("  ", "No.", False),
        ("磁盘已经用了一半", "磁盘用了百分之六十二", True),
        ("今天天气很好", "磁盘用了百分之六十二", False),
        ("This will be what they have", "this will be what they have", True),  # common words say nothing
    ],
)
def test_what_is_on_script(said: str, answer: str, so: bool) -> None:
    assert on_script(said, answer) is so


def test_held_back_until_it_is_the_answer_then_streamed() -> None:
    way = judging()
    assert way.hear("r2", Held(audio=b"\x00\x00")) == []
    assert way.hear("r2", Held(text="The disk of yours ")) == []
    told = way.hear("r2", Held(text="has 62 percent of its room in use"))
    assert way.state is MouthState.SPEAKING
    assert way.heard_in == "r2"
    assert told == [
        Emit("voice.response.started", SUMMARY),
        EmitAudio(response_id="r2", data=b"\x00\x00", extra={"delivery": "forced_summary"}),
        Emit("voice.response.delta", {"delta": "The disk of yours ", "source": "provider", **SUMMARY}),
        Emit("voice.response.delta", {"delta": "has 62 percent of its room in use", "source": "provider", **SUMMARY}),
    ]
    assert names(way.hear("r2", Held(text="."))) == ["response.delta"]
    assert names(way.audio_done("r2")) == ["output_audio.done"]
    assert names(way.complete("r2")) == ["response.done"]


@pytest.mark.parametrize(("size", "state"), [(39, MouthState.JUDGING), (40, MouthState.SPEAKING)])
def test_from_when_it_is_judged(size: int, state: MouthState) -> None:
    way = judging()
    way.hear("r2", Held(text="62 percent of the disk.".ljust(size)))
    assert way.state is state


def test_what_was_heard_in_part_just_ends() -> None:
    way = judging()
    way.hear("r2", Held(text=TEXT))
    assert way.give_up() == [Emit("voice.output_audio.done", SUMMARY), Emit("voice.response.done", SUMMARY)]
    way = judging()
    way.hear("r2", Held(text=TEXT))
    assert names(way.audio_done("r2")) == ["output_audio.done"]
    assert way.give_up(cancelled=True) == [Emit("voice.response.done", {**SUMMARY, "cancelled": True})]


@frozen
class Sample:
    """An answer, and by hand: its content words, and how many of them must be said."""

    spoken: str
    words: frozenset[str]
    needed: int


SAMPLES = (
    Sample(
        "The disk is 62 percent used, 40 gigabytes are free.",
        frozenset({"disk", "62", "percent", "used", "40", "gigabytes", "free"}),
        2,
    ),
    Sample("It is 42.", frozenset({"42"}), 1),
    Sample("No.", frozenset(), 0),  # nothing to compare by: any word will do
)
TEXTS = st.sampled_from(
    (
        "My disk here, by the way, has 62 percent",
        "s of it. ",
        "Disk ",
        "42 ",
        "62 perc",
        "ent, ",
        "the used one ",
        "what was the question again? ",
        " ",
        "",
    )
)


class MouthAgainstAModel(RuleBasedStateMachine):
    """`said` is all that the provider said, `told` what the client was told; `over` when nothing more is to come.

    Whoever speaks is the provider, and the relay once that is off script; after the end of one answer comes the next.
    """

    def __init__(self) -> None:
        super().__init__()
        self.samples = cycle(SAMPLES)
        self._answered()

    def _answered(self) -> None:
        self.sample = next(self.samples)
        answer = SpokenAnswer(call_id="k1", run_id="n1", text=f"# {self.sample.spoken}", spoken=self.sample.spoken)
        numbers = count(1)
        self.mouth = Mouth("svc", lambda: str(next(numbers)))
        self.mouth.take(answer)
        self.mouth.ask()
        self.on_script = False
        self.said: list[Held] = []
        self.told: list[Order] = []
        self.sound_over = self.given_up = False
        self.rendering: Render | None = None
        self.rendered_sound: list[bytes] = []
        self.over = False

    # --- what may happen ---

    @rule(texts=st.lists(TEXTS, min_size=1, max_size=4))
    def speaks(self, texts: list[str]) -> None:
        for text in texts:
            if self._provider():
                self._hear(Held(text=text))

    @rule(sound=st.binary(min_size=1, max_size=4))
    def sounds(self, sound: bytes) -> None:
        if self._provider():
            self._hear(Held(audio=sound))
            return
        self.told += self.mouth.rendered_audio(EmitAudio(response_id="", data=sound, sample_rate=24_000))
        self.rendered_sound.append(sound)

    @rule(beyond=st.integers(-1, 1))
    def sounds_up_to_the_limit(self, beyond: int) -> None:
        if self._provider() and self.mouth.state is MouthState.JUDGING:
            room = MAX_HELD - sum(len(held.audio) for held in self.said)
            self._hear(Held(audio=bytes(max(0, room + beyond))))

    @rule(beyond=st.integers(-1, 1))
    def babbles_up_to_the_limit(self, beyond: int) -> None:
        if self._provider() and self.mouth.state is MouthState.JUDGING:
            room = MAX_TEXT - sum(len(held.text) for held in self.said)
            self._hear(Held(text=" " * max(0, room + beyond)))

    @rule()
    def has_sounded(self) -> None:
        if not self.over and not self.sound_over and self._provider():
            self.sound_over = True
            self.told += self.mouth.audio_done("r2")

    @rule()
    def ends(self) -> None:
        if self.over:
            return
        if not self._provider():
            self.told += self.mouth.rendered({"metrics": {}})
            self.over = True
            return
        heard = bool(self.told)
        orders = self.mouth.complete("r2")
        said = "".join(held.text for held in self.said)
        silent = not said.strip() and any(held.audio for held in self.said)
        self.on_script = counts = bool(orders)
        assert counts is (heard or silent or self._is_answer(said))
        assert self.mouth.state is (MouthState.SILENT if counts else MouthState.REJECTED)
        if silent:  # heard without a word: what it must have been is shown with it
            self.said.insert(0, Held(text=self.sample.spoken))
        self.told += orders
        self.over = counts

    @rule(cancelled=st.booleans())
    def is_given_up(self, cancelled: bool) -> None:
        if self.over:
            return
        self._provider()
        heard = bool(self.told)
        self.told += self.mouth.give_up(cancelled=cancelled)
        assert ("cancelled" in self._of("voice.response.done")[-1]) is (cancelled and heard)
        self.over = self.given_up = True

    # --- what must hold ---

    @invariant()
    def nothing_foreign_is_heard(self) -> None:
        # Wire terminal-voice 6.6 step 6: "held back until 40+ characters share two content words with the answer".
        if not self.on_script and self.rendering is None and not self.over:
            assert self.told == []

    @invariant()
    def what_is_heard_is_all_of_it_and_in_order(self) -> None:
        if not self.told:
            return
        deltas = "".join(str(fields["delta"]) for fields in self._of("voice.response.delta"))
        sounds = [order.data for order in self.told if isinstance(order, EmitAudio)]
        if self.on_script:
            assert deltas == "".join(held.text for held in self.said)
            assert sounds == [held.audio for held in self.said if held.audio]
        else:
            assert deltas == (self.sample.spoken if self.rendered_sound else self.mouth.answer.text)
            assert sounds == self.rendered_sound

    @invariant()
    def it_begins_once_and_ends_once(self) -> None:
        # Wire terminal-voice 6.5: "every turn must end in `voice.response.done`".
        types = [order.type for order in self.told if isinstance(order, Emit)]
        assert types.count("voice.response.started") == bool(self.told)
        assert types.count("voice.response.done") == self.over
        assert types.count("voice.output_audio.done") <= 1
        if self.over:  # and so does its sound, if there was any
            heard = self.on_script and (self.sound_over or self.given_up)
            assert types.count("voice.output_audio.done") == (heard or bool(self.rendered_sound))
        if self.told:
            assert types[0] == "voice.response.started"
        if self.over:
            assert types[-1] == "voice.response.done"

    @invariant()
    def it_says_how_it_is_delivered(self) -> None:
        # Wire terminal-voice 6.6: `forced_summary` (provider voice), `fallback` (relay-rendered), `visual_only`.
        by_relay = "fallback" if self.rendered_sound else "visual_only"
        kind = "forced_summary" if self.on_script else by_relay
        for order in self.told:
            fields = order.fields if isinstance(order, Emit) else order.extra if isinstance(order, EmitAudio) else {}
            assert fields["delivery"] == kind

    def _provider(self) -> bool:
        """Whether it is the provider that speaks; if not, the relay does."""
        if self.over:
            self._answered()
        if self.mouth.state in (MouthState.JUDGING, MouthState.SPEAKING):
            return True
        if self.rendering is None:
            order = self.mouth.render()
            assert isinstance(order, Render)
            assert order.text == self.sample.spoken
            self.rendering = order
        return False

    def _hear(self, held: Held) -> None:
        before = self.mouth.state
        self.told += self.mouth.hear("r2", held)
        self.said.append(held)
        sound, text = (
            sum(sizes) for sizes in zip(*((len(each.audio), len(each.text)) for each in self.said), strict=True)
        )
        if before is MouthState.JUDGING:
            expected = MouthState.JUDGING if sound <= MAX_HELD and text <= MAX_TEXT else MouthState.REJECTED
            self.on_script = self._is_answer_so_far()
            assert self.mouth.state is (MouthState.SPEAKING if self.on_script else expected)

    def _is_answer_so_far(self) -> bool:
        said = "".join(held.text for held in self.said)
        return len(said) >= JUDGED_FROM and self._is_answer(said)

    def _is_answer(self, said: str) -> bool:
        shared = {word for word in re.split(r"[^a-z0-9]+", said.lower()) if word in self.sample.words}
        return bool(said.strip()) and len(shared) >= self.sample.needed

    def _of(self, kind: str) -> list[dict[str, object]]:
        return [dict(order.fields) for order in self.told if isinstance(order, Emit) and order.type == kind]


TestMouthAgainstAModel = MouthAgainstAModel.TestCase
TestMouthAgainstAModel.settings = settings(max_examples=50, stateful_step_count=25)
