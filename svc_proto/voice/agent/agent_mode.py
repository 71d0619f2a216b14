"""Mode of a session with the agent: connects the client, the conversation, the API server and the providers."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import ClassVar

from attrs import frozen

from svc_proto.basics.errors import Refused
from svc_proto.basics.moment import Moment
from svc_proto.basics.pcm import wav_head, whole_samples
from svc_proto.basics.validate import integer, optional, text
from svc_proto.commands import DeleteBlob
from svc_proto.engine.files import spool_file
from svc_proto.engine.flow import Flow, Task
from svc_proto.facts import Failure
from svc_proto.machines.voice_session import VoiceState
from svc_proto.voice.agent.api_runs import ApiRuns
from svc_proto.voice.agent.instructions import ContextMessage, agent_instructions
from svc_proto.voice.provider_interface import AudioChunk, ProviderError, Recording, RenderResult, SpeechRequest
from svc_proto.voice.provider_registry import LOCAL
from svc_proto.voice.realtime import actions
from svc_proto.voice.realtime.actions import ConversationAction, Emit, ProviderAction
from svc_proto.voice.realtime.function_calls import tool_surface
from svc_proto.voice.realtime.native_conversation import NativeConversation
from svc_proto.voice.realtime.rendered_conversation import RenderedConversation
from svc_proto.voice.realtime.voice_runs import VoiceRuns
from svc_proto.voice.rendering import Rendering
from svc_proto.voice.service import VoiceServices
from svc_proto.voice.session import MAX_DELTA, VoiceMode, VoiceSession, error_message_of
from svc_proto.voice.settings import MAX_RATE, MIN_RATE, RealtimeSettings
from svc_proto.voice.speak_request import parse_audio, parse_text
from svc_proto.voice.speech_text import clean_for_speech

__all__ = ["AgentMode", "AgentSetup", "RenderedMode", "interface_of", "transcribe"]

MAX_WORD = 256  # characters of an id or of an answer
CONFIRM_MESSAGES = ("svc.confirm", "hermes.confirm")  # both prefixes are always accepted (wire terminal-voice 0.1)
RESPEAK_MESSAGES = ("svc.result.respeak", "hermes.result.respeak")


@frozen(kw_only=True)
class AgentSetup:
    """Options of a new agent session: its chat session, earlier messages, and `final_answer_only` (wire 6.2)."""

    chat_session_id: str | None = None
    context: tuple[ContextMessage, ...] = ()
    final_answer_only: bool = False


class AgentMode(VoiceMode, ABC):
    """Mode that performs a conversation's actions toward the client, the API server and the speech providers.

    `talk` is the conversation: the client's messages become calls of it, and its events go to the client.
    """

    names_chat: ClassVar[bool] = False  # whether events of runs name the chat session
    chosen: RealtimeSettings

    def __init__(self, session: VoiceSession, setup: AgentSetup) -> None:
        super().__init__(session)
        self.word = session.brand.name
        runs = VoiceRuns(
            word=self.word,
            speakable=clean_for_speech,
            session_id=setup.chat_session_id,
            profile=self.chosen.scope.profile,
        )
        self.talk = self.build_conversation(runs, setup)
        self.chat_runs = ApiRuns(session.voice, session.principal, self.talk, self.carry_out)
        self.input_bytes = 0  # of microphone audio, in total
        self.last_chunk = 0  # the greatest id of a microphone chunk; clients count from 1
        self._busy = False
        self._engine_work: Task | None = None  # a rendering or a transcription
        self._timer = self.engine.timers.timer(self.wake)

    @abstractmethod
    def build_conversation(self, runs: VoiceRuns, setup: AgentSetup) -> NativeConversation | RenderedConversation:
        """Create the conversation object of this session's mode."""

    def now(self) -> float:
        """Return monotonic seconds."""
        return self.engine.now.mono

    # --- actions ---

    def carry_out(self) -> None:
        """Perform the conversation's queued actions in order, including those that are added meanwhile.

        Then set the timer to the conversation's deadline, if it has one, and call `extend_session` for a detached
        session. A nested call does nothing; nothing is done after the session has closed.
        """
        if self._busy:
            return
        self._busy, orders = True, self.talk.out
        try:
            while orders and not self.session.closed:
                self._carry_out_action(orders.popleft())
        finally:
            self._busy = False
        if self.session.closed:
            return
        self._timer.schedule(self.talk.due)
        if self.session.life.state is VoiceState.DETACHED:
            self.extend_session()

    def extend_session(self) -> None:
        """Extend a detached session while work is in progress; by default, do nothing."""

    def wake(self) -> None:
        """Call `advance` of the conversation, whose deadline has passed, and perform the resulting actions."""
        self.talk.advance()
        self.carry_out()

    def ask_provider(self, order: ProviderAction) -> None:
        """Perform an action that only a provider that listens supports; by default, do nothing."""

    def _carry_out_action(self, order: ConversationAction) -> None:  # noqa: C901 - one row for each order
        match order:
            case actions.Emit():
                self.send_event(order)
            case actions.EmitAudio():
                self.send_audio(order)
            case actions.LogEvent():
                self.session.log_event(order.type, **order.fields)
            case actions.CloseClient(code=code, reason=reason):
                self.session.close(reason, code=code)
            case actions.StartRun():
                self.chat_runs.start(order, agent_instructions(self.interface))
            case actions.StopRun(call_id=call_id):
                self.chat_runs.stop(call_id)
            case actions.DetachRun(call_id=call_id):
                self.chat_runs.detach(call_id)
            case actions.FetchApproval():
                self.chat_runs.ask_about(order)
            case actions.AnswerApproval():
                self.chat_runs.approve(order)
            case actions.Render(response_id=response_id, text=text):
                chosen = self.chosen
                request = SpeechRequest(
                    text=text, model=chosen.model, voice=chosen.voice, sample_rate=chosen.sample_rate
                )
                self._engine_work = Rendering(self, request, response_id).task
            case actions.Transcribe(sound=sound, rate=rate):
                heard = transcribe(self.session.voice, self.chosen.provider, sound, rate)
                self._engine_work = self.engine.spawn(
                    heard, on_done=self._on_transcript, on_error=lambda error: self.rendered("", error, {})
                )
            case actions.StopRendering():
                self._stop_engine()
            case _:
                self.ask_provider(order)

    def _stop_engine(self) -> None:
        work, self._engine_work = self._engine_work, None
        if work is not None:
            work.cancel()

    # --- rendering and transcription ---

    def _on_transcript(self, text: str) -> None:
        assert isinstance(self.talk, RenderedConversation)  # only this conversation has speech transcribed
        self.talk.on_transcript(text)
        self.carry_out()

    def rendered_audio(self, response_id: str, chunk: AudioChunk) -> None:
        """Pass a piece of rendered audio to the conversation, then perform the conversation's actions."""
        audio = actions.EmitAudio(
            response_id=response_id, data=chunk.data, sample_rate=chunk.sample_rate, label=chunk.label
        )
        self.talk.rendered_audio(response_id, audio)
        self.carry_out()

    def rendered(self, response_id: str, done: RenderResult | Exception, fields: dict[str, object]) -> None:
        """Pass the end of rendering, or the failure of rendering or transcription, to the conversation.

        `response_id` is that of the `Render` action, and empty for a transcription. `fields` describe the result for
        the client, and are empty for a failure.
        """
        problem = error_message_of(self.engine, done) if isinstance(done, Exception) else None
        self.talk.rendered(response_id, fields, problem)
        self.carry_out()

    # --- events ---

    @property
    def chat_session_id(self) -> str | None:
        """The id of the chat session that runs use; None as long as there is none."""
        return self.talk.runs.session_id

    @property
    def interface(self) -> dict[str, object]:
        """The description of this voice session that the client and the model receive."""
        return interface_of(self.chosen, self.word, self.chat_session_id, self.engine.now)

    def send_event(self, emit: Emit) -> None:
        """Send an event of the conversation; some kinds get members such as the provider (wire terminal-voice 6.5)."""
        session, kind, fields = self.session, emit.type, emit.fields
        match kind:
            case "voice.response.started":
                about = {**session.settings_choice(), "session_id": session.id, "chat_session_id": self.chat_session_id}
            case "voice.response.done":
                log = session.log.path
                about = {**session.settings_choice(), "event_log_path": log, "chat_session_id": self.chat_session_id}
            case "voice.error":
                about = {"provider": self.chosen.provider, "session_id": session.id}
            case _ if self.names_chat and kind.startswith(f"{self.word}."):
                about = {"source": self.word, "chat_session_id": self.chat_session_id}
            case _:
                about = {}
        session.emit(kind, **{**about, **fields})

    def send_audio(self, audio: actions.EmitAudio) -> None:
        """Send PCM in events of at most `MAX_DELTA` bytes each; an incomplete sample at the end is dropped."""
        data, rate = whole_samples(audio.data), audio.sample_rate or self.chosen.sample_rate
        label = {} if audio.label is None else {"label": audio.label}
        fields = {"response_id": audio.response_id, **label, **audio.extra}
        for start in range(0, len(data), MAX_DELTA):
            self.session.emit_audio("voice.output_audio.delta", data[start : start + MAX_DELTA], rate, **fields)

    # --- VoiceMode ---

    def ready_fields(self) -> dict[str, object]:
        """Return the members that this mode adds to `voice.session.ready`."""
        return {
            "mode": "realtime_agent",
            "experimental": True,
            "last_input_chunk_id": self.last_chunk,
            "chat_session_id": self.chat_session_id,
            "tool_surface": tool_surface(self.word),
            "interface": self.interface,
        }

    def resumed_fields(self) -> dict[str, object]:
        """Return the members that this mode adds to `voice.session.resumed`."""
        return {"last_input_chunk_id": self.last_chunk}

    def on_message(self, kind: str, message: Mapping[str, object]) -> bool:
        """Handle a client's message (wire terminal-voice 6.4); return False for an unknown type.

        Raise `Refused` for an invalid message, or one that is not possible now.
        """
        match kind:
            case "session.start":
                pass  # `ready` was sent already
            case "input_audio.append":
                self._append(message)
                return True
            case "input_audio.commit":
                self.talk.commit(parse_text(message))
            case "input_audio.clear":
                self.talk.clear()
            case "response.create":
                said = parse_text(message)
                if not said:
                    raise Refused(400, "text_missing", "text is required")
                self.talk.add_user_text(said)
            case "response.cancel":
                self.talk.cancel()
            case "playback.drained":
                self.session.acknowledge(message)
                self.talk.on_client_drained(_word(message, "call_id"))
            case _ if kind in CONFIRM_MESSAGES:
                answer = (_word(message, "answer") or "").strip().lower()
                self.talk.confirm(_word(message, "confirmation_id"), answer)
            case _ if kind in RESPEAK_MESSAGES:
                self.talk.respeak()
            case _:
                return False
        self.carry_out()
        return True

    def on_revoked(self) -> None:
        """Stop the session's runs, because its token was revoked."""
        self.chat_runs.end_all(ApiRuns.stop)

    def on_closed(self) -> None:
        """Stop the timer and the rendering or transcription, and stop reading the chat runs, without stopping them."""
        self._timer.retire()
        self.talk.out.clear()
        self.chat_runs.end_all(ApiRuns.detach)
        self._stop_engine()

    # --- the microphone ---

    def _append(self, message: Mapping[str, object]) -> None:
        rate = integer(message.get("sample_rate", 24_000), "sample_rate", MIN_RATE, MAX_RATE)
        pcm = whole_samples(parse_audio(message))
        chunk = optional(message, "chunk_id", integer)
        again = chunk is not None and chunk <= self.last_chunk
        if not again:
            self.last_chunk = self.last_chunk if chunk is None else chunk
            self.input_bytes += len(pcm)
            heard = self.talk.append_audio(pcm, rate)
            if heard:
                self.ask_provider(actions.AppendInput(heard))
        told: dict[str, object] = {"input_chunk_id": chunk, "byte_count": len(pcm)}
        told |= {"total_bytes": self.input_bytes, "sample_rate": rate}
        self.session.emit("voice.input_audio.received", **told, **({"duplicate": True} if again else {}))


