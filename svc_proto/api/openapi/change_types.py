"""JSON types of the routes of standing approvals, changes, host settings, model probes and MCP servers."""

from typing import Annotated, Literal, NotRequired, TypedDict

from svc_proto.schema.api_types import McpServerRowJson
from svc_proto.schema.common_types import UnixTime


class ChangeJson(TypedDict):
    """A change of an approval, a setting or a note."""

    at: UnixTime
    principal: str
    kind: Literal["approval", "setting", "memory"]
    target: Annotated[str, "chat of the approval, name of the setting, or list of the note"]
    before: str
    after: str


class ChangesJson(TypedDict):
    """Changes, oldest first."""

    changes: list[ChangeJson]


class StandingApprovalJson(TypedDict):
    """A standing approval."""

    session_id: Annotated[str | None, "chat for which it holds; null: for good"]
    pattern: Annotated[str, "tool and arguments that it covers"]
    principal: Annotated[str | None, "session or owner that gave it; null: unknown"]
    at: Annotated[float | None, "Unix seconds; null: unknown"]


class StandingApprovalsJson(TypedDict):
    """Standing approvals, those for good first. One of a chat is left out if it is also for good."""

    approvals: list[StandingApprovalJson]


class ApprovalEndJson(TypedDict):
    """The standing approval to end."""

    pattern: str
    session_id: NotRequired[Annotated[str | None, "absent or null: the approval for good"]]


class ApprovalEndedJson(TypedDict):
    """The approval has ended."""

    ok: Literal[True]


HostSettingName = Literal["public_url", "brand", "metrics_token", "pair_scope", "pair_ttl"]


class HostSettingJson(TypedDict):
    """A setting of the host, as the next start of the servers finds it."""

    name: HostSettingName
    variable: Annotated[str, "environment variable"]
    value: Annotated[str | None, "null: a secret"]
    is_set: bool
    in_environment: Annotated[bool, "whether the environment of the servers has it, which no file can change"]


class HostSettingsJson(TypedDict):
    """Settings of the host."""

    settings: list[HostSettingJson]


class HostChangeJson(TypedDict, total=False):
    """Changed settings; an empty text unsets one. `pair_*` count at once, others from the servers' next start on."""

    public_url: Annotated[str, "address of this host from outside, offered in each pairing code"]
    brand: Annotated[str, "names that the app expects: `svc` or `hermes`"]
    metrics_token: Annotated[str, "token for programs that read `/metrics` from elsewhere, at least 16 characters"]
    pair_scope: Annotated[str, "what a new code grants: `phone` or `chat`; empty: everything"]
    pair_ttl: Annotated[str, "lifetime in s of a session with a new code; `0`: without end"]


class ModelProbeJson(TypedDict, total=False):
    """The server and the model of a probe."""

    base_url: Annotated[str, "OpenAI-compatible server up to `/v1`; the configured one if absent"]
    model: Annotated[str, "model that gets one short request; none if absent"]


class ModelProbedJson(TypedDict):
    """Models of the server, and the abilities of the tested one."""

    base_url: str
    models: list[str]
    model: NotRequired[str]
    context: NotRequired[Annotated[int | None, "tokens; null: unknown"]]
    tools: NotRequired[Annotated[bool | None, "whether it calls tools; null: unknown"]]
    seconds: NotRequired[Annotated[float, "until the answer"]]
    problem: Annotated[str | None, "reason why the server or the model does not answer"]


class UndoChangesJson(TypedDict):
    """The principal whose changes are undone."""

    principal: Annotated[str, "as in `GET /api/changes`"]


class UndoneChangeJson(ChangeJson):
    """A change, and whether it is undone."""

    undone: bool
    why: Annotated[str | None, "reason why it is not"]


class UndoneChangesJson(TypedDict):
    """The changes, newest first."""

    ok: bool
    changes: list[UndoneChangeJson]


class McpSwitchJson(TypedDict):
    """New state of an MCP server: used by the agent or not."""

    enabled: bool


class McpSwitchedJson(TypedDict):
    """Name and new state of an MCP server."""

    ok: Literal[True]
    name: str
    enabled: bool


class McpTestedJson(McpServerRowJson):
    """State of the server after the attempt; `error` is why it is not ready."""

    ok: bool
    error: str | None
