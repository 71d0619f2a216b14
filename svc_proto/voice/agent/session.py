"""What both kinds of realtime agent session share: their settings, what a client says, how it is told."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING

from attrs import frozen

from svc_proto.basics.errors import Refused
from svc_proto.basics.validate import integer, optional, text
from svc_proto.machines.background_rules import BackgroundRules
from svc_proto.machines.broker_orders import Emit, Note
from svc_proto.machines.voice_session import Cursor
from svc_proto.voice.agent.instructions import ContextMessage
from svc_proto.voice.agent.interface import interface_of
from svc_proto.voice.agent.tools import tool_surface
from svc_proto.voice.choice import MAX_RATE, MIN_RATE
from svc_proto.voice.family import ChosenSession
from svc_proto.voice.pcm import whole_samples
from svc_proto.voice.session import MAX_DELTA
from svc_proto.voice.settings import RealtimeSettings
from svc_proto.voice.speaking import audio_of, text_of

if TYPE_CHECKING:
    from svc_proto.voice.principal import Principal
    from svc_proto.voice.service import Voice
    from svc_proto.voice.session_table import SessionTable
    from svc_proto.voice_config import VoiceConfig

__all__ = ["AgentSession", "AgentSetup"]

MAX_WORD = 256  # characters of an id or of an answer
CONFIRM = ("svc.confirm", "hermes.confirm")  # both spellings, always (wire terminal-voice 0.1)
RESPEAK = ("svc.result.respeak", "hermes.result.respeak")


@frozen(kw_only=True)
class AgentSetup:
    """What a session is made with (wire terminal-voice 6.2)."""

    chosen: RealtimeSettings
    chat_session_id: str | None = None
    context: tuple[ContextMessage, ...] = ()
    final_answer_only: bool = False

    @property
    def result_delivery(self) -> str:
        """How the answer of a run reaches the person."""
        return "speak_verbatim" if self.final_answer_only else self.chosen.promotion.result_delivery

    def background_rules(self, config: VoiceConfig) -> BackgroundRules:
        """What may go on in the background, and what is said of it."""
        promotion = self.chosen.promotion
        return BackgroundRules(
            enabled=promotion.enabled,
            promote_after=promotion.promote_after_ms / 1000,
            spoken_handoff=promotion.spoken_handoff and not self.final_answer_only,
            progress_after=0.0 if self.final_answer_only else promotion.progress_spoken_after_ms / 1000,
            progress_repeat=promotion.progress_repeat_ms / 1000,
            longest=config.background_max,
            slow_tools=config.slow_tools,
        )


class AgentSession(ChosenSession[RealtimeSettings], ABC):
    """One voice session of the realtime agent."""

    kind = "voice.realtime_agent"
    family = "realtime-agent"

    def __init__(
        self,
        voice: Voice,
        table: SessionTable[AgentSession],
        principal: Principal,
        setup: AgentSetup,
    ) -> None:
        window, runs = voice.config.resume_ttl, voice.config.agent_runs
        super().__init__(voice, table, principal, setup.chosen, window=window, runs=runs)
        self.word = voice.config.brand.name
        self.chat_session_id = setup.chat_session_id
        self.context = setup.context
        self.input_bytes = 0  # of microphone audio, in all
        self.last_chunk = 0  # the greatest id of a piece of it; clients count from 1

    @property
    def interface(self) -> dict[str, object]:
        """What this session is."""
        return interface_of(self.chosen, self.word, self.chat_session_id, self.engine.now)

    # --- for the kinds ---

    @abstractmethod
    def hear(self, pcm: bytes, rate: int) -> None:
        """Some of the person's audio, whole samples."""

    @abstractmethod
    def commit(self, said: str | None) -> None:
        """An utterance is complete. `said`: the client's own transcript."""

    @abstractmethod
    def clear(self) -> None:
        """Forget what was not committed."""

    @abstractmethod
    def say(self, said: str) -> None:
        """A text turn."""

    @abstractmethod
    def cancel(self) -> None:
        """The client wants the turn to stop."""

    def played(self, call_id: str | None) -> None:
        """What was sent is played."""

    @abstractmethod
    def confirm(self, confirmation_id: str | None, answer: str) -> None:
        """An answer to a question of the run."""

    def respeak(self) -> None:
        """Say the last answer from the background again: without one, there is none."""
        self.emit(f"{self.word}.result.respeak_unavailable")

    # --- telling ---

    def tell(self, emit: Emit) -> None:
        """An event of the broker, with what all of its kind carry (wire terminal-voice 6.5)."""
        fields = dict(emit.fields)
        match emit.type:
            case "voice.response.started":
                about = {**self.choice(), "session_id": self.id, "chat_session_id": self.chat_session_id}
                self.emit(emit.type, **{**about, **fields})
            case "voice.response.done":
                about = {**self.choice(), "event_log_path": self.log.path, "chat_session_id": self.chat_session_id}
                self.emit(emit.type, **{**about, **fields})
            case "voice.error":
                self.emit(emit.type, **{"provider": self.chosen.provider, "session_id": self.id, **fields})
            case kind if kind.startswith(f"{self.word}."):
                self.emit(kind, **self.run_fields(fields))
            case kind:
                self.emit(kind, **fields)

    def run_fields(self, fields: dict[str, object]) -> dict[str, object]:
        """Members of what is told of a run."""
        return fields

    def write(self, note: Note) -> None:
        """A line of the log alone."""
        self.note(note.type, **note.fields)

    def sound(self, pcm: bytes, rate: int, **fields: object) -> None:
        """Some of what is spoken, in pieces that are not too large."""
        data = whole_samples(pcm)
        for start in range(0, len(data), MAX_DELTA):
            self.emit_audio("voice.output_audio.delta", data[start : start + MAX_DELTA], rate, **fields)

    # --- VoiceSession ---

    def ready_fields(self) -> dict[str, object]:
        """Members of `voice.session.ready`."""
        return {
            **super().ready_fields(),
            "mode": "realtime_agent",
            "experimental": True,
            "last_input_chunk_id": self.last_chunk,
            "chat_session_id": self.chat_session_id,
            "tool_surface": tool_surface(self.word),
            "interface": self.interface,
        }

    def resumed_fields(self, cursor: Cursor) -> dict[str, object]:
        """Members of `voice.session.resumed`."""
        return {**super().resumed_fields(cursor), "last_input_chunk_id": self.last_chunk}

    def on_start(self) -> None:
        """`ready` was said already (wire 6.4)."""

    def on_message(self, kind: str, message: Mapping[str, object]) -> bool:
        """What a client may say (wire 6.4)."""
        match kind:
            case "input_audio.append":
                self._append(message)
            case "input_audio.commit":
                self.commit(text_of(message))
            case "input_audio.clear":
                self.clear()
            case "response.create":
                said = text_of(message)
                if not said:
                    raise Refused(400, "text_missing", "text is required")
                self.say(said)
            case "response.cancel":
                self.cancel()
            case "playback.drained":
                self.acknowledge(message)
                self.played(_word(message, "call_id"))
            case _ if kind in CONFIRM:
                self.confirm(_word(message, "confirmation_id"), (_word(message, "answer") or "").strip().lower())
            case _ if kind in RESPEAK:
                self.respeak()
            case _:
                return False
        return True

    # --- the microphone ---

    def _append(self, message: Mapping[str, object]) -> None:
        rate = integer(message.get("sample_rate", 24_000), "sample_rate", MIN_RATE, MAX_RATE)
        pcm = whole_samples(audio_of(message))
        chunk = optional(message, "chunk_id", integer)
        again = chunk is not None and chunk <= self.last_chunk
        if not again:
            self.last_chunk = self.last_chunk if chunk is None else chunk
            self.input_bytes += len(pcm)
            self.hear(pcm, rate)
        told: dict[str, object] = {"input_chunk_id": chunk, "byte_count": len(pcm)}
        told |= {"total_bytes": self.input_bytes, "sample_rate": rate}
        self.emit("voice.input_audio.received", **told, **({"duplicate": True} if again else {}))


def _word(message: Mapping[str, object], name: str) -> str | None:
    return optional(message, name, lambda value, field: text(value, field)[:MAX_WORD])
