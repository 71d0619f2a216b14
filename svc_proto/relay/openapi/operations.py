"""Descriptions of the relay's routes for its OpenAPI document: one row for each row of the route tables."""

from collections.abc import Mapping
from enum import Enum
from typing import Annotated, Literal, Required

from attrs import evolve

from svc_proto.openapi.document import COMMON, JSON, MCP_OPERATIONS
from svc_proto.openapi.operation_doc import AccessDoc, ApiDoc, OperationDoc, SchemaType
from svc_proto.openapi.profile_operations import (
    CONTEXT,
    IMAGE_ACTIVITY,
    PROFILE_OPERATIONS,
    PROFILE_PARAMETERS,
)
from svc_proto.relay.access import BASIC_PATHS, GRANTS, RelayAccess
from svc_proto.relay.oauth.issuer import MCP_PATH, METADATA
from svc_proto.relay.openapi import message_types as messages
from svc_proto.relay.openapi.device_control_types import ARGUMENTS, QUERIES, SELECTOR
from svc_proto.schema import oauth_types as oauth
from svc_proto.schema import relay_types as types
from svc_proto.schema import voice_types as voice
from svc_proto.schema.common_types import RpcMessageJson
from svc_proto.schema.device_control_routes import DEVICE_CONTROL
from svc_proto.schema.json_schema import schema_keywords

__all__ = ["API_DOC"]

FORM = "multipart/form-data"
ENCODED = "application/x-www-form-urlencoded"
PAGE: dict[str, object] = {"text/html": str}
FILE: SchemaType = {"*/*": bytes}
PARTIAL_RESPONSES: Mapping[int | str, SchemaType] = {206: FILE, 304: None}
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
    client_messages=messages.CLIENT_MESSAGES,
    server_messages=messages.SERVER_MESSAGES,
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
NO_API_ANSWER = {502: "The API server does not answer, or refuses."}
NO_CONSENT_RESPONSES = {404: "No agent waits with this code."}
NO_VOICE = {404: "Voice is switched off.", 503: "The limit of voice sessions is reached."}
PROFILE_QUERY = {"profile": str}  # of the settings; without one, the global settings
AUTHORIZATION_QUERY = {  # RFC 6749 section 4.1.1 and RFC 7636
    "client_id": Required[str],
    "redirect_uri": Required[str],
    "response_type": Required[Literal["code"]],
    "code_challenge": Required[str],
    "code_challenge_method": Required[Literal["S256"]],
    **dict.fromkeys(("resource", "scope", "state"), str),
}