class RenderedMode(AgentMode):
    """Mode whose provider renders the answers of chat runs (wire terminal-voice 6.10).

    The loss of the client's socket ends the session.
    """

    def build_conversation(self, runs: VoiceRuns, setup: AgentSetup) -> RenderedConversation:
        """Create a rendered conversation, which has no background runs."""
        return RenderedConversation(runs, self.now, hears=self.chosen.provider == LOCAL)


def transcribe(voice: VoiceServices, provider: str, pcm: bytes, rate: int) -> Flow[str]:
    """Transcribe PCM (`rate` in Hz) by way of a WAV file in the spool folder; raise `ProviderError` if that fails."""
    data = wav_head(len(pcm), rate) + pcm
    path = yield from spool_file(voice.engine, ".wav", data)
    if isinstance(path, Failure):
        raise ProviderError("the recording could not be stored on the relay's host")
    try:
        recording = Recording(path=path, size=len(data), content_type="audio/wav", suffix=".wav")
        return (yield from voice.providers.transcriber(provider).transcribe(recording)).strip()
    finally:
        voice.engine.emit(DeleteBlob(path))


def interface_of(chosen: RealtimeSettings, word: str, chat_session_id: str | None, now: Moment) -> dict[str, object]:
    """Describe a voice session for its client and the model: all strings, except that the chat session may be null.

    The time is in UTC: the core has no time zone.
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
