"""One request of a client, carried out: what is said about it, its answer last, goes to whoever has asked.

Since 2026-07-28 each request says by itself which version it speaks (`_meta`), and there is nothing else to know; what
a handshake has agreed on is a `RequestContext`, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import GeneratorType
from typing import TYPE_CHECKING, Final, TypeAlias, cast

from svc_proto.basics import strict_json
from svc_proto.basics.errors import Refused
from svc_proto.basics.fast_frozen import fast_frozen
from svc_proto.engine.flow import Deferred, Flow, Task, sleep
from svc_proto.mcp.server_features import ConfirmCallback, InputRequired, ProgressCallback, Result
from svc_proto.mcp.subscriptions import ListenRequest
from svc_proto.schema.json_object import JsonObject
from svc_proto.schema.json_rpc import (
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    RpcError,
    write_error,
    write_notification,
    write_result_text,
)
from svc_proto.schema.mcp_messages import (
    HANDSHAKE_VERSIONS,
    INTERNAL,
    UNSUPPORTED_VERSION,
    RequestId,
    RpcRequest,
    progress_token_of,
)

if TYPE_CHECKING:
    from svc_proto.agent.tools.tool import Arguments
    from svc_proto.engine.core import Engine
    from svc_proto.mcp.server_features import Handler, RequestHandlers

__all__ = [
    "META",
    "STATELESS_VERSION",
    "VERSION",
    "PendingRequest",
    "RequestContext",
    "OutgoingMessage",
    "SendCallback",
    "error_message",
    "modern_context",
    "discard_message",
    "unsupported_version_error",
]

STATELESS_VERSION: Final = "2026-07-28"
META = "io.modelcontextprotocol/"
VERSION: Final = f"{META}protocolVersion"
CAPABILITIES: Final = f"{META}clientCapabilities"
_AN_HOUR, _AT_ONCE = ',"ttlMs":3600000,"cacheScope":"private"', ',"ttlMs":0,"cacheScope":"private"'
_FRESH = {  # for how long (ms) a client may keep an answer (CacheableResult)
    "server/discover": _AN_HOUR,
    "tools/list": _AN_HOUR,
    "prompts/list": _AN_HOUR,
    "resources/list": _AN_HOUR,
    "resources/templates/list": _AN_HOUR,
    "resources/read": _AT_ONCE,
}
_HAS_KIND = '{"resultType":'  # a result that is not complete
LISTEN: Final = "subscriptions/listen"
SUBSCRIPTION: Final = f"{META}subscriptionId"  # which it is that a note is for: the request that listens
PROGRESS_INTERVAL = 5.0  # s between two notes of progress
NO_FORM = {"type": "object", "properties": {}}  # a question that is answered by accepting it


@fast_frozen
class RequestContext:
    """What a request is carried out under."""

    version: str
    elicits: bool  # the client can ask its user
    modern: bool = False  # it stands by itself


@fast_frozen
class OutgoingMessage:
    """A message of ours, or that there is none: a `final` one without a text is for a request that was cancelled."""

    text: bytes
    final: bool = False  # it is the answer
    code: int = 0  # of the error that it tells
    notes: bool = False  # one of those that last, of which equal ones count once


SendCallback: TypeAlias = "Callable[[OutgoingMessage], object]"


class PendingRequest:
    """It is under way from `start` on, and until its answer is said, or it is cancelled."""

    __slots__ = ("_answers", "_context", "_engine", "_held", "_progress", "_say", "request")

    def __init__(
        self, engine: Engine, answers: RequestHandlers, request: RpcRequest, context: RequestContext, say: SendCallback
    ) -> None:
        self.request = request
        self._engine = engine
        self._answers = answers
        self._context = context
        self._say = say
        self._held: Task | Deferred | None = None  # what it waits for
        self._progress: _Progress | None = None

    def start(self) -> None:
        """Carry it out, as far as that goes without waiting."""
        request = self.request
        try:
            token = progress_token_of(request.params)
            if token is not None:
                self._progress = _Progress(self._engine, token, self._say)
            handler = self._answers.handlers.get(request.method) or self._other(request.method)
            found = handler(request.params, self)
        except Exception as error:
            self._failed(error)
            return
        if isinstance(found, Deferred):
            self._held = found
            found.then(self._found)
        elif isinstance(found, GeneratorType):
            self._held = self._engine.spawn(found, on_done=self._found, on_error=self._failed)
        else:
            self._found(cast("Result", found))
        if self._say is discard_message:
            self.cancel()  # by what it has done itself, before it could be

    def cancel(self) -> None:
        """Nobody waits for an answer any more; what the phone has been told, it does."""
        self._say = discard_message
        if self._progress is not None:
            self._progress.task.cancel()
        if self._held is not None:
            self._held.cancel()

    # --- for those who carry it out ---

    @property
    def confirm(self) -> ConfirmCallback | None:
        """How the client's user is asked; None: he cannot be."""
        return self._confirm if self._context.elicits else None

    @property
    def report_progress(self) -> ProgressCallback | None:
        """How the client is told of progress; None: it does not want to hear of it."""
        return None if self._progress is None else self._progress.report

    def _other(self, method: str) -> Handler:
        """What carries out a method that is not the same in all versions."""
        if method == "server/discover" and self._context.modern:
            return self._discover
        if method == LISTEN and self._context.modern:
            return self._listen
        raise RpcError(METHOD_NOT_FOUND, f"no method {method[:100]!r}")

    def _discover(self, params: JsonObject, call: PendingRequest) -> Result:
        return {"supportedVersions": [STATELESS_VERSION, *HANDSHAKE_VERSIONS], **self._answers.capabilities()}

    def _listen(self, params: JsonObject, call: PendingRequest) -> Deferred:
        """Tell of changes from now on; what cannot be told of is left out of what is acknowledged."""
        wanted = params.object_or_none("notifications")
        asked = JsonObject.of(wanted).get("resourceSubscriptions") or []
        uris = JsonObject.of(wanted).texts("resourceSubscriptions")
        if wanted is None or asked != uris:
            raise RpcError(INVALID_PARAMS, "notifications must be an object, resourceSubscriptions an array of strings")
        meta = {SUBSCRIPTION: self.request.identity}

        def note(method: str, **said: object) -> None:
            self._say(
                OutgoingMessage(write_notification(f"notifications/{method}", {**said, "_meta": meta}), notes=True)
            )

        answers = self._answers
        found = answers.subscribable_resources(uris)
        last = {"resultType": "complete", "_meta": {**meta, f"{META}serverInfo": answers.info}}
        listening = ListenRequest(
            self._engine,
            found.values(),
            lambda uri: note("resources/updated", uri=uri),
            strict_json.dumps(last),
            answers.listening,
        )
        note("subscriptions/acknowledged", notifications={"resourceSubscriptions": [*found]} if found else {})
        return listening

    def _confirm(self, name: str, arguments: Arguments, text: str) -> Flow[bool]:
        """The call comes again, with the answer and with what only we can have made."""
        yield from ()
        params = self.request.params
        if self._answers.consume_question(params.text("requestState"), name, arguments):
            return params.get_object("inputResponses", "confirm").get("action") == "accept"
        question = {"mode": "form", "message": text, "requestedSchema": NO_FORM}
        requests = {"confirm": {"method": "elicitation/create", "params": question}}
        state = self._answers.remember_question(name, arguments)
        raise InputRequired({"resultType": "input_required", "inputRequests": requests, "requestState": state})

    # --- the answer ---

    def _found(self, result: Result | Exception) -> None:
        """What has come of it: a result, or the exception in its place."""
        if isinstance(result, Exception):
            self._failed(result)
            return
        try:
            text = result if isinstance(result, str) else strict_json.dumps(result)
            if self._context.modern:
                text = self._dressed(text)
            said = OutgoingMessage(write_result_text(self.request.identity, text), final=True)
        except Exception as error:
            self._failed(error)
            return
        self._finish(said)

    def _dressed(self, text: str) -> str:
        """A result with what each has since 2026-07-28."""
        if self.request.method == LISTEN:
            return text
        kind = "" if text.startswith(_HAS_KIND) else '"resultType":"complete",'
        return f'{{{kind}{text[1:-1]}{_FRESH.get(self.request.method, "")},"_meta":{self._answers.meta}}}'

    def _failed(self, error: Exception) -> None:
        if isinstance(error, InputRequired):
            self._found(error.result)
            return
        if isinstance(error, Refused):
            error = RpcError(INTERNAL, error.message)
        elif not isinstance(error, RpcError):  # the client waits for an answer, whatever happens
            error = RpcError(INTERNAL, f"internal error, reference {self._engine.log_bug(error)}")
        self._finish(error_message(error, self.request.identity))

    def _finish(self, said: OutgoingMessage) -> None:
        if self._progress is not None:
            self._progress.task.cancel()
        self._answer(said)

    def _answer(self, said: OutgoingMessage) -> None:
        self._say(said)


