"""Chat-completions chunks of a turn: role, text, reasoning, tool calls, finish reason, usage on request, `[DONE]`.

Progress of the agent's tools (wire api 5.3) is sent only to clients that request it by a header.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias, cast

from svc_proto.agent.interface import ReasoningDelta, TextDelta, ToolCallFinished, ToolCallStarted
from svc_proto.api.chat.records import Usage
from svc_proto.api.chat.views import function_call
from svc_proto.api.projections.turn_events import TurnEnded, TurnStarted, TurnStreamEvent, encode_frame
from svc_proto.basics import strict_json
from svc_proto.basics.brand import Brand
from svc_proto.basics.moment import Moment

if TYPE_CHECKING:
    from svc_proto.api.openapi.run_types import CompletionUsageJson

__all__ = ["CompletionProjection", "completion_usage", "finish_reason"]

FinishReason: TypeAlias = Literal["stop", "length", "tool_calls", "error"]
DONE = "data: [DONE]\n\n"
EMOJI = "🔧"
SENT = ("reasoning_content", "reasoning", "thinking", "reasoning_text")  # sent as `reasoning_content` while it arrived


class CompletionProjection:
    """Projection for a client that posted to `/v1/chat/completions` with `stream`.

    `usage`: send a last chunk without choices, as OpenAI does for `stream_options.include_usage`.
    """

    __slots__ = ("_brand", "_end", "_head", "_progress", "_running", "_start", "_tail", "_usage")

    def __init__(
        self,
        *,
        id: str,  # noqa: A002 - the field's name
        created: int,
        model: str,
        brand: Brand,
        usage: bool = False,
        progress: bool = False,
    ) -> None:
        self._brand = brand
        self._usage = usage
        self._progress = progress
        self._running: set[str] = set()  # ids of running tool calls; never iterated
        head = {"id": id, "object": "chat.completion.chunk", "created": created, "model": model}
        self._head = f'data: {strict_json.dumps(head)[:-1]},"choices":['
        self._tail = ',"usage":null}\n\n' if usage else "}\n\n"
        self._start = f'{self._head}{{"index":0,"delta":'
        self._end = f',"finish_reason":null}}]{self._tail}'

    def encode(self, event: TurnStreamEvent, now: Moment) -> str:
        """Return the chunks for an event of the turn, then `[DONE]` at its end; empty for an event without any."""
        match event:
            case TextDelta(text):
                return f'{self._start}{{"content":{strict_json.dumps(text)}}}{self._end}'
            case ReasoningDelta(text):
                return f'{self._start}{{"reasoning_content":{strict_json.dumps(text)}}}{self._end}'
            case TurnStarted():
                return f'{self._start}{{"role":"assistant"}}{self._end}'
            case ToolCallStarted(call) if self._progress and not call.name.startswith("_"):
                self._running.add(call.id)
                label = call.preview or call.name
                return self._tool(call.name, call.id, "running", {"emoji": EMOJI, "label": label})
            case ToolCallFinished(call=call) if call.id in self._running:
                self._running.discard(call.id)
                return self._tool(call.name, call.id, "completed", {})
            case TurnEnded():
                return self._finish(event)
            case _:
                return ""

    def _tool(self, tool: str, call_id: str, status: str, more: dict[str, object]) -> str:
        members = {"tool": tool, **more, "toolCallId": call_id, "status": status}
        return encode_frame(members, event=f"{self._brand.event_prefix}tool.progress")

    def _finish(self, ended: TurnEnded) -> str:
        reason = finish_reason(ended)
        alone = more = ""
        if reason == "error":
            error = {"message": ended.error or "the turn was interrupted", "type": "agent_error"}
            more = f'"error":{strict_json.dumps(error)}'
            alone, more = f"data: {{{more}}}\n\n", f",{more}"  # the AI SDK reads no error in a chunk with choices
        calls = ""
        unsent = {name: value for name, value in ended.extra.items() if name not in SENT}
        for place, call in enumerate(ended.calls):  # a chunk for each: LlamaIndex reads the first call of a chunk only
            delta = strict_json.dumps({"tool_calls": [{"index": place, **function_call(call)}], **unsent})
            calls += f"{self._start}{delta}{self._end}"
            unsent = {}
        last = f'{self._start}{{}},"finish_reason":{strict_json.dumps(reason)}}}]{more}{self._tail}'
        if self._usage:
            last += f'{self._head}],"usage":{strict_json.dumps(completion_usage(ended.usage))}}}\n\n'
        return calls + alone + last + DONE


def finish_reason(ended: TurnEnded) -> FinishReason:
    """Return the finish reason of a completion: `stop`, `length` or `tool_calls`; `error` after a failure or a stop."""
    return "error" if ended.error is not None or ended.interrupted else cast("FinishReason", ended.finish)


def completion_usage(usage: Usage) -> CompletionUsageJson:
    """Return the token counts as `prompt_tokens`, `completion_tokens` and `total_tokens`."""
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.total_tokens,
    }
