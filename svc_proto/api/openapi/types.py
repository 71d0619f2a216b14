"""What the API is sent and answers, as types: for its document (`api.says`). The writers are beside the routes.

What clients send is `total=False`: all of it may be left out.
"""
# Without `from __future__ import annotations`: see `schema.json_schema`.

from typing import Annotated, Literal, NotRequired, TypeAlias, TypedDict

from svc_proto.schema.json_schema import schema_keywords

Anything: TypeAlias = object
Iso: TypeAlias = Annotated[str, schema_keywords(format="date-time")]
Unix: TypeAlias = Annotated[float, "Unix seconds"]
Natural: TypeAlias = Annotated[int, schema_keywords(minimum=0)]

# --- refusals -------------------------------------------------------------------------------------------------------


class Wrong(TypedDict):
    """An error in the format of OpenAI."""

    message: str
    type: Literal["invalid_request_error", "rate_limit_error", "server_error"]
    param: NotRequired[Annotated[str | None, "name of the invalid member"]]
    code: str | None


class Refusal(TypedDict):
    """A refusal in the format of OpenAI."""

    error: Wrong


class ShortRefusal(TypedDict):
    """A refusal of the management routes."""

    error: str


# --- status ---------------------------------------------------------------------------------------------------------


class Health(TypedDict):
    """Answer of a running server."""

    status: Literal["ok", "degraded"]
    platform: str
    version: str


class Check(TypedDict):
    """State of one part of the server."""

    status: Literal["ok", "degraded"]
    detail: NotRequired[str]
    sessions: NotRequired[Natural]
    active_runs: NotRequired[Natural]


class Checks(TypedDict):
    """State of each part of the server."""

    state_db: Check
    model: Check
    background_queues: Check


class Parts(TypedDict):
    """Health of the server, part by part."""

    status: Literal["ok", "degraded"]
    checks: Checks


class DetailedHealth(Health):
    """Health of the server with its parts."""

    readiness: Parts
    gateway_state: Literal["running", "draining"]
    platforms: dict[str, object]
    active_agents: Natural
    gateway_busy: bool
    gateway_drainable: bool
    exit_reason: None
    updated_at: Iso
    uptime_seconds: Natural


class Model(TypedDict):
    """A model that can be named in a request."""

    id: str
    object: Literal["model"]
    created: int
    owned_by: str
    permission: list[Anything]
    root: str
    parent: str | None


class Models(TypedDict):
    """List of all models."""

    object: Literal["list"]
    data: list[Model]


class Endpoint(TypedDict):
    """A route of this server."""

    method: str
    path: str


class AuthNeeded(TypedDict):
    """Whether a key is required."""

    type: Literal["bearer"]
    required: bool


class Runtime(TypedDict):
    """Where the agent and its tools run."""

    mode: Literal["server"]
    tool_execution: Literal["server"]
    split_runtime: bool
    description: str


class Capabilities(TypedDict):
    """Features that a client can detect."""

    object: str
    platform: str
    model: str
    auth: AuthNeeded
    runtime: Runtime
    features: Annotated[dict[str, bool | str], "true, or the name of a header"]
    endpoints: dict[str, Endpoint]


# --- sessions and messages ------------------------------------------------------------------------------------------


class ContentPart(TypedDict):
    """Text or an image."""

    type: Annotated[str, "text, input_text, output_text, image_url or input_image"]
    text: NotRequired[str]
    image_url: NotRequired[object]


Content: TypeAlias = str | list[ContentPart]


class Usage(TypedDict):
    """Number of tokens of a turn."""

    input_tokens: Natural
    output_tokens: Natural
    total_tokens: Natural


class Session(TypedDict):
    """A chat. Its system prompt never leaves the server."""

    object: str
    id: str
    title: str | None
    created_at: Iso
    updated_at: Iso
    message_count: Natural
    started_at: Unix
    ended_at: float | None
    end_reason: str | None
    last_active: Unix
    source: str
    model: str | None
    preview: str | None
    tool_call_count: Natural
    input_tokens: Natural
    output_tokens: Natural
    parent_session_id: Annotated[str | None, "id of the chat that it was copied from"]
    has_system_prompt: bool
    pinned: bool
    archived: bool


class SessionAnswer(Session):
    """A chat: its members at the top level and, again, as an object."""

    session: Session


class SessionPage(TypedDict):
    """A page of chats, most recently used first."""

    sessions: list[Session]
    object: Literal["list"]
    limit: Natural
    offset: Natural
    has_more: bool
    total: Natural


class FunctionCall(TypedDict):
    """A function and its arguments as JSON text."""

    name: str
    arguments: str


class ToolCall(TypedDict):
    """A tool call in the format of OpenAI."""

    id: str
    type: Literal["function"]
    function: FunctionCall


class Message(TypedDict):
    """A stored message of a chat."""

    id: str
    session_id: str
    role: Literal["user", "assistant", "tool", "system"]
    content: Content
    created_at: Iso
    timestamp: Unix
    run_id: NotRequired[str]
    tool_calls: NotRequired[list[ToolCall]]
    tool_call_id: NotRequired[str]
    tool_name: NotRequired[str]
    finish_reason: NotRequired[str]
    reasoning: NotRequired[str]
    usage: NotRequired[Usage]


class Pagination(TypedDict):
    """Position of the page."""

    limit: Natural
    offset: Natural
    order: Literal["oldest", "latest"]
    returned: Natural


class Messages(TypedDict):
    """Messages of a chat, oldest first."""

    session_id: str
    messages: list[Message]
    pagination: NotRequired[Pagination]


class HitContext(TypedDict):
    """A message next to a search result."""

    role: str
    content: str


