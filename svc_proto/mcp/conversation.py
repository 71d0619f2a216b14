"""One client of an MCP server, on whatever carries its messages: the lifecycle, and what is under way for it.

Versions until 2025-11-25 begin with a handshake, which this table holds; from 2026-07-28 on each request says by itself
which version it speaks (`_meta`), and there is no state. One client may speak either.

| state | trigger     | next  |
|-------|-------------|-------|
| NEW   | INITIALIZE  | ASKED | the answer names the version
| ASKED | INITIALIZED | OPEN  |
| ASKED | INITIALIZE  | ASKED | it starts over, with a new version perhaps
| OPEN  | INITIALIZED | OPEN  |
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum, auto
from types import GeneratorType
from typing import TYPE_CHECKING, Final, cast

from svc_proto.basics.value import fixed
from svc_proto.engine.flow import Flow, Task, sleep, wait
from svc_proto.facts import OperationId
from svc_proto.machines.table import Table
from svc_proto.machines.table import step as follow
from svc_proto.mcp.answers import Asking, InputRequired, Result
from svc_proto.mcp.updates import Subscriptions
from svc_proto.schema.json_rpc import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    RpcError,
    write_error,
    write_note,
    write_request,
    write_result,
)
from svc_proto.schema.mcp_messages import (
    HANDSHAKES,
    INTERNAL,
    TOO_MANY,
    UNSUPPORTED_VERSION,
    Message,
    RequestId,
    RpcNotification,
    RpcRequest,
    RpcResponse,
    parse,
    request_id,
)
from svc_proto.schema.members import Members

if TYPE_CHECKING:
    from svc_proto.agent.tools.tool import Arguments
    from svc_proto.engine.core import Engine
    from svc_proto.mcp.answers import Answers

__all__ = ["HANDSHAKES", "LIFE", "META", "MODERN", "Conversation", "Said", "State", "Trigger", "unsupported"]

MODERN: Final = "2026-07-28"
META = "io.modelcontextprotocol/"
VERSION = f"{META}protocolVersion"
ELICITS = HANDSHAKES[2:]  # those in which a server may ask
SUBSCRIBING = ("resources/subscribe", "resources/unsubscribe")
FRESH = {  # ms for which a client may keep an answer (CacheableResult)
    "server/discover": 3_600_000,
    "tools/list": 3_600_000,
    "prompts/list": 3_600_000,
    "resources/list": 3_600_000,
    "resources/templates/list": 3_600_000,
    "resources/read": 0,
}
MAX_CALLS = 32  # under way for one client
EVERY = 5.0  # s between two notes of progress
PATIENCE = 180.0  # s for a person to answer
NO_FORM = {"type": "object", "properties": {}}  # a question that is answered by accepting it


class State(IntEnum):
    """Of the handshake."""

    NEW = auto()
    ASKED = auto()
    OPEN = auto()


class Trigger(IntEnum):
    """What moves it."""

    INITIALIZE = auto()
    INITIALIZED = auto()


LIFE: Table[State, Trigger] = {
    (State.NEW, Trigger.INITIALIZE): State.ASKED,
    (State.ASKED, Trigger.INITIALIZED): State.OPEN,
    (State.ASKED, Trigger.INITIALIZE): State.ASKED,
    (State.OPEN, Trigger.INITIALIZED): State.OPEN,
}


@fixed
class _Context:
    """What one request is carried out under."""

    version: str
    elicits: bool  # the client can ask its user

    @property
    def modern(self) -> bool:
        return self.version == MODERN


@fixed
class Said:
    """A message of ours, or that there is none: a `final` one without a text is for a request that was cancelled."""

    text: bytes
    about: RequestId | None  # the request of theirs that it belongs to; None: of what we say by ourselves
    final: bool = False  # it is its answer
    code: int = 0  # of the error that it tells


class Conversation:
    """Give it messages with `heard` or `take`; it gives its own to `say`. `close` when the client has gone.

    Several may share their `answers`, if they are one client's.
    """

    def __init__(
        self,
        engine: Engine,
        answers: Answers,
        say: Callable[[Said], None],
        *,
        on_idle: Callable[[], None] = lambda: None,
    ) -> None:
        self._engine = engine
        self._say = say
        self._on_idle = on_idle
        self._answers = answers
        self._state = State.NEW
        self._agreed = _Context("", elicits=False)  # by the handshake
        self._calls: dict[RequestId, Task | None] = {}
        self._questions: dict[RequestId, OperationId] = {}  # that we have asked by a request: who waits for the answer
        self._asked = 0
        self._subscriptions: Subscriptions | None = None

    @property
    def busy(self) -> bool:
        """Whether calls are under way."""
        return bool(self._calls)

    @property
    def version(self) -> str:
        """What the handshake has agreed on; empty without one."""
        return self._agreed.version

    def heard(self, data: bytes) -> None:
        """Take one message, as bytes."""
        try:
            message = parse(data)
        except RpcError as error:
            self._say(Said(write_error(error), None))
            return
        self.take(message)

    def take(self, message: Message) -> None:
        """Take one message."""
        if isinstance(message, RpcRequest):
            self._begin(message)
        elif isinstance(message, RpcNotification):
            self._note(message)
        else:
            self._answered(message)

    def hold(self, holding: bool) -> None:
        """The client does not read as fast as it is told, or does again: updates wait for it."""
        if self._subscriptions is not None:
            self._subscriptions.hold(holding)

    def close(self) -> None:
        """Nobody waits for an answer any more."""
        if self._subscriptions is not None:
            self._subscriptions.close()
        calls, self._calls = self._calls, {}
        for task in filter(None, calls.values()):
            task.cancel()
        self._say = _unheard  # who has gone keeps this no more, nor this him

    # --- requests -------------------------------------------------------------------------------------------------

    def _begin(self, request: RpcRequest) -> None:
        identity = request.identity
        if identity in self._calls:
            self._say(_failed(RpcError(INVALID_REQUEST, "a request of this id is under way"), identity))
            return
        if len(self._calls) >= MAX_CALLS:
            self._say(_failed(RpcError(TOO_MANY, f"{MAX_CALLS} requests are under way"), identity))
            return
        self._calls[identity] = None
        task = self._engine.spawn(self._carry_out(request))
        if identity in self._calls:  # else it was answered at once
            self._calls[identity] = task

    def _carry_out(self, request: RpcRequest) -> Flow[None]:
        progress = _Progress.wanted(self._engine, request, self._say)
        identity = request.identity
        try:
            said = Said(write_result(identity, (yield from self._result(request, progress))), identity, final=True)
        except RpcError as error:
            said = _failed(error, identity)
        except Exception as error:  # noqa: BLE001, RUF100 - the client waits for an answer, whatever happens
            reference = self._engine.bug(error)
            said = _failed(RpcError(INTERNAL, f"internal error, reference {reference}"), identity)
        finally:
            if progress is not None:
                progress.task.cancel()
        self._calls.pop(identity, None)
        self._say(said)
        if not self._calls:
            self._on_idle()

    def _result(self, request: RpcRequest, progress: _Progress | None) -> Flow[Result]:
        context = self._context(request)
        method, params = request.method, request.params
        try:
            if method == "server/discover" and context.modern:
                result: Result = {"supportedVersions": [MODERN, *HANDSHAKES], **self._about(context)}
            elif method == "initialize" and not context.modern:
                result = self._initialize(params)
            elif method == "ping" and not context.modern:
                result = {}
            elif method in SUBSCRIBING and not context.modern:
                result = self._subscribe(method, params)
            else:
                handler = self._answers.handlers.get(method)
                if handler is None:
                    raise RpcError(METHOD_NOT_FOUND, f"no method {method[:100]!r}")
                telling = None if progress is None else progress.tell
                found = handler(params, self._asking(request, context), telling)
                result = (yield from found) if isinstance(found, GeneratorType) else cast("Result", found)
        except InputRequired as needed:
            result = needed.result
        return self._dressed(method, result) if context.modern else result

    def _dressed(self, method: str, result: Result) -> Result:
        """With what each result has since 2026-07-28."""
        fresh = FRESH.get(method)
        cached = {} if fresh is None else {"ttlMs": fresh, "cacheScope": "private"}
        return {"resultType": "complete", **result, **cached, "_meta": {f"{META}serverInfo": self._answers.info}}

    def _context(self, request: RpcRequest) -> _Context:
        meta = request.params.inner("_meta") if "_meta" in request.params else Members()
        version = meta.get(VERSION)
        if version is None:
            if self._state is State.NEW and request.method not in ("initialize", "ping"):
                raise RpcError(INVALID_REQUEST, "initialize comes first, or _meta with the version of the protocol")
            return self._agreed
        if version != MODERN:
            raise unsupported(version)
        capabilities = meta.get(f"{META}clientCapabilities")
        if not isinstance(capabilities, dict):
            raise RpcError(INVALID_PARAMS, f"_meta needs {META}clientCapabilities")
        return _Context(MODERN, elicits="elicitation" in capabilities)

    def _initialize(self, params: Members) -> Result:
        if (self._state, Trigger.INITIALIZE) not in LIFE:
            raise RpcError(INVALID_REQUEST, "this was initialized already")
        wanted = params.get("protocolVersion")
        if not isinstance(wanted, str):
            raise RpcError(INVALID_PARAMS, "protocolVersion must be a string")
        version = wanted if wanted in HANDSHAKES else HANDSHAKES[-1]
        elicits = version in ELICITS and "elicitation" in params.inner("capabilities")
        self._agreed = _Context(version, elicits=elicits)
        self._state = follow(LIFE, self._state, Trigger.INITIALIZE)
        return {"protocolVersion": version, "serverInfo": self._answers.info, **self._about(self._agreed)}

    def _about(self, context: _Context) -> Result:
        offer = self._answers.offer
        offered = {"tools": offer.tools, "resources": offer.resources, "prompts": offer.prompts}
        capabilities = {name: dict[str, object]() for name, there in offered.items() if there}
        if not context.modern and any(resource.watch for resource in offer.resources):
            capabilities["resources"]["subscribe"] = True
        return {"capabilities": capabilities, "instructions": offer.instructions}

    # --- notes and answers ----------------------------------------------------------------------------------------

    def _note(self, note: RpcNotification) -> None:
        if note.method == "notifications/initialized" and (self._state, Trigger.INITIALIZED) in LIFE:
            self._state = follow(LIFE, self._state, Trigger.INITIALIZED)
        elif note.method == "notifications/cancelled":
            self._cancelled(request_id(note.params.get("requestId")))

    def _cancelled(self, identity: RequestId | None) -> None:
        """Its call ends here, and is not answered; what the phone has been told, it does."""
        task = None if identity is None else self._calls.pop(identity, None)
        if task is not None:
            task.cancel()
            self._say(Said(b"", identity, final=True))
            if not self._calls:
                self._on_idle()

    def _answered(self, answer: RpcResponse) -> None:
        ticket = self._questions.pop(answer.identity, None)
        if ticket is not None:
            self._engine.resume(ticket, answer.result)

    # --- subscriptions --------------------------------------------------------------------------------------------

    def _subscribe(self, method: str, params: Members) -> Result:
        resource = self._answers.resource(params)
        if self._subscriptions is None:
            self._subscriptions = Subscriptions(self._engine, self._updated)
        if method == "resources/subscribe":
            self._subscriptions.add(resource)
        else:
            self._subscriptions.remove(resource.uri)
        return {}

    def _updated(self, uri: str) -> None:
        self._say(Said(write_note("notifications/resources/updated", {"uri": uri}), None))

    # --- questions ------------------------------------------------------------------------------------------------

    def _asking(self, request: RpcRequest, context: _Context) -> Asking | None:
        """How the client's user is asked; None: he cannot be."""
        if not context.elicits:
            return None

        def ask(name: str, arguments: Arguments, text: str) -> Flow[bool]:
            if context.modern:
                return self._ask_stateless(request.params, name, arguments, text)
            return self._ask(request.identity, text)

        return ask

    def _ask(self, about: RequestId, text: str) -> Flow[bool]:
        self._asked += 1
        identity = f"ask-{self._asked}"
        ticket = self._questions[identity] = self._engine.new_op()
        question = {"message": text, "requestedSchema": NO_FORM}
        self._say(Said(write_request(identity, "elicitation/create", question), about))
        try:
            answer = yield from wait(ticket, self._engine.now.mono + PATIENCE)
        finally:
            if self._questions.pop(identity, None) is not None:
                told = {"requestId": identity, "reason": "nobody waits for it any more"}
                self._say(Said(write_note("notifications/cancelled", told), about))
        return Members.of(answer).get("action") == "accept"

    def _ask_stateless(self, params: Members, name: str, arguments: Arguments, text: str) -> Flow[bool]:
        """The call comes again, with the answer and with what only we can have made."""
        yield from ()
        if self._answers.was_asked(params.text("requestState"), name, arguments):
            return params.inner("inputResponses", "confirm").get("action") == "accept"
        question = {"mode": "form", "message": text, "requestedSchema": NO_FORM}
        requests = {"confirm": {"method": "elicitation/create", "params": question}}
        state = self._answers.note(name, arguments)
        raise InputRequired({"resultType": "input_required", "inputRequests": requests, "requestState": state})


