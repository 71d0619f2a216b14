"""What an agent is asked, what it tells while it works, and who listens: the seam between the API and its agents.

    outcome = yield from agent.run(turn, host)

An agent is a flow. It tells the host what happens, in order, and has the host keep what must outlive a crash before
it tells of it. It is stopped by cancelling its task, at any wait; the host then knows what was said so far.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, TypeAlias

from attrs import field, frozen

from svc_proto.engine.flow import Flow

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
    "TextDelta",
    "ToolCall",
    "ToolCallFinished",
    "ToolCallPending",
    "ToolCallStarted",
    "Turn",
    "TurnEvent",
    "AgentHost",
    "EphemeralText",
]

Content: TypeAlias = "str | tuple[Mapping[str, object], ...]"  # text, or content parts of the chat-completions kind


# --- what is asked ------------------------------------------------------------------------------------------------


@frozen(kw_only=True)
class ModelEndpoint:
    """An OpenAI-compatible endpoint: `POST {base_url}/chat/completions`."""

    base_url: str
    model: str
    api_key: str = field(default="", repr=False)
    context: int | None = None  # tokens that the model can hold, where it is known


@frozen(kw_only=True)
class Turn:
    """One user message and all that the model is to see with it."""

    session_id: str
    run_id: str
    prompt: Content  # empty: the history ends with what is to be answered
    history: tuple[Mapping[str, object], ...] = ()  # earlier messages in the chat-completions form, whole
    system: str = ""  # the whole system prompt; the agent adds nothing but what its tools need
    model: ModelEndpoint | None = None  # None: the built-in agent answers
    max_calls: int = 90  # of the model, in this turn
    max_tokens: int | None = None  # of one answer
    options: Mapping[str, object] = field(factory=dict)  # more members of each request to the model
    # Header fields for local routes of the relay, where this host's operator asks; None: it is somebody else.
    operator: tuple[tuple[bytes, bytes], ...] | None = field(default=None, repr=False)
    tools: tuple[Mapping[str, object], ...] | None = None  # the client's, which it carries out; None: the agent's own


# --- what is told -------------------------------------------------------------------------------------------------


@frozen(kw_only=True)
class ToolCall:
    """A call that the model wants. `args` is always an object; what could not be parsed as one is `{}`."""

    id: str
    name: str
    args: Mapping[str, object]
    arguments: str = "{}"  # as the model wrote them
    preview: str | None = None  # one line for people, secrets redacted


@frozen
class TextDelta:
    """A piece of the answer, never empty."""

    text: str


@frozen
class EphemeralText(TextDelta):
    """A piece of the answer for whoever reads it now: it is not stored, and nobody finds it later."""


@frozen
class ReasoningDelta:
    """A piece of the model's reasoning, never empty."""

    text: str


@frozen
class ModelCallStarted:
    """The model is being called: counts towards `api_calls`."""


@frozen
class ModelCallFinished:
    """The model's answer is complete, and this is what it cost."""

    input_tokens: int = 0
    output_tokens: int = 0


@frozen
class ToolCallPending:
    """A call waits, for an approval say. Told only if it really waits."""

    call: ToolCall


@frozen
class ToolCallStarted:
    """A call runs. Parallel calls may all start before the first finishes."""

    call: ToolCall


@frozen(kw_only=True)
class ToolCallFinished:
    """A call is over; its row is stored. `error` is None unless it failed."""

    call: ToolCall
    output: str  # what the model gets
    preview: str | None = None  # its first line, shortened, secrets redacted
    seconds: float = 0.0
    error: str | None = None


@frozen(kw_only=True)
class MemoryChange:
    """What became of the agent's memory: a note added, removed, or one in the place of another."""

    target: str  # `memory` or `user`
    count: int  # notes that it holds now
    added: str | None = None
    removed: str | None = None


@frozen
class MemoryChanged:
    """A call has changed the memory: told, so that it can be seen and undone."""

    call: ToolCall
    change: MemoryChange


@frozen(kw_only=True)
class ApprovalRequested:
    """Someone has to allow a call (wire api 6.3 `approval.request`)."""

    call: ToolCall
    command: str  # redacted
    description: str
    pattern: str  # what "session" and "always" would allow from now on
    choices: tuple[str, ...] = ("once", "session", "always", "deny")


@frozen(kw_only=True)
class ApprovalResolved:
    """Someone did, or denied, or nobody in time (then `choice` is `deny`)."""

    call: ToolCall
    choice: str
    resolved: int = 1


TurnEvent: TypeAlias = (
    TextDelta
    | ReasoningDelta
    | ModelCallStarted
    | ModelCallFinished
    | ToolCallPending
    | ToolCallStarted
    | ToolCallFinished
    | MemoryChanged
    | ApprovalRequested
    | ApprovalResolved
)
ApprovalChoice: TypeAlias = str  # once, session, always or deny


# --- who listens --------------------------------------------------------------------------------------------------


class AgentHost(Protocol):
    """Whoever runs an agent. Nothing here raises; an agent that is no longer wanted is cancelled."""

    @property
    def reader_behind(self) -> bool:
        """A reader is behind: read no more from where the answer comes until `wait_drained`."""
        ...

    @property
    def can_request_approval(self) -> bool:
        """Whether whoever began the turn can be asked something."""
        ...

    def emit(self, event: TurnEvent) -> None:
        """An event of the turn has happened; it is passed on to whoever reads."""
        ...

    def wait_drained(self) -> Flow[None]:
        """Wait until the readers have caught up, or have gone."""
        ...

    def store_calls(self, text: str, reasoning: str, calls: tuple[ToolCall, ...]) -> Flow[None]:
        """Store the assistant row of one model answer that calls tools, before any of them runs."""
        ...

    def store_result(self, call: ToolCall, output: str) -> Flow[None]:
        """Store the tool row of one call, before `ToolCallFinished` is told."""
        ...

    def request_approval(self, asked: ApprovalRequested) -> Flow[ApprovalChoice]:
        """Tell of the question, wait for the answer, tell of it, and return it; `deny` when nobody answers in time."""
        ...


@frozen(kw_only=True)
class TurnOutcome:
    """How a turn ended, when it was not stopped. What was said was told.

    `finish`: `stop`; `length`, cut by a limit of tokens, text or calls; `tool_calls`, where they are the client's to
    make; `error`, with a text for people in `error`.
    """

    finish: str = "stop"
    calls: tuple[ToolCall, ...] = ()  # for the client
    error: str | None = None
    code: str | None = None  # of the error, a machine word: `upstream_error`, `upstream_timeout`, `agent_error`


class Agent(Protocol):
    """What answers the turns of a chat: a model with tools, or the built-in one."""

    def run(self, turn: Turn, host: AgentHost) -> Flow[TurnOutcome]:
        """Answer one turn."""
        ...
