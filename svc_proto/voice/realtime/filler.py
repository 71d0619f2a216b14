"""Progress that is spoken: a sentence of the relay's own, between what the provider says (wire terminal-voice 6.5).

The relay renders it, since a provider would take it for a turn: it is sound and the end of that, no response, so that
no client takes it for the end of a turn. Whoever has something to say himself ends it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from attrs import define, evolve, field

from svc_proto.voice.realtime.orders import Emit, EmitAudio, Note, Order, Render, StopRendering

__all__ = ["Filler"]

DELIVERY = "progress"


@define(eq=False)
class Filler:
    """See the module. `word` is the product's word on this wire, `new_id` makes ids of responses."""

    word: str
    new_id: Callable[[], str]
    speaks: str | None = field(default=None, init=False)  # the id of what is being rendered

    def speak(self, told: Iterable[Order]) -> list[Order]:
        """Of what a run has told, speak what is to be spoken. Only while nobody speaks."""
        words = [each.fields["message"] for each in told if isinstance(each, Emit) and each.fields.get("should_speak")]
        if not words:
            return []
        self.speaks = f"{DELIVERY}-{self.new_id()}"
        return [Render(self.speaks, str(words[0]))]

    def sound(self, audio: EmitAudio) -> Order:
        """A piece of it."""
        return evolve(audio, response_id=self.speaks, extra={"source": self.word, "delivery": DELIVERY})

    def over(self, problem: str | None = None) -> list[Order]:
        """That was all of it, or all that can be had."""
        fields = {"response_id": self.speaks, "source": self.word, "delivery": DELIVERY}
        self.speaks = None
        note = [] if problem is None else [Note("voice.realtime_agent.progress_failed", {"message": problem})]
        return [*note, Emit("voice.output_audio.done", fields)]

    def stop(self) -> list[Order]:
        """Somebody else has the word."""
        return [] if self.speaks is None else [StopRendering(), *self.over()]