class _Progress:
    """Notes of progress on one request: what its tool says, and that it lasts when that says nothing."""

    def __init__(self, engine: Engine, token: RequestId, request: RpcRequest, say: Callable[[Said], None]) -> None:
        self._engine = engine
        self._token = token
        self._about = request.identity
        self._say = say
        self._begun = engine.now.mono
        self._last = 0
        self.task = engine.spawn(self._wait())

    @classmethod
    def wanted(cls, engine: Engine, request: RpcRequest, say: Callable[[Said], None]) -> _Progress | None:
        """None, where the client does not want to hear of it."""
        meta = request.params.get("_meta")
        token = request_id(meta.get("progressToken")) if isinstance(meta, dict) else None
        return None if token is None else cls(engine, token, request, say)

    def tell(self, text: str) -> None:
        """Say so. "The progress value MUST increase with each notification"."""
        self._last = max(self._last + 1, round(self._engine.now.mono - self._begun))
        params = {"progressToken": self._token, "progress": self._last, "message": text}
        self._say(Said(write_note("notifications/progress", params), self._about))

    def _wait(self) -> Flow[None]:
        while True:
            yield from sleep(self._engine, EVERY)
            self.tell("waiting")


def unsupported(version: object) -> RpcError:
    """A version was asked for that is not spoken."""
    data = {"supported": [MODERN, *HANDSHAKES], "requested": str(version)[:100]}
    return RpcError(UNSUPPORTED_VERSION, "this version of the protocol is not spoken here", data=data)


def _unheard(said: Said) -> None:
    """Nobody is there."""


def _failed(error: RpcError, identity: RequestId) -> Said:
    return Said(write_error(error, identity), identity, final=True, code=error.code)
