"""What the relay is sent and answers, as types: for its document (`relay.says`). The writers are beside the routes.

What clients send is `total=False`: all of it may be left out, unless it says `Required`.
"""
# Without `from __future__ import annotations`: see `schema.json_schema`.

from typing import Annotated, Literal, NotRequired, Required, TypeAlias, TypedDict

from svc_proto.schema.json_schema import rule

Unix: TypeAlias = Annotated[float, "Unix seconds"]
Natural: TypeAlias = Annotated[int, rule(minimum=0)]
Span: TypeAlias = Annotated[float, rule(minimum=0, maximum=315_360_000), "s; 0 for never"]
Base64: TypeAlias = Annotated[str, rule(contentEncoding="base64")]
Preset: TypeAlias = Annotated[dict[str, Span | Literal[False]], "by channel; false withholds it"]
Grants: TypeAlias = Annotated[dict[str, float | None], "by channel: until when, in Unix seconds; null: for ever"]


class Refusal(TypedDict):
    """A refusal. `field`, where it is there, is the member at fault."""

    ok: Literal[False]
    error: Annotated[str, "for people"]
    code: Annotated[str, "for programs"]
    field: NotRequired[str]


class Health(TypedDict):
    """The relay answers."""

    status: Literal["ok"]
    version: str
    clients: Natural
    sessions: Natural


class ProfileState(TypedDict):
    """An agent's profile."""

    name: str
    relay_state: Literal["enabled"]


class Info(TypedDict):
    """What the relay is, and how much it has to do."""

    version: str
    plugin_version: str
    protocol_version: int
    capabilities: list[str]
    profiles: list[ProfileState]
    uptime_seconds: Natural
    session_count: Natural
    paired_device_count: Natural
    pending_commands: Natural
    media_entry_count: Natural
    health: Literal["ok"]


class Security(TypedDict):
    """What may be changed while the relay runs, and what may not."""

    ok: Literal[True]
    scope: Literal["runtime"]
    allow_insecure_api_bearer: bool
    trust_proxy_headers: bool


class SecurityChange(TypedDict):
    """Whether a key of the API may come from afar in the clear."""

    allow_insecure_api_bearer: bool


# --- phones ---------------------------------------------------------------------------------------------------------


class Selector(TypedDict, total=False):
    """Which phone; without any the active one."""

    device: Annotated[str, "its id, its name or an alias"]
    device_id: Annotated[str, "the same"]
    deviceId: Annotated[str, "the same"]


class PhoneStatus(TypedDict):
    """What a phone last said of itself, whole, and what the relay knows of it."""

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


class Phones(TypedDict):
    """The phones that can be driven, the last heard of first."""

    active_device_id: str | None
    most_recent_device_id: str | None
    devices: list[PhoneStatus]
    count: Natural


class Selected(TypedDict):
    """The phone that is driven by default from now on."""

    ok: Literal[True]
    active_device_id: str
    device_id: str
    device_name: str
    alias_used: str
    aliases: list[str]


class Command(TypedDict):
    """A command to a phone, and what became of it."""

    request_id: str
    method: str
    path: str
    params: object
    sent_at: Unix
    response_status: int | None
    result_summary: str | None
    error: str | None
    decision: Annotated[str, "pending, executed, blocked, confirmed, timeout or error"]
    device_id: str | None
    device_name: str | None
    alias_used: str | None
    asked_by: str | None


class Activity(TypedDict):
    """The last commands, newest first."""

    activity: list[Command]


class ActivityQuery(TypedDict, total=False):
    """How many."""

    limit: Annotated[int, "100 at most; what is none counts as 100"]


# --- pairing and sessions -------------------------------------------------------------------------------------------


class Code(TypedDict):
    """A code is registered."""

    ok: Literal[True]
    code: str


class NewCode(Code):
    """A code was made, for ten minutes."""

    expires_at: int


class Registered(Code):
    """A code is registered, with what its invite needs."""

    api_key: NotRequired[Annotated[str, "of this pairing alone, for its invite"]]
    endpoints: NotRequired[list[object]]


class Given(TypedDict, total=False):
    """What is given with a code."""

    ttl_seconds: Span | None
    grants: Preset | None
    transport_hint: Literal["wss", "ws", "unknown"] | None
    carries_key: bool | None


