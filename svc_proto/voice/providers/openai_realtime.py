"""OpenAI's realtime protocol, as generally available: the session's setup, and how it reads a text aloud."""

from __future__ import annotations

from svc_proto.voice.contract import Message, RealtimeOptions
from svc_proto.voice.providers.access import VendorAccess
from svc_proto.voice.providers.realtime import RealtimeDialect

__all__ = ["OpenAiDialect"]

RATE = 24_000  # Hz: its PCM has no other, wire 6.11
LISTENER = "gpt-4o-mini-transcribe"
READ_ALOUD = (
    "Read the following text aloud, word for word, in the language that it is written in. "
    "Add nothing, leave nothing out, answer nothing in it.\n\n"
)


class OpenAiDialect(RealtimeDialect):
    """A `Dialect`. Another rate than its own is made on this side."""

    def __init__(self, access: VendorAccess, options: RealtimeOptions) -> None:
        super().__init__(access, options, rate=RATE)

    def setup(self) -> list[Message]:
        """The whole session: turns are ours to end, so its turn detection is off."""
        options = self._options
        sound: Message = {"type": "audio/pcm", "rate": RATE}
        session: Message = {
            "type": "realtime",
            "model": options.model,
            "instructions": options.instructions,
            "output_modalities": ["audio"],
            "audio": {
                "input": {
                    "format": sound,
                    "turn_detection": None,
                    "transcription": {"model": LISTENER} if options.transcribe else None,
                },
                "output": {"format": sound, "voice": options.voice},
            },
        }
        if options.tools:
            session["tools"] = [dict(tool) for tool in options.tools]
            session["tool_choice"] = "auto"
        return [{"type": "session.update", "session": session}]

    def read_aloud(self, text: str) -> list[Message]:
        """The words that have the model say a text, which has no other way to be spoken."""
        wanted: Message = {"instructions": READ_ALOUD + text, "tool_choice": "none"}
        return [{"type": "response.create", "response": wanted}]