OPERATIONS: dict[str, dict[str, OperationDoc]] = {
    **COMMON,
    "Relay": {
        "GET /health": OperationDoc("Check that the relay answers", types.HealthJson),
        "GET /ws": SOCKET,
        "GET /": SOCKET,
        "GET /relay/info": OperationDoc("Return version, capabilities and load of the relay", types.InfoJson),
        "GET /relay/security": OperationDoc("Return the runtime security settings", types.SecurityJson),
        "PATCH /relay/security": OperationDoc(
            "Change the runtime security settings until the next restart",
            types.SecurityJson,
            body=types.SecurityChangeJson,
        ),
        "GET /audit": OperationDoc(
            "List the newest events of the audit log",
            types.AuditEventsJson,
            query={"limit": Annotated[int, schema_keywords(minimum=1), "at most 1000; 100 if absent"]},
            error_responses={503: "The store cannot be read."},
        ),
    },
    "Phones": {
        "GET /bridge/status": OperationDoc(
            "Return the last status of a phone",
            types.PhoneStatusJson,
            query=SELECTOR,
            error_responses={404: UNKNOWN, 409: SEVERAL, 503: "No phone has been connected."},
        ),
        "GET /bridge/activity": OperationDoc(
            "List recent commands",
            types.ActivityJson,
            query={"limit": Annotated[int, "at most 100; 100 if absent or not a number"]},
        ),
        "GET /bridge/devices": OperationDoc("List the phones that can be controlled", types.PhonesJson),
        "POST /bridge/select-active": OperationDoc(
            "Select the phone that is used by default",
            types.SelectedPhoneJson,
            body=types.SelectorJson,
            query=SELECTOR,
            error_responses={404: UNKNOWN, 409: SEVERAL},
        ),
    },
    "Pairing": {
        "POST /pairing": OperationDoc("Create a pairing code", types.NewCodeJson),
        "POST /pairing/register": OperationDoc(
            "Register a pairing code", types.RegisteredJson, body=types.RegistrationJson
        ),
        "POST /pairing/approve": OperationDoc(
            "Register the pairing code that a phone displays", types.CodeJson, body=types.CodeApprovalJson
        ),
        "POST /pairing/mint": OperationDoc(
            "Create a pairing code and its invite; absent terms are the host's defaults",
            types.InviteJson,
            body=types.MintRequestJson,
            error_responses={409: "The file `.env` of the service home has an invalid default."},
        ),
    },
    "Sessions": {
        "GET /sessions": OperationDoc(
            "List the paired devices",
            types.DeviceSessionsJson,
            query={
                "limit": Annotated[int, "1 to 200, default 200"],
                "cursor": Annotated[str, "`next_cursor` of the page before"],
            },
        ),
        "DELETE /sessions/{token_prefix}": OperationDoc(
            "Revoke a session", types.RevokedJson, error_responses=ONE_SESSION
        ),
        "PATCH /sessions/{token_prefix}": OperationDoc(
            "Change the lifetime, the grants or the name of a session",
            types.SessionChangedJson,
            body=types.DeviceSessionChangeJson,
            error_responses=ONE_SESSION,
        ),
    },
    "Files": {
        "POST /media/register": OperationDoc(
            "Register a file of this host", types.MediaRegisteredJson, body=types.MediaPathJson
        ),
        "POST /media/upload": OperationDoc(
            "Upload a file",
            types.MediaTokenJson,
            body={FORM: types.FormJson, JSON: types.UploadJson},
            error_responses={413: LARGE, 503: STORE, 507: "The storage is full."},
        ),
        "GET /media/by-path": OperationDoc(
            "Return a file of this host",
            FILE,
            query={
                "path": Required[Annotated[str, "an absolute path"]],
                "content_type": str,
                "sensitive": Annotated[str, "1: mark the file as sensitive in the answer"],
            },
            other_responses=PARTIAL_RESPONSES,
            error_responses=NO_FILE,
        ),
        "GET /media/inspect": OperationDoc(
            "List the registered files",
            types.MediaEntriesJson,
            query={"include_expired": Annotated[str, "1: include expired files"]},
        ),
        "GET /media/inspect/{token}": OperationDoc(
            "Return a file by its token, for the operator",
            FILE,
            other_responses=PARTIAL_RESPONSES,
            error_responses={**NO_FILE, 503: STORE},
        ),
        "GET /media/{token}": OperationDoc(
            "Return a file by its token, from any node",
            FILE,
            other_responses=PARTIAL_RESPONSES,
            error_responses={**NO_FILE, 503: f"The node that holds the file cannot be reached. {STORE}"},
        ),
        "POST /clipboard/inbox": OperationDoc(
            "Store a pasted image",
            types.PastedJson,
            body=types.PasteJson,
            error_responses={413: LARGE, 500: "The image could not be stored."},
        ),
        "GET /notifications/recent": OperationDoc(
            "List recent notifications of the phones",
            types.NotificationsJson,
            query={"limit": Annotated[int, schema_keywords(minimum=1), "at most 100; 20 if absent"]},
        ),
    },
    "Messages to the owner": {
        "POST /phone/message": OperationDoc(
            "Send a message to the owner's phones",
            types.OwnerMessageSentJson,
            body=types.OwnerMessageJson,
            error_responses={429: "The owner got 60 messages in the last hour; `Retry-After` has the seconds to wait."},
            details="Subscribed phones receive it at once. Without one it waits in a queue of 100 messages.",
        ),
        "GET /phone/replies": OperationDoc(
            "Fetch the owner's replies, each once",
            types.OwnerRepliesJson,
            query={
                "timeout": Annotated[int, schema_keywords(minimum=0), "s, at most 30; 0 if absent"],
                "message_id": Annotated[
                    str, schema_keywords(minLength=1, maxLength=200), "only replies to this message"
                ],
            },
            details="A reply that names no known message answers any message that was posted before it.",
        ),
        "GET /phone/outbound": OperationDoc("List queued messages to the owner", types.OwnerOutboundJson),
        "DELETE /phone/outbound": OperationDoc("Drop queued messages to the owner", types.OwnerOutboundDroppedJson),
        "GET /phone/threads": OperationDoc("List threads of messages to the owner", types.OwnerThreadsJson),
    },
    "Profile": {
        **{
            label: evolve(operation, error_responses={**operation.error_responses, **NO_API_ANSWER})
            for label, operation in PROFILE_OPERATIONS.items()
        },
        "GET /context/injected": evolve(CONTEXT, error_responses=NO_API_ANSWER),
        "GET /chat/image-activity": evolve(
            IMAGE_ACTIVITY,
            query={**IMAGE_ACTIVITY.query, "session_id": Required[Annotated[str, "id of the chat"]]},
            error_responses={404: "There is no such chat or profile.", **NO_API_ANSWER},
        ),
    },
    "Device Control": {
        f"{row.method} {row.path}": OperationDoc(
            row.summary,
            object,
            query=QUERIES.get(row.path, SELECTOR) if row.method == "GET" else SELECTOR,
            body=ARGUMENTS.get(row.path, types.SelectorJson) if row.method == "POST" else None,
            other_responses={"2XX": object},
            error_responses=CONTROL,
            details="The phone supplies status and answer. A body that is not an object counts as an empty object.",
        )
        for row in DEVICE_CONTROL.values()
    },
    "MCP": {
        **MCP_OPERATIONS,
        "GET /mcp/questions/{code}": OperationDoc(
            "Return the request of a remote agent for access",
            oauth.ConsentQuestionJson,
            error_responses=NO_CONSENT_RESPONSES,
        ),
        "POST /mcp/questions/{code}": OperationDoc(
            "Allow or refuse access to a remote agent",
            oauth.ConsentAnsweredJson,
            body=oauth.ConsentAnswerJson,
            error_responses={**NO_CONSENT_RESPONSES, 409: "The answer belongs to another request."},
        ),
    },
    "OAuth": {
        f"GET {METADATA}": OperationDoc("Return the protected resource metadata", oauth.ResourceMetadataJson),
        f"GET {METADATA}{MCP_PATH}": OperationDoc(
            "Return the protected resource metadata of MCP", oauth.ResourceMetadataJson
        ),
        "GET /.well-known/oauth-authorization-server": OperationDoc(
            "Return the authorization server metadata", oauth.ServerMetadataJson
        ),
        "GET /.well-known/openid-configuration": OperationDoc(
            "Return the same metadata for OpenID clients", oauth.ServerMetadataJson
        ),
        "POST /oauth/register": OperationDoc(
            "Register a client", oauth.ClientMetadataJson, 201, body=oauth.ClientRegistrationJson
        ),
        "GET /oauth/authorize": OperationDoc(
            "Start an authorization in the browser", None, 303, query=AUTHORIZATION_QUERY
        ),
        "GET /oauth/wait/{ticket}": OperationDoc(
            "Return the page that waits for the owner", PAGE, other_responses={303: None}
        ),
        "POST /oauth/token": OperationDoc(
            "Exchange an authorization code or a refresh token for tokens",
            oauth.TokensJson,
            body={ENCODED: oauth.TokenRequestJson},
        ),
        "POST /oauth/revoke": OperationDoc("Revoke a token", object, body={ENCODED: oauth.RevocationJson}),
    },
    "Voice": {
        "GET /voice/config": OperationDoc(
            "Return the engines of basic voice", voice.VoiceConfigJson, query=PROFILE_QUERY
        ),
        "POST /voice/transcribe": OperationDoc(
            "Transcribe a recording",
            voice.TranscriptJson,
            body={FORM: voice.RecordingJson},
            query=PROFILE_QUERY,
            error_responses={413: LARGE, **NO_ENGINE},
        ),
        "POST /voice/synthesize": OperationDoc(
            "Synthesize speech from text",
            {"audio/*": bytes},
            body=voice.SpeechJson,
            query=PROFILE_QUERY,
            error_responses=NO_ENGINE,
        ),
    },
}
for _base, _name, _settings, _change, _new, _session in (
    (
        "/voice/output",
        "Speech output",
        voice.OutputSettingsJson,
        voice.OutputSettingsChangeJson,
        voice.NewVoiceSessionJson,
        voice.VoiceSessionJson,
    ),
    (
        "/voice/realtime",
        "Realtime",
        voice.VoiceModeSettingsJson,
        voice.SettingsChangeJson,
        voice.NewVoiceSessionJson,
        voice.VoiceSessionJson,
    ),
    (
        "/voice/realtime-agent",
        "Realtime agent",
        voice.AgentSettingsJson,
        voice.AgentSettingsChangeJson,
        voice.NewAgentSessionJson,
        voice.AgentSessionJson,
    ),
):
    _one = f"{_base}/providers/{{provider_id}}"
    OPERATIONS[_name] = {
        f"GET {_base}/config": OperationDoc("Return the settings", _settings, query=PROFILE_QUERY),
        f"PATCH {_base}/config": OperationDoc(
            "Change settings",
            _settings,
            body=_change,
            query=PROFILE_QUERY,
            error_responses={
                403: "A profile requires the token of a session.",
                404: "The configuration file cannot be changed.",
            },
        ),
        f"GET {_one}/options": OperationDoc(
            "Return the options of a provider", voice.ProviderOptionsJson, query=PROFILE_QUERY
        ),
        f"POST {_one}/validate": OperationDoc(
            "Validate a choice of options",
            voice.ChoiceCheckedJson,
            body=voice.ProviderChoiceJson,
            query=PROFILE_QUERY,
        ),
        f"POST {_base}/session": OperationDoc(
            "Create a voice session", _session, body=_new, query=PROFILE_QUERY, error_responses=NO_VOICE
        ),
        f"GET {_base}/{{session_id}}": OperationDoc(
            "Open the WebSocket of a voice session",
            error_responses={404: "No voice session has this id.", 410: "The voice session has ended."},
            details="Messages: docs/spec/wire/terminal-voice.md.",
        ),
    }

