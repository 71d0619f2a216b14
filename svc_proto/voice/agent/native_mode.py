"""Agent mode with a provider that listens and answers over one socket (wire terminal-voice 6.3 to 6.9).

The provider's events go to the conversation (`svc_proto.voice.realtime.native_conversation`), whose queued actions the
mode then performs.
"""

from attrs import evolve

from svc_proto.commands import Level
from svc_proto.engine.flow import Flow, Task
from svc_proto.voice.agent.agent_mode import AgentMode, AgentSetup
from svc_proto.voice.agent.instructions import load_persona_context, provider_instructions
from svc_proto.voice.provider_interface import RealtimeOptions
from svc_proto.voice.realtime import actions
from svc_proto.voice.realtime.function_calls import function_schemas
from svc_proto.voice.realtime.native_conversation import NativeConversation
from svc_proto.voice.realtime.voice_run import BackgroundPolicy
from svc_proto.voice.realtime.voice_runs import VoiceRuns
from svc_proto.voice.realtime_connection import RealtimeConnection, connect_realtime
from svc_proto.voice.session import VoiceSession, error_message_of
from svc_proto.voice.settings import PromotionSettings
from svc_proto.voice_config import VoiceConfig

__all__ = ["NativeMode", "background_rules"]

LISTEN_TIMEOUT = 86_400.0  # s; a silent provider is pinged, and reports its own idle timeout
LOOK_AGAIN = 1.0  # s between two checks whether the client reads again


class NativeMode(AgentMode):
    """Agent mode with a socket to the provider, and with background runs."""

    names_chat = True
    talk: NativeConversation

    def __init__(self, session: VoiceSession, setup: AgentSetup) -> None:
        super().__init__(session, setup)
        self._context = setup.context
        self._link: RealtimeConnection | None = None
        self._listening: Task | None = None
        self._waiting_since: float | None = None  # since when the client does not read

    def build_conversation(self, runs: VoiceRuns, setup: AgentSetup) -> NativeConversation:
        """Return a conversation with background runs as the settings allow."""
        promotion, final = self.chosen.promotion, setup.final_answer_only
        runs.result_delivery = "speak_verbatim" if final else promotion.result_delivery
        runs.rules = background_rules(promotion, self.session.voice.config, final_answer_only=final)
        new_id = lambda: self.engine.entropy(8).hex()  # noqa: E731 - one of many arguments
        return NativeConversation(runs, self.now, rate=self.chosen.sample_rate, new_id=new_id)

    # --- VoiceMode ---

    def on_attached(self) -> None:
        """Start the flow that connects to the provider and then marks the session as ready."""
        self._listening = self.engine.spawn(self._live(), on_done=lambda _: None, on_error=self._provider_lost)

    def on_lost(self) -> None:
        """Stop connecting to the provider, because the client disconnected before the session was ready."""
        self._drop_provider()

    def resumes_after(self, code: int) -> bool:
        """Report whether the session waits for a reconnect: not after code 1000, unless the conversation is `busy`."""
        return code != 1000 or self.talk.busy

    def on_detached(self) -> None:
        """Report the disconnect to the conversation; an active turn or run extends the wait (wire 6.9)."""
        self.talk.runs.on_client_left(self.now())
        self.carry_out()

    def on_resumed(self) -> None:
        """Report the reconnect to the conversation, which resumes the delivery of pending answers."""
        self.talk.runs.on_client_back(self.now())
        self.carry_out()

    def on_closed(self) -> None:
        """Log the background runs that were not answered aloud or as text; then stop the mode's work.

        Stop reading the chat runs, without stopping them, and close the provider's socket.
        """
        for run_id in self.talk.runs.undelivered:
            self.session.log_event("voice.realtime_agent.result_deferred", run_id=run_id, reason="session_closed")
            self.engine.log(Level.INFO, "voice answer not heard", session=self.session.id[:8], run=run_id)
        super().on_closed()
        self._drop_provider()

    # --- the provider ---

    def _live(self) -> Flow[None]:
        """Connect to the provider, mark the session as ready, then pass on the provider's events until an error."""
        chosen, voice = self.chosen, self.session.voice
        yield from voice.refresh_keys()
        knowledge = yield from load_persona_context(voice, chosen.scope.profile)
        options = RealtimeOptions(
            model=chosen.model,
            voice=chosen.voice,
            sample_rate=chosen.sample_rate,
            instructions=provider_instructions(self.word, self.interface, knowledge, self._context),
            tools=function_schemas(self.word),
        )
        dialect = voice.providers.dialect(chosen.provider, options)
        self._link = link = yield from connect_realtime(self.engine, dialect, provider=chosen.provider)
        self.session.begin()
        while True:
            event = yield from link.next_event(within=LISTEN_TIMEOUT)
            self.talk.on_provider_event(event)
            self.carry_out()
            yield from self.wait_writable()

    def _provider_lost(self, error: Exception) -> None:
        """Handle the failure of the provider's flow.

        After the connection was open, report the failure to the conversation. Before, report it to the client and
        close the client's socket; the session can be opened again.
        """
        message = error_message_of(self.engine, error)
        ready = self._link is not None
        self._listening = None
        self._drop_provider()
        if ready:
            self.talk.provider_lost(message)
            self.carry_out()
        else:
            self.session.error(message, provider=self.chosen.provider)
            self.session.release(1011, "the voice provider cannot be had")

    def _drop_provider(self) -> None:
        link, task = self._link, self._listening
        self._link = self._listening = None
        if task is not None:
            task.cancel()
        if link is not None:
            link.close()

    # --- actions ---

    def extend_session(self) -> None:
        """Set the end of the detached session to the conversation's `kept_until`: later with an active turn or run."""
        until = self.talk.kept_until(self.session.life.window, self.session.voice.config.detached_max)
        self.session.extend(max(until - self.now(), 0.0))

    def ask_provider(self, order: actions.ProviderAction) -> None:
        """Send an action to the provider; do nothing without an open link."""
        if self._link is not None:
            if isinstance(order, actions.AnswerCall):  # with a description of the session (wire terminal-voice 6.6)
                order = evolve(order, output={**order.output, "interface": self.interface})
            self._link.send(order)

    def wait_writable(self) -> Flow[None]:
        """Wait until the client has room; the turn's deadline is postponed by the time of the wait."""
        self._waiting_since = since = self.now()
        yield from self.session.wait_writable()
        self._waiting_since = None
        if self.now() > since:
            self.talk.floor.postpone(self.now() - since)
            self.carry_out()

    def wake(self) -> None:
        """Handle the conversation's deadline; while the client does not read, only set the timer again."""
        if self._waiting_since is None:
            super().wake()
        else:
            self._timer.set(self.now() + LOOK_AGAIN)


def background_rules(
    promotion: PromotionSettings, config: VoiceConfig, *, final_answer_only: bool = False
) -> BackgroundPolicy:
    """Return the policy for background runs from the settings."""
    return BackgroundPolicy(
        enabled=promotion.enabled,
        promote_after=promotion.promote_after_ms / 1000,
        spoken_handoff=promotion.spoken_handoff and not final_answer_only,
        progress_after=0.0 if final_answer_only else promotion.progress_spoken_after_ms / 1000,
        progress_repeat=promotion.progress_repeat_ms / 1000,
        max_runs=promotion.max_background_runs,
        longest=config.background_max,
        slow_tools=config.slow_tools,
    )
