"""One chat run on the API server: begun, read, stopped, its questions answered (terminal-voice 6.7, 6.8; api 4, 6).

    run = RemoteRun(engine, api, order, tell)
    yield from run.perform()                 # returns at the run's end; `RunTrouble` when there is none

Whoever stops reading does not stop the run; `stop` does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from attrs import field, frozen

from svc_proto.basics import strict_json
from svc_proto.commands import Level
from svc_proto.engine.client import Fetched, bearer, fetch
from svc_proto.engine.flow import Flow
from svc_proto.engine.readers import SILENCE, EventReader, events
from svc_proto.facts import Failure
from svc_proto.machines.run_story import RunEvent, SessionBound
from svc_proto.schema.members import Members
from svc_proto.voice.agent.run_mapping import Over, Trouble, map_event
from svc_proto.wire.sse import ServerSentEvent
from svc_proto.wire.urls import encode_segment

if TYPE_CHECKING:
    from svc_proto.engine.core import Engine

__all__ = [
    "ApiTarget",
    "RemoteRun",
    "RunOrder",
    "RunTrouble",
    "answer_question",
    "is_asking",
    "read_history",
    "stop_run",
]

CONNECT_WITHIN = 10.0  # s, wire terminal-voice 6.7
CALL_WITHIN = 10.0  # s for one of the small calls
HISTORY_WITHIN = 5.0  # s, wire terminal-voice 6.2
MAX_SHOWN = 200  # characters of what the API server says is wrong
JSON = (b"content-type", b"application/json")
DEFAULT_PROFILE = "default"
BROKE_OFF = "The API server's answer broke off."


class RunTrouble(Exception):  # noqa: N818 - what is wrong is not ours
    """There is no run, or it failed. `str` is for people; `auth`: the API server does not take the credential."""

    def __init__(self, message: str, *, auth: bool = False) -> None:
        super().__init__(message)
        self.auth = auth


@frozen
class ApiTarget:
    """The API server's address without a slash at the end, and what lets us in."""

    url: str
    bearer: str | None = field(default=None, repr=False)

    @property
    def headers(self) -> tuple[tuple[bytes, bytes], ...]:
        """Of a request to it."""
        return (JSON, *bearer(self.bearer or ""))


@frozen(kw_only=True)
class RunOrder:
    """What to say, where; without a session one is made."""

    text: str
    word: str  # the product's word on this wire
    session_id: str | None = None
    profile: str | None = None
    system: str = ""  # interface notes for the agent


class RemoteRun:
    """See the module. `tell` is called with what the run tells, in order, until `stop`."""

    def __init__(self, engine: Engine, api: ApiTarget, order: RunOrder, tell: Callable[[RunEvent], None]) -> None:
        self._engine = engine
        self._api = api
        self._order = order
        self._tell = tell
        self.run_id = ""
        self._stopping = False

    def perform(self) -> Flow[None]:
        """Make the run and read it to its end."""
        session_id = self._order.session_id or (yield from self._new_session(None))
        reader = yield from self._open(session_id)
        if isinstance(reader, Fetched) and self._order.session_id and _is_lost(reader):
            session_id = yield from self._new_session("session_not_found")
            reader = yield from self._open(session_id)
        if isinstance(reader, Failure):
            raise RunTrouble(f"The API server cannot be reached: {reader.detail or reader.kind.value}"[:MAX_SHOWN])
        if isinstance(reader, Fetched):
            raise _refused(reader)
        try:
            yield from self._read(reader)
        finally:
            reader.drop()

    def stop(self) -> bool:
        """Tell nothing more. True: cancel the task, the run is being stopped; False: wait until it has a name."""
        self._stopping = True
        if not self.run_id:
            return False
        self._stop()
        return True

    # --- helpers ---

    def _stop(self) -> None:
        self._engine.spawn(stop_run(self._engine, self._api, self.run_id))

    def _new_session(self, reason: str | None) -> Flow[str]:
        profile = self._order.profile
        answer = yield from _call(self._engine, self._api, "POST", "/api/sessions", _with_profile({}, profile))
        if isinstance(answer, Failure):
            raise RunTrouble(f"The API server cannot be reached: {answer.detail or answer.kind.value}"[:MAX_SHOWN])
        if answer.status not in (200, 201):
            raise _refused(answer)
        body = Members.parsed(answer.body)
        names = ("id", "session_id")
        session_id = body.identity(*names) or body.inner("session").identity(*names)
        if not session_id:
            raise RunTrouble("The API server gave no session id.")
        self._tell(SessionBound(session_id, profile, reason))
        return session_id

    def _open(self, session_id: str) -> Flow[EventReader | Fetched | Failure]:
        order = self._order
        body: dict[str, object] = {"message": order.text, "approvals": True}
        if order.system:
            body["system_message"] = order.system
        return (
            yield from fetch(
                self._engine,
                "POST",
                f"{self._api.url}/api/sessions/{encode_segment(session_id)}/chat/stream",
                headers=self._api.headers,
                body=strict_json.dumps_bytes(_with_profile(body, order.profile)),
                into=events(),
                connect_within=CONNECT_WITHIN,
                within=SILENCE,
            )
        )

    def _read(self, reader: EventReader) -> Flow[None]:
        over = False
        while not over:
            batch = yield from reader.read()
            if isinstance(batch, Failure):
                raise RunTrouble(BROKE_OFF)
            if batch is None:
                return  # a server that says no more has finished (wire api 4.5)
            for event in batch:
                over = self._take(event) or over

    def _take(self, event: ServerSentEvent) -> bool:
        """One event; whether it was the last that matters."""
        data = Members.parsed(event.data)
        self._note_run(data)
        over = False
        for mapped in map_event(event.event, data, self._order.word):
            if self._stopping:
                return bool(self.run_id)  # told to nobody; read on only to learn the run's name
            match mapped:
                case Over():
                    over = True
                case Trouble(message=message):
                    raise RunTrouble(message)
                case _:
                    self._tell(mapped)
        return over

    def _note_run(self, data: Members) -> None:
        run_id = data.text("run_id")
        if run_id and not self.run_id:
            self.run_id = run_id[:MAX_SHOWN]
            if self._stopping:
                self._stop()


