"""Types of turns, runs and responses for the API's OpenAPI document: request bodies, answers and stream events.

The events of a session's own stream are classes already (`schema.chat_events`).
"""
# Without `from __future__ import annotations`: see `schema.json_schema`.

from collections.abc import Mapping
from typing import Annotated, Literal, NotRequired, Required, TypedDict

from svc_proto.basics.brand import BRANDS
from svc_proto.schema.api_types import (
    AnyJson,
    Content,
    ContentPartJson,
    ToolCallJson,
    UsageJson,
)
from svc_proto.schema.common_types import NonNegativeInt, UnixTime
from svc_proto.schema.json_schema import schema_keywords

__all__ = ["COMPLETION_EVENTS", "RESPONSE_EVENTS", "RUN_EVENTS"]


class AttachmentJson(TypedDict, total=False):
    """An image in the format of older phone apps."""

    contentType: str
    content: Annotated[str, schema_keywords(contentEncoding="base64")]


class TurnRequestJson(TypedDict, total=False):
    """A message to the agent. One of `message`, `input` and `attachments` must not be empty."""

    message: Content | None
    input: Content | None
    attachments: list[AttachmentJson]
    system_message: str | None
    instructions: str | None
    personality: Annotated[str | None, "a personality of the configuration"]
    approvals: Annotated[bool, "whether the client shows approval requests and answers them"]
    apps: Annotated[list[str] | None, "packages that the task names: acts in other apps need approval"]


class AssistantMessageJson(TypedDict):
    """The agent's answer."""

    id: str
    role: Literal["assistant"]
    content: str


class TurnAnswerJson(TypedDict):
    """Result of a turn that has ended, complete or not."""

    object: str
    session_id: str
    run_id: str
    message: AssistantMessageJson
    completed: bool
    partial: bool
    interrupted: bool
    usage: UsageJson
    error: NotRequired[str]


class CompletionMessageJson(TypedDict):
    """A message of a conversation in the format of OpenAI."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: NotRequired[str | list[ContentPartJson] | None]
    tool_calls: NotRequired[list[ToolCallJson] | None]
    tool_call_id: NotRequired[str]


class StreamOptionsJson(TypedDict, total=False):
    """Options of a stream."""

    include_usage: bool


class CompletionBodyJson(TypedDict, total=False):
    """Request in the format of OpenAI. Parameters that would change the answer but are not supported are refused."""

    messages: Required[list[CompletionMessageJson]]
    model: str | None
    stream: bool
    stream_options: StreamOptionsJson | None
    temperature: Annotated[float | None, schema_keywords(minimum=0, maximum=2)]
    top_p: Annotated[float | None, schema_keywords(minimum=0, maximum=1)]
    presence_penalty: Annotated[float | None, schema_keywords(minimum=-2, maximum=2)]
    frequency_penalty: Annotated[float | None, schema_keywords(minimum=-2, maximum=2)]
    seed: int | None
    stop: str | list[str] | None
    response_format: dict[str, object] | None
    max_tokens: int | None
    max_completion_tokens: int | None
    tools: list[dict[str, object]] | None
    tool_choice: str | dict[str, object] | None
    parallel_tool_calls: bool | None


class CompletionAnswerJson(TypedDict):
    """Text or tool calls of the model."""

    role: Literal["assistant"]
    content: str | None
    reasoning_content: NotRequired[str]
    tool_calls: NotRequired[list[ToolCallJson]]


class ChoiceJson(TypedDict):
    """The only choice of a completion."""

    index: Literal[0]
    message: CompletionAnswerJson
    finish_reason: Literal["stop", "length", "tool_calls", "error"]


class CompletionUsageJson(TypedDict):
    """Number of tokens in the format of chat completions."""

    prompt_tokens: NonNegativeInt
    completion_tokens: NonNegativeInt
    total_tokens: NonNegativeInt


class CompletionJson(TypedDict):
    """The answer as one completion. One that is not complete has one more member, named after the product."""

    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    choices: list[ChoiceJson]
    usage: CompletionUsageJson


class DeltaJson(TypedDict):
    """Member `delta` of a chunk's choice: the new part of the message, with text, reasoning or tool calls."""

    role: NotRequired[Literal["assistant"]]
    content: NotRequired[str]
    reasoning_content: NotRequired[str]
    tool_calls: NotRequired[list[dict[str, object]]]


class ChunkChoiceJson(TypedDict):
    """The only choice of a chunk."""

    index: Literal[0]
    delta: DeltaJson
    finish_reason: str | None


class ChunkJson(TypedDict):
    """A chunk of a stream; `[DONE]` follows the last one."""

    id: str
    object: Literal["chat.completion.chunk"]
    created: int
    model: str
    choices: list[ChunkChoiceJson]
    usage: NotRequired[CompletionUsageJson | None]
    error: NotRequired[dict[str, AnyJson]]


class ChunkErrorJson(TypedDict):
    """The error of a failed or stopped turn, before the last chunk."""

    error: dict[str, AnyJson]