BEARER = "Requires the token of a session"
LOCAL_OR_BEARER = AccessDoc("For programs on this host, or with the token of a session.", ("", "session"))
ACCESS_DOCS: dict[Enum, AccessDoc] = {
    RelayAccess.PUBLIC: AccessDoc("No credential is required."),
    RelayAccess.SOCKET: AccessDoc("Refused to web pages of other sites. The first message authenticates the client."),
    RelayAccess.LOOPBACK: AccessDoc("For programs on this host."),
    RelayAccess.MONITOR: AccessDoc("For programs on this host, or with `SVC_METRICS_TOKEN`.", ("", "metrics")),
    RelayAccess.BEARER: AccessDoc(f"{BEARER}.", ("session",)),
    RelayAccess.LOOPBACK_OR_BEARER: LOCAL_OR_BEARER,
    RelayAccess.FILES: AccessDoc(f"{BEARER} with the right `files`.", ("session",)),
    RelayAccess.MANAGE: AccessDoc(f"{BEARER} with the right `manage`.", ("session",)),
    RelayAccess.LOCAL_OR_NOTIFICATIONS: AccessDoc(
        "For programs on this host, or with the token of a session with the right `notifications`.", ("", "session")
    ),
    RelayAccess.BRIDGE: AccessDoc(f"{BEARER} with the grant `bridge`.", ("session",)),
    RelayAccess.AGENT: AccessDoc(
        f"{BEARER} with the grant `bridge`. Refused to web pages of other sites.", ("session",)
    ),
    **{
        access: AccessDoc(f"{BEARER} with the grant `{grant}`, or the API's key.", ("session", "key"))
        for access, grant in GRANTS.items()
    },
}
PATH_PARAMETERS = {
    "code": "code that the page of the agent shows",
    "ticket": "ticket from the redirect of the browser",
    "token": "token of the file",
    "token_prefix": "prefix of a session token, usually the eight characters shown, or the whole token",
    "provider_id": "id of the provider",
    "session_id": "id of the voice session",
    **PROFILE_PARAMETERS,
}
CONTROLLED = {path for _, path in DEVICE_CONTROL}


