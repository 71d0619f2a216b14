"""Route of a chat's image activity: its calls of tools that take pictures, and their states.

Times are Unix seconds, as of messages. A call is `started` until it has a result or its turn has ended. Then it is
`completed` if its result names a picture, else `failed`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from svc_proto.agent.tools.phone_tools import PICTURE_TOOLS
from svc_proto.api.access import ApiAccess
from svc_proto.api.chat.records import Message
from svc_proto.api.chat.store_requests import ListMessages
from svc_proto.api.cluster.local_session_ownership import LocalSessionOwnership
from svc_proto.api.errors import invalid_request, not_found, session_not_found
from svc_proto.api.gateway.sessions import PROFILE
from svc_proto.api.runs.run_manager import TurnPort
from svc_proto.engine.flow import Flow
from svc_proto.engine.message import JsonResponse, Request, Response, StreamedResponse, json_response
from svc_proto.engine.router import Route
from svc_proto.schema.json_object import JsonObject, content_text

if TYPE_CHECKING:
    from svc_proto.openapi import profile_operations as types

__all__ = ["routes"]

MAX_ROWS = 500  # newest messages of a chat that are searched for calls
MARKER = "MEDIA:"  # begins the line of a result that names a picture


class ImageActivityPort(TurnPort, Protocol):
    """Members of the API server that the route of image activity uses."""

    ownership: LocalSessionOwnership


def routes(api: ImageActivityPort) -> list[Route]:
    """Return the route of image activity."""
    view = _ImageActivity(api)
    pattern = "/api/sessions/{id}/image-activity"
    return [Route(method="GET", pattern=pattern, access=ApiAccess.KEY, handler=view.show)]


class _ImageActivity:
    def __init__(self, api: ImageActivityPort) -> None:
        self._api = api

    def show(self, request: Request) -> Flow[JsonResponse[types.ImageActivityJson] | Response | StreamedResponse]:
        """List the calls in the newest 500 messages, oldest first, without those whose result is older than `since`.

        In a cluster, if a call has no result and this node runs no turn of the session, another node that owns the
        session answers. Raises `Refused` 400 for a `since` that is no number, 404 for another profile or an unknown
        session.
        """
        api, session_id = self._api, request.params["id"]
        if request.query.get("profile", PROFILE) != PROFILE:
            raise not_found(f"this service runs the profile {PROFILE!r} only")
        since = _parse_since(request.query.get("since", ""))
        rows = yield from api.run_store_request(ListMessages(session_id=session_id, limit=MAX_ROWS, latest=True))
        if rows is None:
            raise session_not_found(session_id)
        live = {run.record.id for run in api.runs.session_runs(session_id)}
        calls = _find_calls(rows, live)
        if not live and any(call["completed_at"] is None for call in calls):
            response = yield from api.ownership.acquire(session_id, request)
            if response is not None:
                return response
            api.ownership.release(session_id)
        shown = [call for call in calls if call["completed_at"] is None or call["completed_at"] >= since]
        return json_response(200, {"session_id": session_id, "profile": PROFILE, "activities": shown})


def _find_calls(rows: tuple[Message, ...], live: set[str]) -> list[types.ImageCallJson]:
    """Return the calls in these rows, oldest first. A call without a result has failed unless its run is in `live`."""
    calls: list[types.ImageCallJson] = []
    pending: dict[str, types.ImageCallJson] = {}  # by the id of the call, which a later turn may use again
    for row in rows:
        for each in map(JsonObject.of, row.tool_calls):
            name = each.get_object("function").text("name")
            if name in PICTURE_TOOLS:
                call: types.ImageCallJson = {
                    "call_id": each.text("id"),
                    "tool_name": name,
                    "state": "started" if row.run_id in live else "failed",
                    "started_at": row.timestamp,
                    "completed_at": None,
                }
                calls.append(call)
                pending[call["call_id"]] = call
        found = pending.pop(row.tool_call_id or "", None)
        if found is not None:
            has_picture = any(line.startswith(MARKER) for line in content_text(row.content).splitlines())
            found["state"], found["completed_at"] = "completed" if has_picture else "failed", row.timestamp
    return calls


def _parse_since(text: str) -> float:
    if not text:
        return 0.0
    if not (text.isascii() and text.replace(".", "", 1).isdecimal()):
        raise invalid_request("since must be Unix seconds", param="since")
    return float(text)  # of too many digits: infinity, later than any call
