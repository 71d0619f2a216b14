"""Interface between the API and its agents: turns, events and the host.

    outcome = yield from agent.run(turn, host)

An agent is a flow that emits events to the host in order. It is stopped by cancelling its task, at any wait.
"""

from collections.abc import Mapping
from typing import Protocol, TypeAlias

from attrs import field

from svc_proto.basics.brand import Brand
from svc_proto.basics.fast_frozen import fast_frozen
from svc_proto.engine.flow import Flow
from svc_proto.service_clients.authority import OWNER, Authority

__all__ = [
    "Agent",
    "ApprovalRequested",
    "ApprovalResolved",
    "ApprovalChoice",
    "ModelCallFinished",
    "ModelCallStarted",
    "ModelEndpoint",
    "MemoryChange",
    "MemoryChanged",
    "TurnOutcome",
    "ReasoningDelta",
    "StoredPicture",
    "TextDelta",
    "ToolCall",
    "ToolCallFinished",
    "ToolCallPending",
    "ToolCallStarted",
    "Turn",
    "TurnEvent",
    "AgentHost",
    "EphemeralText",
    "TextRetracted",
    "TurnNotice",
]

NO_EXTRA: Mapping[str, object] = {}
Content: TypeAlias = "str | tuple[Mapping[str, object], ...]"  # text, or content parts of chat completions


# --- turns --------------------------------------------------------------------------------------------------------


@fast_frozen(kw_only=True)
class ModelEndpoint:
    """An OpenAI-compatible endpoint: `POST {base_url}/chat/completions`."""

    base_url: str
    model: str
    api_key: str = field(default="", repr=False)
    context: int | None = None  # context size in tokens, if known
    source: str = field(default="", eq=False)  # setting that names the address, for error texts; empty: unknown


@fast_frozen(kw_only=True)
class Turn:
    """A user message and the context for the model."""

    session_id: str
    run_id: str
    prompt: Content  # empty: the history ends with the message to answer
    history: tuple[Mapping[str, object], ...] = ()  # earlier messages in the chat-completions form, whole
    client_history: bool = False  # a client sent the history: others may have written any part of it
    system: str = ""  # the whole system prompt; the agent appends only what its tools need
    model: ModelEndpoint | None = None  # None: the built-in agent answers
    apps: tuple[str, ...] = ()  # packages that the task names: acts elsewhere need consent; empty: all
    max_calls: int = 90  # model calls in this turn
    max_tokens: int | None = None  # of one answer
    options: Mapping[str, object] = field(factory=dict)  # further members of each request to the model
    # Header fields for local routes of the relay if this host's operator sent the message; else None.
    operator: tuple[tuple[bytes, bytes], ...] | None = field(default=None, repr=False)
    tools: tuple[Mapping[str, object], ...] | None = None  # tools that the client runs; None: the agent's own
    authority: Authority = OWNER  # of the principal that started the turn
    brand: Brand | None = None  # names of its client, for media markers; None: those of the server


# --- events -------------------------------------------------------------------------------------------------------


@fast_frozen(kw_only=True)
class ToolCall:
    """A tool call of the model. `args` is always an object; `{}` if the arguments could not be parsed as one."""

    id: str
    name: str
    args: Mapping[str, object]
    arguments: str = "{}"  # as the model wrote them
    preview: str | None = None  # one line for people, secrets redacted
    extra: Mapping[str, object] = field(factory=dict)  # further members of the call, which go back to the model


@fast_frozen(kw_only=True)
class StoredPicture:
    """A picture that is stored with the chat, since its media token is valid for a limited time only (SPEC.md)."""

    token: str = field(repr=False)  # media token of the relay, by which messages name the picture
    kind: str  # media type, such as `image/png`
    data: bytes = field(repr=False)


@fast_frozen
class TextDelta:
    """A piece of the answer, never empty."""

    text: str


@fast_frozen
class EphemeralText(TextDelta):
    """A piece of the answer that is sent to the turn's present readers and is not stored."""


@fast_frozen
class ReasoningDelta:
    """A piece of the model's reasoning, never empty."""

    text: str


@fast_frozen
class TurnNotice(ReasoningDelta):
    """A line for readers about the turn: what is waited for, or what was left out. Shown and stored as reasoning."""


@fast_frozen
class TextRetracted:
    """Retraction of the last `length` characters of the answer, since they are reasoning or a repetition."""

    length: int


@fast_frozen
class ModelCallStarted:
    """The model is being called: counts towards `api_calls`."""


@fast_frozen
class ModelCallFinished:
    """A model's answer is complete, or was cut or stopped, as for repetition. Its token counts may be estimates."""

    input_tokens: int = 0
    output_tokens: int = 0


@fast_frozen
class ToolCallPending:
    """A call needs an approval that is not stored. Emitted before the approval request."""

    call: ToolCall


