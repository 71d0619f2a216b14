"""Types of the messages of the relay's WebSocket: the payload of each envelope, by channel and type.

An envelope is `{"channel": ..., "type": ..., "id": ..., "payload": {...}}`.
"""
# Without `from __future__ import annotations`: see `schema.json_schema`.

from collections.abc import Mapping
from typing import Annotated, Literal, NotRequired, Required, TypeAlias, TypedDict

from svc_proto.schema.common_types import UnixTime
from svc_proto.schema.relay_types import DurationSeconds, Grants, Preset, ProfileJson

__all__ = ["CLIENT_MESSAGES", "SERVER_MESSAGES"]

Cells: TypeAlias = int | str


# --- system, pairing, chat ------------------------------------------------------------------------------------------


class AuthJson(TypedDict, total=False):
    """First message: a pairing code or a session token, with a description of the device."""

    pairing_code: str
    session_token: str
    ttl_seconds: DurationSeconds
    grants: Preset
    device_name: str
    device_hostname: str
    device_id: str
    device_model: str
    device_platform: str
    client_surface: str
    device_form_factor: str


class AuthOkJson(TypedDict):
    """The client is authenticated."""

    session_token: str
    server_version: str
    expires_at: float | None
    grants: Grants
    transport_hint: str
    client_surface: str
    device_form_factor: str
    profiles: list[ProfileJson]


class AuthFailJson(TypedDict):
    """Authentication has failed; the socket closes."""

    reason: str


class PingJson(TypedDict, total=False):
    """Check that the peer is alive."""

    ts: object


class PongJson(TypedDict):
    """Answer to a ping, with the `ts` of the ping or the relay's clock."""

    ts: object


class ErrorMessageJson(TypedDict):
    """Error report. The socket stays open unless the session has ended."""

    message: str
    error: Annotated[str, "stable code for programs"]


class ProfilesUpdatedJson(TypedDict):
    """The profiles have changed. They are also members of the message, next to the payload."""

    profiles: list[ProfileJson]


class AnyObjectJson(TypedDict):
    """Any object."""


# --- phones ---------------------------------------------------------------------------------------------------------


class BridgeStatusJson(TypedDict, total=False):
    """Status of a phone."""

    device: dict[str, object]
    bridge: dict[str, object]
    safety: dict[str, object]


class BridgeCommandJson(TypedDict):
    """Command to a phone."""

    request_id: str
    method: Literal["GET", "POST"]
    path: str
    params: dict[str, object]
    body: dict[str, object]


class BridgeResponseJson(TypedDict, total=False):
    """Answer of a phone to a command."""

    request_id: Required[str]
    status: Annotated[int, "HTTP status, 200 to 599; 200 if absent"]
    result: object
    error: str | None
    blocked: bool


# --- terminal -------------------------------------------------------------------------------------------------------


class AttachRequestJson(TypedDict, total=False):
    """Request to open a terminal or to attach to one."""

    session_name: str | None
    cols: Cells
    rows: Cells
    shell: str | None
    login: Annotated[bool, "whether the shell reads a profile; true by default"]


class TerminalAttachedJson(TypedDict):
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


class TerminalInputJson(TypedDict, total=False):
    """Input of the terminal."""

    session_name: str | None
    data: Required[str]


class TerminalOutputJson(TypedDict):
    """Output of the terminal."""

    session_name: str
    data: str


class TerminalSizeJson(TypedDict, total=False):
    """New size of the terminal."""

    session_name: str | None
    cols: Cells
    rows: Cells


class TerminalNameJson(TypedDict, total=False):
    """Name of the terminal; without a name, the one that was attached last."""

    session_name: str | None


class TerminalDetachedJson(TypedDict):
    """The terminal is detached, with the reason."""

    session_name: str
    reason: str
    exit_status: NotRequired[int]


class TerminalErrorJson(TypedDict):
    """A request of the terminal channel has failed."""

    message: str
    session_name: NotRequired[str]
    reason: NotRequired[str]


class TerminalRowJson(TypedDict):
    """A terminal or a tmux session."""

    name: str
    shell: str
    live: bool
    owned_by_client: bool
    tmux_name: NotRequired[str]
    attached: NotRequired[int]
    windows: NotRequired[int]
    created_at: NotRequired[UnixTime]
    pid: NotRequired[int]


class TerminalSessionsJson(TypedDict):
    """List of the client's terminals, and of the tmux sessions of the relay."""

    sessions: list[TerminalRowJson]
    tmux_available: bool


