"""Types of requests and answers of the dashboard for its OpenAPI document, beside those of the relay and the API."""
# Without `from __future__ import annotations`: see `schema.json_schema`.

from collections.abc import Sequence
from typing import Annotated, Literal, NotRequired, Required, TypeAlias, TypedDict

from svc_proto.schema.api_types import McpServerRowJson
from svc_proto.schema.json_schema import schema_keywords
from svc_proto.schema.relay_types import MintRequestJson

NextPath: TypeAlias = Annotated[str, "path of a page of the dashboard"]


class ValidationProblemJson(TypedDict):
    """An error in the input."""

    type: str
    loc: Annotated[list[str], "location of the error, such as query and limit"]
    msg: str


class RefusalJson(TypedDict):
    """A refusal, with the detail of another server where that server refused."""

    detail: str | list[ValidationProblemJson] | dict[str, object]
    code: Annotated[str, "stable code of the dashboard; a server behind it has its own in `detail`"]


class QrRowsJson(TypedDict):
    """Rows of a QR code without a margin; 1 is dark."""

    rows: list[Annotated[str, schema_keywords(pattern="^[01]+$")]]


class PushJson(TypedDict):
    """State of push messages, which are not supported."""

    configured: Literal[False]
    reason: str


class PicturePathJson(TypedDict):
    """Path of a picture on this host."""

    path: str


class InviteRequestJson(MintRequestJson, total=False):
    """Requested properties and routes of an invite."""

    mode: Annotated[str | None, "auto, lan, mesh or public"]
    public_url: str | None
    prefer: str | None


class ChatModelJson(TypedDict):
    """Availability of chat, and the model that answers."""

    chat: bool
    model: Annotated[str | None, "null for the built-in agent"]


class ServerStatsJson(TypedDict):
    """Measurements of the relay and the API server, now and stored, in the order of `names`; null: no value."""

    every: Annotated[float, "seconds between two rows"]
    span: Annotated[float, "seconds"]
    names: Sequence[str]
    rows: Sequence[Sequence[float | None]]
    now: Sequence[float | None]
    answers: Annotated[dict[str, bool], "whether each server can be reached"]


class HostCheckJson(TypedDict):
    """Result of one health check."""

    code: str
    title: str
    severity: Annotated[str, "error, warning or note"]
    ok: Annotated[bool, "false if there is a problem"]
    found: Annotated[str | None, "what was found; null if there is nothing to report"]
    looked_at: str
    remedy: str | None


class HostHealthJson(TypedDict):
    """Results of the last run of the health checks of this host."""

    checked_at: Annotated[float | None, "epoch seconds; null before the first run has ended"]
    checks: list[HostCheckJson]


class PhoneScreenJson(TypedDict):
    """Screen and state of the reference phone."""

    name: str
    online: bool
    device_control: bool
    hint: str | None
    screen_on: bool
    battery: object
    screen: dict[str, object]
    latest: dict[str, object] | None
    questions: list[dict[str, object]]
    talk: list[dict[str, object]]
    awaits: bool
    tag: Annotated[str, "value for `seen` of the next request"]
    seconds_left: Annotated[dict[str, float], "seconds left of each question"]


class TouchRequestJson(TypedDict, total=False):
    """A gesture on the screen."""

    kind: Required[Annotated[str, "wake, tap, long_press, swipe and so on"]]
    x: NotRequired[int]
    y: NotRequired[int]


class ConfirmationAnswerJson(TypedDict, total=False):
    """Answer to a confirmation on the phone."""

    question: Required[str]
    allow: Required[bool]
    remember: bool


class ToggleJson(TypedDict):
    """Requested state of Device Control."""

    on: bool


class SayRequestJson(TypedDict, total=False):
    """A message to the agent."""

    text: Required[str]
    aloud: bool


class OkJson(TypedDict):
    """The action was accepted."""

    ok: Literal[True]


class ConsentAnswerFormJson(TypedDict, total=False):
    """The owner's decision about the agent."""

    code: Required[str]
    ballot: Required[str]
    answer: Required[Literal["allow", "refuse"]]
    scope: Literal["bridge", "bridge:read"]
    days: Literal["1", "7", "30", "365"]


# --- the phone's app ------------------------------------------------------------------------------------------------


class SignInProviderJson(TypedDict):
    """A way to sign in, by its name."""

    name: str
    display_name: str
    supports_password: bool


class ProvidersJson(TypedDict):
    """The ways to sign in."""

    providers: list[SignInProviderJson]


class AppStatusJson(TypedDict):
    """Description of the dashboard for clients that look for one."""

    status: Literal["ok"]
    version: str
    auth_required: bool
    auth_providers: list[SignInProviderJson]
    auth_flows: list[str]
    profiles: list[str]
    gateway_mode: Literal["single"]
    gateways: list[dict[str, object]]
    components: dict[str, object]


class PasswordLoginJson(TypedDict, total=False):
    """A sign-in with the password of the dashboard."""

    provider: Annotated[str, "basic"]
    username: Annotated[str, "any"]
    password: Required[str]
    next: str


class SignInFormJson(TypedDict, total=False):
    """Form of the sign-in."""

    next: NextPath
    password: Required[str]


class SignedInJson(TypedDict):
    """The sign-in has succeeded."""

    ok: Literal[True]
    next: str


class OwnerJson(TypedDict):
    """The signed-in user: the owner."""

    user_id: str
    email: str
    display_name: str
    org_id: str
    provider: str
    expires_at: NotRequired[Annotated[int, "Unix time at which the session ends without a further use"]]


class TicketJson(TypedDict):
    """A ticket for one WebSocket."""

    ticket: str
    ttl_seconds: int


class SignInJson(TypedDict):
    """A signed-in client. Times are Unix seconds."""

    id: str
    agent: Annotated[str, "as the client names itself"]
    address: str
    created_at: float
    used_at: float
    expires_at: float
    current: Annotated[bool, "the client that asks"]


class SignInsJson(TypedDict):
    """The signed-in clients."""

    sessions: list[SignInJson]


class PruneJson(TypedDict, total=False):
    """Filter of the chats to list or delete; at least a number of days or a source."""

    dry_run: Annotated[bool, "only false deletes"]
    older_than_days: float
    source: str
    include_archived: bool


class DataUrlRecordingJson(TypedDict, total=False):
    """A recording as a data URL in base64."""

    data_url: Required[str]
    mime_type: str


class AppMcpServerJson(McpServerRowJson):
    """State of an MCP server, as the phone's app reads it."""

    enabled: bool


class AppMcpServersJson(TypedDict):
    """The configured MCP servers, also those that the agent does not use."""

    servers: list[AppMcpServerJson]