class CompletionToolJson(TypedDict):
    """Progress of a tool, for clients that request it."""

    tool: str
    toolCallId: str
    status: Literal["running", "completed"]
    emoji: NotRequired[str]
    label: NotRequired[str]


COMPLETION_EVENTS: Mapping[str, object] = {
    "message": ChunkJson | ChunkErrorJson,
    **{f"{brand.event_prefix}tool.progress": CompletionToolJson for brand in BRANDS.values()},
}

# --- runs and responses ---------------------------------------------------------------------------------------------


class RunBodyJson(TypedDict, total=False):
    """Input of a run. One of `input` and `message` must not be empty."""

    input: str | list[object] | None
    message: Content | None
    conversation_history: list[CompletionMessageJson] | None
    instructions: str | None
    system_message: str | None
    session_id: str | None
    previous_response_id: str | None
    personality: str | None
    apps: Annotated[list[str] | None, "packages that the task names: acts in other apps need approval"]
    model: str | None
    stream: bool


class RunAcceptedJson(TypedDict):
    """The run is accepted. It starts at once, or after earlier runs of its session."""

    run_id: str
    status: Literal["started"]


class ApprovalJson(TypedDict):
    """A tool call that waits for approval."""

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
    expires_at: UnixTime | None


class RunJson(TypedDict):
    """State of a run."""

    object: str
    run_id: str
    status: str
    created_at: UnixTime
    updated_at: UnixTime
    session_id: str
    model: str
    last_event: NotRequired[str]
    approvals: NotRequired[list[ApprovalJson]]
    output: NotRequired[str]
    usage: NotRequired[UsageJson]
    error: NotRequired[str | None]


class RunStoppingJson(TypedDict):
    """The run is being stopped."""

    run_id: str
    status: Literal["stopping"]


class ApprovalBodyJson(TypedDict, total=False):
    """Answer to an approval request."""

    choice: Required[Annotated[str, "once, session, always or deny"]]
    call_id: str | None


class ApprovalAnswerJson(TypedDict):
    """Number of approval requests that were answered."""

    object: str
    run_id: str
    choice: str
    resolved: NonNegativeInt


class ResponseBodyJson(TypedDict, total=False):
    """Request in the format of OpenAI."""

    input: Required[str | list[object]]
    instructions: str | None
    previous_response_id: str | None
    conversation: str | dict[str, object] | None
    conversation_history: list[CompletionMessageJson] | None
    truncation: str | None
    model: str | None
    store: bool
    stream: bool
    temperature: Annotated[float | None, schema_keywords(minimum=0, maximum=2)]
    top_p: Annotated[float | None, schema_keywords(minimum=0, maximum=1)]
    max_output_tokens: int | None
    text: dict[str, object] | None
    reasoning: dict[str, object] | None
    tools: list[dict[str, object]] | None
    tool_choice: str | dict[str, object] | None
    parallel_tool_calls: bool | None


class ResponseItemJson(TypedDict):
    """A message, reasoning, a call that the client is to run, or a call of one of the agent's tools (`mcp_call`)."""

    type: Literal["message", "reasoning", "function_call", "mcp_call"]
    status: str
    id: NotRequired[str]
    role: NotRequired[Literal["assistant"]]
    content: NotRequired[list[dict[str, object]]]
    call_id: NotRequired[str]
    name: NotRequired[str]
    arguments: NotRequired[str]
    server_label: NotRequired[str]
    output: NotRequired[str]
    error: NotRequired[str]
    summary: NotRequired[list[dict[str, object]]]


class ResponseJson(TypedDict):
    """A response in the format of OpenAI."""

    id: str
    object: Literal["response"]
    created_at: int
    model: str
    status: Literal["in_progress", "completed", "incomplete", "failed"]
    output: list[ResponseItemJson]
    usage: NotRequired[UsageJson]
    error: NotRequired[dict[str, AnyJson]]


class ResponseDeletedJson(TypedDict):
    """The response was deleted."""

    id: str
    object: Literal["response"]
    deleted: Literal[True]


# --- the events of a run --------------------------------------------------------------------------------------------


class RunEventJson(TypedDict):
    """Event of a run. Its name is a member and the `event:` line."""

    event: str
    run_id: str
    session_id: str
    timestamp: UnixTime


class RunDeltaJson(RunEventJson):
    """A piece of the answer."""

    delta: str


class RunReasoningJson(RunEventJson):
    """A piece of the reasoning of the model, or a notice about the turn."""

    text: str


class RunToolJson(RunEventJson):
    """Event of a tool call."""

    tool: str
    call_id: str
    tool_call_id: str
    args: dict[str, object]


class RunToolStartedJson(RunToolJson):
    """A tool call has started, or has failed before it could run."""

    preview: str | None


class RunToolCompletedJson(RunToolJson):
    """A tool call has ended, with a result or with `error`."""

    duration: Annotated[float, "s"]
    error: bool
    result_preview: str | None


