"""Gateway as a service: JSON-RPC calls from one channel become requests to the API server (wire terminal 2.4).

A call that waits for the API server is a flow, so calls run concurrently. A turn is a flow of its session, one at a
time, and its events are sent as they arrive. The process ends with the channel, after the turns in progress.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping

from attrs import define, field

from clients.gateway.api_connection import GatewayApiSettings, new_api_client, rpc_error
from clients.gateway.turn import GatewayTurn
from clients.gateway.views import message_row, session_row, toolset_row
from svc_proto.cli.line_service import LineService
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow, Task
from svc_proto.engine.response_readers import EventReader
from svc_proto.schema.gateway_rpc import BUSY, INTERNAL, NO_SESSION, RpcCall, event_line, parse_call
from svc_proto.schema.json_object import JsonObject
from svc_proto.schema.json_rpc import INVALID_PARAMS, METHOD_NOT_FOUND, RpcError, write_error, write_result
from svc_proto.service_clients.service_client import ServiceCallError

__all__ = ["Gateway"]

MAX_SESSIONS = 64  # open at a time in one gateway
MAX_LISTED = 200  # sessions in one list
MAX_IMAGES = 8  # attached images for the next prompt
MAX_IMAGE = 7 * 1024 * 1024  # characters of base64: the API server takes bodies of 10 MB (wire api 2.5)
CHOICES = ("once", "session", "always", "deny")

Result = Mapping[str, object]
Method = Callable[[RpcCall], Flow[Result] | Result]


@define(eq=False)
class _GatewaySession:
    """A session that a client has opened here."""

    identity: str
    images: list[str] = field(factory=list)  # data URLs for the next prompt
    turn: GatewayTurn | None = None
    task: Task | None = None
    prompt: str = ""


class Gateway(LineService):
    """Service of the gateway."""

    def __init__(self, settings: GatewayApiSettings, *, resume: str = "") -> None:
        self._settings = settings
        self._greeting = {"skin": {}, "version": settings.version, **({"resume_session_id": resume} if resume else {})}
        self._sessions: dict[str, _GatewaySession] = {}
        self._upstream: dict[str, EventReader] = {}  # streams of the turns in progress, by session
        self._calls = 0  # number of calls in progress
        self._methods: dict[str, Method] = {
            "session.create": self._create,
            "session.resume": self._resume,
            "session.list": self._list,
            "session.interrupt": self._interrupt,
            "prompt.submit": self._submit,
            "tools.list": self._tools,
            "terminal.resize": self._resize,
            "approval.respond": self._approve,
            "clarify.respond": self._expired,
            "sudo.respond": self._expired,
            "secret.respond": self._expired,
            "image.attach_bytes": self._attach_image,
            "image.attach.bytes": self._attach_image,
        }

    # --- Service ---

    def bind(self, engine: Engine) -> None:
        """Implement `Service.bind`."""
        super().bind(engine)
        self._api = new_api_client(engine, self._settings)

    def on_client_opened(self) -> None:
        """Send `gateway.ready`."""
        self.send_line(event_line("gateway.ready", None, self._greeting))

    def on_stopping(self) -> None:
        """Cancel the turns here; the API server continues them."""
        for session in self._sessions.values():
            if session.task is not None:
                session.task.cancel()

    # --- for the channel ---

    def set_read_paused(self, holding: bool) -> None:
        """Pause or resume the event streams with the client's reading."""
        for channel in self._upstream.values():
            channel.set_paused(holding)

    def on_line(self, line: bytes) -> None:
        """Handle one JSON-RPC line."""
        try:
            call = parse_call(line)
            method = self._methods.get(call.method)
            if method is None:
                raise RpcError(METHOD_NOT_FOUND, f"no method {call.method[:60]!r}", identity=call.identity)
        except RpcError as error:
            self.send_line(write_error(error))
            return
        self.engine.spawn(self._answer(call, method))

    def on_client_closed(self, problem: str) -> None:
        """Report a problem with the client's input; no further call follows."""
        if problem:
            self.send_line(event_line("error", None, {"message": problem}))

    @property
    def is_busy(self) -> bool:
        """Report whether a call or a turn is in progress."""
        return bool(self._calls) or any(held.turn for held in self._sessions.values())

    # --- methods ---

    def _create(self, call: RpcCall) -> Flow[Result]:
        wish = {"title": call.params.text("title"), "profile": self._settings.profile}
        identity = yield from self._api.create_session(self.engine, {name: text for name, text in wish.items() if text})
        self._open(identity)
        return {
            "session_id": identity,
            "stored_session_id": identity,
            "message_count": 0,
            "messages": [],
            "info": self._info(),
        }

    def _resume(self, call: RpcCall) -> Flow[Result]:
        stored = yield from self._api.session(self.engine, call.text("session_id"))
        identity = str(stored.get("id") or call.text("session_id"))
        rows = yield from self._api.messages(self.engine, identity)
        messages = [shown for row in rows if (shown := message_row(row)) is not None]
        session = self._open(identity)
        turn = session.turn
        return {
            "session_id": identity,
            "resumed": identity,
            "message_count": len(messages),
            "messages": messages,
            "info": self._info(stored),
            "running": turn is not None,
            "inflight": None if turn is None else {"user": session.prompt, "assistant": turn.text, "streaming": True},
            "status": "idle" if turn is None else "streaming",
        }

    def _list(self, call: RpcCall) -> Flow[Result]:
        wanted = call.params.integer("limit", 1) or 20
        path = f"/api/sessions?limit={min(wanted, MAX_LISTED)}"
        rows = yield from self._api.list_objects(self.engine, path, "sessions")
        return {"sessions": [session_row(row) for row in rows[:wanted]]}

    def _interrupt(self, call: RpcCall) -> Flow[Result]:
        session = self._session(call)
        turn, task = session.turn, session.task
        if turn is not None and task is not None:
            task.cancel()
            turn.complete("interrupted")
            self._turn_over(session)
            if turn.run_id is not None:
                yield from self._api.success(self._api.post_run(self.engine, turn.run_id, "stop"))
        return {"status": "interrupted"}

    def _submit(self, call: RpcCall) -> Result:
        session, text = self._session(call), call.text("text")
        if session.turn is not None:
            raise RpcError(BUSY, "a turn of this session is under way")
        parts = [{"type": "image_url", "image_url": {"url": url}} for url in session.images]
        message: object = [{"type": "text", "text": text}, *parts] if parts else text
        session.images = []
        session.prompt = text

        def emit(kind: str, payload: dict[str, object] | None) -> None:
            self.send_line(event_line(kind, session.identity, payload))

        session.turn = GatewayTurn(emit)
        # the answer to this call precedes the turn's events
        self.send_line(write_result(call.identity, {"status": "streaming"}))
        session.task = self.engine.spawn(
            self._run(session, session.turn, message), on_error=lambda error: self._failed(session, error)
        )
        return {}

    def _tools(self, call: RpcCall) -> Flow[Result]:
        rows = yield from self._api.list_objects(self.engine, "/v1/toolsets", "toolsets")  # wire api 8.2
        return {"toolsets": [toolset_row(row) for row in rows]}

    def _resize(self, call: RpcCall) -> Result:
        self._session(call)
        return {"cols": call.params.get("cols")}  # the gateway does not use the size

    def _approve(self, call: RpcCall) -> Flow[Result]:
        turn, choice = self._session(call).turn, call.text("choice")
        if choice not in CHOICES:
            raise RpcError(INVALID_PARAMS, "choice must be one of " + ", ".join(CHOICES))
        if turn is None or turn.run_id is None:
            raise RpcError(BUSY, "no run waits for an approval")
        order: dict[str, object] = {"choice": choice, "all": call.params.get("all") is True}
        if call_id := call.params.text("call_id"):
            order["call_id"] = call_id
        answer = yield from self._api.success(self._api.post_run(self.engine, turn.run_id, "approval", order))
        return {"resolved": self._api.json_object(answer).integer("resolved") or 0}

    def _expired(self, call: RpcCall) -> Result:
        return {"status": "expired"}  # the gateway never sends the requests that these answer

    def _attach_image(self, call: RpcCall) -> Result:
        session = self._session(call)
        content = call.params.text("content_base64") or call.text("bytes_base64")
        if len(content) > MAX_IMAGE or len(session.images) >= MAX_IMAGES:
            raise RpcError(INVALID_PARAMS, f"at most {MAX_IMAGES} images of {MAX_IMAGE} characters in base64")
        name = call.params.text("filename", "filename_hint") or "image"
        kind = call.params.text("format") or name.rpartition(".")[2].lower()
        kind = {"jpg": "jpeg"}.get(kind, kind)
        session.images.append(f"data:image/{kind if kind.isalnum() else 'png'};base64,{content}")
        return {"attached": True, "path": name, "count": len(session.images)}

    # --- turns ---

    def _run(self, session: _GatewaySession, turn: GatewayTurn, message: object) -> Flow[None]:
        def opened(channel: EventReader) -> None:
            self._upstream[session.identity] = channel

        try:
            said = {"message": message, "approvals": True}
            yield from self._api.stream_turn(self.engine, session.identity, said, turn.add_event, opened)
            turn.complete("complete")  # a stream that ends without `done` is complete, too (wire api 4.5)
        except ServiceCallError as error:
            turn.fail(str(rpc_error(error)))
        self._turn_over(session)

    def _failed(self, session: _GatewaySession, error: Exception) -> None:
        if session.turn is not None:
            session.turn.fail(f"internal error {self.engine.log_bug(error)}")
        self._turn_over(session)

    def _turn_over(self, session: _GatewaySession) -> None:
        session.turn = session.task = None
        self._upstream.pop(session.identity, None)
        self.close_if_done()

    # --- helpers ---

    def _answer(self, call: RpcCall, method: Method) -> Flow[None]:
        self._calls += 1
        try:
            found = method(call)
            result = (yield from found) if isinstance(found, Generator) else found
            if result and not call.notification:
                self.send_line(write_result(call.identity, result))
        except RpcError as error:
            self._refuse(call, error)
        except ServiceCallError as error:
            self._refuse(call, rpc_error(error))
        except Exception as error:  # noqa: BLE001, RUF100 - the caller waits for an answer in any case
            self._refuse(call, RpcError(INTERNAL, f"internal error {self.engine.log_bug(error)}"))
        finally:
            self._calls -= 1
        self.close_if_done()

    def _refuse(self, call: RpcCall, error: RpcError) -> None:
        if call.notification:
            self.send_line(event_line("error", call.params.text("session_id") or None, {"message": str(error)}))
            return
        self.send_line(write_error(error, call.identity))

    def _session(self, call: RpcCall) -> _GatewaySession:
        session = self._sessions.get(call.params.text("session_id"))
        if session is None:
            raise RpcError(NO_SESSION, "no such session is open here: create or resume it")
        return session

    def _open(self, identity: str) -> _GatewaySession:
        session = self._sessions.pop(identity, None) or _GatewaySession(identity)
        idle = [key for key, held in self._sessions.items() if held.turn is None]
        if len(self._sessions) >= MAX_SESSIONS and idle:
            del self._sessions[idle[0]]
        self._sessions[identity] = session
        return session

    def _info(self, stored: Mapping[str, object] | None = None) -> dict[str, object]:
        return {
            "model": JsonObject.of(stored).text("model"),
            "tools": {},
            "skills": {},
            "cwd": "",
            "version": self._settings.version,
        }