# --- tui ------------------------------------------------------------------------------------------------------------


class TuiAttachJson(TypedDict, total=False):
    """Request to start an agent gateway, in place of the client's earlier one."""

    cols: Cells
    rows: Cells
    profile: str | None
    resume_session_id: str | None


class TuiAttachedJson(TypedDict):
    """The gateway runs."""

    pid: int
    server_version: str


class TuiErrorJson(TypedDict):
    """The gateway, which had started, has exited or was stopped for a line that is too long."""

    message: str


class TuiRpcJson(TypedDict, total=False):
    """JSON-RPC message from or to the gateway."""

    jsonrpc: Literal["2.0"]
    id: object
    method: str
    params: object
    result: object
    error: object


class TuiResizeJson(TypedDict, total=False):
    """New size of the screen."""

    session_id: object
    cols: Cells
    rows: Cells


# --- proactive ------------------------------------------------------------------------------------------------------


class MessageIdJson(TypedDict, total=False):
    """Cancellation of a message to the owner, by its id."""

    message_id: str


class OwnerReplyJson(TypedDict, total=False):
    """A reply of the owner."""

    text: str
    chat_id: str
    reply_to: str
    message_id: str
    ts: object
    client_msg_id: str


class MomentJson(TypedDict):
    """Acknowledgement of a subscription, with the relay's clock."""

    ts: UnixTime


class PhoneMessageJson(TypedDict, total=False):
    """A message to the owner; `sent_at` is in ms."""

    message_id: Required[str]
    chat_id: Required[str]
    text: Required[str]
    title: Required[str | None]
    surfacing: Required[Literal["notification", "inbox", "session"] | None]
    reply_to: Required[str | None]
    metadata: Required[dict[str, object] | None]
    sent_at: Required[int]
    queued_delivery: Literal[True]


class BacklogCompleteJson(TypedDict):
    """All queued messages were delivered."""

    count: int
    ts: UnixTime


class ReplyAckJson(TypedDict):
    """Acknowledgement of a reply."""

    client_msg_id: object
    status: Literal["accepted", "rejected"]
    ts: UnixTime


CLIENT_MESSAGES: Mapping[str, type] = {
    "system auth": AuthJson,
    "system ping": PingJson,
    "chat chat.send": AnyObjectJson,
    "notifications notification.posted": AnyObjectJson,
    "bridge bridge.status": BridgeStatusJson,
    "bridge bridge.response": BridgeResponseJson,
    "terminal terminal.attach": AttachRequestJson,
    "terminal terminal.input": TerminalInputJson,
    "terminal terminal.resize": TerminalSizeJson,
    "terminal terminal.detach": TerminalNameJson,
    "terminal terminal.kill": TerminalNameJson,
    "terminal terminal.list": AnyObjectJson,
    "tui tui.attach": TuiAttachJson,
    "tui tui.rpc.request": TuiRpcJson,
    "tui tui.resize": TuiResizeJson,
    "tui tui.detach": AnyObjectJson,
    "proactive proactive.subscribe": AnyObjectJson,
    "proactive proactive.unsubscribe": AnyObjectJson,
    "proactive proactive.cancel": MessageIdJson,
    "proactive proactive.reply": OwnerReplyJson,
}
"""Messages from clients, by channel and type."""

SERVER_MESSAGES: Mapping[str, type] = {
    "system auth.ok": AuthOkJson,
    "system auth.fail": AuthFailJson,
    "system pong": PongJson,
    "system error": ErrorMessageJson,
    "pairing profiles.updated": ProfilesUpdatedJson,
    "chat chat.error": ErrorMessageJson,
    "bridge bridge.command": BridgeCommandJson,
    "terminal terminal.attached": TerminalAttachedJson,
    "terminal terminal.output": TerminalOutputJson,
    "terminal terminal.detached": TerminalDetachedJson,
    "terminal terminal.error": TerminalErrorJson,
    "terminal terminal.sessions": TerminalSessionsJson,
    "tui tui.attached": TuiAttachedJson,
    "tui tui.error": TuiErrorJson,
    "tui tui.rpc.response": TuiRpcJson,
    "tui tui.rpc.event": TuiRpcJson,
    "proactive proactive.subscribed": MomentJson,
    "proactive phone.message": PhoneMessageJson,
    "proactive proactive.backlog.complete": BacklogCompleteJson,
    "proactive proactive.reply.ack": ReplyAckJson,
}
"""Messages from the relay."""