class Hit(TypedDict):
    """A message that matches the search."""

    id: str
    session_id: str
    role: str
    snippet: str
    timestamp: Unix
    tool_name: str | None
    source: str
    model: str | None
    session_started: Unix
    session_title: str | None
    context: list[HitContext]


class Hits(TypedDict):
    """Search results."""

    query: str
    count: Natural
    results: list[Hit]


class NewSession(TypedDict, total=False):
    """Properties of a new chat."""

    id: str | None
    session_id: Annotated[str | None, "alias of `id`"]
    title: str | None
    model: str | None
    system_prompt: str | None


class Fork(TypedDict, total=False):
    """Properties of a copied chat."""

    id: str | None
    session_id: Annotated[str | None, "alias of `id`"]
    title: str | None


class SessionChange(TypedDict, total=False):
    """Properties of a chat that can be changed."""

    title: str | None
    end_reason: str | None
    pinned: bool
    archived: bool


class SessionQuery(TypedDict, total=False):
    """Filter and page of chats."""

    limit: Annotated[int, "1 to 200; 50 if absent or not a number"]
    offset: Annotated[int, "number of chats to skip"]
    source: Annotated[str, "only chats of this source"]
    include_children: Annotated[bool, "include the chats of sub-agents"]
    include_archived: bool


class MessageQuery(TypedDict, total=False):
    """Page of messages."""

    limit: int
    offset: int
    order: Annotated[str, "latest: count pages from the end"]


class SearchQuery(TypedDict):
    """Search words and page."""

    q: Annotated[str, "words to search for"]
    limit: NotRequired[Natural]
    offset: NotRequired[Natural]


# --- management -----------------------------------------------------------------------------------------------------


class Config(TypedDict):
    """Configuration of the agent."""

    model: str
    provider: str
    api_mode: str
    base_url: str
    config: Annotated[dict[str, object], "the part of the file that clients may read"]


class ConfigChange(TypedDict, total=False):
    """Configuration that can be changed."""

    model: str
    provider: str
    base_url: str


class ConfigChanged(TypedDict):
    """Configuration after the change."""

    ok: Literal[True]
    model: str
    provider: str
    base_url: str


class MemoryList(TypedDict):
    """A list of notes."""

    target: Literal["memory", "user"]
    entries: list[str]
    entry_count: Natural
    usage: Annotated[str, "12% - 264/2,200 chars"]


class Memory(TypedDict):
    """All lists of notes. If one list was requested, its members are at the top level as well."""

    targets: list[MemoryList]
    target: NotRequired[Literal["memory", "user"]]
    entries: NotRequired[list[str]]
    entry_count: NotRequired[Natural]
    usage: NotRequired[str]


class MemoryQuery(TypedDict, total=False):
    """Name of the list."""

    target: Literal["all", "memory", "user"]


class Note(TypedDict):
    """A note to add."""

    target: Literal["memory", "user"]
    content: str


class NoteChange(Note):
    """Replacement for the note that contains the given text."""

    old_text: str


class NoteGone(TypedDict):
    """Removal of the note that contains the given text."""

    target: Literal["memory", "user"]
    old_text: str


class MemoryChanged(TypedDict):
    """List of notes after the change."""

    success: Literal[True]
    target: Literal["memory", "user"]
    entry_count: Natural
    usage: str
    message: str


class MemoryRefused(TypedDict):
    """Reason why no note was changed."""

    success: Literal[False]
    error: str
    current_entries: NotRequired[list[str]]
    matches: NotRequired[list[str]]
    usage: NotRequired[str]


class SkillRow(TypedDict):
    """Summary of a skill."""

    name: str
    description: str
    category: str | None


class Skills(TypedDict):
    """The agent's skills."""

    success: Literal[True]
    skills: list[SkillRow]
    categories: list[str]
    count: Natural
    hint: str


class SkillRows(TypedDict):
    """The agent's skills in OpenAI's list format."""

    object: Literal["list"]
    data: list[SkillRow]


class Skill(TypedDict):
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


class SkillQuery(TypedDict, total=False):
    """File of a skill."""

    file_path: Annotated[str, "a file of the skill"]


class SkillsQuery(TypedDict, total=False):
    """Filter of skills."""

    category: str


class NotImplementedHere(TypedDict):
    """An operation that is not supported, with the alternative."""

    error: str
    detail: str


class Toolset(TypedDict):
    """A group of tools that are enabled together."""

    name: str
    label: str
    description: str
    enabled: bool
    configured: bool
    tools: list[str]
    descriptions: dict[str, str]


class Toolsets(TypedDict):
    """List of all toolsets."""

    object: Literal["list"]
    platform: Literal["api_server"]
    data: list[Toolset]


class AvailableModel(TypedDict):
    """A model of a provider."""

    id: str
    description: str


class Provider(TypedDict):
    """A provider of models."""

    id: str
    label: str
    aliases: list[str]
    authenticated: bool


class AvailableModels(TypedDict):
    """Models of a provider."""

    provider: str
    models: list[AvailableModel]
    providers: list[Provider]


class AvailableQuery(TypedDict, total=False):
    """Name of the provider."""

    provider: str


class KeyReloaded(TypedDict):
    """Whether the key has changed."""

    ok: Literal[True]
    changed: bool


class McpTool(TypedDict):
    """A tool of an MCP server."""

    name: str
    asks: bool


class McpServerRow(TypedDict):
    """State of an MCP server. Its address and credentials are not included."""

    name: str
    transport: Literal["http", "stdio"] | None
    state: str
    problem: str | None
    tools: list[McpTool]
    left_out: Natural


class McpServers(TypedDict):
    """The MCP servers that the agent uses."""

    servers: list[McpServerRow]
