"""Descriptions of the dashboard's routes for its OpenAPI document; those of `RELAY` serve for each prefix."""

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Annotated, Any, Required

from attrs import evolve

from svc_proto.api.openapi.operations import API_DOC, HEAD, NO_MCP_SERVER, SESSION_QUERY
from svc_proto.dashboard import openapi_types as types
from svc_proto.dashboard.access import DashboardAccess
from svc_proto.dashboard.agent_proxy import FORWARDED
from svc_proto.dashboard.agent_proxy import PREFIX as AGENT
from svc_proto.dashboard.phone_commands import COMMANDS
from svc_proto.dashboard.phone_proxy import PREFIX as PHONE
from svc_proto.dashboard.relay_proxy import PREFIXES
from svc_proto.dashboard.sign_in import COOKIE
from svc_proto.dashboard.static_files import path_of
from svc_proto.openapi.document import COMMON, PICTURE
from svc_proto.openapi.operation_doc import AccessDoc, ApiDoc, OperationDoc
from svc_proto.schema import relay_types as relay

__all__ = ["build_api_doc"]

UPSTREAM_RESPONSES = {502: "The server behind the dashboard cannot be reached, or failed."}
NO_CHAT = {**UPSTREAM_RESPONSES, 404: "Chat is not available, or no object has this id."}
NO_PHONE = {**UPSTREAM_RESPONSES, 404: "No reference phone runs on this host."}
INVALID = {422: "The input is invalid."}
NO_PICTURE = {415: "The file is not a picture."}
BAD_TICKET = {401: "The ticket is unknown, used or too old."}
API = API_DOC.by_label
ROWS = {"limit": int}
TICKET = {"ticket": Required[str], "profile": str}  # the dashboard ignores the profile


def _with_refusals(common: Mapping[int, str], docs: Mapping[str, OperationDoc]) -> dict[str, OperationDoc]:
    """Return the descriptions of routes with the refusals that all of them have."""
    return {label: evolve(doc, error_responses={**common, **doc.error_responses}) for label, doc in docs.items()}


def _of_api(label: str, error_responses: Mapping[int, str] = NO_CHAT, **changes: Any) -> OperationDoc:
    """Return the description of a route that forwards path and body of a request to the route `label` of the API.

    `changes` are the differences, such as the query that the dashboard accepts.
    """
    differences: dict[str, Any] = {"query": {}, "other_responses": {}, "details": "", **changes}
    return evolve(API[label], error_responses=error_responses, **differences)


