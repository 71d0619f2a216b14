"""Turns, runs and responses as types, for the API's document (`api.says`): what is sent, answered, and told in streams.

The events of a session's own stream are classes already (`schema.chat_events`).
"""
# Without `from __future__ import annotations`: see `schema.json_schema`.

from collections.abc import Mapping
from typing import Annotated, Literal, NotRequired, Required, TypedDict

from svc_proto.api.shapes import Anything, Content, ContentPart, Natural, ToolCall, Unix, Usage
from svc_proto.basics.brand import BRANDS
from svc_proto.schema.json_schema import rule

__all__ = ["COMPLETION_EVENTS", "RESPONSE_EVENTS", "RUN_EVENTS"]


class Attachment(TypedDict, total=False):
    """An image, as older phones send it."""

    contentType: str
    content: Annotated[str, rule(contentEncoding="base64")]


class Turn(TypedDict, total=False):
    """A message to the agent. One of `message`, `input` and `attachments` has to say something."""

    message: Content | None
    input: Content | None
    attachments: list[Attachment]
    system_message: str | None
    instructions: str | None
    personality: Annotated[str | None, "one of the configuration"]
    approvals: Annotated[bool, "the client shows questions and answers them"]


class Answered(TypedDict):
    """The agent's message."""

    id: str
    role: Literal["assistant"]
    content: str


class TurnAnswer(TypedDict):
    """A turn that is over."""

    object: str
    session_id: str
    run_id: str
    message: Answered
    completed: bool
    partial: bool
    interrupted: bool
    usage: Usage
    error: NotRequired[str]


class CompletionMessage(TypedDict):
    """A message of a conversation, as OpenAI has it."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: NotRequired[str | list[ContentPart] | None]
    tool_calls: NotRequired[list[ToolCall] | None]
    tool_call_id: NotRequired[str]


class StreamOptions(TypedDict, total=False):
    """Of a stream."""

    include_usage: bool


class CompletionBody(TypedDict, total=False):
    """As OpenAI has it; what would be left out of the answer is refused."""

    messages: Required[list[CompletionMessage]]
    model: str | None
    stream: bool
    stream_options: StreamOptions | None
    temperature: Annotated[float | None, rule(minimum=0, maximum=2)]
    top_p: Annotated[float | None, rule(minimum=0, maximum=1)]
    presence_penalty: Annotated[float | None, rule(minimum=-2, maximum=2)]
    frequency_penalty: Annotated[float | None, rule(minimum=-2, maximum=2)]
    seed: int | None
    stop: str | list[str] | None
    response_format: dict[str, object] | None
    max_tokens: int | None
    max_completion_tokens: int | None
    tools: list[dict[str, object]] | None
    tool_choice: str | dict[str, object] | None
    parallel_tool_calls: bool | None


class CompletionAnswer(TypedDict):
    """What the model says, or calls."""

    role: Literal["assistant"]
    content: str | None
    tool_calls: NotRequired[list[ToolCall]]


class Choice(TypedDict):
    """The one answer."""

    index: Literal[0]
    message: CompletionAnswer
    finish_reason: Literal["stop", "length", "tool_calls", "error"]


class CompletionUsage(TypedDict):
    """Tokens in the words of chat completions."""

    prompt_tokens: Natural
    completion_tokens: Natural
    total_tokens: Natural


class Completion(TypedDict):
    """An answer. What was cut off has one member more, of the product's name."""

    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    choices: list[Choice]
    usage: CompletionUsage


class Delta(TypedDict):
    """What is new."""

    role: NotRequired[Literal["assistant"]]
    content: NotRequired[str]
    reasoning_content: NotRequired[str]
    tool_calls: NotRequired[list[dict[str, object]]]


class ChunkChoice(TypedDict):
    """A piece of the one answer."""

    index: Literal[0]
    delta: Delta
    finish_reason: str | None


class Chunk(TypedDict):
    """A piece of a stream; `[DONE]` comes after the last."""

    id: str
    object: Literal["chat.completion.chunk"]
    created: int
    model: str
    choices: list[ChunkChoice]
    usage: NotRequired[CompletionUsage | None]
    error: NotRequired[dict[str, Anything]]


class CompletionTool(TypedDict):
    """What a tool does, for those who ask to be told."""

    tool: str
    toolCallId: str
    status: Literal["running", "completed"]
    emoji: NotRequired[str]
    label: NotRequired[str]


COMPLETION_EVENTS: Mapping[str, type] = {
    "message": Chunk,
    **{f"{brand.event_prefix}tool.progress": CompletionTool for brand in BRANDS.values()},
}

CompletionHeaders = TypedDict(
    "CompletionHeaders",
    {
        "Idempotency-Key": Annotated[str, "the same one within five minutes gets the same answer"],
        "X-Svc-Session-Id": Annotated[str, "continues a stored session"],
        "X-Svc-Session-Key": Annotated[str, "scopes the long-term memory"],
        "X-Svc-Tool-Progress": Annotated[str, "1: the stream tells of tools as well"],
    },
    total=False,
)

# --- runs and responses ---------------------------------------------------------------------------------------------


class RunBody(TypedDict, total=False):
    """What to do. One of `input` and `message` has to say something."""

    input: str | list[object] | None
    message: Content | None
    conversation_history: list[CompletionMessage] | None
    instructions: str | None
    system_message: str | None
    session_id: str | None
    previous_response_id: str | None
    personality: str | None
    model: str | None
    stream: bool


class RunAccepted(TypedDict):
    """It is under way."""

    run_id: str
    status: Literal["started"]


