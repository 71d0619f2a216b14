"""What each route of the relay says of itself, for its document: one row for each row of the route tables."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from svc_proto.about.openapi import COMMON, JSON, STREAM
from svc_proto.about.says import DoorWords, Manual, Says, Shape
from svc_proto.relay import shapes
from svc_proto.relay import shapes_messages as messages
from svc_proto.relay import shapes_oauth as oauth
from svc_proto.relay import shapes_voice as voice
from svc_proto.relay.access import BASIC_PATHS, GRANTS, Access
from svc_proto.relay.place import MCP, METADATA
from svc_proto.relay.routes.control import DEVICE_CONTROL
from svc_proto.relay.shapes_control import ARGUMENTS, QUERIES
from svc_proto.schema.rpc_shapes import RpcMessage

__all__ = ["MANUAL"]

FORM = "multipart/form-data"
ENCODED = "application/x-www-form-urlencoded"
PAGE: dict[str, object] = {"text/html": str}
FILE: Shape = {"*/*": bytes}
PARTS: Mapping[int | str, Shape] = {206: FILE, 304: None}
STORE = "the store of the uploads does not answer as it should"
NO_FILE = {404: "there is no such file, or not any more", 412: "a condition does not hold", 416: "no such range"}
ONE_SESSION = {
    404: "no session has a token that begins so",
    409: "several sessions match",
    500: "the store did not take it",
}
SOCKET = Says(
    "The WebSocket of phones and desktops",
    details="A message is an object with `channel`, `type`, `id` and `payload`: here it is, by channel and type. The "
    "first is `system auth`. An answer has the `id` of what it answers.",
    heard=messages.HEARD,
    said=messages.SAID,
)
CONTROL = {
    404: "no phone goes by that name; or the phone's word",
    409: "several phones go by that name; or the phone's word",
    503: "no phone is connected; or the phone's word",
    504: "the phone did not answer in time; or the phone's word",
}
NO_AGENT = {404: "no agent waits with this word"}
NO_VOICE = {404: "it is switched off", 503: "there are too many sessions"}

SAYS: dict[str, dict[str, Says]] = {
    **COMMON,
    "Relay": {
        "GET /health": Says("The relay answers", shapes.Health),
        "GET /ws": SOCKET,
        "GET /": SOCKET,
        "GET /relay/info": Says("What the relay is", shapes.Info),
        "GET /relay/security": Says("The switch", shapes.Security),
        "PATCH /relay/security": Says("Set it, until the relay restarts", shapes.Security, body=shapes.SecurityChange),
    },
    "Phones": {
        "GET /bridge/status": Says(
            "What a phone last said of itself",
            shapes.PhoneStatus,
            query=shapes.Selector,
            no={404: "no phone goes by that name", 409: "several do", 503: "no phone has been connected"},
        ),
        "GET /bridge/activity": Says("The last commands", shapes.Activity, query=shapes.ActivityQuery),
        "GET /bridge/devices": Says("The phones that can be driven", shapes.Phones),
        "POST /bridge/select-active": Says(
            "Choose the phone that is driven by default",
            shapes.Selected,
            body=shapes.Selector,
            query=shapes.Selector,
            no={404: "no phone goes by that name", 409: "several do"},
        ),
    },
    "Pairing": {
        "POST /pairing": Says("Make a code", shapes.NewCode),
        "POST /pairing/register": Says("Register a code", shapes.Registered, body=shapes.Registration),
        "POST /pairing/approve": Says("Register a code that a phone shows", shapes.Code, body=shapes.Approval),
        "POST /pairing/mint": Says("Make a code and its invite", shapes.Invite, body=shapes.Mint),
    },
    "Sessions": {
        "GET /sessions": Says("The paired devices", shapes.DeviceSessions),
        "DELETE /sessions/{token_prefix}": Says("Revoke one", shapes.Revoked, no=ONE_SESSION),
        "PATCH /sessions/{token_prefix}": Says(
            "Change its lifetime or grants", shapes.SessionChanged, body=shapes.SessionChange, no=ONE_SESSION
        ),
    },
    "Files": {
        "POST /media/register": Says("Hand out a file of this host", shapes.MediaRegistered, body=shapes.MediaPath),
        "POST /media/upload": Says(
            "Bring a file",
            shapes.MediaToken,
            body={FORM: shapes.Form, JSON: shapes.Upload},
            no={413: "it is too large", 503: STORE, 507: "there is no room for it"},
        ),
        "GET /media/by-path": Says("A file of this host", FILE, query=shapes.PathQuery, also=PARTS, no=NO_FILE),
        "GET /media/inspect": Says("What can be fetched", shapes.MediaEntries, query=shapes.MediaQuery),
        "GET /media/inspect/{token}": Says("A file by its token", FILE, also=PARTS, no={**NO_FILE, 503: STORE}),
        "GET /media/{token}": Says(
            "The same, whichever node has it",
            FILE,
            also=PARTS,
            no={**NO_FILE, 503: f"the nodes do not reach each other, or {STORE}"},
        ),
        "POST /clipboard/inbox": Says(
            "Paste an image",
            shapes.Pasted,
            body=shapes.Paste,
            no={413: "it is too large", 500: "it could not be stored"},
        ),
        "GET /notifications/recent": Says(
            "What phones were notified of", shapes.Notifications, query=shapes.NotificationQuery
        ),
    },
    "Device Control": {
        f"{method} {path}": Says(
            f"Have a phone do {path.lstrip('/')}",
            object,
            query=QUERIES.get(path, shapes.Selector) if method == "GET" else shapes.Selector,
            body=ARGUMENTS.get(path, shapes.Selector) if method == "POST" else None,
            also={"2XX": object},
            no=CONTROL,
            details="The status and the answer are the phone's. A body that is no object counts as an empty one.",
        )
        for method, path in DEVICE_CONTROL
    },
    "MCP": {
        "POST /mcp": Says(
            "A message of the Model Context Protocol",
            {JSON: RpcMessage, STREAM: str},
            body=RpcMessage,
            also={202: None},
            no={406: "Accept has to have both types", 415: "a message is application/json"},
            details="Streamable HTTP: docs/reference/mcp.md.",
        ),
        "GET /mcp": Says("What is said without a request", {STREAM: str}),
        "DELETE /mcp": Says("End the session", None, 204),
        "GET /mcp/questions/{code}": Says("What an agent elsewhere asks for", oauth.OwnersQuestion, no=NO_AGENT),
        "POST /mcp/questions/{code}": Says(
            "Let it in, or not", oauth.Taken, body=oauth.OwnersAnswer, no={**NO_AGENT, 409: "of another question"}
        ),
    },
    "OAuth": {
        f"GET {METADATA}": Says("What is protected", oauth.ResourceMetadata),
        f"GET {METADATA}{MCP}": Says("The same", oauth.ResourceMetadata),
        "GET /.well-known/oauth-authorization-server": Says("How to get tokens", oauth.ServerMetadata),
        "GET /.well-known/openid-configuration": Says("The same", oauth.ServerMetadata),
        "POST /oauth/register": Says("Register a client", oauth.ClientMetadata, 201, body=oauth.ClientRegistration),
        "GET /oauth/authorize": Says("Ask the owner, for browsers", None, 303, query=oauth.Authorisation),
        "GET /oauth/wait/{ticket}": Says("The page that waits for the owner", PAGE, also={303: None}),
        "POST /oauth/token": Says("Tokens for a code, or new ones", oauth.Tokens, body={ENCODED: oauth.TokenRequest}),
        "POST /oauth/revoke": Says("Give tokens back", object, body={ENCODED: oauth.Revocation}),
    },
    "Voice": {
        "GET /voice/config": Says("Which engines speak and listen", voice.VoiceConfig, query=voice.ProfileQuery),
        "POST /voice/transcribe": Says(
            "A recording to text",
            voice.Transcript,
            body={FORM: voice.Recording},
            query=voice.ProfileQuery,
            no={413: "it is too large", 500: "no engine can do it", 503: "too many others are speaking"},
        ),
        "POST /voice/synthesize": Says(
            "A text to sound",
            {"audio/*": bytes},
            body=voice.Speech,
            query=voice.ProfileQuery,
            no={500: "no engine can do it", 503: "too many others are speaking"},
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
        f"GET {_base}/config": Says("The settings", _settings, query=voice.ProfileQuery),
        f"PATCH {_base}/config": Says(
            "Change settings",
            _settings,
            body=_change,
            query=voice.ProfileQuery,
            no={403: "a profile needs the token of a session", 404: "the configuration file cannot be changed"},
        ),
        f"GET {_one}/options": Says(
            "What can be chosen of a provider", voice.ProviderOptions, query=voice.ProfileQuery
        ),
        f"POST {_one}/validate": Says(
            "Whether a choice would work", voice.ChoiceChecked, body=voice.Picked, query=voice.ProfileQuery
        ),
        f"POST {_base}/session": Says("Make a session", _session, body=_new, query=voice.ProfileQuery, no=NO_VOICE),
        f"GET {_base}/{{session_id}}": Says(
            "The WebSocket of a session",
            no={404: "there is no such session", 410: "it is over"},
            details="Messages: docs/spec/wire/terminal-voice.md.",
        ),
    }

BEARER = "For whoever shows the token of a session"
DOORS: dict[Enum, DoorWords] = {
    Access.PUBLIC: DoorWords("For anybody."),
    Access.SOCKET: DoorWords("For anybody but another site's page; the first message says who it is."),
    Access.LOOPBACK: DoorWords("For programs of this host."),
    Access.MONITOR: DoorWords("For programs of this host, or whoever shows `SVC_METRICS_TOKEN`.", ("", "metrics")),
    Access.BEARER: DoorWords(f"{BEARER}.", ("session",)),
    Access.LOOPBACK_OR_BEARER: DoorWords(
        "For programs of this host, or whoever shows the token of a session.", ("", "session")
    ),
    Access.LOCAL_OR_BEARER: DoorWords(
        "For programs of this host, or whoever shows the token of a session.", ("", "session")
    ),
    Access.BRIDGE: DoorWords(f"{BEARER} with the grant `bridge`.", ("session",)),
    Access.AGENT: DoorWords(f"{BEARER} with the grant `bridge`, but for no web page.", ("session",)),
    **{
        access: DoorWords(f"{BEARER} with the grant `{grant}`, or the API's key.", ("session", "key"))
        for access, grant in GRANTS.items()
    },
}
PLACES = {
    "code": "the word that the agent's page shows",
    "ticket": "as the browser was sent on with",
    "token": "as it was given with the file",
    "token_prefix": "some of the first eight characters of a session's token, or all of it",
    "provider_id": "the provider",
    "session_id": "the voice session",
}
CONTROLLED = {path for _, path in DEVICE_CONTROL}


def _refusal(path: str) -> tuple[str, Shape]:
    if path in CONTROLLED:
        return "PhoneRefusal", object
    if path == "/mcp":
        return "McpRefusal", RpcMessage | shapes.Refusal
    if path in ("/oauth/authorize", "/oauth/wait/{ticket}"):
        return "OAuthPage", {**PAGE, JSON: oauth.OAuthRefusal}
    if path.startswith("/oauth/"):
        return "OAuthRefusal", oauth.OAuthRefusal
    if path in BASIC_PATHS:
        return "VoiceRefusal", {JSON: voice.VoiceRefusal, "text/plain": str}  # text of who may not
    if path.startswith("/voice/"):
        return "TextRefusal", {"text/plain": str}
    return "Refusal", shapes.Refusal


MANUAL = Manual(
    title="svc-relay relay",
    description="Pairs phones with this host, keeps their sessions, and has the agent drive them. "
    "What answers GET answers HEAD as well. Refusals are JSON with `error` for people and `code` for programs; those "
    "of voice are text.",
    says=SAYS,
    doors=DOORS,
    schemes={
        "session": {"type": "http", "scheme": "bearer", "description": "the token of a session, from `auth.ok`"},
        "key": {"type": "http", "scheme": "bearer", "description": "the API's key"},
        "metrics": {"type": "http", "scheme": "bearer", "description": "`SVC_METRICS_TOKEN`"},
    },
    places=PLACES,
    refusal=_refusal,
)
