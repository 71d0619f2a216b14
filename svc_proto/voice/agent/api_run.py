"""A chat run on the API server: start, mapping of its events, and stop (terminal-voice 6.7, 6.8; api 4, 6).

    run = ApiRun(engine, order, on_event, word="svc")
    yield from run.perform(api)    # returns at the run's end; raises `ProviderError` or `ServiceCallError`

A cancelled reader does not stop the run on the server; `stop` does.
"""

from collections.abc import Callable

from attrs import define, evolve, field

from svc_proto.commands import Level
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow, Task
from svc_proto.engine.response_readers import SILENCE_TIMEOUT
from svc_proto.machines.confirmations import Confirmation
from svc_proto.schema import chat_events as events
from svc_proto.schema.json_object import JsonObject
from svc_proto.service_clients.api_client import ApiClient
from svc_proto.service_clients.service_client import ServiceCallError, ServiceFault
from svc_proto.voice.provider_interface import ProviderError
from svc_proto.voice.realtime.actions import StartRun
from svc_proto.voice.realtime.run_events import (
    ApiRunStarted,
    ChatSessionBound,
    ToolEvent,
    ToolEventReceived,
    VoiceRunEvent,
)
from svc_proto.wire.sse import ServerSentEvent

__all__ = ["ApiRun", "map_run_event", "fetch_history", "spoken_error", "stop_run"]

CHANGES = {  # further events of a forked server; like a memory update, each counts as a completed tool
    "skill.loaded": ("skill", "name"),
    "artifact.created": ("artifact", "path"),
}
DELTA = "assistant.delta"
APPROVAL = "approval.request"  # the id of an approval request without one
MAX_ID = 200  # characters of an id that comes from the API server
MAX_MESSAGE = 500  # characters of an error message
MAX_QUESTION = 10_000  # characters: our API server sends all that is to be allowed
CONNECT_TIMEOUT = 10.0  # s, wire terminal-voice 6.7
HISTORY_TIMEOUT = 5.0  # s, wire terminal-voice 6.2
MAX_SHOWN = 200  # characters of the API server's error text
DEFAULT_PROFILE = "default"


@define(eq=False)
class ApiRun:
    """Chat run at the API server: until `stop`, `on_event` receives its events in order, as `map_run_event` maps them.

    It also receives a `ChatSessionBound` for a new chat session, even after `stop`. `word` is the brand's name,
    `system` has notes for the agent. `drafts` is called with pieces of the answer's text; `on_event` does not receive a
    piece for which it returns True.
    """

    _engine: Engine
    _order: StartRun
    _on_event: Callable[[VoiceRunEvent], None]
    _word: str = field(kw_only=True)
    _system: str = field(kw_only=True, default="")
    _drafts: Callable[[str], bool] = field(kw_only=True, default=lambda words: False)
    task: Task | None = field(default=None, init=False)  # the task that performs the run
    run_id: str = field(default="", init=False)
    _api: ApiClient | None = field(default=None, init=False)  # from `perform` on
    _stopping: bool = field(default=False, init=False)

    def perform(self, api: ApiClient) -> Flow[None]:
        """Start the run and read it to its end, in a new chat session if the order names none or a missing one."""
        self._api = api
        session_id = self._order.session_id or (yield from self._new_session(api, None))
        try:
            yield from self._read(api, session_id)
        except ServiceCallError as error:
            if not self._order.session_id or not _is_lost(error):
                raise
            yield from self._read(api, (yield from self._new_session(api, "session_not_found")))

    def stop(self) -> bool:
        """Suppress further events, and stop the run on the API server: now, or when its id arrives while it is read.

        Return True if the task may be cancelled now, False if it must read on until the id arrives.
        """
        self._stopping = True
        if self._api is not None and self.run_id:
            self._engine.spawn(stop_run(self._engine, self._api, self.run_id))
        return self._api is None or bool(self.run_id)

    def detach(self) -> None:
        """Stop reading; the run continues."""
        if self.task is not None:
            self.task.cancel()

    # --- helpers ---

    def _new_session(self, api: ApiClient, reason: str | None) -> Flow[str]:
        profile = self._order.profile
        session_id = yield from api.create_session(self._engine, _with_profile({}, profile))
        self._on_event(ChatSessionBound(session_id, profile, reason))
        return session_id

    def _read(self, api: ApiClient, session_id: str) -> Flow[None]:
        """Start the run and read its events; a stream that ends without a terminal event is complete (wire api 4.5)."""
        order = self._order
        body: dict[str, object] = {"message": order.text, "approvals": True}
        if self._system:
            body["system_message"] = self._system
        yield from api.stream_turn(
            self._engine,
            session_id,
            _with_profile(body, order.profile),
            self._handle_event,
            lambda reader: reader.observe(self._store_draft),
            within=SILENCE_TIMEOUT,
            connect_within=CONNECT_TIMEOUT,
        )

    def _store_draft(self, kind: str, text: str) -> bool:
        """Offer a piece of the answer to `drafts`; return whether it was consumed."""
        if kind != DELTA or not self.run_id or self._stopping:
            return False
        words = events.parse_delta_text(text)
        return bool(words) and self._drafts(words)

    def _handle_event(self, event: ServerSentEvent) -> bool:
        """Handle an event; return whether no later event is needed."""
        data = JsonObject.parse_or_empty(event.data)
        if not self.run_id:
            self.run_id = data.text("run_id")[:MAX_SHOWN]
            if self.run_id and self._stopping:
                self.stop()
        if self._stopping:
            return bool(self.run_id)  # without events; read on only for the run's id
        told = map_run_event(event.event, data, self._word)
        if told is not None:
            self._on_event(told)
        return isinstance(told, events.RunCompleted)


