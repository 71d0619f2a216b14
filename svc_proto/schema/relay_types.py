"""Types of the relay's requests and answers, for its handlers and its OpenAPI document (`relay.openapi.operations`)."""
# Without `from __future__ import annotations`: see `schema.json_schema`.

from collections.abc import Mapping
from typing import Annotated, Literal, NotRequired, Required, TypeAlias, TypedDict

from svc_proto.schema.common_types import NonNegativeInt, UnixTime
from svc_proto.schema.json_schema import schema_keywords

DurationSeconds: TypeAlias = Annotated[
    float, schema_keywords(minimum=0, maximum=315_360_000), "seconds; 0 means no expiry"
]
Base64: TypeAlias = Annotated[str, schema_keywords(contentEncoding="base64")]
Preset: TypeAlias = Annotated[
    dict[str, DurationSeconds | Literal[False]], "seconds by channel; false withholds the channel"
]
Grants: TypeAlias = Annotated[dict[str, float | None], "expiry by channel in Unix seconds; null means no expiry"]
Right: TypeAlias = Literal["manage", "files", "notifications"]


class RefusalJson(TypedDict):
    """A refusal. `field`, if present, names the invalid member."""

    ok: Literal[False]
    error: Annotated[str, "text for people"]
    code: Annotated[str, "stable code for programs"]
    field: NotRequired[str]


class HealthJson(TypedDict):
    """Answer of a running relay."""

    status: Literal["ok"]
    version: str
    clients: NonNegativeInt
    sessions: NonNegativeInt


class ProfileStateJson(TypedDict):
    """A profile of the agent."""

    name: str
    relay_state: Literal["enabled"]


class InfoJson(TypedDict):
    """Version, capabilities and load of the relay."""

    version: str
    plugin_version: str
    protocol_version: int
    capabilities: list[str]
    profiles: list[ProfileStateJson]
    uptime_seconds: NonNegativeInt
    session_count: NonNegativeInt
    paired_device_count: NonNegativeInt
    pending_commands: NonNegativeInt
    media_entry_count: NonNegativeInt
    health: Literal["ok"]
    public_route: Annotated[bool, "whether an invite had a public route, which makes the local secret required"]


class SecurityJson(TypedDict):
    """Security settings of the running relay."""

    ok: Literal[True]
    scope: Literal["runtime"]
    allow_insecure_api_bearer: bool
    trust_proxy_headers: bool
    local_trust: Annotated[Literal["address", "user", "secret"], "what recognizes programs of this host"]
    public_route: Annotated[bool, "whether an invite had a public route, which makes the local secret required"]


class SecurityChangeJson(TypedDict):
    """Permission for API keys from other hosts without TLS, or `public_route: false` to remove the public route."""

    allow_insecure_api_bearer: NotRequired[bool]
    public_route: NotRequired[Literal[False]]


# --- phones ---------------------------------------------------------------------------------------------------------


class SelectorJson(TypedDict, total=False):
    """The phone to use. Without a selector, a command goes to the active phone, else to the most recent one."""

    device: Annotated[str, "id, name or alias of the phone"]
    device_id: Annotated[str, "alias of `device`"]
    deviceId: Annotated[str, "alias of `device`"]


class PhoneStatusJson(TypedDict):
    """The last status that a phone sent, with the connection state that the relay adds."""

    device: dict[str, object]
    bridge: dict[str, object]
    safety: dict[str, object]
    phone_connected: bool
    last_seen_seconds_ago: int | None
    connected: NotRequired[bool]
    active: NotRequired[bool]
    aliases: NotRequired[list[str]]
    device_id: NotRequired[object]
    device_name: NotRequired[object]
    session_token_prefix: NotRequired[str | None]
    client_surface: NotRequired[str]
    device_form_factor: NotRequired[str]


class PhonesJson(TypedDict):
    """Connected phones, the one with the newest status first."""

    active_device_id: str | None
    most_recent_device_id: str | None
    devices: list[PhoneStatusJson]
    count: NonNegativeInt


class SelectedPhoneJson(TypedDict):
    """The phone that is used by default from now on."""

    ok: Literal[True]
    active_device_id: str
    device_id: str
    device_name: str
    alias_used: str
    aliases: list[str]


