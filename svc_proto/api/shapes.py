"""What the API is sent and answers, as types: for its document (`api.says`). The writers are beside the routes.

What clients send is `total=False`: all of it may be left out.
"""
# Without `from __future__ import annotations`: see `schema.json_schema`.

from typing import Annotated, Literal, NotRequired, TypeAlias, TypedDict

from svc_proto.schema.json_schema import rule

Anything: TypeAlias = object
Iso: TypeAlias = Annotated[str, rule(format="date-time")]
Unix: TypeAlias = Annotated[float, "Unix seconds"]
Natural: TypeAlias = Annotated[int, rule(minimum=0)]

# --- refusals -------------------------------------------------------------------------------------------------------


class Wrong(TypedDict):
    """What is wrong, as OpenAI says it."""

    message: str
    type: Literal["invalid_request_error", "rate_limit_error", "server_error"]
    param: NotRequired[Annotated[str | None, "the member at fault"]]
    code: str | None


class Refusal(TypedDict):
    """A refusal."""

    error: Wrong


class ShortRefusal(TypedDict):
    """A refusal of the management routes."""

    error: str


# --- status ---------------------------------------------------------------------------------------------------------


class Health(TypedDict):
    """The server answers."""

    status: Literal["ok", "degraded"]
    platform: str
    version: str


class Check(TypedDict):
    """How a part of the server is."""

    status: Literal["ok", "degraded"]
    detail: NotRequired[str]
    sessions: NotRequired[Natural]
    active_runs: NotRequired[Natural]


class Checks(TypedDict):
    """The parts of the server."""

    state_db: Check
    model: Check
    background_queues: Check


class Parts(TypedDict):
    """How the server is, part by part."""

    status: Literal["ok", "degraded"]
    checks: Checks


class DetailedHealth(Health):
    """The server answers, and how it is."""

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
    """All of them."""

    object: Literal["list"]
    data: list[Model]


class Endpoint(TypedDict):
    """A route of this server."""

    method: str
    path: str


class AuthNeeded(TypedDict):
    """Whether a key has to be shown."""

    type: Literal["bearer"]
    required: bool


class Runtime(TypedDict):
    """Where the agent and its tools run."""

    mode: Literal["server"]
    tool_execution: Literal["server"]
    split_runtime: bool
    description: str


class Capabilities(TypedDict):
    """What clients may look for."""

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
    """Tokens of a turn."""

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
    parent_session_id: Annotated[str | None, "what it was copied from"]
    has_system_prompt: bool
    pinned: bool
    archived: bool


class SessionAnswer(Session):
    """A chat, twice: its members at the top, and as one object."""

    session: Session


class SessionPage(TypedDict):
    """Chats, the last used first."""

    sessions: list[Session]
    object: Literal["list"]
    limit: Natural
    offset: Natural
    has_more: bool
    total: Natural


class FunctionCall(TypedDict):
    """A function and its arguments, which are a text of JSON."""

    name: str
    arguments: str


class ToolCall(TypedDict):
    """A call of a tool, as OpenAI writes it."""

    id: str
    type: Literal["function"]
    function: FunctionCall


class Message(TypedDict):
    """A row of a chat."""

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
    """Which page it is."""

    limit: Natural
    offset: Natural
    order: Literal["oldest", "latest"]
    returned: Natural


class Messages(TypedDict):
    """Rows of a chat, oldest first."""

    session_id: str
    messages: list[Message]
    pagination: NotRequired[Pagination]


class HitContext(TypedDict):
    """A row beside a hit."""

    role: str
    content: str


class Hit(TypedDict):
    """A message in which words were found."""

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
    """What a search has found."""

    query: str
    count: Natural
    results: list[Hit]


class NewSession(TypedDict, total=False):
    """A chat to be made."""

    id: str | None
    session_id: Annotated[str | None, "the same as id"]
    title: str | None
    model: str | None
    system_prompt: str | None


class Fork(TypedDict, total=False):
    """A copy to be made."""

    id: str | None
    session_id: Annotated[str | None, "the same as id"]
    title: str | None


class SessionChange(TypedDict, total=False):
    """What can be changed of a chat."""

    title: str | None
    end_reason: str | None
    pinned: bool
    archived: bool


