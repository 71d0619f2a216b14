"""One turn of a chat with the agent over the API server, as a command shows it (wire api 3, 4).

News for the program, as `Tell`: `text` (`text`: a piece of the answer), `tool` (`line`: what a tool does), and with
`raw` instead of both `event` (`event`, `data`: as the server sent them).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from attrs import field, frozen

from svc_proto.basics import strict_json
from svc_proto.client.api_address import find_api
from svc_proto.client.calls import Target, error_text, fields_for, plain, request_json, unreachable
from svc_proto.client.chore import doing
from svc_proto.client.problem import Problem
from svc_proto.client.routes import bracketed
from svc_proto.commands import Tell
from svc_proto.config import RelayConfig
from svc_proto.engine.core import Engine
from svc_proto.engine.event_stream import fetch_events
from svc_proto.engine.flow import Flow
from svc_proto.facts import Failure
from svc_proto.wire.sse import ServerSentEvent
from svc_proto.wire.urls import encode_segment

__all__ = ["ChatEnd", "ChatOrder", "api_target", "chat"]

PREVIEW = 120  # characters of what a tool got or gave that are shown
HERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}
REMEDY = "start it, or name it with --api-url"


@frozen(kw_only=True)
class ChatOrder:
    """What to say, and in which session; None: a new one. `raw`: pass every event on as it comes."""

    message: str
    session: str | None = None
    raw: bool = False


@frozen
class ChatEnd:
    """The session that it was in, and whether the agent finished."""

    session: str
    completed: bool
    tokens: int | None = None


def api_target(engine: Engine, config: RelayConfig, url: str | None, key: str | None) -> Flow[Target]:
    """The API server: as named, else as this host's configuration has it (wire core 2.7)."""
    found = yield from find_api(engine, config)
    here = f"http://{bracketed(HERE.get(found.host, found.host))}:{found.port}"
    return Target("the API server", url or here, token=found.key if key is None else key, remedy=REMEDY)


def chat(engine: Engine, api: Target, order: ChatOrder) -> Flow[ChatEnd]:
    """Say it, and tell what comes. Raises `Problem`, also for an `error` event."""
    doing(engine, f"asking {api.name} at {api.url}")
    session = order.session
    if session is None:
        session = _session_id((yield from request_json(engine, api, "POST", "/api/sessions", {})))
    turn = _Turn(engine, order.raw)
    answer = yield from fetch_events(
        engine,
        "POST",
        f"{api.url}/api/sessions/{encode_segment(session)}/chat/stream",
        on_event=turn.take,
        headers=fields_for(api),
        body=strict_json.dumps_bytes({"message": order.message}),
    )
    if isinstance(answer, Failure):
        raise Problem(unreachable(api, answer) if not turn.begun else f"the answer broke off: {answer.detail or 'cut'}")
    if answer.status in (401, 403):
        raise Problem(f"{api.name} does not accept the key: set API_SERVER_KEY, or --api-key")
    if answer.status == 404:
        raise Problem(f"{api.name} has no session {session!r}: leave --session out for a new one")
    if answer.status != 200:
        raise Problem(f"{api.name} refuses: {error_text(answer)}")
    if turn.problem is not None:
        raise Problem(f"the agent failed: {turn.problem}")
    return ChatEnd(session, turn.completed, turn.tokens)


@frozen
class _Tool:
    name: str
    text: str = field(default="")

    @property
    def line(self) -> str:
        return f"{self.name}: {self.text}" if self.text else self.name


class _Turn:
    """Takes the events of one turn."""

    def __init__(self, engine: Engine, raw: bool) -> None:
        self._engine = engine
        self._raw = raw
        self.begun = False
        self.completed = False
        self.problem: str | None = None
        self.tokens: int | None = None
        self._told = ""

    def take(self, event: ServerSentEvent) -> None:
        try:
            value = strict_json.loads(event.data)
        except strict_json.JsonError:
            return  # `[DONE]`, of some servers
        data = cast("dict[str, object]", value) if isinstance(value, dict) else {}
        self.begun = True
        if self._raw:
            self._engine.emit(Tell("event", {"event": event.event, "data": data}))
        match event.event:
            case "assistant.delta":
                self._text(_string(data, "delta"))
            case "assistant.completed" if not self._told:
                self._text(_string(data, "content"))
            case "tool.started" | "tool.pending":
                self._tool("→", data, "preview", "args")
            case "tool.completed":
                self._tool("←", data, "result_preview")
            case "tool.failed":
                self._tool("✗", data, "error")
            case "run.completed":
                self.completed = data.get("completed") is not False
                self._count(data.get("usage"))
            case "error":
                self.problem = plain(_string(data, "message") or _string(data, "error")) or "no reason given"
            case _:
                pass

    def _text(self, text: str) -> None:
        self._told += text[:1]  # whether there was any is all that matters
        if text and not self._raw:
            self._engine.emit(Tell("text", {"text": text}))

    def _tool(self, sign: str, data: Mapping[str, object], *names: str) -> None:
        if self._raw:
            return
        shown = next((data[name] for name in names if data.get(name)), "")
        text = shown if isinstance(shown, str) else strict_json.dumps(shown)
        tool = _Tool(plain(_string(data, "tool_name")) or "tool", plain(text, PREVIEW))
        self._engine.emit(Tell("tool", {"line": f"{sign} {tool.line}"}))

    def _count(self, usage: object) -> None:
        if isinstance(usage, dict):
            counts = [usage.get(name) for name in ("input_tokens", "output_tokens")]
            known = [count for count in counts if isinstance(count, int) and not isinstance(count, bool)]
            self.tokens = sum(known) if known else None


def _session_id(answer: Mapping[str, object]) -> str:
    nested = answer.get("session")
    inner = cast("dict[str, object]", nested) if isinstance(nested, dict) else {}
    identity = answer.get("id") or inner.get("id")
    if not isinstance(identity, str | int) or isinstance(identity, bool):
        raise Problem("the API server gave no session id: is it really one?")
    return str(identity)


def _string(data: Mapping[str, object], name: str) -> str:
    value = data.get(name)
    return value if isinstance(value, str) else ""