class Approval(TypedDict):
    """What somebody has to allow."""

    tool: str
    tool_name: str
    call_id: str
    tool_call_id: str
    args: dict[str, object] | None
    command: str
    description: str
    pattern_key: str
    pattern_keys: list[str]
    allow_permanent: bool
    choices: list[str]


class Run(TypedDict):
    """How a run is doing."""

    object: str
    run_id: str
    status: str
    created_at: Unix
    updated_at: Unix
    session_id: str
    model: str
    last_event: NotRequired[str]
    approvals: NotRequired[list[Approval]]
    output: NotRequired[str]
    usage: NotRequired[Usage]
    error: NotRequired[str | None]


class RunStopping(TypedDict):
    """It will end."""

    run_id: str
    status: Literal["stopping"]


class ApprovalBody(TypedDict, total=False):
    """An answer to a question."""

    choice: Required[Annotated[str, "once, session, always or deny"]]
    call_id: str | None


class ApprovalAnswer(TypedDict):
    """How many questions it has answered."""

    object: str
    run_id: str
    choice: str
    resolved: Natural


class ResponseBody(TypedDict, total=False):
    """As OpenAI has it."""

    input: Required[str | list[object]]
    instructions: str | None
    previous_response_id: str | None
    conversation: str | dict[str, object] | None
    conversation_history: list[CompletionMessage] | None
    truncation: str | None
    model: str | None
    store: bool
    stream: bool


ResponseHeaders = TypedDict(
    "ResponseHeaders",
    {"Idempotency-Key": Annotated[str, "the same one within five minutes gets the same answer"]},
    total=False,
)


class ResponseItem(TypedDict):
    """A message, a call of a tool or its result."""

    type: Literal["message", "function_call", "function_call_output"]
    status: str
    id: NotRequired[str]
    role: NotRequired[Literal["assistant"]]
    content: NotRequired[list[dict[str, object]]]
    call_id: NotRequired[str]
    name: NotRequired[str]
    arguments: NotRequired[str]
    output: NotRequired[list[dict[str, object]]]


class Response(TypedDict):
    """An OpenAI response."""

    id: str
    object: Literal["response"]
    created_at: int
    model: str
    status: Literal["in_progress", "completed", "incomplete", "failed"]
    output: list[ResponseItem]
    usage: NotRequired[Usage]
    error: NotRequired[dict[str, Anything]]


class ResponseDeleted(TypedDict):
    """It is gone."""

    id: str
    object: Literal["response"]
    deleted: Literal[True]


# --- the events of a run --------------------------------------------------------------------------------------------


class RunEvent(TypedDict):
    """Something happened in a run. Its name is a member, and an `event:` line as well."""

    event: str
    run_id: str
    session_id: str
    timestamp: Unix


class RunDelta(RunEvent):
    """A piece of the answer."""

    delta: str


class RunReasoning(RunEvent):
    """A piece of what the model thinks."""

    text: str


class RunTool(RunEvent):
    """A call of a tool."""

    tool: str
    call_id: str
    tool_call_id: str
    args: dict[str, object]


class RunToolStarted(RunTool):
    """A call is being carried out."""

    preview: str | None


class RunToolCompleted(RunTool):
    """It has an answer, or `error`."""

    duration: Annotated[float, "s"]
    error: bool
    result_preview: str | None


class RunMemory(RunTool):
    """A note was written, and the call of `/api/memory` that undoes it."""

    tool_name: str
    target: str
    entry_count: Natural
    added: str | None
    removed: str | None
    undo: dict[str, object]


class RunApproval(RunEvent, Approval):
    """Somebody has to allow something: `/v1/runs/{run_id}/approval`."""


class RunApproved(RunEvent):
    """What became of it."""

    call_id: str
    tool_call_id: str
    choice: str
    resolved: Natural


class RunOver(RunEvent):
    """It is over."""

    output: str
    usage: Usage


class RunFailed(RunEvent):
    """It is over, and why."""

    error: str


RUN_EVENTS: Mapping[str, type] = {
    "run.started": RunEvent,
    "message.delta": RunDelta,
    "reasoning.available": RunReasoning,
    "tool.started": RunToolStarted,
    "tool.completed": RunToolCompleted,
    "memory.updated": RunMemory,
    "approval.request": RunApproval,
    "approval.responded": RunApproved,
    "run.completed": RunOver,
    "run.failed": RunFailed,
    "run.cancelled": RunEvent,
}

# --- the events of a response ---------------------------------------------------------------------------------------


class ResponseEvent(TypedDict):
    """Something happened in a response."""

    type: str
    sequence_number: Natural


class ResponseTold(ResponseEvent):
    """The response as it stands."""

    response: Response


class ResponseItemTold(ResponseEvent):
    """An item of the output."""

    output_index: Natural
    item: ResponseItem


class ResponsePlace(ResponseEvent):
    """Somewhere in a message."""

    item_id: str
    output_index: Natural
    content_index: Natural


class ResponsePart(ResponsePlace):
    """A part of a message."""

    part: dict[str, object]


class ResponseDelta(ResponsePlace):
    """A piece of text."""

    delta: str


class ResponseText(ResponsePlace):
    """All of it."""

    text: str


RESPONSE_EVENTS: Mapping[str, type] = {
    **{f"response.{word}": ResponseTold for word in ("created", "completed", "incomplete", "failed")},
    "response.output_item.added": ResponseItemTold,
    "response.output_item.done": ResponseItemTold,
    "response.content_part.added": ResponsePart,
    "response.content_part.done": ResponsePart,
    "response.output_text.delta": ResponseDelta,
    "response.output_text.done": ResponseText,
}