class Approval(Given, total=False):
    """A code that a phone may use."""

    code: Required[Annotated[str, "six characters of A-Z and 0-9"]]


class Registration(Approval, total=False):
    """A code that a phone may use, and where it finds this host."""

    endpoints: list[object] | None
    own_key: bool | None


class Mint(Given, total=False):
    """What an invite is to say; what is left out is as configured."""

    host: str | None
    port: int | str | None
    tls: bool | None
    api_key: str | None
    dashboard_url: str | None
    dashboardUrl: str | None
    endpoints: list[object] | None
    own_key: bool | None


class Invite(NewCode):
    """A signed invite, for a QR."""

    qr_payload: str
    pairing_url: str
    host: str
    port: int
    tls: bool
    relay_url: str
    dashboard_url: NotRequired[str]
    endpoints: NotRequired[list[object]]


class DeviceSession(TypedDict):
    """A paired device."""

    token_prefix: str
    device_name: str
    device_id: str
    created_at: Unix
    first_seen: Unix
    last_seen: Unix
    expires_at: Annotated[float | None, "Unix seconds; null: never"]
    grants: Grants
    transport_hint: str
    client_surface: str
    device_form_factor: str
    device_model: str
    device_platform: str
    is_current: Annotated[bool, "it asks"]
    online: Annotated[bool, "it has a socket open"]


class DeviceSessions(TypedDict):
    """The paired devices."""

    sessions: list[DeviceSession]


class Revoked(TypedDict):
    """A session is over."""

    ok: Literal[True]
    revoked: str
    revoked_self: bool
    knows_api_key: NotRequired[Annotated[bool, "its invite held the API's main key: change that"]]


class SessionChange(TypedDict, total=False):
    """A lifetime, grants, or both."""

    ttl_seconds: Span | None
    grants: Preset | None


class SessionChanged(TypedDict):
    """What the session has now."""

    ok: Literal[True]
    token_prefix: str
    expires_at: float | None
    grants: Grants


# --- files ----------------------------------------------------------------------------------------------------------


class MediaPath(TypedDict, total=False):
    """A file of this host to be handed out."""

    path: Required[str]
    content_type: Required[str]
    file_name: str | None
    sensitive: bool | int | str | None


class MediaToken(TypedDict):
    """What a file is fetched by, and until when."""

    ok: Literal[True]
    token: str
    expires_at: Unix


class MediaRegistered(MediaToken):
    """The same, of a file of this host."""

    sensitive: bool


class Upload(TypedDict, total=False):
    """A file."""

    content_type: Required[str]
    content: Required[Base64]
    file_name: str | None


class Form(TypedDict):
    """A file as a part of a form."""

    file: Annotated[str, rule(contentMediaType="application/octet-stream")]


class PathQuery(TypedDict):
    """Which file of this host."""

    path: Annotated[str, "an absolute path"]
    content_type: NotRequired[str]
    sensitive: NotRequired[Annotated[str, "1: it is said so in the answer"]]


class MediaEntry(TypedDict):
    """A file that can be fetched by a token."""

    token: str
    file_name: str
    content_type: str
    size: Natural
    created_at: Unix
    expires_at: Unix
    last_accessed: Unix
    is_expired: bool


class MediaEntries(TypedDict):
    """All of them, newest first."""

    media: list[MediaEntry]


class MediaQuery(TypedDict, total=False):
    """Which."""

    include_expired: Annotated[str, "1: those whose time is over as well"]


class Paste(TypedDict, total=False):
    """An image for the agent of this host."""

    format: Required[Literal["png", "jpg", "jpeg", "webp", "gif"]]
    bytes_base64: Required[Base64]
    filename_hint: str | None


class Pasted(TypedDict):
    """Where it is."""

    ok: Literal[True]
    path: str
    size_bytes: Natural
    swept_stale: Natural


class Notifications(TypedDict):
    """What phones were notified of, newest first."""

    ok: Literal[True]
    notifications: list[dict[str, object]]
    count: Natural


class NotificationQuery(TypedDict, total=False):
    """How many."""

    limit: Annotated[int, rule(minimum=1), "20 if it is left out, 100 at most"]
