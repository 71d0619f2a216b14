"""Store of `/v1/responses`: responses and conversations, in memory and in a state file (wire api 7)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from svc_proto.api.errors import store_unavailable
from svc_proto.basics import strict_json
from svc_proto.basics.errors import Refused
from svc_proto.basics.validate import text
from svc_proto.commands import Level, WriteConfig
from svc_proto.engine.core import Engine
from svc_proto.engine.files import read_state
from svc_proto.engine.flow import Flow, run_operation
from svc_proto.engine.sync import Lock
from svc_proto.facts import Failure

if TYPE_CHECKING:
    from svc_proto.api.openapi.run_types import ResponseJson

__all__ = ["FILE", "MAX_STORED", "MAX_TEXT", "ResponseStore"]

FILE = "responses.json"  # in the state folder
MAX_STORED = 100  # responses, and as many conversations, wire api 7; the least recently used is dropped
MAX_TEXT = 4 * 1024 * 1024  # characters of all responses as JSON; the least recently used is dropped


class ResponseStore:
    """Responses by id, and sessions of conversations by name; the state file is read at the first use."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._busy = Lock(engine)
        self._loaded = False
        self._texts: dict[str, str] = {}  # a response as JSON by its id; the last used is last
        self._sessions: dict[str, str] = {}  # session of each response
        self._conversations: dict[str, str] = {}  # session of each conversation name

    def load(self, *, required: bool = True) -> Flow[None]:
        """Read the state file, unless it has been read.

        Raises `Refused` 503 if it is `required` and cannot be read; the next call tries again. A file with invalid
        content is logged and counts as read, without entries.
        """
        if self._loaded:
            return
        yield from self._busy.acquire()
        try:
            if not self._loaded:
                self._loaded = yield from self._read()
        finally:
            self._busy.release()
        if required and not self._loaded:
            raise store_unavailable()

    def get(self, response_id: str) -> Flow[ResponseJson | None]:
        """Return a response by its id, or None; count the access as a use. Raises `Refused` 503 as `load` does.

        A response that is in memory is returned although the file cannot be read.
        """
        yield from self.load(required=response_id not in self._texts)
        text = self._texts.pop(response_id, None)
        if text is None:
            return None
        self._texts[response_id] = text
        return cast("ResponseJson", strict_json.loads(text, max_depth=1_000, ours=True))

    def session_of(self, kind: str, name: str) -> Flow[str | None]:
        """Return the session of a `response` or a `conversation`, or None. Raises `Refused` 503 as `load` does."""
        yield from self.load()
        return (self._sessions if kind == "response" else self._conversations).get(name)

    def put(self, response: Mapping[str, object], session_id: str, conversation: str | None) -> Flow[None]:
        """Store a response and its session in memory and in the file; if the file cannot be read or written, log that.

        `conversation`, if there is one, then names this session. Over `MAX_STORED` or `MAX_TEXT`, the least recently
        used responses are dropped, a too large new one included; over `MAX_STORED`, also the oldest conversations.
        """
        response_id, text = str(response["id"]), strict_json.dumps(response)
        self._texts[response_id], self._sessions[response_id] = text, session_id
        if conversation is not None:
            self._conversations.pop(conversation, None)
            self._conversations[conversation] = session_id
        yield from self.load(required=False)
        while len(self._conversations) > MAX_STORED:
            del self._conversations[next(iter(self._conversations))]
        size = sum(map(len, self._texts.values()))
        while self._texts and (len(self._texts) > MAX_STORED or size > MAX_TEXT):
            oldest = next(iter(self._texts))
            size -= len(self._texts.pop(oldest))
            del self._sessions[oldest]
        yield from self._save()

    def delete(self, response_id: str) -> Flow[bool]:
        """Delete a response; False if there is none. Raises `Refused` 503 as `load` does."""
        yield from self.load()
        if self._texts.pop(response_id, None) is None:
            return False
        del self._sessions[response_id]
        yield from self._save()
        return True

    # --- helpers ---

    def _read(self) -> Flow[bool]:
        engine = self._engine
        text = yield from read_state(engine, FILE)
        if isinstance(text, Failure):
            engine.log(Level.WARNING, "responses not read", problem=text.kind.value)
            return False
        try:
            if text is not None:
                self._restore(strict_json.loads(text, max_depth=1_000, ours=True))
        except (strict_json.JsonError, Refused, TypeError, ValueError, KeyError):
            engine.log(Level.WARNING, "responses not read", problem="invalid")
        return True

    def _restore(self, value: object) -> None:
        """Load the entries of the file, as older ones than those that were added while the file could not be read."""
        state = cast("dict[str, list[list[object]]]", value)
        texts, sessions, conversations = {}, {}, {}
        for response_id, session_id, told in state["responses"]:
            name = text(response_id, "response")
            texts[name], sessions[name] = text(told, name), text(session_id, name)
        for conversation, session_id in state["conversations"]:
            conversations[text(conversation, "conversation")] = text(session_id, "conversation")
        self._texts, self._sessions = {**texts, **self._texts}, {**sessions, **self._sessions}
        self._conversations = {**conversations, **self._conversations}

    def _save(self) -> Flow[None]:
        """Write all responses and conversations with their sessions to the file; log a failure.

        If the file could not be read, nothing is written. The state is built after the lock is acquired, so it is
        current.
        """
        engine = self._engine
        if not self._loaded:
            engine.log(Level.WARNING, "responses not stored", problem="not read")
            return
        yield from self._busy.acquire()
        try:
            state = {
                "responses": [[name, self._sessions[name], text] for name, text in self._texts.items()],
                "conversations": [list(pair) for pair in self._conversations.items()],
            }
            done = yield from run_operation(engine, WriteConfig(engine.new_op(), FILE, strict_json.dumps(state)))
            if isinstance(done, Failure):
                engine.log(Level.WARNING, "responses not stored", problem=done.kind.value)
        finally:
            self._busy.release()