# --- mapping of events: invalid ones are ignored, never an error (wire terminal-voice 6.7) ------------------------


def map_run_event(kind: str, data: JsonObject, word: str) -> VoiceRunEvent | None:  # noqa: C901 - one row for each event
    """Map an event of the API server; None if it is irrelevant. Raise `ProviderError` when the run has failed.

    `word` is the tool's name in a tool event without one."""
    if kind == DELTA and (words := events.delta_text(data)):  # the most frequent event
        return events.AssistantDelta(delta=words)
    match event := events.parse_event(kind, data):
        case events.AssistantDelta(delta=delta):
            return event if delta else None
        case events.RunStarted():
            return ApiRunStarted(data.text("run_id")[:MAX_ID])
        case events.MessageStarted(message=message):
            return events.MessageStarted(JsonObject(id=(message.text("id") or data.text("message_id"))[:MAX_ID]))
        case events.ToolProgress(delta=delta, tool_name=name):
            return None if not delta else event if name == events.THINKING else _tool_event(data, name or word, event)
        case events.ToolPending() | events.ToolStarted() | events.ToolCompleted():
            return _tool_event(data, event.tool_name or word, event)
        case events.ToolFailed(tool_name=name, error=error):
            return _tool_event(data, name or word, event if error else evolve(event, error="no reason given"))
        case events.MemoryUpdated() if not data.text("call_id"):  # an event with a call id has an end of its own
            return _changed(data, "memory", "target")
        case events.ApprovalRequest(call_id=call_id, description=description, command=command):
            identity = data.text("confirmation_id", "approval_id") or call_id or APPROVAL
            words = data.text("message") or " ".join(filter(None, (description, command)))
            return Confirmation(identity[:MAX_ID], words[:MAX_QUESTION] or "May I go on?")
        case events.AssistantCompleted():
            return event
        case events.RunCompleted() | events.Done():
            return events.RunCompleted(interrupted=data.get("interrupted") is True)
        case events.Error(message=message):
            raise ProviderError(message[:MAX_MESSAGE] or "the agent failed")
        case _:
            name, member = next((found for end, found in CHANGES.items() if kind.endswith(end)), ("", ""))
            return _changed(data, name, member) if name else None


def _changed(data: JsonObject, name: str, member: str) -> ToolEventReceived:
    return _tool_event(data, name, events.ToolCompleted(result_preview=data.text(member) or None))


def _tool_event(data: JsonObject, name: str, event: ToolEvent) -> ToolEventReceived:
    call_id = data.text("call_id", "tool_call_id", "id") or name
    return ToolEventReceived(call_id[:MAX_ID], name[:MAX_ID], event)


# --- small calls --------------------------------------------------------------------------------------------------


def stop_run(engine: Engine, api: ApiClient, run_id: str) -> Flow[None]:
    """Send `POST /v1/runs/{run_id}/stop`; a finished run counts as stopped, and a failure is only logged."""
    try:
        answer = yield from api.post_run(engine, run_id, "stop")
    except ServiceCallError as error:
        engine.log(Level.WARNING, "run not stopped", problem=error.fault.value)
        return
    if answer.status not in (200, 202, 204, 404):
        engine.log(Level.WARNING, "run not stopped", status=answer.status)


def fetch_history(engine: Engine, api: ApiClient, session_id: str) -> Flow[list[JsonObject]]:
    """Return the stored messages of a chat session; an empty list if the API server does not provide them."""
    try:
        return (yield from api.messages(engine, session_id, within=HISTORY_TIMEOUT))
    except ServiceCallError:
        return []


def spoken_error(error: ServiceCallError) -> str:
    """Return the text of an error for people; it may be read out."""
    match error.fault:
        case ServiceFault.UNREACHABLE:
            text = f"The API server cannot be reached: {error.why}"
        case ServiceFault.CONNECTION_LOST:
            text = "The API server's answer broke off."
        case ServiceFault.UNAUTHORIZED | ServiceFault.FORBIDDEN:
            text = "The API server does not accept the credential of this session."
        case ServiceFault.UNAVAILABLE | ServiceFault.NO_JSON | ServiceFault.NO_OBJECT:
            text = "The API server gave no session id."
        case _:
            said = f": {error.server_message}" if error.server_message and error.server_message.isprintable() else ""
            text = f"The API server answers with status {error.status}{said}"
    return text[:MAX_SHOWN]


def _with_profile(body: dict[str, object], profile: str | None) -> dict[str, object]:
    return body if profile in (None, "", DEFAULT_PROFILE) else {**body, "profile": profile}


def _is_lost(error: ServiceCallError) -> bool:
    """Report whether a 404 is for the session, not for the route (wire api 2.1)."""
    if error.fault is not ServiceFault.NOT_FOUND or error.answer is None:
        return False
    found = JsonObject.parse_or_empty(error.answer.body).get_object("error")
    return found.get("code") == "session_not_found" or "session not found" in found.text("message").lower()
