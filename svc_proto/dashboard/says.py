"""What each route of the dashboard says of itself, for its document: one row for each row of the route tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum

from svc_proto.about.openapi import COMMON, STREAM
from svc_proto.about.says import DoorWords, Manual, Says
from svc_proto.api import shapes as api
from svc_proto.api import shapes_turns as turns
from svc_proto.dashboard import shapes
from svc_proto.dashboard.access import Access
from svc_proto.dashboard.agent_calls import PREFIX as AGENT
from svc_proto.dashboard.page import INDEX
from svc_proto.dashboard.phone_calls import PREFIX as PHONE
from svc_proto.dashboard.relay_calls import PREFIXES
from svc_proto.relay import shapes as relay
from svc_proto.schema.chat_events import EVENTS

__all__ = ["manual"]

BEHIND = {502: "the server behind the dashboard cannot be reached, or failed"}
NO_CHAT = {**BEHIND, 404: "there is no chat, or not what was asked for"}
NO_PHONE = {**BEHIND, 404: "no reference phone runs on this host"}
CHECKED = {**BEHIND, 422: "the input is not as it has to be"}
PICTURE = dict.fromkeys(("image/png", "image/jpeg", "image/gif", "image/webp"), bytes)

RELAY = {
    "GET /overview": Says("What the relay is", relay.Info, no=BEHIND),
    "GET /sessions": Says("The paired devices", relay.DeviceSessions, no=BEHIND),
    "DELETE /sessions/{prefix}": Says("Revoke one", relay.Revoked, no=CHECKED),
    "GET /bridge-activity": Says("The last commands", relay.Activity, query=shapes.LimitQuery, no=CHECKED),
    "GET /phones": Says("The phones that can be driven", relay.Phones, no=BEHIND),
    "GET /media": Says("What can be fetched", relay.MediaEntries, query=shapes.ExpiredQuery, no=CHECKED),
    "GET /media/{token}": Says("A picture by its token", PICTURE, no={**BEHIND, 415: "it is no picture"}),
    "POST /media": Says(
        "Hand out a picture", relay.MediaRegistered, body=shapes.PicturePath, no={**CHECKED, 415: "it is no picture"}
    ),
    "GET /push": Says("That there is no push", shapes.Push),
    "POST /pairing": Says("Make a code and its invite", relay.Invite, body=shapes.Wish, no=CHECKED),
}
CHAT = {
    "GET /sessions": Says("Chats", api.SessionPage, no=NO_CHAT),
    "POST /sessions": Says("Make a chat", api.SessionAnswer, 201, body=api.NewSession, no=NO_CHAT),
    "PATCH /sessions/{id}": Says("Change a chat", api.SessionAnswer, body=api.SessionChange, no=NO_CHAT),
    "DELETE /sessions/{id}": Says("Delete a chat", None, 204, no=NO_CHAT),
    "GET /sessions/{id}/messages": Says("What was said", api.Messages, no=NO_CHAT),
    "GET /sessions/search": Says("Messages by their words", api.Hits, query=shapes.WordsQuery, no=NO_CHAT),
    "POST /sessions/{id}/chat/stream": Says(
        "Say something, and be told of the turn",
        {STREAM: str},
        body=turns.Turn,
        no=NO_CHAT,
        events=EVENTS,
        details="Its data has `session_id`, `run_id`, `seq` and `ts` before the members that are shown here.",
    ),
    "GET /model": Says("Which model answers", shapes.ChatModel, no=BEHIND),
    "GET /mcp-servers": Says("The MCP servers that the agent uses", api.McpServers, no=NO_CHAT),
    "POST /mcp-servers/reload": Says("Begin anew with all of them", api.McpServers, no=NO_CHAT),
    "GET /runs/{id}": Says("How a run is doing", turns.Run, no=NO_CHAT),
    "POST /runs/{id}/stop": Says("Stop it", turns.RunStopping, no=NO_CHAT),
    "POST /runs/{id}/approval": Says("Answer its question", turns.ApprovalAnswer, body=turns.ApprovalBody, no=NO_CHAT),
    "POST /memory": Says("Add a note", api.MemoryChanged, body=api.Note, no=NO_CHAT),
    "PATCH /memory": Says("Replace a note", api.MemoryChanged, body=api.NoteChange, no=NO_CHAT),
    "DELETE /memory": Says("Remove a note", api.MemoryChanged, body=api.NoteGone, no=NO_CHAT),
}
SCREEN = {
    "GET /screen": Says("What its screen shows", shapes.PhoneScreen, query=shapes.SeenQuery, no=NO_PHONE),
    "POST /touch": Says("Touch it", shapes.Accepted, body=shapes.Touch, no=NO_PHONE),
    "POST /answer": Says("Answer its question", shapes.Accepted, body=shapes.Word, no=NO_PHONE),
    "POST /toggle": Says("Switch Device Control", shapes.Accepted, body=shapes.Toggle, no=NO_PHONE),
    "POST /say": Says("Say something to the agent", shapes.Accepted, body=shapes.Said, no=NO_PHONE),
}
PAGE = {"text/html": str}
OWN = {
    "GET /allow": Says("The page that lets an agent in", PAGE, query=shapes.CodeQuery, no=BEHIND),
    "POST /allow": Says("Its answer", PAGE, body={"application/x-www-form-urlencoded": shapes.Ballot}, no=BEHIND),
    "GET /api/vitals": Says("How the servers fare", shapes.Vitals),
    "POST /api/qr": Says(
        "Draw a QR", shapes.Rows, body={"text/plain": str}, no={422: "it is no text, or there is too much"}
    ),
}
DOORS: Mapping[Enum, DoorWords] = {
    Access.OWNER: DoorWords(
        "For whoever may see the dashboard: with its password, or without one from this host.", ("", "password")
    ),
    Access.MONITOR: DoorWords("For programs of this host, or whoever shows `SVC_METRICS_TOKEN`.", ("", "metrics")),
    Access.PUBLIC: DoorWords("For anybody."),
}


def manual(files: Iterable[str], prefix: str = "") -> Manual:
    """What there is to say, with the files of the page by their names."""
    page = {
        "GET /" if name == INDEX else f"GET /page/{name}": Says("A file of the page", {"*/*": bytes}, also={304: None})
        for name in files
    }
    if prefix:
        page[f"GET {prefix}"] = Says("Leads to the page", None, 308)
    return Manual(
        title="svc-relay dashboard",
        description="The calls of the page: of the relay, of the API and of the reference phone, for its owner. "
        "What answers GET answers HEAD as well. No page of another site may call any of it.",
        says={
            **COMMON,
            "Relay": {_under(place, label): says for place in PREFIXES for label, says in RELAY.items()},
            "Chat": {_under(AGENT, label): says for label, says in CHAT.items()},
            "Reference phone": {_under(PHONE, label): says for label, says in SCREEN.items()},
            "Page": {**OWN, **page},
        },
        doors=DOORS,
        schemes={
            "password": {"type": "http", "scheme": "basic", "description": "`SVC_DASHBOARD_PASSWORD`, with any name"},
            "metrics": {"type": "http", "scheme": "bearer", "description": "`SVC_METRICS_TOKEN`"},
        },
        places={
            "id": "its id",
            "prefix": "the beginning of a session's token, or all of it",
            "token": "as it was given with the file",
        },
        refusal=lambda path: ("Refusal", shapes.Refusal),
    )


def _under(place: str, label: str) -> str:
    method, _, path = label.partition(" ")
    return f"{method} {place}{path}"
