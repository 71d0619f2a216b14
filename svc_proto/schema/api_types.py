"""Types of the API's requests and answers, for its handlers and its OpenAPI document (`api.openapi.operations`)."""
# Without `from __future__ import annotations`: see `schema.json_schema`.

from collections.abc import Mapping
from typing import Annotated, Literal, NotRequired, TypeAlias, TypedDict

from svc_proto.schema.common_types import NonNegativeInt, UnixTime
from svc_proto.schema.json_schema import schema_keywords

AnyJson: TypeAlias = object
IsoTime: TypeAlias = Annotated[str, schema_keywords(format="date-time")]
NoteTarget: TypeAlias = Literal["memory", "user"]

# --- refusals -------------------------------------------------------------------------------------------------------


class ErrorDetailJson(TypedDict):
    """An error in the format of OpenAI."""

    message: str
    type: Literal["invalid_request_error", "rate_limit_error", "server_error"]
    param: NotRequired[Annotated[str | None, "name of the invalid member"]]
    code: str | None


class RefusalJson(TypedDict):
    """A refusal in the format of OpenAI."""

    error: ErrorDetailJson


class ShortRefusalJson(TypedDict):
    """A refusal of the management routes."""

    error: str


# --- status ---------------------------------------------------------------------------------------------------------


class HealthJson(TypedDict):
    """Answer of a running server."""

    status: Literal["ok", "degraded"]
    platform: str
    version: str


class HealthCheckJson(TypedDict):
    """State of one part of the server."""

    status: Literal["ok", "degraded"]
    detail: NotRequired[str]
    sessions: NotRequired[NonNegativeInt]
    active_runs: NotRequired[NonNegativeInt]


class HealthChecksJson(TypedDict):
    """State of the server's database, model and background work."""

    state_db: HealthCheckJson
    model: HealthCheckJson
    background_queues: HealthCheckJson


class ReadinessPartsJson(TypedDict):
    """Health of the server, part by part."""

    status: Literal["ok", "degraded"]
    checks: HealthChecksJson


class DetailedHealthJson(HealthJson):
    """Health of the server with its parts."""

    readiness: ReadinessPartsJson
    gateway_state: Literal["running", "draining"]
    platforms: dict[str, object]
    active_agents: NonNegativeInt
    gateway_busy: bool
    gateway_drainable: bool
    exit_reason: None
    updated_at: IsoTime
    uptime_seconds: NonNegativeInt


class ModelJson(TypedDict):
    """A model that can be named in a request."""

    id: str
    object: Literal["model"]
    created: int
    owned_by: str
    permission: list[AnyJson]
    root: str
    parent: str | None


class ModelsJson(TypedDict):
    """List of the models that can be named in a request."""

    object: Literal["list"]
    data: list[ModelJson]


class EndpointJson(TypedDict):
    """A route of this server."""

    method: str
    path: str


class AuthNeededJson(TypedDict):
    """Kind of authentication, and whether the server requires it."""

    type: Literal["bearer"]
    required: bool


class RuntimeJson(TypedDict):
    """Location of the agent and its tools."""

    mode: Literal["server"]
    tool_execution: Literal["server"]
    split_runtime: bool
    description: str


class CapabilitiesJson(TypedDict):
    """Features that a client can detect."""

    object: str
    platform: str
    model: str
    auth: AuthNeededJson
    runtime: RuntimeJson
    features: Annotated[dict[str, bool | str], "true, or the name of a header"]
    endpoints: dict[str, EndpointJson]


# --- sessions and messages ------------------------------------------------------------------------------------------


class ContentPartJson(TypedDict):
    """Text or an image."""

    type: Annotated[str, "text, input_text, output_text, image_url or input_image"]
    text: NotRequired[str]
    image_url: NotRequired[object]


Content: TypeAlias = str | list[ContentPartJson]


class UsageJson(TypedDict):
    """Number of tokens of a turn."""

    input_tokens: NonNegativeInt
    output_tokens: NonNegativeInt
    total_tokens: NonNegativeInt