# --- small calls --------------------------------------------------------------------------------------------------


def stop_run(engine: Engine, api: ApiTarget, run_id: str) -> Flow[None]:
    """`POST /v1/runs/{run_id}/stop`. A run that is over already is as good as stopped."""
    answer = yield from _call(engine, api, "POST", f"/v1/runs/{encode_segment(run_id)}/stop", {})
    if isinstance(answer, Failure):
        engine.log(Level.WARNING, "run not stopped", problem=answer.kind.value)
    elif answer.status not in (200, 202, 204, 404):
        engine.log(Level.WARNING, "run not stopped", status=answer.status)


def is_asking(engine: Engine, api: ApiTarget, run_id: str) -> Flow[bool]:
    """Whether a run waits for an approval (wire api 6.2). What cannot be found out is a no."""
    answer = yield from _call(engine, api, "GET", f"/v1/runs/{encode_segment(run_id)}", None)
    if isinstance(answer, Failure) or answer.status != 200:
        return False
    return Members.parsed(answer.body).get("status") == "waiting_for_approval"


def answer_question(engine: Engine, api: ApiTarget, run_id: str, call_id: str, choice: str) -> Flow[bool]:
    """`POST /v1/runs/{run_id}/approval`: False when this is not asked any more; `RunTrouble` for anything else."""
    body = {"choice": choice, "call_id": call_id}
    answer = yield from _call(engine, api, "POST", f"/v1/runs/{encode_segment(run_id)}/approval", body)
    if isinstance(answer, Failure):
        raise RunTrouble(f"The API server cannot be reached: {answer.detail or answer.kind.value}"[:MAX_SHOWN])
    if answer.status in (404, 409):
        return False
    if answer.status != 200:
        raise _refused(answer)
    return True


def read_history(engine: Engine, api: ApiTarget, session_id: str) -> Flow[list[Members]]:
    """The messages of a chat session, for context; none when they cannot be had."""
    path = f"/api/sessions/{encode_segment(session_id)}/messages"
    answer = yield from _call(engine, api, "GET", path, None, within=HISTORY_WITHIN)
    if isinstance(answer, Failure) or answer.status != 200:
        return []
    return Members.parsed(answer.body).rows("messages", "items", "data")


def _call(
    engine: Engine,
    api: ApiTarget,
    method: str,
    path: str,
    body: Mapping[str, object] | None,
    *,
    within: float = CALL_WITHIN,
) -> Flow[Fetched | Failure]:
    data = b"" if body is None else strict_json.dumps_bytes(body)
    return (yield from fetch(engine, method, api.url + path, headers=api.headers, body=data, within=within))


def _with_profile(body: dict[str, object], profile: str | None) -> dict[str, object]:
    return body if profile in (None, "", DEFAULT_PROFILE) else {**body, "profile": profile}


def _refused(answer: Fetched) -> RunTrouble:
    if answer.status in (401, 403):
        return RunTrouble("The API server does not accept the credential of this session.", auth=True)
    body = Members.parsed(answer.body)
    error = body.text("error") or body.inner("error").text("message")
    text = f": {error}" if error and error.isprintable() else ""
    return RunTrouble(f"The API server answers with status {answer.status}{text}"[:MAX_SHOWN])


def _is_lost(answer: Fetched) -> bool:
    """404 for the session, not for the route (wire api 2.1)."""
    error = Members.parsed(answer.body).inner("error")
    said = error.text("message").lower()
    return answer.status == 404 and (error.get("code") == "session_not_found" or "session not found" in said)