class SessionQuery(TypedDict, total=False):
    """Which chats."""

    limit: Annotated[int, "1 to 200; what is none counts as 50"]
    offset: Annotated[int, "how many to pass over"]
    source: Annotated[str, "only those that came from there"]
    include_children: Annotated[bool, "those of sub-agents as well"]
    include_archived: bool


class MessageQuery(TypedDict, total=False):
    """Which rows."""

    limit: int
    offset: int
    order: Annotated[str, "latest: pages are counted from the end"]


class SearchQuery(TypedDict):
    """What to look for."""

    q: Annotated[str, "words"]
    limit: NotRequired[Natural]
    offset: NotRequired[Natural]


# --- management -----------------------------------------------------------------------------------------------------


class Config(TypedDict):
    """How the agent is configured."""

    model: str
    provider: str
    api_mode: str
    base_url: str
    config: Annotated[dict[str, object], "the part of the file that clients may see"]


class ConfigChange(TypedDict, total=False):
    """What can be changed of it."""

    model: str
    provider: str
    base_url: str


class ConfigChanged(TypedDict):
    """What is in force now."""

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
    """The lists of notes; where one was asked for, its members are at the top as well."""

    targets: list[MemoryList]
    target: NotRequired[Literal["memory", "user"]]
    entries: NotRequired[list[str]]
    entry_count: NotRequired[Natural]
    usage: NotRequired[str]


class MemoryQuery(TypedDict, total=False):
    """Which list."""

    target: Literal["all", "memory", "user"]


class Note(TypedDict):
    """A note to be added."""

    target: Literal["memory", "user"]
    content: str


class NoteChange(Note):
    """A note to take the place of the one that has this text."""

    old_text: str


class NoteGone(TypedDict):
    """The note that has this text."""

    target: Literal["memory", "user"]
    old_text: str


class MemoryChanged(TypedDict):
    """How a list is now."""

    success: Literal[True]
    target: Literal["memory", "user"]
    entry_count: Natural
    usage: str
    message: str


class MemoryRefused(TypedDict):
    """Why nothing was changed."""

    success: Literal[False]
    error: str
    current_entries: NotRequired[list[str]]
    matches: NotRequired[list[str]]
    usage: NotRequired[str]


class SkillRow(TypedDict):
    """A skill."""

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
    """The same, as a list of OpenAI's."""

    object: Literal["list"]
    data: list[SkillRow]


class Skill(TypedDict):
    """A skill or one of its files; or that there is none."""

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
    """Which file."""

    file_path: Annotated[str, "a file of the skill"]


class SkillsQuery(TypedDict, total=False):
    """Which skills."""

    category: str


class NotImplementedHere(TypedDict):
    """What cannot be done, and what to do instead."""

    error: str
    detail: str


class Toolset(TypedDict):
    """Tools that are switched on together."""

    name: str
    label: str
    description: str
    enabled: bool
    configured: bool
    tools: list[str]
    descriptions: dict[str, str]


class Toolsets(TypedDict):
    """All of them."""

    object: Literal["list"]
    platform: Literal["api_server"]
    data: list[Toolset]


class AvailableModel(TypedDict):
    """A model of a provider."""

    id: str
    description: str


class Provider(TypedDict):
    """Who serves models."""

    id: str
    label: str
    aliases: list[str]
    authenticated: bool


class AvailableModels(TypedDict):
    """What a provider offers."""

    provider: str
    models: list[AvailableModel]
    providers: list[Provider]


class AvailableQuery(TypedDict, total=False):
    """Whose models."""

    provider: str


class KeyReloaded(TypedDict):
    """Whether the files hold another key."""

    ok: Literal[True]
    changed: bool


class McpTool(TypedDict):
    """A tool of a server."""

    name: str
    asks: bool


class McpServerRow(TypedDict):
    """A server as it is; nothing of how it is reached, which may hold secrets."""

    name: str
    transport: Literal["http", "stdio"] | None
    state: str
    problem: str | None
    tools: list[McpTool]
    left_out: Natural


class McpServers(TypedDict):
    """The MCP servers that the agent uses."""

    servers: list[McpServerRow]