class SessionJson(TypedDict):
    """A chat, without its system prompt."""

    object: str
    id: str
    title: str | None
    created_at: IsoTime
    updated_at: IsoTime
    message_count: NonNegativeInt
    started_at: UnixTime
    ended_at: float | None
    end_reason: str | None
    last_active: UnixTime
    source: str
    model: str | None
    preview: str | None
    tool_call_count: NonNegativeInt
    input_tokens: NonNegativeInt
    output_tokens: NonNegativeInt
    parent_session_id: Annotated[str | None, "id of the chat that it was copied from"]
    has_system_prompt: bool
    pinned: bool
    archived: bool


class SessionAnswerJson(SessionJson):
    """A chat: its members at the top level and, again, as an object."""

    session: SessionJson


class SessionPageJson(TypedDict):
    """A page of chats, most recently used first."""

    sessions: list[SessionJson]
    object: Literal["list"]
    limit: NonNegativeInt
    offset: NonNegativeInt
    has_more: bool
    total: NonNegativeInt


class FunctionCallJson(TypedDict):
    """A function and its arguments as JSON text."""

    name: str
    arguments: str


class ToolCallJson(TypedDict):
    """A tool call in the format of OpenAI."""

    id: str
    type: Literal["function"]
    function: FunctionCallJson


class MessageJson(TypedDict):
    """A stored message of a chat."""

    id: str
    session_id: str
    role: Literal["user", "assistant", "tool", "system"]
    content: Content
    created_at: IsoTime
    timestamp: UnixTime
    run_id: NotRequired[str]
    tool_calls: NotRequired[list[ToolCallJson]]
    tool_call_id: NotRequired[str]
    tool_name: NotRequired[str]
    finish_reason: NotRequired[str]
    reasoning: NotRequired[str]
    usage: NotRequired[UsageJson]


class MessageRowJson(MessageJson):
    """A message and its position."""

    row_id: Annotated[int, "position in the chat, from 1 on"]


class PaginationJson(TypedDict):
    """Position of a page of messages."""

    limit: NonNegativeInt
    offset: NonNegativeInt
    order: Literal["oldest", "latest"]
    returned: NonNegativeInt


class MessagesJson(TypedDict):
    """Messages of a chat, oldest first."""

    session_id: str
    messages: list[MessageRowJson]
    pagination: NotRequired[PaginationJson]


class HitContextJson(TypedDict):
    """A message next to a search result."""

    role: str
    content: str


class HitJson(TypedDict):
    """A message that matches the search."""

    id: str
    session_id: str
    role: str
    snippet: str
    timestamp: UnixTime
    tool_name: str | None
    source: str
    model: str | None
    session_started: UnixTime
    session_title: str | None
    context: list[HitContextJson]


class HitsJson(TypedDict):
    """Search results."""

    query: str
    count: NonNegativeInt
    results: list[HitJson]


class ForkJson(TypedDict, total=False):
    """Properties of a copied chat."""

    id: str | None
    session_id: Annotated[str | None, "alias of `id`"]
    title: str | None


class NewSessionJson(ForkJson, total=False):
    """Properties of a new chat."""

    model: str | None
    system_prompt: str | None


class SessionChangeJson(TypedDict, total=False):
    """Properties of a chat that can be changed."""

    title: str | None
    end_reason: str | None
    pinned: bool
    archived: bool


# --- management -----------------------------------------------------------------------------------------------------


class ConfigJson(TypedDict):
    """Configuration of the agent."""

    model: str
    provider: str
    api_mode: str
    base_url: str
    config: Annotated[Mapping[str, object], "the part of the file that clients may read"]


class ConfigChangeJson(TypedDict, total=False):
    """Members of the configuration to change."""

    model: str
    provider: str
    base_url: str


class ConfigChangedJson(TypedDict):
    """Configuration after the change."""

    ok: Literal[True]
    model: str
    provider: str
    base_url: str


