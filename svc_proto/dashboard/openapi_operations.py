"""Descriptions of the dashboard's routes for its OpenAPI document; those of `RELAY` serve for each prefix."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum

from svc_proto.api.openapi import change_types
from svc_proto.api.openapi import run_types as turns
from svc_proto.dashboard import openapi_types
from svc_proto.dashboard.access import DashboardAccess
from svc_proto.dashboard.agent_proxy import PREFIX as AGENT
from svc_proto.dashboard.phone_commands import COMMANDS
from svc_proto.dashboard.phone_proxy import PREFIX as PHONE
from svc_proto.dashboard.relay_proxy import PREFIXES
from svc_proto.dashboard.sign_in import COOKIE
from svc_proto.dashboard.static_files import path_of
from svc_proto.openapi.document import COMMON, PICTURE, STREAM
from svc_proto.openapi.operation_doc import AccessDoc, ApiDoc, OperationDoc
from svc_proto.schema import api_types as api
from svc_proto.schema import relay_types as relay
from svc_proto.schema.chat_events import EVENTS

__all__ = ["build_api_doc"]

UPSTREAM_RESPONSES = {502: "The server behind the dashboard cannot be reached, or failed."}
NO_MCP_SERVER = {404: "No MCP server of this name is configured."}
NO_CHAT = {**UPSTREAM_RESPONSES, 404: "Chat is not available, or no object has this id."}
NO_PHONE = {**UPSTREAM_RESPONSES, 404: "No reference phone runs on this host."}
VALIDATED_RESPONSES = {**UPSTREAM_RESPONSES, 422: "The input is invalid."}

RELAY = {
    "GET /overview": OperationDoc(
        "Return version, capabilities and load of the relay", relay.InfoJson, error_responses=UPSTREAM_RESPONSES
    ),
    "GET /sessions": OperationDoc(
        "List the paired devices", relay.DeviceSessionsJson, error_responses=UPSTREAM_RESPONSES
    ),
    "DELETE /sessions/{prefix}": OperationDoc(
        "Revoke a session", relay.RevokedJson, error_responses=VALIDATED_RESPONSES
    ),
    "PATCH /sessions/{prefix}": OperationDoc(
        "Change name, lifetime or grants of a session",
        relay.SessionChangedJson,
        body=relay.DeviceSessionChangeJson,
        error_responses=VALIDATED_RESPONSES,
    ),
    "GET /audit": OperationDoc(
        "List the newest events of the audit log",
        relay.AuditEventsJson,
        query=openapi_types.LimitQueryJson,
        error_responses=VALIDATED_RESPONSES,
    ),
    "GET /bridge-activity": OperationDoc(
        "List recent commands",
        relay.ActivityJson,
        query=openapi_types.LimitQueryJson,
        error_responses=VALIDATED_RESPONSES,
    ),
    "GET /phones": OperationDoc(
        "List the phones that can be controlled", relay.PhonesJson, error_responses=UPSTREAM_RESPONSES
    ),
    "POST /phones/{device}/{command}": OperationDoc(
        "Send a command to a phone",
        dict[str, object],
        body=dict[str, object],
        details=f"Commands: {', '.join(f'`{name}`' for name in COMMANDS)}, with the arguments and answers of the "
        "relay's route. The commands pass the gates of the phone.",
        error_responses={**VALIDATED_RESPONSES, 403: "The phone refuses.", 404: "No phone, or no such command."},
    ),
    "GET /notifications": OperationDoc(
        "List recent notifications of phones",
        relay.NotificationsJson,
        query=openapi_types.LimitQueryJson,
        error_responses=VALIDATED_RESPONSES,
    ),
    "GET /media": OperationDoc(
        "List the registered files",
        relay.MediaEntriesJson,
        query=openapi_types.ExpiredQueryJson,
        error_responses=VALIDATED_RESPONSES,
    ),
    "GET /media/{token}": OperationDoc(
        "Return a picture by its token",
        PICTURE,
        error_responses={**UPSTREAM_RESPONSES, 415: "The file is not a picture."},
    ),
    "POST /media": OperationDoc(
        "Register a picture of this host",
        relay.MediaRegisteredJson,
        body=openapi_types.PicturePathJson,
        error_responses={**VALIDATED_RESPONSES, 415: "The file is not a picture."},
    ),
    "GET /push": OperationDoc("Report that push messages are not supported", openapi_types.PushJson),
    "POST /pairing": OperationDoc(
        "Create a pairing code and its invite",
        relay.InviteJson,
        body=openapi_types.InviteRequestJson,
        error_responses=VALIDATED_RESPONSES,
    ),
}
CHAT = {
    "GET /sessions": OperationDoc(
        "List chats", api.SessionPageJson, query=openapi_types.ArchivedQueryJson, error_responses=NO_CHAT
    ),
    "POST /sessions": OperationDoc(
        "Create a chat", api.SessionAnswerJson, 201, body=api.NewSessionJson, error_responses=NO_CHAT
    ),
    "PATCH /sessions/{id}": OperationDoc(
        "Change a chat", api.SessionAnswerJson, body=api.SessionChangeJson, error_responses=NO_CHAT
    ),
    "DELETE /sessions/{id}": OperationDoc("Delete a chat", None, 204, error_responses=NO_CHAT),
    "GET /sessions/{id}/messages": OperationDoc(
        "List the messages of a chat", api.MessagesJson, error_responses=NO_CHAT
    ),
    "GET /sessions/{id}/pictures/{token}": OperationDoc(
        "Return a picture that is stored with a chat", PICTURE, error_responses=NO_CHAT
    ),
    "DELETE /sessions/{id}/messages": OperationDoc(
        "Remove a message of the user and all after it",
        None,
        204,
        query=api.TruncateQueryJson,
        error_responses=NO_CHAT,
    ),
    "GET /sessions/search": OperationDoc(
        "Search messages", api.HitsJson, query=openapi_types.WordsQueryJson, error_responses=NO_CHAT
    ),
    "POST /sessions/{id}/chat/stream": OperationDoc(
        "Send a message and stream the events of the turn",
        {STREAM: str},
        body=turns.TurnRequestJson,
        error_responses=NO_CHAT,
        events=EVENTS,
        details="The data of each event starts with `session_id`, `run_id`, `seq` and `ts`.",
    ),
    "GET /model": OperationDoc(
        "Return the model that answers", openapi_types.ChatModelJson, error_responses=UPSTREAM_RESPONSES
    ),
    "GET /mcp-servers": OperationDoc(
        "List the MCP servers that the agent uses", api.McpServersJson, error_responses=NO_CHAT
    ),
    "POST /mcp-servers/reload": OperationDoc(
        "Reconnect to all MCP servers", api.McpServersJson, error_responses=NO_CHAT
    ),
    "GET /runs/{id}": OperationDoc("Return the state of a run", turns.RunJson, error_responses=NO_CHAT),
    "POST /runs/{id}/stop": OperationDoc("Stop a run", turns.RunStoppingJson, error_responses=NO_CHAT),
    "POST /runs/{id}/approval": OperationDoc(
        "Answer an approval request of a run",
        turns.ApprovalAnswerJson,
        body=turns.ApprovalBodyJson,
        error_responses=NO_CHAT,
    ),
    "PATCH /model": OperationDoc(
        "Change the model of the agent", api.ConfigChangedJson, body=api.ConfigChangeJson, error_responses=NO_CHAT
    ),
    "POST /model/probe": OperationDoc(
        "List the models of a server, and test one",
        change_types.ModelProbedJson,
        body=change_types.ModelProbeJson,
        error_responses=NO_CHAT,
    ),
    "GET /host": OperationDoc("List the settings of the host", change_types.HostSettingsJson, error_responses=NO_CHAT),
    "PATCH /host": OperationDoc(
        "Change settings of the host",
        change_types.HostSettingsJson,
        body=change_types.HostChangeJson,
        error_responses=NO_CHAT,
    ),
    "POST /key/rotate": OperationDoc("Replace the API key by a new one", api.KeyReloadedJson, error_responses=NO_CHAT),
    "GET /approvals": OperationDoc(
        "List the standing approvals", change_types.StandingApprovalsJson, error_responses=NO_CHAT
    ),
    "DELETE /approvals": OperationDoc(
        "End a standing approval",
        change_types.ApprovalEndedJson,
        body=change_types.ApprovalEndJson,
        error_responses=NO_CHAT,
    ),
    "GET /changes": OperationDoc(
        "List what a principal changed at the agent",
        change_types.ChangesJson,
        query=change_types.ChangesQueryJson,
        error_responses=NO_CHAT,
    ),
    "POST /changes/undo": OperationDoc(
        "Undo what a principal changed at the agent",
        change_types.UndoneChangesJson,
        body=change_types.UndoChangesJson,
        error_responses=NO_CHAT,
    ),
    "POST /memory": OperationDoc("Add a note", api.MemoryChangedJson, body=api.NoteJson, error_responses=NO_CHAT),
    "PATCH /memory": OperationDoc(
        "Replace a note", api.MemoryChangedJson, body=api.NoteChangeJson, error_responses=NO_CHAT
    ),
    "DELETE /memory": OperationDoc(
        "Remove a note", api.MemoryChangedJson, body=api.NoteRemovalJson, error_responses=NO_CHAT
    ),
}
SCREEN = {
    "GET /screen": OperationDoc(
        "Return the screen of the phone",
        openapi_types.PhoneScreenJson,
        query=openapi_types.SeenQueryJson,
        error_responses=NO_PHONE,
    ),
    "POST /touch": OperationDoc(
        "Touch the screen", openapi_types.OkJson, body=openapi_types.TouchRequestJson, error_responses=NO_PHONE
    ),
    "POST /answer": OperationDoc(
        "Answer a confirmation",
        openapi_types.OkJson,
        body=openapi_types.ConfirmationAnswerJson,
        error_responses=NO_PHONE,
    ),
    "POST /toggle": OperationDoc(
        "Switch Device Control", openapi_types.OkJson, body=openapi_types.ToggleJson, error_responses=NO_PHONE
    ),
    "POST /say": OperationDoc(
        "Send a message to the agent", openapi_types.OkJson, body=openapi_types.SayRequestJson, error_responses=NO_PHONE
    ),
}
ANY = dict[str, object]
PAGE = {"text/html": str}
SIGN_IN = {
    "GET /api/status": OperationDoc(
        "Describe the dashboard to clients that look for one",
        openapi_types.AppStatusJson,
        error_responses={503: "The API server does not answer."},
    ),
    "GET /api/auth/providers": OperationDoc(
        "List the ways to sign in: none without a password", openapi_types.ProvidersJson
    ),
    "POST /auth/password-login": OperationDoc(
        "Sign in, and receive the cookie of a session",
        openapi_types.SignedInJson,
        body=openapi_types.PasswordLoginJson,
        error_responses={
            401: "The password is wrong.",
            404: "There is no such way to sign in, or no password is required.",
            429: "Too many wrong passwords.",
        },
    ),
    "GET /login": OperationDoc(
        "Return the page on which a browser signs in",
        PAGE,
        query=openapi_types.NextQueryJson,
        other_responses={303: None},
    ),
    "POST /login": OperationDoc(
        "Sign in with the form of the page",
        None,
        303,
        body={"application/x-www-form-urlencoded": openapi_types.SignInFormJson},
        error_responses={401: "The password is wrong.", 429: "Too many wrong passwords."},
    ),
    "POST /auth/logout": OperationDoc("Sign out", openapi_types.OkJson),
    "GET /api/auth/me": OperationDoc("Return the signed-in user", openapi_types.OwnerJson),
    "POST /api/auth/ws-ticket": OperationDoc("Get a ticket for one WebSocket", openapi_types.TicketJson),
    "GET /api/auth/sessions": OperationDoc("List the signed-in clients", openapi_types.SignInsJson),
    "DELETE /api/auth/sessions/{id}": OperationDoc(
        "End the session of a client", openapi_types.OkJson, error_responses={404: "No client has this id."}
    ),
}
APP = {
    "GET /api/ws": OperationDoc(
        "Open the WebSocket of the gateway",
        query=openapi_types.TicketQueryJson,
        details="Messages are those of the API server's gateway.",
        error_responses={401: "The ticket is unknown, used or too old.", **UPSTREAM_RESPONSES},
    ),
    "GET /api/sessions": OperationDoc("List chats", ANY, query=api.SessionQueryJson, error_responses=NO_CHAT),
    "GET /api/profiles/sessions": OperationDoc(
        "List the chats of all profiles", ANY, query=api.SessionQueryJson, error_responses=NO_CHAT
    ),
    "GET /api/sessions/search": OperationDoc(
        "Search messages", api.HitsJson, query=openapi_types.WordsQueryJson, error_responses=NO_CHAT
    ),
    "POST /api/sessions/prune": OperationDoc(
        "Delete old chats, or list them", ANY, body=openapi_types.PruneJson, error_responses=NO_CHAT
    ),
    "GET /api/sessions/{id}": OperationDoc("Return a chat", api.SessionAnswerJson, error_responses=NO_CHAT),
    "PATCH /api/sessions/{id}": OperationDoc(
        "Change a chat", api.SessionAnswerJson, body=api.SessionChangeJson, error_responses=NO_CHAT
    ),
    "DELETE /api/sessions/{id}": OperationDoc("Delete a chat", openapi_types.OkJson, error_responses=NO_CHAT),
    "GET /api/sessions/{id}/messages": OperationDoc(
        "List the messages of a chat, with their positions as `id`",
        ANY,
        query=api.MessageQueryJson,
        error_responses=NO_CHAT,
    ),
    "GET /api/sessions/{id}/export": OperationDoc("Return a chat with all messages", ANY, error_responses=NO_CHAT),
    "GET /api/config": OperationDoc("Return the configuration", ANY, error_responses=UPSTREAM_RESPONSES),
    "GET /api/config/schema": OperationDoc("Return the settings that can be edited: none", ANY),
    "GET /api/profiles": OperationDoc("List the profiles", ANY, error_responses=UPSTREAM_RESPONSES),
    "GET /api/profiles/active": OperationDoc("Return the active profile", ANY),
    "POST /api/profiles/active": OperationDoc(
        "Choose the active profile", ANY, body=ANY, error_responses={404: "There is no such profile."}
    ),
    "GET /api/skills": OperationDoc("List the skills", ANY, error_responses=UPSTREAM_RESPONSES),
    "GET /api/model/info": OperationDoc("Describe the model", ANY, error_responses=UPSTREAM_RESPONSES),
    "GET /api/model/options": OperationDoc(
        "List the models that can be chosen", api.ModelOptionsJson, error_responses=UPSTREAM_RESPONSES
    ),
    "POST /api/model/set": OperationDoc("Choose the model", ANY, body=ANY, error_responses=UPSTREAM_RESPONSES),
    "GET /api/mcp/servers": OperationDoc(
        "List the MCP servers that the agent uses", openapi_types.AppMcpServersJson, error_responses=UPSTREAM_RESPONSES
    ),
    "PUT /api/mcp/servers/{name}/enabled": OperationDoc(
        "Set whether the agent uses an MCP server",
        change_types.McpSwitchedJson,
        body=change_types.McpSwitchJson,
        error_responses={**UPSTREAM_RESPONSES, **NO_MCP_SERVER},
    ),
    "POST /api/mcp/servers/{name}/test": OperationDoc(
        "Connect to an MCP server, and report its tools or its problem",
        change_types.McpTestedJson,
        error_responses={**UPSTREAM_RESPONSES, **NO_MCP_SERVER},
    ),
    "GET /api/memory": OperationDoc("Describe the memory of the agent", ANY),
    "GET /api/dashboard/plugins": OperationDoc("List the plugins: none", list[ANY]),
    "POST /api/audio/transcribe": OperationDoc(
        "Return the text of a recording",
        ANY,
        body=openapi_types.DataUrlRecordingJson,
        error_responses={**UPSTREAM_RESPONSES, 413: "The recording is too large."},
    ),
    "POST /api/audio/speak": OperationDoc("Return a text as sound", ANY, body=ANY, error_responses=UPSTREAM_RESPONSES),
    "GET /api/audio/speak-stream": OperationDoc(
        "Open a WebSocket that speaks a text while it grows",
        query=openapi_types.TicketQueryJson,
        details='Messages of the client: `{"text"}`, then `{"done": true}`, or `{"stop": true}`. Of the server: '
        '`{"type": "start", "sample_rate", "channels"}`, 16-bit PCM as binary messages, and `{"type": "end"}`; or '
        '`{"type": "fallback"}` if it cannot speak.',
        error_responses={401: "The ticket is unknown, used or too old."},
    ),
    "GET /api/audio/elevenlabs/voices": OperationDoc("List the voices of a vendor: none", ANY),
}
OWN = {
    "GET /allow": OperationDoc(
        "Return the page on which the owner decides about an agent",
        PAGE,
        query=openapi_types.CodeQueryJson,
        error_responses=UPSTREAM_RESPONSES,
    ),
    "POST /allow": OperationDoc(
        "Send the decision of the owner",
        PAGE,
        body={"application/x-www-form-urlencoded": openapi_types.ConsentAnswerFormJson},
        error_responses=UPSTREAM_RESPONSES,
    ),
    "GET /api/vitals": OperationDoc("Return measurements of the servers", openapi_types.ServerStatsJson),
    "GET /api/health": OperationDoc("Return the health of this host", openapi_types.HostHealthJson),
    "POST /api/qr": OperationDoc(
        "Draw a QR code",
        openapi_types.QrRowsJson,
        body={"text/plain": str},
        error_responses={422: "The body is not text, or it is too long for a QR code."},
    ),
}
ACCESS_DOCS: Mapping[Enum, AccessDoc] = {
    DashboardAccess.OWNER: AccessDoc(
        "Requires the password of the dashboard; without a configured password, for this host only.",
        ("", "password", "session"),
    ),
    DashboardAccess.MONITOR: AccessDoc("For programs on this host, or with `SVC_METRICS_TOKEN`.", ("", "metrics")),
    DashboardAccess.PUBLIC: AccessDoc("No credential is required."),
    DashboardAccess.SIGN_IN: AccessDoc("No credential is required; without a configured password, for this host only."),
    DashboardAccess.TICKET: AccessDoc("Requires a ticket of `POST /api/auth/ws-ticket`, in the query."),
}


def build_api_doc(files: Iterable[str], prefix: str = "") -> ApiDoc:
    """Return the OpenAPI texts, with one route for each file of the page, and the redirect of `prefix` if it is set."""
    page = {
        f"GET {path_of(name)}": OperationDoc("Return a file of the page", {"*/*": bytes}, other_responses={304: None})
        for name in files
    }
    if prefix:
        page[f"GET {prefix}"] = OperationDoc("Redirect to the page", None, 308)
    return ApiDoc(
        title="svc-relay dashboard",
        description="Requests of the dashboard page to the relay, the API and the reference phone. "
        "Every GET route also answers HEAD. Web pages of other sites are refused.",
        operations={
            **COMMON,
            "Relay": {_under(place, label): says for place in PREFIXES for label, says in RELAY.items()},
            "Chat": {_under(AGENT, label): doc for label, doc in CHAT.items()},
            "Reference phone": {_under(PHONE, label): doc for label, doc in SCREEN.items()},
            "Sign-in": SIGN_IN,
            "App": APP,
            "Page": {**OWN, **page},
        },
        access_docs=ACCESS_DOCS,
        schemes={
            "password": {
                "type": "http",
                "scheme": "basic",
                "description": "`SVC_DASHBOARD_PASSWORD`, with any user name",
            },
            "session": {
                "type": "apiKey",
                "in": "cookie",
                "name": COOKIE,
                "description": "cookie of `POST /auth/password-login`",
            },
            "metrics": {"type": "http", "scheme": "bearer", "description": "`SVC_METRICS_TOKEN`"},
        },
        path_parameters={
            "id": "id of the session, run or signed-in client",
            "device": "id or name of a connected phone",
            "command": "name of the command",
            "prefix": "prefix of a session token, or the whole token",
            "token": "token of the file",
            "name": "name of the MCP server",
        },
        refusal=lambda path: ("Refusal", openapi_types.RefusalJson),
    )


def _under(place: str, label: str) -> str:
    method, _, path = label.partition(" ")
    return f"{method} {place}{path}"
