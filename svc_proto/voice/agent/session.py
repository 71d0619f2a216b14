"""What both modes of a realtime agent share: their settings, what a client says, how it is told."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, ClassVar

from attrs import frozen

from svc_proto.basics.errors import Refused
from svc_proto.basics.pcm import whole_samples
from svc_proto.basics.validate import integer, optional, text
from svc_proto.voice.agent.instructions import ContextMessage
from svc_proto.voice.agent.runs import ApiRuns
from svc_proto.voice.agent.tools import tool_surface
from svc_proto.voice.realtime.orders import Emit
from svc_proto.voice.realtime.run import BackgroundRules
from svc_proto.voice.realtime.story import RunEvent
from svc_proto.voice.session import MAX_DELTA, VoiceMode, VoiceSession
from svc_proto.voice.settings import MAX_RATE, MIN_RATE, RealtimeSettings
from svc_proto.voice.speaking import audio_of, text_of

if TYPE_CHECKING:
    from svc_proto.basics.moment import Moment
    from svc_proto.voice_config import VoiceConfig

__all__ = ["AgentMode", "AgentSetup", "interface_of"]

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
            max_runs=promotion.max_background_runs,
            longest=config.background_max,
            slow_tools=config.slow_tools,
        )


class AgentMode(VoiceMode, ABC):
    """What both modes have: the client's messages become its calls, and what is told of those becomes events."""

    names_chat: ClassVar[bool]  # in what is told of runs

    def __init__(self, session: VoiceSession, setup: AgentSetup) -> None:
        super().__init__(session)
        self.chosen = setup.chosen
        self.word = session.voice.config.brand.name
        self.chat_session_id = setup.chat_session_id
        self.chat_runs = ApiRuns(session.voice, session.principal, self)
        self.input_bytes = 0  # of microphone audio, in all
        self.last_chunk = 0  # the greatest id of a piece of it; clients count from 1

    # --- what a client wants ---

    @abstractmethod
    def hear(self, pcm: bytes, rate: int) -> None:
        """A piece of what the microphone hears; `rate` in Hz."""

    @abstractmethod
    def commit(self, said: str | None) -> None:
        """An utterance is complete; what it says, where the client knows."""

    @abstractmethod
    def clear(self) -> None:
        """Forget what was not committed."""

    @abstractmethod
    def say(self, said: str) -> None:
        """A text turn."""

    @abstractmethod
    def cancel(self) -> None:
        """Stop whatever is going on, on the API server too."""

    @abstractmethod
    def confirm(self, confirmation_id: str | None, answer: str) -> None:
        """An answer to a question of the run."""

    def played(self, call_id: str | None) -> None:
        """What was sent is played."""

    @abstractmethod
    def respeak(self) -> None:
        """Say the last answer from the background again."""

    # --- what a run tells ---

    def drafts(self, call_id: str, delta: str) -> bool:
        """A run goes on with its answer. True: nobody is told of that, and nothing is due."""
        return False

    @abstractmethod
    def run_event(self, call_id: str, event: RunEvent) -> None:
        """The run tells something."""

    @abstractmethod
    def run_ended(self, call_id: str) -> None:
        """The run has ended well."""

    @abstractmethod
    def run_failed(self, call_id: str, message: str, error_code: str | None) -> None:
        """The run has failed, or was lost."""

    @abstractmethod
    def approved(self, call_id: str, confirmation_id: str, answer: str | None) -> None:
        """An answer was taken, or not wanted any more."""

    def approval_failed(self, call_id: str, confirmation_id: str, message: str) -> None:
        """An answer did not get there."""
        self.session.note("voice.realtime_agent.approval_failed", message=message)
        self.approved(call_id, confirmation_id, None)

    # --- telling ---

    @property
    def interface(self) -> dict[str, object]:
        """What this session is."""
        return interface_of(self.chosen, self.word, self.chat_session_id, self.engine.now)

    def tell(self, emit: Emit) -> None:
        """An event of a turn, with what all of its kind carry (wire terminal-voice 6.5)."""
        session, kind, fields = self.session, emit.type, emit.fields
        match kind:
            case "voice.response.started":
                about = {**session.choice(), "session_id": session.id, "chat_session_id": self.chat_session_id}
            case "voice.response.done":
                log = session.log.path
                about = {**session.choice(), "event_log_path": log, "chat_session_id": self.chat_session_id}
            case "voice.error":
                about = {"provider": self.chosen.provider, "session_id": session.id}
            case _ if self.names_chat and kind.startswith(f"{self.word}."):
                about = {"source": self.word, "chat_session_id": self.chat_session_id}
            case _:
                about = {}
        session.emit(kind, **{**about, **fields})

    def sound(self, pcm: bytes, rate: int, **fields: object) -> None:
        """Some of what is spoken, in pieces that are not too large."""
        data = whole_samples(pcm)
        for start in range(0, len(data), MAX_DELTA):
            self.session.emit_audio("voice.output_audio.delta", data[start : start + MAX_DELTA], rate, **fields)

    # --- Mode ---

    def ready_fields(self) -> dict[str, object]:
        """Members of `voice.session.ready`."""
        return {
            "mode": "realtime_agent",
            "experimental": True,
            "last_input_chunk_id": self.last_chunk,
            "chat_session_id": self.chat_session_id,
            "tool_surface": tool_surface(self.word),
            "interface": self.interface,
        }

    def resumed_fields(self) -> dict[str, object]:
        """Members of `voice.session.resumed`."""
        return {"last_input_chunk_id": self.last_chunk}

    def on_message(self, kind: str, message: Mapping[str, object]) -> bool:
        """What a client may say (wire 6.4)."""
        match kind:
            case "session.start":
                pass  # `ready` was said already
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
                self.session.acknowledge(message)
                self.played(_word(message, "call_id"))
            case _ if kind in CONFIRM:
                self.confirm(_word(message, "confirmation_id"), (_word(message, "answer") or "").strip().lower())
            case _ if kind in RESPEAK:
                self.respeak()
            case _:
                return False
        return True

    def on_revoked(self) -> None:
        """Nobody may have anything done any more: its runs stop."""
        self.chat_runs.stop_all()

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
        self.session.emit("voice.input_audio.received", **told, **({"duplicate": True} if again else {}))


def interface_of(chosen: RealtimeSettings, word: str, chat_session_id: str | None, now: Moment) -> dict[str, object]:
    """What a voice session is, as its client and the model are told: strings all, the chat session perhaps null.

    The time is the host's in UTC: the core knows no other.
    """
    local = datetime.fromtimestamp(int(now.wall), UTC)
    return {
        "client_surface": "voice",
        "engine": "realtime_agent",
        "engine_label": "Realtime agent",
        "stable_engine": f"{word}_voice_output",
        "stable_engine_label": "Voice output",
        "provider": chosen.provider,
        "model": chosen.model,
        "voice": chosen.voice,
        "profile": chosen.scope.profile or "default",
        "chat_session_id": chat_session_id,
        "config_scope": chosen.scope.config_scope,
        "path_summary": f"voice client > relay > {chosen.provider} and the agent on the host",
        "current_date": f"{local:%Y-%m-%d}",
        "current_time": f"{local:%H:%M}",
        "current_timezone": "UTC",
        "current_datetime": local.isoformat(),
    }


def _word(message: Mapping[str, object], name: str) -> str | None:
    return optional(message, name, lambda value, field: text(value, field)[:MAX_WORD])
