"""A session whose provider hears and speaks by itself, over one socket (wire terminal-voice 6.3 to 6.9).

The conversation decides (`svc_proto.voice.realtime.conversation`), this carries its orders out: toward the client, the
provider, the API server and a renderer. What they say goes back to it, one thing after the other.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import assert_never

from svc_proto.basics import strict_json
from svc_proto.basics.pcm import SAMPLE_WIDTH, resample
from svc_proto.commands import Level
from svc_proto.engine.flow import Flow, Task
from svc_proto.machines.voice_session import VoiceState
from svc_proto.voice.agent.instructions import provider_instructions, read_knowledge, run_notes, summary_instructions
from svc_proto.voice.agent.session import AgentMode, AgentSetup
from svc_proto.voice.agent.tools import function_schemas, parse_call
from svc_proto.voice.contract import (
    AudioChunk,
    AudioDelta,
    AudioDone,
    FunctionCall,
    Message,
    ProviderEvent,
    ProviderProblem,
    ProviderReady,
    RealtimeOptions,
    Rendered,
    ResponseDone,
    ResponseStarted,
    SpeechRequest,
    TextDelta,
    TranscriptDelta,
    TranscriptFinal,
)
from svc_proto.voice.provider_link import ProviderLink, open_link
from svc_proto.voice.providers.realtime import Dialect
from svc_proto.voice.realtime import orders
from svc_proto.voice.realtime.conversation import VoiceConversation
from svc_proto.voice.realtime.orders import Order
from svc_proto.voice.realtime.story import AnswerDelta, RunEvent
from svc_proto.voice.rendering import Rendering
from svc_proto.voice.session import VoiceSession, problem_of
from svc_proto.voice.text import clean_for_speech

__all__ = ["NativeMode", "provider_words"]

LISTEN_WITHIN = 86_400.0  # s; a provider that is silent is pinged, and says itself when it has waited long enough
LOOK_AGAIN = 1.0  # s between two looks whether a client takes something again
SHORTEST = 0.1  # s of an utterance: a provider refuses a shorter one


class NativeMode(AgentMode):
    """See the module."""

    names_chat = True

    def __init__(self, session: VoiceSession, setup: AgentSetup) -> None:
        super().__init__(session, setup)
        engine = self.engine
        self._context = setup.context
        self.talk = VoiceConversation(
            word=self.word,
            speakable=clean_for_speech,
            new_id=lambda: engine.entropy(8).hex(),
            result_delivery=setup.result_delivery,
            rules=setup.background_rules(session.voice.config),
            session_id=self.chat_session_id,
            profile=self.chosen.scope.profile,
        )
        self._link: ProviderLink | None = None
        self._listening: Task | None = None
        self._rendering: Rendering | None = None
        self._orders: deque[Order] = deque()
        self._busy = False
        self._waiting_since: float | None = None  # that the client takes nothing
        self._heard = 0  # bytes at the provider that were not committed
        self._turn_timer = engine.timers.timer(self._turn_due)

    # --- Mode ---

    def on_attached(self) -> None:
        """The first client: connect to the provider; the session is ready then."""
        self._listening = self.engine.spawn(self._live(), on_done=lambda _: None, on_error=self._provider_lost)

    def on_lost(self) -> None:
        """The client has gone before that."""
        self._drop_provider()

    def keeps(self, code: int) -> bool:
        """A client that closes between turns has ended the session; any other may come back."""
        return code != 1000 or self.talk.busy

    def on_detached(self) -> None:
        """While a run lives, wait longer (wire 6.9)."""
        self.talk.runs.leave(self._now)
        self._carry_out([])

    def on_resumed(self) -> None:
        """What was found out meanwhile can be said."""
        self.talk.runs.come_back(self._now)
        self._carry_out([])

    def on_closed(self) -> None:
        """The end. A run goes on, its answer is in the chat: there is nothing by which a phone could be told of it."""
        self._turn_timer.retire()
        self._orders.clear()
        for run_id in self.talk.runs.unheard:
            self.session.note("voice.realtime_agent.result_deferred", run_id=run_id, reason="session_closed")
            self.engine.log(Level.INFO, "voice answer not heard", session=self.session.id[:8], run=run_id)
        self.chat_runs.leave_all()
        self._stop_rendering()
        self._drop_provider()

    # --- the client ---

    def hear(self, pcm: bytes, rate: int) -> None:
        """Pass audio on at the provider's rate."""
        pcm = resample(pcm, rate, self.chosen.sample_rate)
        self._heard += len(pcm)
        self.talk.runs.hear(self._now)
        self._say(lambda dialect: dialect.append(pcm))

    def commit(self, said: str | None) -> None:
        """An utterance is complete; what it says is for the provider to tell."""
        heard, self._heard = self._heard, 0
        enough = heard >= SHORTEST * SAMPLE_WIDTH * self.chosen.sample_rate
        self._carry_out(self.talk.commit(self._now, heard=enough))

    def clear(self) -> None:
        """Forget what was not committed."""
        self._heard = 0
        self._carry_out([orders.ClearInput()])

    def say(self, said: str) -> None:
        """A text turn."""
        self._carry_out(self.talk.say(said, self._now))

    def cancel(self) -> None:
        """The client wants the turn to stop: what it did not commit is forgotten, too."""
        self._heard = 0
        self._carry_out(self.talk.cancel(self._now))

    def played(self, call_id: str | None) -> None:
        """What was sent is played."""
        self._carry_out(self.talk.drained(call_id, self._now))

    def confirm(self, confirmation_id: str | None, answer: str) -> None:
        """An answer to a question of the run."""
        self._carry_out(self.talk.confirm(confirmation_id, answer, self._now))

    def respeak(self) -> None:
        """Say the last answer from the background again."""
        self._carry_out(self.talk.respeak(self._now))

    # --- the provider ---

    def _live(self) -> Flow[None]:
        """Connect, say who we are, listen until the end."""
        chosen, voice = self.chosen, self.session.voice
        yield from voice.refresh_keys()
        knowledge = yield from read_knowledge(voice, chosen.scope.profile)
        options = RealtimeOptions(
            model=chosen.model,
            voice=chosen.voice,
            sample_rate=chosen.sample_rate,
            instructions=provider_instructions(self.word, self.interface, knowledge, self._context),
            tools=function_schemas(self.word),
        )
        dialect = voice.providers.dialect(chosen.provider, options)
        self._link = link = yield from open_link(self.engine, dialect, provider=chosen.provider)
        self.session.begin()
        while True:
            event = yield from link.take(within=LISTEN_WITHIN)
            self._provider_says(event)
            yield from self.room()

    def room(self) -> Flow[None]:
        """Wait until the client has room. Meanwhile nobody is late."""
        self._waiting_since = since = self._now
        yield from self.session.room()
        self._waiting_since = None
        if self._now > since:
            self.talk.floor.postpone(self._now - since)
            self._carry_out([])

    def _provider_says(self, event: ProviderEvent) -> None:
        talk, now = self.talk, self._now
        match event:
            case ProviderReady(model=model):
                self.session.note("voice.realtime_agent.provider_model_resolved", model=model)
            case TranscriptDelta(delta=delta):
                self.session.emit("voice.input_transcript.delta", delta=delta)
            case TranscriptFinal(text=text):
                self._carry_out(talk.transcribed(text, now))
            case ResponseStarted(response_id=response_id):
                self._carry_out(talk.response_started(response_id, now))
            case TextDelta(response_id=response_id, delta=delta):
                self._carry_out(talk.text(response_id, delta, now))
            case AudioDelta(response_id=response_id, data=data):
                self._carry_out(talk.audio(response_id, data, now))
            case AudioDone(response_id=response_id):
                self._carry_out(talk.audio_done(response_id, now))
            case FunctionCall():
                call = parse_call(event.call_id, event.name, event.arguments, self.word)
                self._carry_out(talk.call(event.response_id, call, now))
            case ResponseDone(response_id=response_id, status=status):
                self._carry_out(talk.response_done(response_id, status, now))
            case ProviderProblem(message=message, benign=benign, idle=idle):
                self._carry_out(talk.problem(message, now, benign=benign, idle=idle))
            case _:
                assert_never(event)

    def _provider_lost(self, error: Exception) -> None:
        """The flow has ended with an error: before the session was ready, or after."""
        message = problem_of(self.engine, error)
        ready = self._link is not None
        self._listening = None
        self._drop_provider()
        if ready:
            self._carry_out(self.talk.provider_lost(message, self._now))
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

    # --- the run ---

    def drafts(self, call_id: str, delta: str) -> bool:
        """A run goes on with its answer: nothing is to be told of that, and nothing is due. False if there is more."""
        return self.talk.runs.drafts(call_id, delta)

    def run_event(self, call_id: str, event: RunEvent) -> None:
        """The run tells something."""
        if isinstance(event, AnswerDelta) and self.talk.runs.drafts(call_id, event.delta):
            return
        self._carry_out(self.talk.run_event(call_id, event, self._now))

    def run_ended(self, call_id: str) -> None:
        """The run has ended well."""
        self._carry_out(self.talk.run_ended(call_id, self._now))

    def run_failed(self, call_id: str, message: str, error_code: str | None) -> None:
        """The run has failed, or was lost."""
        self._carry_out(self.talk.run_failed(call_id, message, self._now, error_code=error_code))

    def approved(self, call_id: str, confirmation_id: str, answer: str | None) -> None:
        """An answer was taken, or not wanted any more."""
        self._carry_out(self.talk.approved(call_id, confirmation_id, answer, self._now))

    # --- a rendering: a `RenderingListener` ---

    def rendered_audio(self, response_id: str, chunk: AudioChunk) -> None:
        """Some of the answer as the relay has it spoken."""
        audio = orders.EmitAudio(
            response_id=response_id, data=chunk.data, sample_rate=chunk.sample_rate, label=chunk.label
        )
        self._carry_out(self.talk.rendered_audio(response_id, audio, self._now))

    def rendered(self, response_id: str, done: Rendered, fields: dict[str, object]) -> None:
        """The renderer has spoken all of the text."""
        self._carry_out(self.talk.rendered(response_id, fields, self._now))

    def render_failed(self, response_id: str, error: Exception) -> None:
        """The renderer could not speak the text."""
        self._carry_out(self.talk.render_failed(response_id, problem_of(self.engine, error), self._now))

    # --- orders ---

    @property
    def _now(self) -> float:
        return self.engine.now.mono

    def _turn_due(self) -> None:
        if self._waiting_since is not None:
            self._turn_timer.set(self._now + LOOK_AGAIN)
            return
        self._carry_out(self.talk.advance(self._now))

    def _carry_out(self, given: list[Order]) -> None:
        """In their order, also when carrying one out brings more."""
        self._orders += given
        if self._busy:
            return
        self._busy = True
        try:
            while self._orders and not self.session.closed:
                self._obey(self._orders.popleft())
        finally:
            self._busy = False
        if self.session.closed:
            return
        due = self.talk.due
        if due is None:
            self._turn_timer.cancel()
        else:
            self._turn_timer.set(due)
        if self.session.life.state is VoiceState.DETACHED:
            until = self.talk.kept_until(self.session.life.window, self.session.voice.config.detached_max)
            self.session.extend(max(until - self._now, 0.0))

    def _obey(self, order: Order) -> None:
        match order:
            case orders.Emit():
                self.chat_session_id = self.talk.runs.session_id
                self.tell(order)
            case orders.EmitAudio():
                label = {} if order.label is None else {"label": order.label}
                rate = order.sample_rate or self.chosen.sample_rate
                self.sound(order.data, rate, response_id=order.response_id, **label, **order.extra)
            case orders.Note():
                self.session.note(order.type, **order.fields)
            case orders.CloseClient(code=code, reason=reason):
                self.session.close(reason, code=code)
            case orders.StartRun():
                self.chat_runs.start(order, run_notes(self.interface))
            case orders.StopRun(call_id=call_id):
                self.chat_runs.stop(call_id)
            case orders.LeaveRun(call_id=call_id):
                self.chat_runs.leave(call_id)
            case orders.AskAboutApproval():
                self.chat_runs.ask_about(order)
            case orders.Approve():
                self.chat_runs.approve(order)
            case orders.Render(response_id=response_id, text=text):
                self._render(response_id, text)
            case orders.StopRendering():
                self._stop_rendering()
            case _:
                self._say(lambda dialect: provider_words(order, dialect, self.interface))

    def _say(self, words: Callable[[Dialect], list[Message]]) -> None:
        """Tell the provider; nothing when it has gone, the conversation hears of that."""
        if self._link is not None:
            self._link.send(words(self._link.dialect))

    def _render(self, response_id: str, text: str) -> None:
        chosen = self.chosen
        request = SpeechRequest(text=text, model=chosen.model, voice=chosen.voice, sample_rate=chosen.sample_rate)
        self._rendering = Rendering(self.session, request, response_id, self)
        self._rendering.start()

    def _stop_rendering(self) -> None:
        rendering, self._rendering = self._rendering, None
        if rendering is not None:
            rendering.stop()


def provider_words(order: orders.ProviderOrder, dialect: Dialect, interface: Mapping[str, object]) -> list[Message]:
    """The messages of an order. The output of a function says what the session is, too (wire terminal-voice 6.6)."""
    match order:
        case orders.CommitInput():
            return dialect.commit()
        case orders.ClearInput():
            return dialect.clear()
        case orders.SayText(text=text):
            return dialect.say(text)
        case orders.Respond():
            return dialect.respond()
        case orders.ReadAloud(text=text):
            return dialect.read_aloud(text)
        case orders.Summarize(text=text):
            return dialect.respond(summary_instructions(text))
        case orders.CancelResponse():
            return dialect.cancel()
        case orders.AnswerCall(call_id=call_id, output=output):
            return dialect.function_output(call_id, strict_json.dumps({**output, "interface": interface}))
        case _:
            assert_never(order)
