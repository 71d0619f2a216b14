"""xAI's realtime protocol: OpenAI's with a setup of its own, and a message that is spoken as it stands."""

from __future__ import annotations

from svc_proto.voice.contract import Message, RealtimeOptions
from svc_proto.voice.providers.access import VendorAccess
from svc_proto.voice.providers.realtime import RealtimeDialect

__all__ = ["XaiDialect"]


class XaiDialect(RealtimeDialect):
    """A `Dialect`. It speaks and listens at the rate of the session."""

    def __init__(self, access: VendorAccess, options: RealtimeOptions) -> None:
        super().__init__(access, options, rate=options.sample_rate)

    def setup(self) -> list[Message]:
        """The whole session: turns are ours to end, so its turn detection is off."""
        options = self._options
        sound: Message = {"format": {"type": "audio/pcm", "rate": options.sample_rate}}
        session: Message = {
            "voice": options.voice,
            "instructions": options.instructions,
            "turn_detection": None,
            "audio": {"input": sound, "output": sound},
        }
        if options.tools:
            session["tools"] = [dict(tool) for tool in options.tools]
        return [{"type": "session.update", "session": session}]

    def read_aloud(self, text: str) -> list[Message]:
        """A `force_message`: no model is asked."""
        content = [{"type": "output_text", "text": text}]
        item: Message = {"type": "force_message", "role": "assistant", "content": content}
        return [{"type": "conversation.item.create", "item": item}]
