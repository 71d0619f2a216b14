from __future__ import annotations

import re
from functools import partial
from itertools import cycle

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from svc_proto.voice.provider_interface import AudioDelta, SpokenTextDelta
from svc_proto.voice.realtime.actions import ConversationAction, Emit, EmitAudio, ReadAloud
from svc_proto.voice.realtime.answer_playback import (
    MAX_HELD,
    MAX_TEXT,
    AnswerPlayback,
    PlaybackState,
    Said,
    SpokenAnswer,
    matches_answer,
)
from tests.voice.realtime.dialogue import names

TEXT = "The disk is 62 percent used, and 40 gigabytes are free."


def judging(spoken: str = TEXT) -> AnswerPlayback:
    """Return a playback that has requested the provider's speech for the answer."""
    playback = AnswerPlayback("svc", lambda: "1")
    playback.start(SpokenAnswer(call_id="k1", run_id="n1", text=f"# {spoken}", spoken=spoken))
    assert playback.provider_request() == ReadAloud(spoken)
    return playback


@pytest.mark.parametrize(
    ("said", "answer", "so"),
    [
        ("Your disk is at 62 percent.", TEXT, True),
        ("Your disk is fine.", TEXT, False),
        ("I could not find anything about that.", TEXT, False),
        ("It is forty-two.", "42", False),
        ("It is 42.", "42", True),
        ("Yes.", "No.", True),  # no common word to compare
        ("Yes.", "Fan off.", True),  # nothing to compare either
        ("  ", "No.", False),
        ("磁盘已经用了一半", "磁盘用了百分之六十二", True),
        ("今天天气很好", "磁盘用了百分之六十二", False),
        ("This will be what they have", "this will be what they have", True),  # common words do not count
    ],
)
def test_speech_that_matches_the_answer(said: str, answer: str, so: bool) -> None:
    assert matches_answer(said, answer) is so


@pytest.mark.parametrize(
    ("held", "state"),
    [
        (SpokenTextDelta("r2", "62 percent of the disk.".ljust(39)), PlaybackState.JUDGING),
        (SpokenTextDelta("r2", "62 percent of the disk.".ljust(40)), PlaybackState.SPEAKING),
        (SpokenTextDelta("r2", " " * MAX_TEXT), PlaybackState.JUDGING),
        (SpokenTextDelta("r2", " " * (MAX_TEXT + 1)), PlaybackState.REJECTED),
        (AudioDelta("r2", bytes(MAX_HELD)), PlaybackState.JUDGING),
        (AudioDelta("r2", bytes(MAX_HELD + 1)), PlaybackState.REJECTED),
    ],
    ids=str,
)
def test_amount_of_speech_that_is_judged(held: Said, state: PlaybackState) -> None:
    playback = judging()
    playback.on_speech(held)
    assert playback.state is state


# Answers with the expected content words, and how many of them the speech must contain.
SAMPLES = (
    ("The disk is 62 percent used, 40 gigabytes are free.", "disk 62 percent used 40 gigabytes free", 2),
    ("It is 42.", "42", 1),
    ("No.", "", 0),  # nothing to compare: any word is accepted
)
TEXTS = "My disk here, by the way, has 62 percent|s of it. |Disk |42 |62 perc|ent, |the used one |what? | "
PIECES = st.sampled_from(TEXTS.split("|")).map(partial(SpokenTextDelta, "r2")) | st.binary(min_size=1, max_size=4).map(
    partial(AudioDelta, "r2")
)


class PlaybackAgainstAModel(RuleBasedStateMachine):
    """`AnswerPlayback` beside a model: `said` is the output that must be played, `told` has the actions for the client.

    After one answer comes the next.
    """

    def __init__(self) -> None:
        super().__init__()
        self.samples = cycle(SAMPLES)
        self._asked()

    def _asked(self) -> None:
        self.spoken, self.words, self.needed = next(self.samples)
        self.playback = judging(self.spoken)
        self.said: list[Said] = []
        self.told: list[ConversationAction] = []
        self.on_script = self.sound_over = False

    # --- rules ---

    @rule(pieces=st.lists(PIECES, min_size=1, max_size=4))
    def speaks(self, pieces: list[Said]) -> None:
        for held in pieces:
            self.told += self.playback.on_speech(held)
            self.said.append(held)
            self.on_script |= len(self._text()) >= 40 and self._is_answer()
            assert self.playback.state is (PlaybackState.SPEAKING if self.on_script else PlaybackState.JUDGING)
            assert self.playback.response_id == ("r2" if self.on_script else None)

    @rule()
    def has_sounded(self) -> None:
        if not self.sound_over:
            self.sound_over = True
            self.told += self.playback.audio_done("r2")

    @rule()
    def ends(self) -> None:
        orders = self.playback.complete("r2")
        silent = not self._text().strip() and bool(self._sound())
        assert bool(orders) is (self.on_script or silent or self._is_answer())
        assert self.playback.state is (PlaybackState.SILENT if orders else PlaybackState.REJECTED)
        if silent:  # audio without a transcript: the expected text is shown with it
            self.said.insert(0, SpokenTextDelta("r2", self.spoken))
        if orders:
            self._is_over(orders, sound=self.sound_over)
        self._asked()

    @rule(cancelled=st.booleans())
    def is_given_up(self, cancelled: bool) -> None:
        heard = self.on_script
        if not heard:
            self.said = [SpokenTextDelta("r2", f"# {self.spoken}")]
            self.told = []
        orders = self.playback.give_up(cancelled=cancelled)
        assert ("cancelled" in dict(orders[-1].fields)) is (cancelled and heard)  # type: ignore[union-attr]  # of the end
        self._is_over(orders, sound=heard, kind="forced_summary" if heard else "visual_only")
        self._asked()

    # --- invariants ---

    @invariant()
    def nothing_foreign_is_heard(self) -> None:
        # Wire terminal-voice 6.6 step 6: "held back until 40+ characters share two content words with the answer".
        assert self.on_script is bool([order for order in self.told if names([order]) != ["output_audio.done"]])

    def _is_over(self, orders: list[ConversationAction], *, sound: bool, kind: str = "forced_summary") -> None:
        """Require that all output was played in order, with one start, one end and the kind of delivery."""
        self.told += orders
        types = names(self.told)
        counts = [types.count(f"response.{each}") for each in ("started", "done")]
        assert (types[0], types[-1], counts) == ("response.started", "response.done", [1, 1])
        assert types.count("output_audio.done") == sound
        emits = [order for order in self.told if isinstance(order, Emit)]
        audio = [order for order in self.told if isinstance(order, EmitAudio)]
        assert "".join(str(order.fields.get("delta", "")) for order in emits) == self._text()
        assert b"".join(order.data for order in audio) == self._sound()
        ways = {fields["delivery"] for fields in (*(each.fields for each in emits), *(each.extra for each in audio))}
        assert ways == {kind}

    def _text(self) -> str:
        return "".join(held.delta for held in self.said if isinstance(held, SpokenTextDelta))

    def _sound(self) -> bytes:
        return b"".join(held.data for held in self.said if isinstance(held, AudioDelta))

    def _is_answer(self) -> bool:
        shared = {word for word in re.split(r"[^a-z0-9]+", self._text().lower()) if word in self.words.split()}
        return bool(self._text().strip()) and len(shared) >= self.needed


TestPlaybackAgainstAModel = PlaybackAgainstAModel.TestCase
TestPlaybackAgainstAModel.settings = settings(max_examples=50, stateful_step_count=25)