RELAY = {
    "GET /push": OperationDoc("Report that push messages are not supported", types.PushJson),
    **_with_refusals(
        UPSTREAM_RESPONSES,
        {
            "GET /overview": OperationDoc("Return version, capabilities and load of the relay", relay.InfoJson),
            "GET /sessions": OperationDoc("List the paired devices", relay.DeviceSessionsJson),
            "GET /phones": OperationDoc("List the phones that can be controlled", relay.PhonesJson),
            "GET /media/{token}": OperationDoc("Return a picture by its token", PICTURE, error_responses=NO_PICTURE),
        },
    ),
    **_with_refusals(
        {**UPSTREAM_RESPONSES, **INVALID},
        {
            "DELETE /sessions/{prefix}": OperationDoc("Revoke a session", relay.RevokedJson),
            "PATCH /sessions/{prefix}": OperationDoc(
                "Change name, lifetime or grants of a session",
                relay.SessionChangedJson,
                body=relay.DeviceSessionChangeJson,
            ),
            "GET /audit": OperationDoc("List the newest events of the audit log", relay.AuditEventsJson, query=ROWS),
            "GET /bridge-activity": OperationDoc("List recent commands", relay.ActivityJson, query=ROWS),
            "POST /phones/{device}/{command}": OperationDoc(
                "Send a command to a phone",
                dict[str, object],
                body=dict[str, object],
                details=f"Commands: {', '.join(f'`{name}`' for name in COMMANDS)}, with the arguments and answers of "
                "the relay's route. The commands pass the gates of the phone.",
                error_responses={403: "The phone refuses.", 404: "No phone, or no such command."},
            ),
            "GET /notifications": OperationDoc(
                "List recent notifications of phones", relay.NotificationsJson, query=ROWS
            ),
            "GET /media": OperationDoc(
                "List the registered files", relay.MediaEntriesJson, query={"include_expired": bool}
            ),
            "POST /media": OperationDoc(
                "Register a picture of this host",
                relay.MediaRegisteredJson,
                body=types.PicturePathJson,
                error_responses=NO_PICTURE,
            ),
            "POST /pairing": OperationDoc(
                "Create a pairing code and its invite", relay.InviteJson, body=types.InviteRequestJson
            ),
        },
    ),
}
CHAT = {
    **{f"{method} {ours}": _of_api(f"{method} {theirs}") for method, ours, theirs in FORWARDED},
    "GET /sessions": _of_api(
        "GET /api/sessions", query={"archived": Annotated[str, "only: the archived chats; all others if absent"]}
    ),
    "GET /sessions/{id}/pictures/{token}": _of_api(
        "GET /api/sessions/{id}/pictures/{token}", summary="Return a picture that is stored with a chat"
    ),
    "DELETE /sessions/{id}/messages": _of_api(
        "DELETE /api/sessions/{id}/messages",
        summary="Remove a message of the user and all after it",
        query=API["DELETE /api/sessions/{id}/messages"].query,
    ),
    "GET /sessions/search": _of_api("GET /api/sessions/search", query={"q": str}),
    "POST /sessions/{id}/chat/stream": _of_api("POST /api/sessions/{id}/chat/stream", details=HEAD.strip()),
    "GET /model": OperationDoc(
        "Return the model that answers", types.ChatModelJson, error_responses=UPSTREAM_RESPONSES
    ),
    "POST /model/probe": _of_api("POST /api/model/probe"),
    "GET /changes": _of_api("GET /api/changes", query=API["GET /api/changes"].query),
}
SCREEN = _with_refusals(
    NO_PHONE,
    {
        "GET /screen": OperationDoc(
            "Return the screen of the phone",
            types.PhoneScreenJson,
            query={"seen": Annotated[str, "a tag; the answer is sent when the tag changes"]},
        ),
        "POST /touch": OperationDoc("Touch the screen", types.OkJson, body=types.TouchRequestJson),
        "POST /answer": OperationDoc("Answer a confirmation", types.OkJson, body=types.ConfirmationAnswerJson),
        "POST /toggle": OperationDoc("Switch Device Control", types.OkJson, body=types.ToggleJson),
        "POST /say": OperationDoc("Send a message to the agent", types.OkJson, body=types.SayRequestJson),
    },
)
ANY = dict[str, object]
PAGE = {"text/html": str}
SIGN_IN = {
    "GET /api/status": OperationDoc(
        "Describe the dashboard to clients that look for one",
        types.AppStatusJson,
        error_responses={503: "The API server does not answer."},
    ),
    "GET /api/auth/providers": OperationDoc("List the ways to sign in: none without a password", types.ProvidersJson),
    "POST /auth/password-login": OperationDoc(
        "Sign in, and receive the cookie of a session",
        types.SignedInJson,
        body=types.PasswordLoginJson,
        error_responses={
            401: "The password is wrong.",
            404: "There is no such way to sign in, or no password is required.",
            429: "Too many wrong passwords.",
        },
    ),
    "GET /login": OperationDoc(
        "Return the page on which a browser signs in",
        PAGE,
        query={"next": types.NextPath},
        other_responses={303: None},
    ),
    "POST /login": OperationDoc(
        "Sign in with the form of the page",
        None,
        303,
        body={"application/x-www-form-urlencoded": types.SignInFormJson},
        error_responses={401: "The password is wrong.", 429: "Too many wrong passwords."},
    ),
    "POST /auth/logout": OperationDoc("Sign out", types.OkJson),
    "GET /api/auth/me": OperationDoc("Return the signed-in user", types.OwnerJson),
    "POST /api/auth/ws-ticket": OperationDoc("Get a ticket for one WebSocket", types.TicketJson),
    "GET /api/auth/sessions": OperationDoc("List the signed-in clients", types.SignInsJson),
    "DELETE /api/auth/sessions/{id}": OperationDoc(
        "End the session of a client", types.OkJson, error_responses={404: "No client has this id."}
    ),
}
APP = {
    "GET /api/ws": OperationDoc(
        "Open the WebSocket of the gateway",
        query=TICKET,
        details="Messages are those of the API server's gateway.",
        error_responses={**BAD_TICKET, **UPSTREAM_RESPONSES},
    ),
    "GET /api/sessions": _of_api("GET /api/sessions", answer=ANY, query=SESSION_QUERY),
    "GET /api/profiles/sessions": OperationDoc(
        "List the chats of all profiles", ANY, query=SESSION_QUERY, error_responses=NO_CHAT
    ),
    "GET /api/sessions/search": _of_api("GET /api/sessions/search", query={"q": str}),
    "POST /api/sessions/prune": OperationDoc(
        "Delete old chats, or list them", ANY, body=types.PruneJson, error_responses=NO_CHAT
    ),
    "GET /api/sessions/{id}": _of_api("GET /api/sessions/{id}"),
    "PATCH /api/sessions/{id}": _of_api("PATCH /api/sessions/{id}"),
    "DELETE /api/sessions/{id}": _of_api("DELETE /api/sessions/{id}", answer=types.OkJson, status=200),
    "GET /api/sessions/{id}/messages": _of_api(
        "GET /api/sessions/{id}/messages",
        summary="List the messages of a chat, with their positions as `id`",
        answer=ANY,
        query=API["GET /api/sessions/{id}/messages"].query,
    ),
    "GET /api/sessions/{id}/export": OperationDoc("Return a chat with all messages", ANY, error_responses=NO_CHAT),
    "GET /api/config/schema": OperationDoc("Return the settings that can be edited: none", ANY),
    "GET /api/profiles/active": OperationDoc("Return the active profile", ANY),
    "POST /api/profiles/active": OperationDoc(
        "Choose the active profile", ANY, body=ANY, error_responses={404: "There is no such profile."}
    ),
    "GET /api/memory": OperationDoc("Describe the memory of the agent", ANY),
    "GET /api/dashboard/plugins": OperationDoc("List the plugins: none", list[ANY]),
    "GET /api/audio/speak-stream": OperationDoc(
        "Open a WebSocket that speaks a text while it grows",
        query=TICKET,
        details='Messages of the client: `{"text"}`, then `{"done": true}`, or `{"stop": true}`. Of the server: '
        '`{"type": "start", "sample_rate", "channels"}`, 16-bit PCM as binary messages, and `{"type": "end"}`; or '
        '`{"type": "fallback"}` if it cannot speak.',
        error_responses=BAD_TICKET,
    ),
    "GET /api/audio/elevenlabs/voices": OperationDoc("List the voices of a vendor: none", ANY),
    **_with_refusals(
        UPSTREAM_RESPONSES,
        {
            "GET /api/config": OperationDoc("Return the configuration", ANY),
            "GET /api/profiles": OperationDoc("List the profiles", ANY),
            "GET /api/skills": OperationDoc("List the skills", ANY),
            "GET /api/model/info": OperationDoc("Describe the model", ANY),
            "GET /api/model/options": _of_api("GET /api/model/options", {}),
            "POST /api/model/set": OperationDoc("Choose the model", ANY, body=ANY),
            "GET /api/mcp/servers": _of_api("GET /api/mcp-servers", {}, answer=types.AppMcpServersJson),
            "PUT /api/mcp/servers/{name}/enabled": _of_api("PUT /api/mcp-servers/{name}/enabled", NO_MCP_SERVER),
            "POST /api/mcp/servers/{name}/test": _of_api("POST /api/mcp-servers/{name}/test", NO_MCP_SERVER),
            "POST /api/audio/transcribe": OperationDoc(
                "Return the text of a recording",
                ANY,
                body=types.DataUrlRecordingJson,
                error_responses={413: "The recording is too large."},
            ),
            "POST /api/audio/speak": OperationDoc("Return a text as sound", ANY, body=ANY),
        },
    ),
}
OWN = {
    "GET /allow": OperationDoc(
        "Return the page on which the owner decides about an agent",
        PAGE,
        query={"code": Annotated[str, "the code that the page of the agent shows"]},
        error_responses=UPSTREAM_RESPONSES,
    ),
    "POST /allow": OperationDoc(
        "Send the decision of the owner",
        PAGE,
        body={"application/x-www-form-urlencoded": types.ConsentAnswerFormJson},
        error_responses=UPSTREAM_RESPONSES,
    ),
    "GET /api/vitals": OperationDoc("Return measurements of the servers", types.ServerStatsJson),
    "GET /api/health": OperationDoc("Return the health of this host", types.HostHealthJson),
    "POST /api/qr": OperationDoc(
        "Draw a QR code",
        types.QrRowsJson,
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
        refusal=lambda path: ("Refusal", types.RefusalJson),
    )


def _under(place: str, label: str) -> str:
    method, _, path = label.partition(" ")
    return f"{method} {place}{path}"
