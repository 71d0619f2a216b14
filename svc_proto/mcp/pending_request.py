"""Execution of one request of a client: messages about the request are sent to a callback, the answer last.

Since 2026-07-28 each request names its version and capabilities (`_meta`). Before, a handshake did so. Both give a
`RequestContext`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import GeneratorType
from typing import Final, TypeAlias, cast

from svc_proto.agent.tools.tool import Arguments
from svc_proto.basics import strict_json
from svc_proto.basics.errors import Refused
from svc_proto.basics.fast_frozen import fast_frozen
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Deferred, Flow, Task, sleep
from svc_proto.mcp.server_features import (
    ConfirmCallback,
    Handler,
    InputRequired,
    ProgressCallback,
    RequestHandlers,
    Result,
)
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
# Time in ms for which a client may cache a result (CacheableResult).
_FRESH = {
    "server/discover": _AN_HOUR,
    "tools/list": _AN_HOUR,
    "prompts/list": _AN_HOUR,
    "resources/list": _AN_HOUR,
    "resources/templates/list": _AN_HOUR,
    "resources/read": _AT_ONCE,
}
_HAS_KIND = '{"resultType":'  # start of a result that is not complete
LISTEN: Final = "subscriptions/listen"
SUBSCRIPTION: Final = f"{META}subscriptionId"  # in each notification: the id of the request that listens
PROGRESS_INTERVAL = 5.0  # s between two progress notifications
NO_FORM = {"type": "object", "properties": {}}  # form of a question that is answered by accepting it


@fast_frozen
class RequestContext:
    """Protocol version under which a request is executed, and whether the client can ask its user."""

    version: str
    elicits: bool  # the client can ask its user
    modern: bool = False  # a request of the stateless mode


@fast_frozen
class OutgoingMessage:
    """A message to the client. A `final` one without text ends a request that was cancelled, without an answer."""

    text: bytes
    final: bool = False  # the answer
    code: int = 0  # of an error
    notes: bool = False  # a notification that is stored; equal ones are stored once


SendCallback: TypeAlias = "Callable[[OutgoingMessage], object]"


class PendingRequest:
    """A request under way: from `start` until its answer is sent, or until it is cancelled."""

    __slots__ = ("_answers", "_context", "_engine", "_progress", "_send", "_task", "request")

    def __init__(
        self, engine: Engine, answers: RequestHandlers, request: RpcRequest, context: RequestContext, send: SendCallback
    ) -> None:
        self.request = request
        self._engine = engine
        self._answers = answers
        self._context = context
        self._send = send
        self._task: Task | Deferred | None = None  # the task that produces the answer
        self._progress: _Progress | None = None

    def start(self) -> None:
        """Begin to execute the request; the answer may be sent at once, and an error is sent as the answer."""
        request = self.request
        try:
            token = progress_token_of(request.params)
            if token is not None:
                self._progress = _Progress(self._engine, token, self._send)
            handler = self._answers.handlers.get(request.method) or self._unknown_method(request.method)
            found = handler(request.params, self)
        except Exception as error:
            self._failed(error)
            return
        if isinstance(found, Deferred):
            self._task = found
            found.then(self._found)
        elif isinstance(found, GeneratorType):
            self._task = self._engine.spawn(found, on_done=self._found, on_error=self._failed)
        else:
            self._found(cast("Result", found))
        if self._send is discard_message:
            self.cancel()  # its own side effect has cancelled the request

    def cancel(self) -> None:
        """Cancel the request: no answer is sent. A command that the phone has received is still executed."""
        self._send = discard_message
        if self._progress is not None:
            self._progress.task.cancel()
        if self._task is not None:
            self._task.cancel()

    # --- for handlers ---

    @property
    def confirm(self) -> ConfirmCallback | None:
        """Return the callback for questions to the client's user; None if the client does not support them."""
        return self._confirm if self._context.elicits else None

    @property
    def report_progress(self) -> ProgressCallback | None:
        """Return the callback for progress; None if the client did not request progress."""
        return None if self._progress is None else self._progress.report

    def _unknown_method(self, method: str) -> Handler:
        """Return the handler of `server/discover` or `LISTEN` in the stateless mode; else raise `RpcError`."""
        if method == "server/discover" and self._context.modern:
            return self._discover
        if method == LISTEN and self._context.modern:
            return self._listen
        raise RpcError(METHOD_NOT_FOUND, f"no method {method[:100]!r}")

    def _discover(self, params: JsonObject, call: PendingRequest) -> Result:
        return {"supportedVersions": [STATELESS_VERSION, *HANDSHAKE_VERSIONS], **self._answers.capabilities()}

    def _listen(self, params: JsonObject, call: PendingRequest) -> Deferred:
        """Send notifications of changes from now on; resources without notifications are not acknowledged.

        Raises `RpcError` if the parameters are invalid, or at the limit of listening requests.
        """
        wanted = params.object_or_none("notifications")
        asked = JsonObject.of(wanted).get("resourceSubscriptions") or []
        uris = JsonObject.of(wanted).texts("resourceSubscriptions")
        if wanted is None or asked != uris:
            raise RpcError(INVALID_PARAMS, "notifications must be an object, resourceSubscriptions an array of strings")
        meta = {SUBSCRIPTION: self.request.identity}

        def note(method: str, **outgoing: object) -> None:
            self._send(
                OutgoingMessage(write_notification(f"notifications/{method}", {**outgoing, "_meta": meta}), notes=True)
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
        """Return whether the user accepted, if the call repeats one with a valid state; else raise `InputRequired`."""
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
        """Send the result of a method as the answer; for an exception send the error, or its question for the user."""
        if isinstance(result, Exception):
            self._failed(result)
            return
        try:
            text = result if isinstance(result, str) else strict_json.dumps(result)
            if self._context.modern:
                text = self._dressed(text)
            outgoing = OutgoingMessage(write_result_text(self.request.identity, text), final=True)
        except Exception as error:
            self._failed(error)
            return
        self._finish(outgoing)

    def _dressed(self, text: str) -> str:
        """Return the JSON of a result with the members that version 2026-07-28 adds; a `LISTEN` result has them."""
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
        elif not isinstance(error, RpcError):  # the client waits for an answer in any case
            error = RpcError(INTERNAL, f"internal error, reference {self._engine.log_bug(error)}")
        self._finish(error_message(error, self.request.identity))

    def _finish(self, outgoing: OutgoingMessage) -> None:
        if self._progress is not None:
            self._progress.task.cancel()
        self._answer(outgoing)

    def _answer(self, outgoing: OutgoingMessage) -> None:
        self._send(outgoing)


class _Progress:
    """Progress notifications for one request: the texts of the tool, and periodic ones while the request runs."""

    def __init__(self, engine: Engine, token: RequestId, send: SendCallback) -> None:
        self._engine = engine
        self._token = token
        self._send = send
        self._begun = engine.now.mono
        self._last = 0
        self.task = engine.spawn(self._wait())

    def report(self, text: str) -> None:
        """Send a progress notification. "The progress value MUST increase with each notification"."""
        self._last = max(self._last + 1, round(self._engine.now.mono - self._begun))
        params = {"progressToken": self._token, "progress": self._last, "message": text}
        self._send(OutgoingMessage(write_notification("notifications/progress", params)))

    def _wait(self) -> Flow[None]:
        while True:
            yield from sleep(self._engine, PROGRESS_INTERVAL)
            self.report("waiting")


def modern_context(meta: Mapping[str, object]) -> RequestContext:
    """Return the context of a stateless request from its `_meta`.

    Raises `RpcError` for another protocol version, or if the client's capabilities are missing or not an object.
    """
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
    """Build the error for an unsupported version."""
    data = {"supported": [STATELESS_VERSION, *HANDSHAKE_VERSIONS], "requested": str(version)[:100]}
    return RpcError(UNSUPPORTED_VERSION, "this version of the protocol is not spoken here", data=data)


def discard_message(outgoing: OutgoingMessage) -> None:
    """Discard a message of a cancelled request or of a closed session."""


def error_message(error: RpcError, identity: RequestId) -> OutgoingMessage:
    """Build the final message to the client that answers a request with an error."""
    return OutgoingMessage(write_error(error, identity), final=True, code=error.code)