def _refusal(path: str) -> tuple[str, SchemaType]:
    if path in CONTROLLED:
        return "PhoneRefusal", object
    if path == "/mcp":
        return "McpRefusal", RpcMessageJson | types.RefusalJson
    if path in ("/oauth/authorize", "/oauth/wait/{ticket}"):
        return "OAuthPage", {**PAGE, JSON: oauth.OAuthRefusalJson}
    if path.startswith("/oauth/"):
        return "OAuthRefusal", oauth.OAuthRefusalJson
    if path in BASIC_PATHS:
        return "VoiceRefusal", {JSON: voice.VoiceRefusalJson, "text/plain": str}  # authorization errors are text
    if path.startswith("/voice/"):
        return "TextRefusal", {"text/plain": str}
    return "Refusal", types.RefusalJson


API_DOC = ApiDoc(
    title="svc-relay relay",
    description="Pairs phones with this host, stores their sessions, and forwards commands of the agent to them. "
    "Every GET route also answers HEAD. Refusals are JSON with `error` for people and `code` for programs; refusals "
    "of voice routes are text.",
    operations=OPERATIONS,
    access_docs=ACCESS_DOCS,
    schemes={
        "session": {"type": "http", "scheme": "bearer", "description": "Token of a session, from `auth.ok`"},
        "key": {"type": "http", "scheme": "bearer", "description": "Key of the API"},
        "metrics": {"type": "http", "scheme": "bearer", "description": "`SVC_METRICS_TOKEN`"},
    },
    path_parameters=PATH_PARAMETERS,
    refusal=_refusal,
)