class CommandJson(TypedDict):
    """A command to a phone and its outcome."""

    request_id: str
    method: str
    path: str
    params: object
    sent_at: UnixTime
    response_status: int | None
    result_summary: str | None
    error: str | None
    decision: Annotated[str, "pending, executed, blocked, confirmed, timeout or error"]
    device_id: str | None
    device_name: str | None
    alias_used: str | None
    asked_by: str | None


class ActivityJson(TypedDict):
    """Recent commands, newest first."""

    activity: list[CommandJson]


class AuditEventJson(TypedDict):
    """Event of the audit log."""

    at: UnixTime
    event: str
    principal: Annotated[str, "prefix and name of a session, or `operator`"]
    address: Annotated[str | None, "of the client; null: this host, or unknown"]
    about: Annotated[dict[str, str], "what was changed, without secrets and private texts"]


class AuditEventsJson(TypedDict):
    """The newest events of the audit log, newest first."""

    events: list[AuditEventJson]


class ProfileJson(TypedDict):
    """A profile of the agent."""

    name: str
    model: str
    description: str
    system_message: str | None
    gateway_running: bool
    has_soul: bool
    skill_count: int
    api_server_enabled: bool
    api_server_url: str | None
    api_server_host: str | None
    api_server_port: int | None
    api_server_key_present: bool


# --- pairing and sessions -------------------------------------------------------------------------------------------


class CodeJson(TypedDict):
    """A registered pairing code."""

    ok: Literal[True]
    code: str


class NewCodeJson(CodeJson):
    """A new pairing code, valid for ten minutes."""

    expires_at: int


class RegisteredJson(CodeJson):
    """A registered pairing code, with the data of its invite."""

    api_key: NotRequired[Annotated[str, "key for this pairing only, to be put into its invite"]]
    endpoints: NotRequired[list[object]]


class CodeTermsJson(TypedDict, total=False):
    """Terms of the session that the code opens, such as its grants and its lifetime."""

    ttl_seconds: DurationSeconds | None
    grants: Preset | None
    transport_hint: Literal["wss", "ws", "unknown"] | None
    carries_key: bool | None
    keep_earlier: Annotated[bool | None, "keep earlier sessions of the device that pairs"]


class CodeApprovalJson(CodeTermsJson, total=False):
    """A pairing code for a phone."""

    code: Required[Annotated[str, "six characters of A-Z and 0-9"]]


class RegistrationJson(CodeApprovalJson, total=False):
    """A pairing code for a phone, with the addresses of this host."""

    endpoints: list[object] | None
    own_key: bool | None


class MintRequestJson(CodeTermsJson, total=False):
    """Content of an invite; absent members take the configured values."""

    host: str | None
    port: int | str | None
    tls: bool | None
    api_key: str | None
    dashboard_url: str | None
    dashboardUrl: str | None
    endpoints: list[object] | None
    own_key: bool | None


class InviteJson(NewCodeJson):
    """An invite for a QR code, signed unless the relay cannot read or store the secret for it."""

    qr_payload: str
    pairing_url: str
    host: str
    port: int
    tls: bool
    relay_url: str
    dashboard_url: NotRequired[str]
    endpoints: NotRequired[list[object]]


class DeviceSessionJson(TypedDict):
    """The session of a paired device."""

    token_prefix: str
    device_name: str
    device_id: str
    created_at: UnixTime
    first_seen: UnixTime
    last_seen: UnixTime
    expires_at: Annotated[float | None, "Unix seconds; null means no expiry"]
    grants: Grants
    transport_hint: str
    client_surface: str
    device_form_factor: str
    device_model: str
    device_platform: str
    rights: Annotated[list[Right], "rights beside the grants"]
    is_current: Annotated[bool, "whether this session sent the request"]
    online: Annotated[bool, "whether the device is connected"]


class DeviceSessionsJson(TypedDict):
    """Sessions of paired devices that the client may see: all, most recently seen first, or a page of them by token."""

    sessions: list[DeviceSessionJson]
    next_cursor: NotRequired[Annotated[str, "for the next page; absent on the last one"]]