class RunMemoryJson(RunToolJson):
    """A note was changed; `undo` is the request to `/api/memory` that undoes the change."""

    tool_name: str
    target: str
    entry_count: NonNegativeInt
    added: str | None
    removed: str | None
    undo: dict[str, object]


class RunApprovalJson(RunEventJson, ApprovalJson):
    """A tool call waits for approval at `/v1/runs/{run_id}/approval`."""


class RunApprovalAnsweredJson(RunEventJson):
    """An approval request was answered or has expired."""

    call_id: str
    tool_call_id: str
    choice: str
    resolved: NonNegativeInt


class RunCompletedEventJson(RunEventJson):
    """The run has ended, without an error and without being stopped."""

    output: str
    usage: UsageJson
    reason: str | None  # for people: why the turn was ended early
    unfinished: list[str]  # for people: acts without success, and what was left open


class RunFailedJson(RunEventJson):
    """The run has failed, with the reason."""

    error: str


RUN_EVENTS: Mapping[str, type] = {
    "run.started": RunEventJson,
    "message.delta": RunDeltaJson,
    "reasoning.available": RunReasoningJson,
    "tool.started": RunToolStartedJson,
    "tool.completed": RunToolCompletedJson,
    "memory.updated": RunMemoryJson,
    "approval.request": RunApprovalJson,
    "approval.responded": RunApprovalAnsweredJson,
    "run.completed": RunCompletedEventJson,
    "run.failed": RunFailedJson,
    "run.cancelled": RunEventJson,
}

# --- the events of a response ---------------------------------------------------------------------------------------


class ResponseEventJson(TypedDict):
    """Event of a response."""

    type: str
    sequence_number: NonNegativeInt


class ResponseSnapshotEventJson(ResponseEventJson):
    """The current state of the response."""

    response: ResponseJson


class ResponseItemEventJson(ResponseEventJson):
    """An output item has been added or is done."""

    output_index: NonNegativeInt
    item: ResponseItemJson


class ResponseContentEventJson(ResponseEventJson):
    """Event about a content part of an output message, with the position of the part."""

    item_id: str
    output_index: NonNegativeInt
    content_index: NonNegativeInt


class ResponsePartJson(ResponseContentEventJson):
    """A content part of a message was added or is complete."""

    part: dict[str, object]


class ResponseDeltaJson(ResponseContentEventJson):
    """New text of a content part."""

    delta: str


class ResponseTextJson(ResponseContentEventJson):
    """The complete text of a content part."""

    text: str


class ResponseSummaryEventJson(ResponseEventJson):
    """Event about a part of the reasoning, with the position of the part."""

    item_id: str
    output_index: NonNegativeInt
    summary_index: NonNegativeInt


class ResponseSummaryPartJson(ResponseSummaryEventJson):
    """A part of the reasoning was added or is complete."""

    part: dict[str, object]


class ResponseSummaryDeltaJson(ResponseSummaryEventJson):
    """New text of a part of the reasoning."""

    delta: str


class ResponseSummaryTextJson(ResponseSummaryEventJson):
    """The complete text of a part of the reasoning."""

    text: str


class ResponseArgumentsDeltaJson(ResponseEventJson):
    """Arguments of a call that the client is to run."""

    item_id: str
    output_index: NonNegativeInt
    delta: str


class ResponseArgumentsJson(ResponseEventJson):
    """The complete arguments of a call that the client is to run."""

    item_id: str
    output_index: NonNegativeInt
    name: str
    arguments: str


class ResponseAgentCallJson(ResponseEventJson):
    """State of a call of one of the agent's tools."""

    item_id: str
    output_index: NonNegativeInt


class ResponseAgentArgumentsJson(ResponseAgentCallJson):
    """The complete arguments of a call of one of the agent's tools."""

    arguments: str


RESPONSE_EVENTS: Mapping[str, type] = {
    **{f"response.{word}": ResponseSnapshotEventJson for word in ("created", "completed", "incomplete", "failed")},
    "response.output_item.added": ResponseItemEventJson,
    "response.output_item.done": ResponseItemEventJson,
    "response.content_part.added": ResponsePartJson,
    "response.content_part.done": ResponsePartJson,
    "response.output_text.delta": ResponseDeltaJson,
    "response.output_text.done": ResponseTextJson,
    "response.reasoning_summary_part.added": ResponseSummaryPartJson,
    "response.reasoning_summary_part.done": ResponseSummaryPartJson,
    "response.reasoning_summary_text.delta": ResponseSummaryDeltaJson,
    "response.reasoning_summary_text.done": ResponseSummaryTextJson,
    "response.function_call_arguments.delta": ResponseArgumentsDeltaJson,
    "response.function_call_arguments.done": ResponseArgumentsJson,
    **{f"response.mcp_call.{word}": ResponseAgentCallJson for word in ("in_progress", "completed", "failed")},
    "response.mcp_call_arguments.done": ResponseAgentArgumentsJson,
}
