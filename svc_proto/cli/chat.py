"""A turn of a chat with the agent over the API server, for a command (wire api 3, 4).

Ctrl-C during a turn also requests the server to stop the run, which would continue without a reader (wire api 4.5).

Events for the program, as `Notify`: `text` (`text`: a piece of the answer) and `tool` (`line`: the action of a tool, a
change of the memory, or a problem). With `raw` the turn's are instead `event` (`event`, `data`: as the server sent
them). With `asks` a user is at the keyboard: `question` (`text`, `choices`) requests an approval, and a typed line is
the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from attrs import frozen

from svc_proto.basics import strict_json
from svc_proto.cli.approval_prompts import ApprovalPrompts
from svc_proto.cli.error_text import cli_error_of, sanitize_line, with_explanation
from svc_proto.cli.errors import CliError
from svc_proto.cli.one_shot_service import INTERRUPTED, OneShotService, announce_progress
from svc_proto.cli.voice_chat_io import KeyboardChannel, VoiceChatEvent
from svc_proto.commands import Notify
from svc_proto.engine.channel import Channel
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow, wait
from svc_proto.facts import Accepted
from svc_proto.relay_config import RelayConfig
from svc_proto.schema import chat_events
from svc_proto.schema.json_object import JsonObject
from svc_proto.service_clients.api_client import ApiClient
from svc_proto.service_clients.bind_addresses import WILDCARD_ADDRESSES, bracket_ipv6
from svc_proto.service_clients.local_api import find_local_api
from svc_proto.service_clients.local_secret import operator_headers
from svc_proto.service_clients.service_client import ServiceCallError, ServiceFault
from svc_proto.wire.sse import ServerSentEvent

__all__ = ["ChatService", "ChatResult", "ChatRequest", "find_api_client"]

STOP_TIMEOUT = 1.5  # s after Ctrl-C for identifying the run and stopping it
# Tools for which the phone asks its user before it acts (wire bridge 5.2, "always confirm").
ASKING_TOOLS = ("phone_call", "phone_send_sms", "phone_send_mms", "phone_share_media")
PREVIEW = 120  # characters of a tool's input or output that are shown
REMEDY = "start it, or name it with --api-url"


@frozen(kw_only=True)
class ChatRequest:
    """A message for a session, or for a new one (`session` None).

    `raw` passes each event with a JSON object on as received, `asks` permits approval requests, `apps` is sent with the
    message.
    """

    message: str
    session: str | None = None
    raw: bool = False
    asks: bool = False
    apps: tuple[str, ...] = ()


@frozen
class ChatResult:
    """Session of the turn, whether the agent finished, and the number of tokens used, if known."""

    session: str
    completed: bool
    tokens: int | None = None


def find_api_client(engine: Engine, config: RelayConfig, url: str | None, key: str | None) -> Flow[ApiClient]:
    """Return a client of the API server at `url`; None: of this host's, where it runs or as configured (wire core 2.7).

    `key` None stands for the key of the API server on this host.
    """
    found = yield from find_local_api(engine, config)
    host = bracket_ipv6(WILDCARD_ADDRESSES.get(found.host, found.host))
    here = f"{'https' if found.tls else 'http'}://{host}:{found.port}"
    where = url or config.webapi_inside or here
    return ApiClient("the API server", where, token=found.key if key is None else key, remedy=REMEDY)


class ChatService(OneShotService[ChatResult]):
    """Service that sends one chat message and reports the events of the answer as `Notify`.

    After an `error` event the end of the turn raises a `CliError`. After Ctrl-C during a turn, `stopped` reports
    whether the run is known to have ended; it is None otherwise.
    """

    def __init__(self, find: Callable[[Engine], Flow[ApiClient]], order: ChatRequest, *, watched: bool = False) -> None:
        super().__init__(self._chat, watched=watched)
        self.stopped: bool | None = None
        self._find = find
        self._order = order
        self._turn: _TurnPrinter | None = None
        self._api: ApiClient | None = None
        self._questions: ApprovalPrompts | None = None

    def on_accepted(self, fact: Accepted) -> Channel | None:
        """Return the channel on which the user types answers to approval requests."""
        return KeyboardChannel(self._engine, fact, self._typed)

    def on_stopping(self) -> None:
        """Handle Ctrl-C: exit, after an attempt to stop the run on the server if a turn has begun."""
        if self._turn is None or self._api is None:
            super().on_stopping()
            return
        self.stopped = False
        self._engine.spawn(
            self._stop(self._api, self._turn), on_done=self._exit_after_stop, on_error=self._exit_after_stop
        )

    def _chat(self, engine: Engine) -> Flow[ChatResult]:
        api = yield from self._find(engine)
        announce_progress(engine, f"asking {api.name} at {api.url}")
        session = self._order.session
        if session is None:
            session = yield from api.create_session(engine, {})
        questions = self._questions = ApprovalPrompts(lambda: engine.now.mono, engine.emit, self._answer)
        self._api, self._turn = api, _TurnPrinter(engine, self._order.raw, questions)
        return (yield from _perform(engine, api, session, self._order, self._turn))

    def _typed(self, news: VoiceChatEvent) -> None:
        if self._questions is not None:
            self._questions.answer_line(news)

    def _answer(self, call_id: str, choice: str) -> None:
        self._engine.spawn(self._pass_on({"choice": choice, "call_id": call_id}), on_error=self._unheard)

    def _pass_on(self, answer: Mapping[str, object]) -> Flow[None]:
        assert self._api is not None
        assert self._turn is not None  # the turn that sent the request
        yield from self._api.success(self._api.post_run(self._engine, self._turn.run, "approval", answer))

    def _unheard(self, error: Exception) -> None:
        if isinstance(error, ServiceCallError):
            why = str(cli_error_of(error))
        else:
            why = f"internal error, reference {self._engine.log_bug(error)}"
        self._engine.emit(Notify("tool", {"line": f"✗ the answer was not taken: {why}"}))

    def _stop(self, api: ApiClient, turn: _TurnPrinter) -> Flow[None]:
        engine = self._engine
        until = engine.now.mono + STOP_TIMEOUT
        turn.muted = True
        if not turn.run:
            yield from wait(turn.started, until)
        if turn.run:  # it became known in time
            answer = yield from api.post_run(engine, turn.run, "stop", within=until - engine.now.mono)
            self.stopped = answer.status in (200, 404)  # 404: it has ended already (wire api 6.4)

    def _exit_after_stop(self, _: object) -> None:
        self._engine.exit(INTERRUPTED)

    def _done(self, result: ChatResult) -> None:
        if self.stopped is None:
            super()._done(result)
        else:
            self.stopped = True  # it has ended by itself, or because we stopped it

    def _failed(self, error: Exception) -> None:
        if self.stopped is None:
            super()._failed(error)


def _perform(engine: Engine, api: ApiClient, session: str, order: ChatRequest, turn: _TurnPrinter) -> Flow[ChatResult]:
    operator = yield from operator_headers(engine, api.url)
    message: dict[str, object] = {"message": order.message, **({"approvals": True} if order.asks else {})}
    if order.apps:
        message["apps"] = list(order.apps)
    wrong_key = f"{api.name} does not accept the key: set API_SERVER_KEY, or --api-key"
    sentences = {
        ServiceFault.UNAUTHORIZED: wrong_key,
        ServiceFault.FORBIDDEN: wrong_key,
        ServiceFault.NOT_FOUND: f"{api.name} has no session {session!r}: leave --session out for a new one",
    }
    yield from with_explanation(api.stream_turn(engine, session, message, turn.add_event, fields=operator), sentences)
    if turn.problem is not None:
        raise CliError(f"the agent failed: {turn.problem}")
    return ChatResult(session, turn.completed, turn.tokens)


class _TurnPrinter:
    """Converter of the events of one turn into notifications; it also stores the turn's outcome."""

    def __init__(self, engine: Engine, raw: bool, questions: ApprovalPrompts) -> None:
        self._engine = engine
        self._questions = questions
        self._raw = raw
        self.started = engine.new_op()  # resumed when the run is known
        self.run = ""
        self.muted = False
        self.begun = False
        self.completed = False
        self.problem: str | None = None
        self.tokens: int | None = None
        self._has_text = False  # of the answer

    def add_event(self, event: ServerSentEvent) -> None:  # noqa: C901 - one row for each event
        data = JsonObject.parse(event.data)
        if data is None:
            return  # `[DONE]`, of some servers
        self.begun = True
        self._note_run(data.text("run_id"))
        if self.muted:
            return
        if self._raw:
            self._engine.emit(Notify("event", {"event": event.event, "data": data}))
        match chat_events.parse_event(event.event, data):
            case chat_events.AssistantDelta(delta=delta):
                self._text(delta)
            case chat_events.AssistantCompleted(content=content) if not self._has_text:
                self._text(content)
            case chat_events.ToolStarted(tool_name=name) | chat_events.ToolPending(tool_name=name) as call:
                self._tool("→", name, call.preview or call.args)
                if name in ASKING_TOOLS:
                    phone = sanitize_line(call.args.text("device"), PREVIEW) if call.args else ""
                    announce_progress(self._engine, f"waiting for a yes on {phone or 'the phone'}")
            case chat_events.ToolCompleted(tool_name=name, result_preview=preview):
                self._tool("←", name, preview)
            case chat_events.ToolFailed(tool_name=name, error=error):
                self._tool("✗", name, error)
            case chat_events.RunCompleted(completed=completed, usage=usage) as end:
                self.completed = completed
                self._count(usage)
                for line in end.unfinished:
                    self._tool("✗", "not done or left open", line)
                if end.reason:
                    self._tool("✗", "ended early", end.reason)
            case chat_events.Error(message=message):
                self.problem = sanitize_line(message) or "no reason given"
            # Events of our own servers only.
            case chat_events.ApprovalRequest() as asked:
                self._questions.show(asked)
            case chat_events.ApprovalResponded(call_id=call_id):
                self._questions.resolve(call_id)
            case chat_events.MemoryUpdated(tool_name=name, added=added, removed=removed):
                self._tool("✎", name, added or removed)

    def _note_run(self, run: str) -> None:
        if run and not self.run:
            self.run = run
            self._engine.resume(self.started, None)

    def _text(self, text: str) -> None:
        self._has_text = self._has_text or bool(text)
        if text and not self._raw:
            self._engine.emit(Notify("text", {"text": text}))

    def _tool(self, sign: str, name: str, shown: str | JsonObject | None) -> None:
        if self._raw:
            return
        text = strict_json.dumps(shown) if isinstance(shown, JsonObject) and shown else str(shown or "")
        line = ": ".join(filter(None, (sanitize_line(name) or "tool", sanitize_line(text, PREVIEW))))
        self._engine.emit(Notify("tool", {"line": f"{sign} {line}"}))

    def _count(self, usage: JsonObject) -> None:
        known = [count for name in ("input_tokens", "output_tokens") if (count := usage.integer(name)) is not None]
        self.tokens = sum(known) if known else None