class RevokedJson(TypedDict):
    """The revoked session."""

    ok: Literal[True]
    revoked: str
    revoked_self: bool
    agent_changes: NotRequired[
        Annotated[int, "what it changed at the agent of this host: `svc undo` lists and undoes it"]
    ]
    knows_api_key: NotRequired[Annotated[bool, "the invite contained the main key of the API: change that key"]]


class DeviceSessionChangeJson(TypedDict, total=False):
    """A new lifetime, new grants, a new name, or several of them."""

    ttl_seconds: DurationSeconds | None
    grants: Preset | None
    device_name: str | None


class SessionChangedJson(TypedDict):
    """Name, lifetime and grants after the change."""

    ok: Literal[True]
    token_prefix: str
    device_name: NotRequired[Annotated[str, "the new name"]]
    expires_at: float | None
    grants: Grants


# --- files ----------------------------------------------------------------------------------------------------------


class MediaPathJson(TypedDict, total=False):
    """A file of this host to register."""

    path: Required[str]
    content_type: Required[str]
    file_name: str | None
    sensitive: bool | int | str | None


class MediaTokenJson(TypedDict):
    """Token of a file, with its expiry."""

    ok: Literal[True]
    token: str
    expires_at: UnixTime


class MediaRegisteredJson(MediaTokenJson):
    """Token of a file of this host, with its expiry."""

    sensitive: bool


class UploadJson(TypedDict, total=False):
    """A file as base64 in JSON."""

    content_type: Required[str]
    content: Required[Base64]
    file_name: str | None


class FormJson(TypedDict):
    """A file as a part of a form."""

    file: Annotated[str, schema_keywords(contentMediaType="application/octet-stream")]


class MediaEntryJson(TypedDict):
    """A registered file; its token fetches it until it expires."""

    token: str
    file_name: str
    content_type: str
    size: NonNegativeInt
    created_at: UnixTime
    expires_at: UnixTime
    last_accessed: UnixTime
    is_expired: bool


class MediaEntriesJson(TypedDict):
    """Registered files, newest first."""

    media: list[MediaEntryJson]


class PasteJson(TypedDict, total=False):
    """An image for the agent of this host."""

    format: Required[Literal["png", "jpg", "jpeg", "webp", "gif"]]
    bytes_base64: Required[Base64]
    filename_hint: str | None


class PastedJson(TypedDict):
    """Path of the stored image."""

    ok: Literal[True]
    path: str
    size_bytes: NonNegativeInt
    swept_stale: NonNegativeInt


class OwnerMessageJson(TypedDict, total=False):
    """A message to the owner. `chat_id` names its thread; `surfacing` selects the place in the app."""

    text: Required[Annotated[str, schema_keywords(minLength=1, maxLength=8000)]]
    title: str | None
    chat_id: str | None
    session_id: str | None
    surfacing: Literal["notification", "inbox", "session"] | None
    reply_to: str | None
    metadata: dict[str, object] | None


class OwnerMessageSentJson(TypedDict, total=False):
    """Delivery of a message: to a phone at once, or queued as one of `buffered`."""

    ok: Required[Literal[True]]
    delivered: Required[bool]
    message_id: Required[str]
    queued: Literal[True]
    buffered: NonNegativeInt


class OwnerRepliesJson(TypedDict):
    """Replies of the owner, oldest first."""

    ok: Literal[True]
    replies: list[dict[str, object]]
    count: NonNegativeInt


class OwnerOutboundJson(TypedDict):
    """Messages that wait for a phone, oldest first."""

    ok: Literal[True]
    messages: list[dict[str, object]]
    count: NonNegativeInt


class OwnerOutboundDroppedJson(TypedDict):
    """Number of dropped messages."""

    ok: Literal[True]
    deleted: NonNegativeInt


class OwnerThreadJson(TypedDict):
    """A thread of messages."""

    session_id: str | None
    chat_id: str
    title: str


class OwnerThreadsJson(TypedDict):
    """Threads, the latest first."""

    ok: Literal[True]
    threads: list[OwnerThreadJson]


class NotificationsJson(TypedDict):
    """Notifications of phones, newest first."""

    ok: Literal[True]
    notifications: list[Mapping[str, object]]
    count: NonNegativeInt
