"""The messages of the relay's WebSocket as types: the payload of each envelope, by channel and type.

An envelope is `{"channel": ..., "type": ..., "id": ..., "payload": {...}}`; an answer has the id of what it answers.
"""
# Without `from __future__ import annotations`: see `schema.json_schema`.

from collections.abc import Mapping
from typing import Annotated, Literal, NotRequired, Required, TypeAlias, TypedDict

from svc_proto.relay.openapi.types import Grants, Preset, Span, Unix

__all__ = ["HEARD", "SAID"]

Cells: TypeAlias = int | str


class Profile(TypedDict):
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


# --- system, pairing, chat ------------------------------------------------------------------------------------------


class Auth(TypedDict, total=False):
    """First message: a pairing code or a session token, with a description of the device."""

    pairing_code: str
    session_token: str
    ttl_seconds: Span
    grants: Preset
    device_name: str
    device_hostname: str
    device_id: str
    device_model: str
    device_platform: str
    client_surface: str
    device_form_factor: str


class AuthOk(TypedDict):
    """The client is authenticated."""

    session_token: str
    server_version: str
    expires_at: float | None
    grants: Grants
    transport_hint: str
    client_surface: str
    device_form_factor: str
    profiles: list[Profile]


class AuthFail(TypedDict):
    """Authentication has failed; the socket closes."""

    reason: str


class Ping(TypedDict, total=False):
    """Check that the peer is alive."""

    ts: object


class Pong(TypedDict):
    """Answer to a ping, with the `ts` of the ping or the relay's clock."""

    ts: object


class Complaint(TypedDict):
    """Error in a message. The socket stays open unless the session has ended."""

    message: str
    error: Annotated[str, "stable code for programs"]


class ProfilesUpdated(TypedDict):
    """The profiles have changed. They are also members of the message, next to the payload."""

    profiles: list[Profile]


class Anything(TypedDict):
    """Any object."""


# --- phones ---------------------------------------------------------------------------------------------------------


class BridgeStatus(TypedDict, total=False):
    """Status of a phone."""

    device: dict[str, object]
    bridge: dict[str, object]
    safety: dict[str, object]


class BridgeCommand(TypedDict):
    """Command to a phone."""

    request_id: str
    method: Literal["GET", "POST"]
    path: str
    params: dict[str, object]
    body: dict[str, object]


class BridgeResponse(TypedDict, total=False):
    """Answer of a phone to a command."""

    request_id: Required[str]
    status: Annotated[int, "HTTP status, 200 to 599; 200 if absent"]
    result: object
    error: str | None
    blocked: bool


# --- terminal -------------------------------------------------------------------------------------------------------


class Attach(TypedDict, total=False):
    """Request to open a terminal or to attach to one."""

    session_name: str | None
    cols: Cells
    rows: Cells
    shell: str | None


class TerminalAttached(TypedDict):
    """The terminal is attached."""

    session_name: str
    pid: int
    shell: str
    cols: int
    rows: int
    tmux_available: bool
    reattach: bool
    replay: NotRequired[Annotated[str, "recent output"]]
    elsewhere: NotRequired[Annotated[str, "another node that runs a terminal of this name"]]


class TerminalInput(TypedDict, total=False):
    """Input of the terminal."""

    session_name: str | None
    data: Required[str]


class TerminalOutput(TypedDict):
    """Output of the terminal."""

    session_name: str
    data: str


class TerminalSize(TypedDict, total=False):
    """New size of the terminal."""

    session_name: str | None
    cols: Cells
    rows: Cells


class TerminalName(TypedDict, total=False):
    """Name of the terminal; without a name, the one that was attached last."""

    session_name: str | None


class TerminalDetached(TypedDict):
    """The terminal is detached, with the reason."""

    session_name: str
    reason: str
    exit_status: NotRequired[int]


class TerminalError(TypedDict):
    """A request of the terminal channel has failed."""

    message: str
    session_name: NotRequired[str]
    reason: NotRequired[str]


class TerminalRow(TypedDict):
    """A terminal or a tmux session."""

    name: str
    shell: str
    live: bool
    owned_by_client: bool
    tmux_name: NotRequired[str]
    attached: NotRequired[int]
    windows: NotRequired[int]
    created_at: NotRequired[Unix]
    pid: NotRequired[int]


class TerminalSessions(TypedDict):
    """List of all terminals."""

    sessions: list[TerminalRow]
    tmux_available: bool


# --- tui ------------------------------------------------------------------------------------------------------------


class TuiAttach(TypedDict, total=False):
    """Request to attach to the agent's gateway."""

    cols: Cells
    rows: Cells
    profile: str | None
    resume_session_id: str | None


class TuiAttached(TypedDict):
    """The gateway runs."""

    pid: int
    server_version: str


class TuiError(TypedDict):
    """The gateway has failed."""

    message: str


class TuiRpc(TypedDict, total=False):
    """JSON-RPC message from or to the gateway."""

    jsonrpc: Literal["2.0"]
    id: object
    method: str
    params: object
    result: object
    error: object


class TuiResize(TypedDict, total=False):
    """New size of the screen."""

    session_id: object
    cols: Cells
    rows: Cells


HEARD: Mapping[str, type] = {
    "system auth": Auth,
    "system ping": Ping,
    "chat chat.send": Anything,
    "notifications notification.posted": Anything,
    "bridge bridge.status": BridgeStatus,
    "bridge bridge.response": BridgeResponse,
    "terminal terminal.attach": Attach,
    "terminal terminal.input": TerminalInput,
    "terminal terminal.resize": TerminalSize,
    "terminal terminal.detach": TerminalName,
    "terminal terminal.kill": TerminalName,
    "terminal terminal.list": Anything,
    "tui tui.attach": TuiAttach,
    "tui tui.rpc.request": TuiRpc,
    "tui tui.resize": TuiResize,
    "tui tui.detach": Anything,
}
"""What clients say, by channel and type."""

SAID: Mapping[str, type] = {
    "system auth.ok": AuthOk,
    "system auth.fail": AuthFail,
    "system pong": Pong,
    "system error": Complaint,
    "pairing profiles.updated": ProfilesUpdated,
    "chat chat.error": Complaint,
    "bridge bridge.command": BridgeCommand,
    "terminal terminal.attached": TerminalAttached,
    "terminal terminal.output": TerminalOutput,
    "terminal terminal.detached": TerminalDetached,
    "terminal terminal.error": TerminalError,
    "terminal terminal.sessions": TerminalSessions,
    "tui tui.attached": TuiAttached,
    "tui tui.error": TuiError,
    "tui tui.rpc.response": TuiRpc,
    "tui tui.rpc.event": TuiRpc,
}
"""What the relay says."""