class _Progress:
    """Notes of progress on one request: what its tool says, and that it lasts when that says nothing."""

    def __init__(self, engine: Engine, token: RequestId, say: SendCallback) -> None:
        self._engine = engine
        self._token = token
        self._say = say
        self._begun = engine.now.mono
        self._last = 0
        self.task = engine.spawn(self._wait())

    def report(self, text: str) -> None:
        """Say so. "The progress value MUST increase with each notification"."""
        self._last = max(self._last + 1, round(self._engine.now.mono - self._begun))
        params = {"progressToken": self._token, "progress": self._last, "message": text}
        self._say(OutgoingMessage(write_notification("notifications/progress", params)))

    def _wait(self) -> Flow[None]:
        while True:
            yield from sleep(self._engine, PROGRESS_INTERVAL)
            self.report("waiting")


def modern_context(meta: Mapping[str, object]) -> RequestContext:
    """Of a request that says by itself what it speaks. Raises `RpcError`."""
    if meta.get(VERSION) != STATELESS_VERSION:
        raise unsupported_version_error(meta.get(VERSION))
    capabilities = JsonObject.of_or_none(meta.get(CAPABILITIES))
    if capabilities is None:
        raise RpcError(INVALID_PARAMS, f"_meta needs {CAPABILITIES}")
    return _ASKABLE if "elicitation" in capabilities else _MUTE


_ASKABLE, _MUTE = (
    RequestContext(STATELESS_VERSION, elicits=True, modern=True),
    RequestContext(STATELESS_VERSION, elicits=False, modern=True),
)


def unsupported_version_error(version: object) -> RpcError:
    """A version was asked for that is not spoken."""
    data = {"supported": [STATELESS_VERSION, *HANDSHAKE_VERSIONS], "requested": str(version)[:100]}
    return RpcError(UNSUPPORTED_VERSION, "this version of the protocol is not spoken here", data=data)


def discard_message(said: OutgoingMessage) -> None:
    """Nobody is there."""


def error_message(error: RpcError, identity: RequestId) -> OutgoingMessage:
    """An error as the answer."""
    return OutgoingMessage(write_error(error, identity), final=True, code=error.code)
