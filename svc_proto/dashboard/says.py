"""Descriptions of the dashboard's routes for its OpenAPI document: one row for each row of the route tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum

from svc_proto.api import shapes as api
from svc_proto.api import shapes_turns as turns
from svc_proto.dashboard import shapes
from svc_proto.dashboard.access import Access
from svc_proto.dashboard.agent_calls import PREFIX as AGENT
from svc_proto.dashboard.page import INDEX
from svc_proto.dashboard.phone_calls import PREFIX as PHONE
from svc_proto.dashboard.relay_calls import PREFIXES
from svc_proto.openapi.document import COMMON, STREAM
from svc_proto.openapi.operation_doc import DoorWords, Manual, Says
from svc_proto.relay import shapes as relay
from svc_proto.schema.chat_events import EVENTS

__all__ = ["manual"]

BEHIND = {502: "The server behind the dashboard cannot be reached, or failed."}
NO_CHAT = {**BEHIND, 404: "Chat is not available, or no object has this id."}
NO_PHONE = {**BEHIND, 404: "No reference phone runs on this host."}
CHECKED = {**BEHIND, 422: "The input is invalid."}
PICTURE = dict.fromkeys(("image/png", "image/jpeg", "image/gif", "image/webp"), bytes)

RELAY = {
    "GET /overview": Says("Return version, capabilities and load of the relay", relay.Info, no=BEHIND),
    "GET /sessions": Says("List the paired devices", relay.DeviceSessions, no=BEHIND),
    "DELETE /sessions/{prefix}": Says("Revoke a session", relay.Revoked, no=CHECKED),
    "GET /bridge-activity": Says("List recent commands", relay.Activity, query=shapes.LimitQuery, no=CHECKED),
    "GET /phones": Says("List the phones that can be controlled", relay.Phones, no=BEHIND),
    "GET /media": Says("List the registered files", relay.MediaEntries, query=shapes.ExpiredQuery, no=CHECKED),
    "GET /media/{token}": Says(
        "Return a picture by its token", PICTURE, no={**BEHIND, 415: "The file is not a picture."}
    ),
    "POST /media": Says(
        "Register a picture of this host",
        relay.MediaRegistered,
        body=shapes.PicturePath,
        no={**CHECKED, 415: "The file is not a picture."},
    ),
    "GET /push": Says("Report that push messages are not supported", shapes.Push),
    "POST /pairing": Says("Create a pairing code and its invite", relay.Invite, body=shapes.Wish, no=CHECKED),
}
CHAT = {
    "GET /sessions": Says("List chats", api.SessionPage, no=NO_CHAT),
    "POST /sessions": Says("Create a chat", api.SessionAnswer, 201, body=api.NewSession, no=NO_CHAT),
    "PATCH /sessions/{id}": Says("Change a chat", api.SessionAnswer, body=api.SessionChange, no=NO_CHAT),
    "DELETE /sessions/{id}": Says("Delete a chat", None, 204, no=NO_CHAT),
    "GET /sessions/{id}/messages": Says("List the messages of a chat", api.Messages, no=NO_CHAT),
    "GET /sessions/search": Says("Search messages", api.Hits, query=shapes.WordsQuery, no=NO_CHAT),
    "POST /sessions/{id}/chat/stream": Says(
        "Send a message and stream the events of the turn",
        {STREAM: str},
        body=turns.Turn,
        no=NO_CHAT,
        events=EVENTS,
        details="The data of each event starts with `session_id`, `run_id`, `seq` and `ts`.",
    ),
    "GET /model": Says("Return the model that answers", shapes.ChatModel, no=BEHIND),
    "GET /mcp-servers": Says("List the MCP servers that the agent uses", api.McpServers, no=NO_CHAT),
    "POST /mcp-servers/reload": Says("Reconnect to all MCP servers", api.McpServers, no=NO_CHAT),
    "GET /runs/{id}": Says("Return the state of a run", turns.Run, no=NO_CHAT),
    "POST /runs/{id}/stop": Says("Stop a run", turns.RunStopping, no=NO_CHAT),
    "POST /runs/{id}/approval": Says(
        "Answer an approval request of a run", turns.ApprovalAnswer, body=turns.ApprovalBody, no=NO_CHAT
    ),
    "POST /memory": Says("Add a note", api.MemoryChanged, body=api.Note, no=NO_CHAT),
    "PATCH /memory": Says("Replace a note", api.MemoryChanged, body=api.NoteChange, no=NO_CHAT),
    "DELETE /memory": Says("Remove a note", api.MemoryChanged, body=api.NoteGone, no=NO_CHAT),
}
SCREEN = {
    "GET /screen": Says("Return the screen of the phone", shapes.PhoneScreen, query=shapes.SeenQuery, no=NO_PHONE),
    "POST /touch": Says("Touch the screen", shapes.Accepted, body=shapes.Touch, no=NO_PHONE),
    "POST /answer": Says("Answer a confirmation", shapes.Accepted, body=shapes.Word, no=NO_PHONE),
    "POST /toggle": Says("Switch Device Control", shapes.Accepted, body=shapes.Toggle, no=NO_PHONE),
    "POST /say": Says("Send a message to the agent", shapes.Accepted, body=shapes.Said, no=NO_PHONE),
}
PAGE = {"text/html": str}
OWN = {
    "GET /allow": Says(
        "Return the page on which the owner decides about an agent", PAGE, query=shapes.CodeQuery, no=BEHIND
    ),
    "POST /allow": Says(
        "Send the decision of the owner",
        PAGE,
        body={"application/x-www-form-urlencoded": shapes.Ballot},
        no=BEHIND,
    ),
    "GET /api/vitals": Says("Return measurements of the servers", shapes.Vitals),
    "POST /api/qr": Says(
        "Draw a QR code",
        shapes.Rows,
        body={"text/plain": str},
        no={422: "The body is not text, or it is too long for a QR code."},
    ),
}
DOORS: Mapping[Enum, DoorWords] = {
    Access.OWNER: DoorWords(
        "Requires the password of the dashboard; without a configured password, for this host only.", ("", "password")
    ),
    Access.MONITOR: DoorWords("For programs on this host, or with `SVC_METRICS_TOKEN`.", ("", "metrics")),
    Access.PUBLIC: DoorWords("No credential is required."),
}


def manual(files: Iterable[str], prefix: str = "") -> Manual:
    """Return the manual, with one route for each file of the page."""
    page = {
        "GET /" if name == INDEX else f"GET /page/{name}": Says(
            "Return a file of the page", {"*/*": bytes}, also={304: None}
        )
        for name in files
    }
    if prefix:
        page[f"GET {prefix}"] = Says("Redirect to the page", None, 308)
    return Manual(
        title="svc-relay dashboard",
        description="Requests of the dashboard page to the relay, the API and the reference phone. "
        "Every GET route also answers HEAD. Web pages of other sites are refused.",
        says={
            **COMMON,
            "Relay": {_under(place, label): says for place in PREFIXES for label, says in RELAY.items()},
            "Chat": {_under(AGENT, label): says for label, says in CHAT.items()},
            "Reference phone": {_under(PHONE, label): says for label, says in SCREEN.items()},
            "Page": {**OWN, **page},
        },
        doors=DOORS,
        schemes={
            "password": {
                "type": "http",
                "scheme": "basic",
                "description": "`SVC_DASHBOARD_PASSWORD`, with any user name",
            },
            "metrics": {"type": "http", "scheme": "bearer", "description": "`SVC_METRICS_TOKEN`"},
        },
        places={
            "id": "id of the session or run",
            "prefix": "prefix of a session token, or the whole token",
            "token": "token of the file",
        },
        refusal=lambda path: ("Refusal", shapes.Refusal),
    )


def _under(place: str, label: str) -> str:
    method, _, path = label.partition(" ")
    return f"{method} {place}{path}"
