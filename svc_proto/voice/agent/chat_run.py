"""One chat run on the API server: begun, read, stopped, its questions answered (terminal-voice 6.7, 6.8; api 4, 6).

    run = ApiRun(engine, order, tell, word="svc")
    yield from run.perform(api)    # returns at the run's end; `RunTrouble` or `PeerFailed` when there is none

Whoever stops reading does not stop the run; `stop` does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from svc_proto.commands import Level
from svc_proto.engine.flow import Flow, Task
from svc_proto.engine.readers import SILENCE, EventReader
from svc_proto.peers.api import ApiClient
from svc_proto.peers.peer import PeerFailed, PeerFault
from svc_proto.schema.chat_events import RunCompleted, words_in
from svc_proto.schema.members import Members
from svc_proto.voice.agent.run_mapping import DELTA, map_event
from svc_proto.voice.realtime.orders import StartRun
from svc_proto.voice.realtime.story import RunEvent, SessionBound
from svc_proto.wire.sse import ServerSentEvent

if TYPE_CHECKING:
    from svc_proto.engine.core import Engine

__all__ = ["ApiRun", "answer_question", "is_asking", "read_history", "said_of", "stop_run"]

CONNECT_WITHIN = 10.0  # s, wire terminal-voice 6.7
HISTORY_WITHIN = 5.0  # s, wire terminal-voice 6.2
MAX_SHOWN = 200  # characters of what the API server says is wrong
DEFAULT_PROFILE = "default"


class ApiRun:
    """See the module. `tell` is called with what the run tells, in order, until `stop`. `word` is the product's word on
    this wire, `system` notes for the agent. `drafts` may take a piece of the answer, of which nobody is told then.
    """

    task: Task | None = None  # of whoever performs it

    def __init__(
        self,
        engine: Engine,
        order: StartRun,
        tell: Callable[[RunEvent], None],
        *,
        word: str,
        system: str = "",
        drafts: Callable[[str], bool] | None = None,
    ) -> None:
        self._engine = engine
        self._order = order
        self._tell = tell
        self._word = word
        self._drafts = drafts
        self._system = system
        self._api: ApiClient | None = None  # once it is asked
        self.run_id = ""
        self._stopping = False

    def perform(self, api: ApiClient) -> Flow[None]:
        """Make the run and read it to its end; in a chat session of its own, if the order names none."""
        self._api = api
        session_id = self._order.session_id or (yield from self._new_session(api, None))
        try:
            yield from self._read(api, session_id)
        except PeerFailed as error:
            if not self._order.session_id or not _is_lost(error):
                raise
            yield from self._read(api, (yield from self._new_session(api, "session_not_found")))

    def stop(self) -> bool:
        """Tell nothing more. True: the task can be cancelled; False: wait until the run has a name to stop it by."""
        self._stopping = True
        if self._api is not None and self.run_id:
            self._engine.spawn(stop_run(self._engine, self._api, self.run_id))
        return self._api is None or bool(self.run_id)

    # --- helpers ---

    def _new_session(self, api: ApiClient, reason: str | None) -> Flow[str]:
        profile = self._order.profile
        session_id = yield from api.create_session(self._engine, _with_profile({}, profile))
        self._tell(SessionBound(session_id, profile, reason))
        return session_id

    def _read(self, api: ApiClient, session_id: str) -> Flow[None]:
        """A server that says no more has finished (wire api 4.5)."""
        order = self._order
        body: dict[str, object] = {"message": order.text, "approvals": True}
        if self._system:
            body["system_message"] = self._system
        yield from api.turn(
            self._engine,
            session_id,
            _with_profile(body, order.profile),
            self._take,
            self._tap,
            within=SILENCE,
            connect_within=CONNECT_WITHIN,
        )

    def _tap(self, reader: EventReader) -> None:
        drafts = self._drafts
        if drafts is not None:
            reader.tap(lambda kind, text: self._keep(kind, text, drafts))

    def _keep(self, kind: str, text: str, drafts: Callable[[str], bool]) -> bool:
        """A piece of an answer that is being drafted, which nobody is told."""
        if kind != DELTA or not self.run_id or self._stopping:
            return False
        words = words_in(text)
        return bool(words) and drafts(words)

    def _take(self, event: ServerSentEvent) -> bool:
        """One event; whether it was the last that matters."""
        data = Members.parsed(event.data)
        if not self.run_id:
            self.run_id = data.text("run_id")[:MAX_SHOWN]
            if self.run_id and self._stopping:
                self.stop()
        if self._stopping:
            return bool(self.run_id)  # told to nobody; read on only to learn the run's name
        told = map_event(event.event, data, self._word)
        if told is not None:
            self._tell(told)
        return isinstance(told, RunCompleted)


# --- small calls --------------------------------------------------------------------------------------------------


def stop_run(engine: Engine, api: ApiClient, run_id: str) -> Flow[None]:
    """`POST /v1/runs/{run_id}/stop`. A run that is over already is as good as stopped."""
    try:
        answer = yield from api.run(engine, run_id, "stop")
    except PeerFailed as error:
        engine.log(Level.WARNING, "run not stopped", problem=error.fault.value)
        return
    if answer.status not in (200, 202, 204, 404):
        engine.log(Level.WARNING, "run not stopped", status=answer.status)


def is_asking(engine: Engine, api: ApiClient, run_id: str) -> Flow[bool]:
    """Whether a run waits for an approval (wire api 6.2). What cannot be found out is a no."""
    try:
        answer = yield from api.success(api.run(engine, run_id))
    except PeerFailed:
        return False
    return answer.members.get("status") == "waiting_for_approval"


def answer_question(engine: Engine, api: ApiClient, run_id: str, call_id: str, choice: str) -> Flow[bool]:
    """`POST /v1/runs/{run_id}/approval`: False when this is not asked any more; `PeerFailed` for anything else."""
    try:
        yield from api.success(api.run(engine, run_id, "approval", {"choice": choice, "call_id": call_id}))
    except PeerFailed as error:
        if error.fault not in (PeerFault.NOT_FOUND, PeerFault.CONFLICT):
            raise
        return False
    return True


def read_history(engine: Engine, api: ApiClient, session_id: str) -> Flow[list[Members]]:
    """The messages of a chat session, for context; none when they cannot be had."""
    try:
        return (yield from api.messages(engine, session_id, within=HISTORY_WITHIN))
    except PeerFailed:
        return []


def said_of(error: PeerFailed) -> str:
    """The line for people, who may hear it."""
    match error.fault:
        case PeerFault.UNREACHABLE:
            text = f"The API server cannot be reached: {error.why}"
        case PeerFault.CUT:
            text = "The API server's answer broke off."
        case PeerFault.UNAUTHORIZED | PeerFault.FORBIDDEN:
            text = "The API server does not accept the credential of this session."
        case PeerFault.LACKING | PeerFault.NO_JSON | PeerFault.NO_OBJECT:
            text = "The API server gave no session id."
        case _:
            said = f": {error.said}" if error.said and error.said.isprintable() else ""
            text = f"The API server answers with status {error.status}{said}"
    return text[:MAX_SHOWN]


def _with_profile(body: dict[str, object], profile: str | None) -> dict[str, object]:
    return body if profile in (None, "", DEFAULT_PROFILE) else {**body, "profile": profile}


def _is_lost(error: PeerFailed) -> bool:
    """404 for the session, not for the route (wire api 2.1)."""
    if error.fault is not PeerFault.NOT_FOUND or error.answer is None:
        return False
    found = Members.parsed(error.answer.body).inner("error")
    return found.get("code") == "session_not_found" or "session not found" in found.text("message").lower()