class MemoryListJson(TypedDict):
    """A list of notes."""

    target: NoteTarget
    entries: list[str]
    entry_count: NonNegativeInt
    usage: Annotated[str, "12% - 264/2,200 chars"]


class MemoryJson(TypedDict):
    """The requested lists of notes. If one list was requested, its members are at the top level as well."""

    targets: list[MemoryListJson]
    target: NotRequired[NoteTarget]
    entries: NotRequired[list[str]]
    entry_count: NotRequired[NonNegativeInt]
    usage: NotRequired[str]


class NoteJson(TypedDict):
    """A note to add."""

    target: NoteTarget
    content: str


class NoteChangeJson(NoteJson):
    """Replacement for the note that contains the given text."""

    old_text: str


class NoteRemovalJson(TypedDict):
    """Removal of the note that contains the given text."""

    target: NoteTarget
    old_text: str


class MemoryChangedJson(TypedDict):
    """Size of a list of notes after a change."""

    success: Literal[True]
    target: NoteTarget
    entry_count: NonNegativeInt
    usage: str
    message: str


class MemoryRefusedJson(TypedDict):
    """Reason why no note was changed."""

    success: Literal[False]
    error: str
    current_entries: NotRequired[list[str]]
    matches: NotRequired[list[str]]
    usage: NotRequired[str]


class SkillRowJson(TypedDict):
    """Summary of a skill."""

    name: str
    description: str
    category: str | None


class SkillsJson(TypedDict):
    """The agent's skills."""

    success: Literal[True]
    skills: list[SkillRowJson]
    categories: list[str]
    count: NonNegativeInt
    hint: str


class SkillRowsJson(TypedDict):
    """The agent's skills in OpenAI's list format."""

    object: Literal["list"]
    data: list[SkillRowJson]


class SkillJson(TypedDict):
    """A skill or one of its files, or an error if there is none."""

    success: bool
    error: NotRequired[str]
    available_skills: NotRequired[list[str]]
    name: NotRequired[str]
    description: NotRequired[str]
    category: NotRequired[str | None]
    tags: NotRequired[list[str]]
    related_skills: NotRequired[list[str]]
    content: NotRequired[str]
    path: NotRequired[str]
    linked_files: NotRequired[object]
    file: NotRequired[str]
    is_binary: NotRequired[bool]
    file_type: NotRequired[str]


class NotImplementedHereJson(TypedDict):
    """An operation that is not supported, with the alternative."""

    error: str
    detail: str


class ToolsetJson(TypedDict):
    """A group of tools that are enabled together."""

    name: str
    label: str
    description: str
    enabled: bool
    configured: bool
    tools: list[str]
    descriptions: dict[str, str]


class ToolsetsJson(TypedDict):
    """List of the toolsets of the agent and of its MCP servers, without those that are not offered."""

    object: Literal["list"]
    platform: Literal["api_server"]
    data: list[ToolsetJson]


class AvailableModelJson(TypedDict):
    """A model of a provider."""

    id: str
    description: str


class ProviderJson(TypedDict):
    """A provider of models."""

    id: str
    label: str
    aliases: list[str]
    authenticated: bool


class AvailableModelsJson(TypedDict):
    """Models of a provider."""

    provider: str
    models: list[AvailableModelJson]
    providers: list[ProviderJson]


class ModelOptionsJson(TypedDict):
    """Models that can be chosen, and the current one."""

    providers: list[dict[str, object]]
    provider: str
    model: str


class KeyReloadedJson(TypedDict):
    """Result of loading the API key from the files, after a replacement or on request."""

    ok: Literal[True]
    changed: bool


class McpToolJson(TypedDict):
    """A tool of an MCP server."""

    name: str
    asks: bool


class McpServerRowJson(TypedDict):
    """State of an MCP server. Its address and credentials are not included."""

    name: str
    transport: Literal["http", "stdio"] | None
    state: str
    problem: str | None
    tools: list[McpToolJson]
    left_out: NonNegativeInt


class McpServersJson(TypedDict):
    """The MCP servers of the configuration, also those that are off or not usable."""

    servers: list[McpServerRowJson]