@fast_frozen
class ToolCallStarted:
    """A call starts, or has failed before it could run. Parallel calls may all start before the first finishes.

    It is not emitted if `ToolCallPending` came first and no approval followed.
    """

    call: ToolCall


@fast_frozen(kw_only=True)
class ToolCallFinished:
    """A call has ended; emitted after its `store_result`. `error` is None unless it failed."""

    call: ToolCall
    output: str  # for the model
    preview: str | None = None  # its first line, shortened, secrets redacted
    seconds: float = 0.0
    error: str | None = None


@fast_frozen(kw_only=True)
class MemoryChange:
    """A change of the agent's memory: a note added, removed or replaced."""

    target: str  # `memory` or `user`
    count: int  # notes in the list after the change
    added: str | None = None
    removed: str | None = None


@fast_frozen
class MemoryChanged:
    """A call has changed the agent's memory."""

    call: ToolCall
    change: MemoryChange


@fast_frozen(kw_only=True)
class ApprovalRequested:
    """Request for the user's approval of a call, or a question of the agent (wire api 6.3 `approval.request`)."""

    call: ToolCall
    command: str  # redacted
    description: str
    pattern: str  # the pattern that "session" and "always" allow
    choices: tuple[str, ...] = ("once", "session", "always", "deny")
    is_question: bool = False  # a question of the agent: `once` means yes, and the answer may be a text
    expires_at: float | None = None  # epoch seconds, set by the host


@fast_frozen(kw_only=True)
class ApprovalResolved:
    """An approval request was answered; `choice` is `deny` also if there was no answer in time."""

    call: ToolCall
    choice: str
    resolved: int = 1


TurnEvent: TypeAlias = (
    TextDelta
    | ReasoningDelta
    | TextRetracted
    | ModelCallStarted
    | ModelCallFinished
    | ToolCallPending
    | ToolCallStarted
    | ToolCallFinished
    | MemoryChanged
    | ApprovalRequested
    | ApprovalResolved
)
ApprovalChoice: TypeAlias = str  # once, session, always or deny; of a question also a text


# --- host ---------------------------------------------------------------------------------------------------------


class AgentHost(Protocol):
    """Host of a running agent; the host cancels the agent's task to stop it. Its methods do not raise."""

    @property
    def reader_behind(self) -> bool:
        """Report whether a reader has much unread data: the agent must then call `wait_drained` before it reads on."""
        ...

    @property
    def can_request_approval(self) -> bool:
        """Report whether approval requests can be answered in this turn."""
        ...

    def emit(self, event: TurnEvent) -> None:
        """Process an event of the turn: publish it to the readers, or use it in the host, as for counts of tokens."""
        ...

    def wait_drained(self) -> Flow[None]:
        """Wait until the readers have caught up, or have disconnected."""
        ...

    def store_calls(
        self, text: str, reasoning: str, calls: tuple[ToolCall, ...], extra: Mapping[str, object] = NO_EXTRA
    ) -> Flow[None]:
        """Store the assistant row of one model answer with tool calls, before any of them runs.

        `extra`: unknown members of the model's message, which go back to its server.
        """
        ...

    def store_result(self, call: ToolCall, output: str, pictures: tuple[StoredPicture, ...] = ()) -> Flow[None]:
        """Store the tool row of one call and its pictures, before `ToolCallFinished` is emitted."""
        ...

    def request_approval(self, event: ApprovalRequested) -> Flow[ApprovalChoice]:
        """Publish an approval request, wait for its answer, publish the choice, and return it or the answer's text.

        Without an answer in time the choice is `deny`. A host that takes no requests returns `deny` at once.
        """
        ...


@fast_frozen(kw_only=True)
class TurnOutcome:
    """End of a turn that was not stopped.

    `finish`: `stop`; `length`, cut by a limit of tokens, text or calls, by a content filter, or for repetition;
    `tool_calls`, if the client is to run them; `error`, with a text for people in `error`.
    """

    finish: str = "stop"
    calls: tuple[ToolCall, ...] = ()  # for the client
    error: str | None = None
    reason: str | None = None  # for people: why a turn that is no failure was ended early
    unfinished: tuple[str, ...] = ()  # for people: acts without success, and what was left open
    code: str | None = None  # machine-readable: `upstream_error`, `upstream_timeout`, `agent_error`
    # Members of the last answer besides its content and calls, such as reasoning by its name and signatures. They go
    # back to the model with the message.
    extra: Mapping[str, object] = field(factory=dict)


class Agent(Protocol):
    """Protocol of an agent that answers turns, such as with a model and tools, or by fixed commands."""

    def run(self, turn: Turn, host: AgentHost) -> Flow[TurnOutcome]:
        """Answer one turn, with events to the host; return how it ended."""
        ...
