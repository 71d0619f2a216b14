"""Descriptions of the relay's routes for its OpenAPI document: one row for each row of the route tables."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from svc_proto.basics.brand import HERMES, SVC
from svc_proto.openapi.document import COMMON, JSON, STREAM
from svc_proto.openapi.operation_doc import AccessDoc, ApiDoc, OperationDoc, SchemaType
from svc_proto.relay.access import BASIC_PATHS, GRANTS, Access
from svc_proto.relay.oauth.issuer import MCP, METADATA
from svc_proto.relay.openapi import message_types as messages
from svc_proto.relay.openapi import oauth_types as oauth
from svc_proto.relay.openapi import types
from svc_proto.relay.openapi import voice_types as voice
from svc_proto.relay.openapi.device_control_types import ARGUMENTS, QUERIES
from svc_proto.relay.routes.device_control import DEVICE_CONTROL
from svc_proto.schema.json_rpc_types import RpcMessageJson

__all__ = ["MANUAL"]

FORM = "multipart/form-data"
ENCODED = "application/x-www-form-urlencoded"
PAGE: dict[str, object] = {"text/html": str}
FILE: SchemaType = {"*/*": bytes}
PARTS: Mapping[int | str, SchemaType] = {206: FILE, 304: None}
STORE = "The store of the uploads does not work."
NO_FILE = {
    404: "The file does not exist or has expired.",
    412: "A precondition failed.",
    416: "The range is outside the file.",
}
ONE_SESSION = {
    404: "No session token starts with this prefix.",
    409: "Several sessions match.",
    500: "The change could not be stored.",
}
SOCKET = OperationDoc(
    "Open the WebSocket of phones and desktops",
    details="Each message is an object with `channel`, `type`, `id` and `payload`. Payloads are listed by channel and "
    "type. The first message is `system auth`. An answer has the `id` of the message that it answers.",
    client_messages=messages.HEARD,
    server_messages=messages.SAID,
)
CONTROL = {
    404: "No phone matches the selector, or the phone answered 404.",
    409: "Several phones match the selector, or the phone answered 409.",
    503: "No phone is connected, or the phone answered 503.",
    504: "The phone did not answer in time, or the phone answered 504.",
}
UNKNOWN = "No phone matches the selector."
SEVERAL = "Several phones match the selector."
LARGE = "The content is too large."
NO_ENGINE = {500: "No engine is available.", 503: "The limit of concurrent speech requests is reached."}
NO_AGENT = {404: "No agent waits with this code."}
NO_VOICE = {404: "Voice is switched off.", 503: "The limit of voice sessions is reached."}

COMMANDS = {
    ("GET", "/ping"): "Check that the phone answers",
    ("POST", "/setup"): "Check that the phone answers, during setup",
    ("GET", "/current_app"): "Return the app in the foreground",
    ("POST", SVC.self_foreground): "Bring the phone's own app to the foreground",
    ("POST", HERMES.self_foreground): "Bring the phone's own app to the foreground (alias)",
    ("GET", "/screen"): "Read the nodes of the screen",
    ("GET", "/screen_hash"): "Return a hash of the screen",
    ("POST", "/diff_screen"): "Compare the screen with an earlier hash",
    ("POST", "/find_nodes"): "Find nodes on the screen",
    ("POST", "/describe_node"): "Describe a node of the screen",
    ("GET", "/screenshot"): "Take a screenshot",
    ("GET", "/get_apps"): "List the apps that can be launched",
    ("GET", "/apps"): "List the apps that can be launched (alias)",
    ("POST", "/tap"): "Tap a point or a node",
    ("POST", "/tap_text"): "Tap a node by its text",
    ("POST", "/long_press"): "Press a point or a node for a long time",
    ("POST", "/drag"): "Drag from one point to another",
    ("POST", "/type"): "Type text",
    ("POST", "/swipe"): "Swipe across the screen",
    ("POST", "/scroll"): "Scroll the screen or a node",
    ("POST", "/press_key"): "Press a system key",
    ("POST", "/wait"): "Wait for a number of milliseconds",
    ("POST", "/open_app"): "Open an app",
    ("GET", "/clipboard"): "Read the clipboard",
    ("POST", "/clipboard"): "Write the clipboard",
    ("POST", "/media"): "Control media playback",
    ("POST", "/send_intent"): "Start an activity by an intent",
    ("POST", "/broadcast"): "Send a broadcast intent",
    ("GET", "/events"): "List recent events of the screen",
    ("POST", "/events/stream"): "Start or stop the recording of events",
    ("GET", "/location"): "Return the location",
    ("POST", "/search_contacts"): "Search the contacts",
    ("POST", "/call"): "Start a phone call",
    ("POST", "/send_sms"): "Send a text message",
    ("POST", "/share_media"): "Share files or text with an app",
    ("POST", "/send_mms"): "Send a text message with files",
}

SAYS: dict[str, dict[str, OperationDoc]] = {
    **COMMON,
    "Relay": {
        "GET /health": OperationDoc("Check that the relay answers", types.Health),
        "GET /ws": SOCKET,
        "GET /": SOCKET,
        "GET /relay/info": OperationDoc("Return version, capabilities and load of the relay", types.Info),
        "GET /relay/security": OperationDoc("Return the runtime security settings", types.Security),
        "PATCH /relay/security": OperationDoc(
            "Change the runtime security settings until the next restart", types.Security, body=types.SecurityChange
        ),
    },
    "Phones": {
        "GET /bridge/status": OperationDoc(
            "Return the last status of a phone",
            types.PhoneStatus,
            query=types.Selector,
            error_responses={404: UNKNOWN, 409: SEVERAL, 503: "No phone has been connected."},
        ),
        "GET /bridge/activity": OperationDoc("List recent commands", types.Activity, query=types.ActivityQuery),
        "GET /bridge/devices": OperationDoc("List the phones that can be controlled", types.Phones),
        "POST /bridge/select-active": OperationDoc(
            "Select the phone that is used by default",
            types.Selected,
            body=types.Selector,
            query=types.Selector,
            error_responses={404: UNKNOWN, 409: SEVERAL},
        ),
    },
    "Pairing": {
        "POST /pairing": OperationDoc("Create a pairing code", types.NewCode),
        "POST /pairing/register": OperationDoc("Register a pairing code", types.Registered, body=types.Registration),
        "POST /pairing/approve": OperationDoc(
            "Register the pairing code that a phone displays", types.Code, body=types.Approval
        ),
        "POST /pairing/mint": OperationDoc("Create a pairing code and its invite", types.Invite, body=types.Mint),
    },
    "Sessions": {
        "GET /sessions": OperationDoc("List the paired devices", types.DeviceSessions),
        "DELETE /sessions/{token_prefix}": OperationDoc("Revoke a session", types.Revoked, error_responses=ONE_SESSION),
        "PATCH /sessions/{token_prefix}": OperationDoc(
            "Change the lifetime or the grants of a session",
            types.SessionChanged,
            body=types.SessionChange,
            error_responses=ONE_SESSION,
        ),
    },
    "Files": {
        "POST /media/register": OperationDoc(
            "Register a file of this host", types.MediaRegistered, body=types.MediaPath
        ),
        "POST /media/upload": OperationDoc(
            "Upload a file",
            types.MediaToken,
            body={FORM: types.Form, JSON: types.Upload},
            error_responses={413: LARGE, 503: STORE, 507: "The storage is full."},
        ),
        "GET /media/by-path": OperationDoc(
            "Return a file of this host", FILE, query=types.PathQuery, other_responses=PARTS, error_responses=NO_FILE
        ),
        "GET /media/inspect": OperationDoc("List the registered files", types.MediaEntries, query=types.MediaQuery),
        "GET /media/inspect/{token}": OperationDoc(
            "Return a file by its token, for the operator",
            FILE,
            other_responses=PARTS,
            error_responses={**NO_FILE, 503: STORE},
        ),
        "GET /media/{token}": OperationDoc(
            "Return a file by its token, from any node",
            FILE,
            other_responses=PARTS,
            error_responses={**NO_FILE, 503: f"The node that holds the file cannot be reached. {STORE}"},
        ),
        "POST /clipboard/inbox": OperationDoc(
            "Store a pasted image",
            types.Pasted,
            body=types.Paste,
            error_responses={413: LARGE, 500: "The image could not be stored."},
        ),
        "GET /notifications/recent": OperationDoc(
            "List recent notifications of the phones", types.Notifications, query=types.NotificationQuery
        ),
    },
    "Device Control": {
        f"{method} {path}": OperationDoc(
            COMMANDS[method, path],
            object,
            query=QUERIES.get(path, types.Selector) if method == "GET" else types.Selector,
            body=ARGUMENTS.get(path, types.Selector) if method == "POST" else None,
            other_responses={"2XX": object},
            error_responses=CONTROL,
            details="The phone supplies status and answer. A body that is not an object counts as an empty object.",
        )
        for method, path in DEVICE_CONTROL
    },
    "MCP": {
        "POST /mcp": OperationDoc(
            "Receive a message of the Model Context Protocol",
            {JSON: RpcMessageJson, STREAM: str},
            body=RpcMessageJson,
            other_responses={202: None},
            error_responses={406: "`Accept` must contain both types.", 415: "The message is not application/json."},
            details="Transport: Streamable HTTP, see docs/reference/mcp.md.",
        ),
        "GET /mcp": OperationDoc("Stream server messages that answer no request", {STREAM: str}),
        "DELETE /mcp": OperationDoc("End the MCP session", None, 204),
        "GET /mcp/questions/{code}": OperationDoc(
            "Return the request of a remote agent for access", oauth.OwnersQuestion, error_responses=NO_AGENT
        ),
        "POST /mcp/questions/{code}": OperationDoc(
            "Allow or refuse access to a remote agent",
            oauth.Taken,
            body=oauth.OwnersAnswer,
            error_responses={**NO_AGENT, 409: "The answer belongs to another request."},
        ),
    },
    "OAuth": {
        f"GET {METADATA}": OperationDoc("Return the protected resource metadata", oauth.ResourceMetadata),
        f"GET {METADATA}{MCP}": OperationDoc("Return the protected resource metadata of MCP", oauth.ResourceMetadata),
        "GET /.well-known/oauth-authorization-server": OperationDoc(
            "Return the authorization server metadata", oauth.ServerMetadata
        ),
        "GET /.well-known/openid-configuration": OperationDoc(
            "Return the same metadata for OpenID clients", oauth.ServerMetadata
        ),
        "POST /oauth/register": OperationDoc(
            "Register a client", oauth.ClientMetadata, 201, body=oauth.ClientRegistration
        ),
        "GET /oauth/authorize": OperationDoc(
            "Start an authorization in the browser", None, 303, query=oauth.Authorisation
        ),
        "GET /oauth/wait/{ticket}": OperationDoc(
            "Return the page that waits for the owner", PAGE, other_responses={303: None}
        ),
        "POST /oauth/token": OperationDoc(
            "Exchange an authorization code or a refresh token for tokens",
            oauth.Tokens,
            body={ENCODED: oauth.TokenRequest},
        ),
        "POST /oauth/revoke": OperationDoc("Revoke a token", object, body={ENCODED: oauth.Revocation}),
    },
    "Voice": {
        "GET /voice/config": OperationDoc(
            "Return the engines of basic voice", voice.VoiceConfig, query=voice.ProfileQuery
        ),
        "POST /voice/transcribe": OperationDoc(
            "Transcribe a recording",
            voice.Transcript,
            body={FORM: voice.Recording},
            query=voice.ProfileQuery,
            error_responses={413: LARGE, **NO_ENGINE},
        ),
        "POST /voice/synthesize": OperationDoc(
            "Synthesize speech from text",
            {"audio/*": bytes},
            body=voice.Speech,
            query=voice.ProfileQuery,
            error_responses=NO_ENGINE,
        ),
    },
}
for _base, _name, _settings, _change, _new, _session in (
    (
        "/voice/output",
        "Speech output",
        voice.OutputSettings,
        voice.OutputChange,
        voice.NewVoiceSession,
        voice.VoiceSession,
    ),
    (
        "/voice/realtime",
        "Realtime",
        voice.FamilySettings,
        voice.SettingsChange,
        voice.NewVoiceSession,
        voice.VoiceSession,
    ),
    (
        "/voice/realtime-agent",
        "Realtime agent",
        voice.AgentSettings,
        voice.AgentChange,
        voice.NewAgentSession,
        voice.AgentSession,
    ),
):
    _one = f"{_base}/providers/{{provider_id}}"
    SAYS[_name] = {
        f"GET {_base}/config": OperationDoc("Return the settings", _settings, query=voice.ProfileQuery),
        f"PATCH {_base}/config": OperationDoc(
            "Change settings",
            _settings,
            body=_change,
            query=voice.ProfileQuery,
            error_responses={
                403: "A profile requires the token of a session.",
                404: "The configuration file cannot be changed.",
            },
        ),
        f"GET {_one}/options": OperationDoc(
            "Return the options of a provider", voice.ProviderOptions, query=voice.ProfileQuery
        ),
        f"POST {_one}/validate": OperationDoc(
            "Validate a choice of options", voice.ChoiceChecked, body=voice.Picked, query=voice.ProfileQuery
        ),
        f"POST {_base}/session": OperationDoc(
            "Create a voice session", _session, body=_new, query=voice.ProfileQuery, error_responses=NO_VOICE
        ),
        f"GET {_base}/{{session_id}}": OperationDoc(
            "Open the WebSocket of a voice session",
            error_responses={404: "No voice session has this id.", 410: "The voice session has ended."},
            details="Messages: docs/spec/wire/terminal-voice.md.",
        ),
    }

BEARER = "Requires the token of a session"
LOCAL_OR_BEARER = AccessDoc("For programs on this host, or with the token of a session.", ("", "session"))
DOORS: dict[Enum, AccessDoc] = {
    Access.PUBLIC: AccessDoc("No credential is required."),
    Access.SOCKET: AccessDoc("Refused to web pages of other sites. The first message authenticates the client."),
    Access.LOOPBACK: AccessDoc("For programs on this host."),
    Access.MONITOR: AccessDoc("For programs on this host, or with `SVC_METRICS_TOKEN`.", ("", "metrics")),
    Access.BEARER: AccessDoc(f"{BEARER}.", ("session",)),
    Access.LOOPBACK_OR_BEARER: LOCAL_OR_BEARER,
    Access.LOCAL_OR_BEARER: LOCAL_OR_BEARER,
    Access.BRIDGE: AccessDoc(f"{BEARER} with the grant `bridge`.", ("session",)),
    Access.AGENT: AccessDoc(f"{BEARER} with the grant `bridge`. Refused to web pages of other sites.", ("session",)),
    **{
        access: AccessDoc(f"{BEARER} with the grant `{grant}`, or the API's key.", ("session", "key"))
        for access, grant in GRANTS.items()
    },
}
PLACES = {
    "code": "code that the page of the agent shows",
    "ticket": "ticket from the redirect of the browser",
    "token": "token of the file",
    "token_prefix": "prefix of a session token, usually the eight characters shown, or the whole token",
    "provider_id": "id of the provider",
    "session_id": "id of the voice session",
}
CONTROLLED = {path for _, path in DEVICE_CONTROL}


def _refusal(path: str) -> tuple[str, SchemaType]:
    if path in CONTROLLED:
        return "PhoneRefusal", object
    if path == "/mcp":
        return "McpRefusal", RpcMessageJson | types.Refusal
    if path in ("/oauth/authorize", "/oauth/wait/{ticket}"):
        return "OAuthPage", {**PAGE, JSON: oauth.OAuthRefusal}
    if path.startswith("/oauth/"):
        return "OAuthRefusal", oauth.OAuthRefusal
    if path in BASIC_PATHS:
        return "VoiceRefusal", {JSON: voice.VoiceRefusal, "text/plain": str}  # authorization errors are text
    if path.startswith("/voice/"):
        return "TextRefusal", {"text/plain": str}
    return "Refusal", types.Refusal


MANUAL = ApiDoc(
    title="svc-relay relay",
    description="Pairs phones with this host, stores their sessions, and forwards commands of the agent to them. "
    "Every GET route also answers HEAD. Refusals are JSON with `error` for people and `code` for programs; refusals "
    "of voice routes are text.",
    says=SAYS,
    access_docs=DOORS,
    schemes={
        "session": {"type": "http", "scheme": "bearer", "description": "Token of a session, from `auth.ok`"},
        "key": {"type": "http", "scheme": "bearer", "description": "Key of the API"},
        "metrics": {"type": "http", "scheme": "bearer", "description": "`SVC_METRICS_TOKEN`"},
    },
    path_parameters=PLACES,
    refusal=_refusal,
)
