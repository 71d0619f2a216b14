"""Responses of a service with several nodes, in the store that all nodes share.

The client does not wait until a response is stored, and may continue at another node before. A missing response whose
id has the form of this server's ids is therefore looked up a second time.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from svc_proto.api.chat.store_requests import DeleteResponse, FindResponse, SaveResponse
from svc_proto.api.ports import StorePort
from svc_proto.api.runs.response_store import MAX_STORED, MAX_TEXT, ResponseStore
from svc_proto.basics import strict_json
from svc_proto.commands import Level, Query
from svc_proto.engine.flow import Flow, run_operation, sleep
from svc_proto.facts import Failure

if TYPE_CHECKING:
    from svc_proto.api.openapi.run_types import ResponseJson

__all__ = ["PROPAGATION_DELAY", "ClusterResponseStore"]

PROPAGATION_DELAY = 0.25  # s before a missing response is looked up again
NAME = re.compile("resp_[0-9a-f]{28}")  # ids that this server makes


class ClusterResponseStore(ResponseStore):
    """Response store of a cluster node: responses and conversations are in the store that all nodes share."""

    def __init__(self, api: StorePort) -> None:
        super().__init__(api.engine)
        self._api = api
        self._unstored: dict[tuple[str, str], tuple[str, str]] = {}  # not stored (yet): session and text by name

    def load(self, *, required: bool = True) -> Flow[None]:
        """Do nothing: responses are read from the shared store."""
        yield from ()

    def get(self, response_id: str) -> Flow[ResponseJson | None]:
        """Return a response by its id, or None. Raises `Refused` 503 if the store does not answer."""
        found = yield from self._find("response", response_id)
        if found is None:
            return None
        return cast("ResponseJson", strict_json.loads(found[1], max_depth=1_000, ours=True))

    def session_of(self, kind: str, name: str) -> Flow[str | None]:
        """Return the session of a `response` or `conversation`, or None. Raises `Refused` 503 without the store."""
        found = yield from self._find(kind, name)
        return None if found is None else found[0]

    def put(self, response: Mapping[str, object], session_id: str, conversation: str | None) -> Flow[None]:
        """Store a response, and its conversation if named. A failure is only logged.

        Until the store has confirmed, a copy is kept in memory: at most `MAX_STORED`, the oldest are dropped first.
        """
        text = strict_json.dumps(response)
        named = [("response", str(response["id"]), text)]
        if conversation is not None:
            named.append(("conversation", conversation, ""))
        for kind, name, encoded in named:
            self._unstored.pop((kind, name), None)  # put again, it is the newest
            self._unstored[kind, name] = session_id, encoded
        while len(self._unstored) > MAX_STORED:
            del self._unstored[next(iter(self._unstored))]
        for kind, name, encoded in named:
            yield from self._store(kind, name, session_id, encoded)

    def delete(self, response_id: str) -> Flow[bool]:
        """Delete a response for all nodes; False if there is none."""
        if (yield from self._find("response", response_id)) is None:
            return False
        unstored = self._unstored.pop(("response", response_id), None)
        there = yield from self._api.run_store_request(DeleteResponse(name=response_id))
        return there or unstored is not None

    # --- helpers ---

    def _find(self, kind: str, name: str) -> Flow[tuple[str, str] | None]:
        """Return the session and the text of an entry, or None.

        A missing response whose id has the form of this server's ids is looked up again after `PROPAGATION_DELAY`.
        """
        found = yield from self._load(kind, name)
        if found is None and kind == "response" and NAME.fullmatch(name):
            yield from sleep(self._engine, PROPAGATION_DELAY)
            found = yield from self._load(kind, name)
        return found

    def _load(self, kind: str, name: str) -> Flow[tuple[str, str] | None]:
        unstored = self._unstored.get((kind, name))
        if unstored is not None:
            return unstored
        found = yield from self._api.run_store_request(FindResponse(kind=kind, name=name, now=self._engine.now.wall))
        return None if found is None else (found.session_id, found.text)

    def _store(self, kind: str, name: str, session_id: str, text: str) -> Flow[None]:
        engine, now = self._engine, self._engine.now.wall
        wanted = SaveResponse(
            kind=kind, name=name, session_id=session_id, text=text, now=now, most=MAX_STORED, size=MAX_TEXT
        )
        done = yield from run_operation(engine, Query(engine.new_op(), wanted))
        if isinstance(done, Failure):
            engine.log(Level.WARNING, "responses not stored", problem=done.kind.value)
        elif self._unstored.get((kind, name)) == (session_id, text):
            del self._unstored[kind, name]
