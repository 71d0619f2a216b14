"""What the gateway asks of the API server, as flows (wire api 3, 4, 6). Every failure is an `RpcError` for people."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from attrs import field, frozen

from clients.gateway.rpc import NOT_STORED, UPSTREAM
from svc_proto.basics import strict_json
from svc_proto.engine.client import Fetched, fetch
from svc_proto.engine.flow import Flow
from svc_proto.engine.host_api import ShownKey, host_api_key
from svc_proto.engine.readers import EventReader, each_event, events
from svc_proto.facts import Failure
from svc_proto.schema.json_rpc import RpcError
from svc_proto.schema.members import Members
from svc_proto.wire.sse import ServerSentEvent
from svc_proto.wire.urls import encode_segment

if TYPE_CHECKING:
    from svc_proto.engine.core import Engine

__all__ = ["Api", "ApiSettings"]

JSON = (b"content-type", b"application/json")


@frozen(kw_only=True)
class ApiSettings:
    """Where the API server is, and how one is let in."""

    url: str = "http://localhost:8642"
    key: str = field(default="", repr=False)
    profile: str = ""
    files: tuple[str, str] | None = None  # configuration file and home, where the API of this host has its key
    pin: str | None = None  # of its certificate; None: the system's trust decides


class Api:
    """Calls to the API server."""

    def __init__(self, engine: Engine, settings: ApiSettings) -> None:
        self._engine = engine
        self._settings = settings
        self._key = ShownKey(settings.key, None if settings.files is None else self._find_key)

    def create_session(self, title: str) -> Flow[str]:
        """A new session; its id."""
        body = {name: value for name, value in (("title", title), ("profile", self._settings.profile)) if value}
        answer = yield from self._json("POST", "/api/sessions", body)
        identity = answer.identity("id") or answer.inner("session").identity("id")
        if not identity:
            raise RpcError(UPSTREAM, "the API server gave no session id")
        return identity

    def sessions(self, limit: int) -> Flow[list[Members]]:
        """The stored sessions, newest first."""
        answer = yield from self._json("GET", f"/api/sessions?limit={limit}")
        return answer.rows("sessions", "items", "data")

    def toolsets(self) -> Flow[list[Members]]:
        """What the agent's tools are, by set (wire api 8.2)."""
        answer = yield from self._json("GET", "/v1/toolsets")
        return answer.rows("toolsets", "items", "data")

    def messages(self, session: str) -> Flow[list[Members]]:
        """The messages of a session, oldest first."""
        answer = yield from self._json("GET", f"/api/sessions/{encode_segment(session)}/messages")
        return answer.rows("messages", "items", "data")

    def session(self, session: str) -> Flow[Members]:
        """One session; `RpcError` 4007 if there is none."""
        answer = yield from self._json("GET", f"/api/sessions/{encode_segment(session)}")
        return answer.inner("session") or answer

    def stop(self, run: str) -> Flow[None]:
        """Ask for the end of a run."""
        yield from self._json("POST", f"/v1/runs/{encode_segment(run)}/stop", {})

    def approve(self, run: str, choice: str, *, call_id: str, everything: bool) -> Flow[int]:
        """Answer what a run waits for; how many were answered."""
        body: dict[str, object] = {"choice": choice, "all": everything}
        if call_id:
            body["call_id"] = call_id
        answer = yield from self._json("POST", f"/v1/runs/{encode_segment(run)}/approval", body)
        return answer.whole("resolved") or 0

    def chat(
        self,
        session: str,
        message: object,
        *,
        on_event: Callable[[ServerSentEvent], None],
        on_open: Callable[[EventReader], None],
    ) -> Flow[None]:
        """One turn; its events go to `on_event` until the stream ends."""
        answer = yield from self._key.show(
            lambda shown: each_event(
                fetch(
                    self._engine,
                    "POST",
                    f"{self._settings.url}/api/sessions/{encode_segment(session)}/chat/stream",
                    into=events(),
                    headers=(JSON, *shown),
                    body=strict_json.dumps_bytes({"message": message, "approvals": True}),
                ),
                on_event,
                on_open,
            )
        )
        self._check(answer)

    def _json(self, method: str, path: str, body: Mapping[str, object] | None = None) -> Flow[Members]:
        data = b"" if body is None else strict_json.dumps_bytes(body)
        url = self._settings.url + path
        answer = yield from self._key.show(
            lambda shown: fetch(self._engine, method, url, headers=(JSON, *shown), body=data)
        )
        data = self._check(answer)
        try:
            value = strict_json.loads(data)
        except strict_json.JsonError as error:
            raise RpcError(UPSTREAM, f"the API server's answer is not JSON: {error}") from None
        # A bare array is a list of sessions or messages to some servers.
        return Members.of(value if isinstance(value, dict) else {"data": value})

    def _find_key(self, known: str) -> Flow[str]:
        config_path, home = self._settings.files or ("", "")
        return host_api_key(self._engine, config_path, home, known)

    def _check(self, answer: Fetched | Failure) -> bytes:
        if isinstance(answer, Failure):
            why = answer.detail or answer.kind.value
            raise RpcError(UPSTREAM, f"the API server at {self._settings.url} cannot be reached: {why}")
        if answer.status in (401, 403):
            raise RpcError(UPSTREAM, "the API server does not accept the key: set API_SERVER_KEY")
        if answer.status >= 300:
            code = NOT_STORED if answer.status == 404 else UPSTREAM
            body = Members.parsed(answer.body[:65_536])
            why = body.text("error") or body.inner("error").text("message")  # in any of the shapes of wire api 2.1
            raise RpcError(code, f"the API server answers {answer.status}: {why[:400] or 'no reason given'}")
        return answer.body
