"""A turn as an OpenAI response: its output items in the order of their starts, and their events (wire api 7)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal, TypeAlias

from svc_proto.agent import interface
from svc_proto.api.chat.views import usage_view
from svc_proto.api.projections.turn_events import TurnEnded, TurnStarted, TurnStreamEvent, encode_frame
from svc_proto.basics.moment import Moment

if TYPE_CHECKING:
    from svc_proto.api.openapi.run_types import ResponseItemJson, ResponseJson

__all__ = ["ResponseBuilder", "ResponseProjection"]

Item: TypeAlias = "dict[str, object]"
Told: TypeAlias = "tuple[str, dict[str, object]]"

LABEL = "svc"  # names our own tools as those of a server


class ResponseBuilder:
    """Builds a Responses API response from the events of a turn (wire api 7).

    A tool call and reasoning are items of their own, and each ends the current message.
    """

    def __init__(self, *, id: str, created: int, model: str) -> None:  # noqa: A002 - the field's name
        self.id = id
        self.ended: TurnEnded | None = None
        self._created, self._model = created, model
        self._output: list[ResponseItemJson] = []
        self._calls: dict[str, int] = {}  # places of our own tools' calls in the output, by their ids
        self._text: list[str] = []  # of the open message
        self._thoughts: list[str] = []  # of the open reasoning
        self._messages = 0
        self._reasonings = 0

    @property
    def response(self) -> ResponseJson:
        """The response as of the latest event, without a message or reasoning that is still open."""
        ended = self.ended
        view: ResponseJson = {
            "id": self.id,
            "object": "response",
            "created_at": self._created,
            "model": self._model,
            "status": self._status,
            "output": list(self._output),
        }
        if ended is not None:
            view["usage"] = usage_view(ended.usage)
        if ended is not None and ended.error is not None:
            view["error"] = {"code": ended.code, "message": ended.error}
        return view

    def add_event(self, event: TurnStreamEvent) -> list[Told]:
        """Add an event of the turn; return the resulting response events."""
        match event:
            case TurnStarted():
                return [("response.created", {"response": self.response})]
            case interface.TextDelta(text):
                return [*self._close_reasoning(), *self._add_text(text)]
            case interface.TextRetracted(length):
                self._text = ["".join(self._text)[:-length]]
                return []
            case interface.ReasoningDelta(text):
                return [*(self._close() if self._text else ()), *self._add_reasoning(text)]
            case interface.ToolCallStarted(call):
                return [*self._close(), *self._started(call)]
            case interface.ToolCallFinished():
                return [*self._close(), *self._finished(event)]
            case TurnEnded():
                events = [
                    *self._close(),
                    *self._abandoned(),
                    *(told for call in event.calls for told in self._requested(call)),
                ]
                self.ended = event
                return [*events, (f"response.{self._status}", {"response": self.response})]
            case _:
                return []

    @property
    def _status(self) -> Literal["in_progress", "completed", "incomplete", "failed"]:
        if self.ended is None:
            return "in_progress"
        if self.ended.interrupted:
            return "incomplete"
        if self.ended.error is not None:
            return "failed"
        return "completed" if self.ended.completed else "incomplete"

    @property
    def _message_id(self) -> str:
        return self._item_id("msg", self._messages)

    def _item_id(self, kind: str, number: int) -> str:
        """Return the id of an output item: its kind, its number, and the digits of the response's id."""
        return f"{kind}_{number}_{self.id.removeprefix('resp_')}"

    def _message(self, status: str, text: str | None) -> ResponseItemJson:
        content: list[Item] = [] if text is None else [_part(text)]
        return {
            "type": "message",
            "id": self._message_id,
            "role": "assistant",
            "status": status,
            "content": content,
        }

    def _add_text(self, text: str) -> list[Told]:
        events: list[Told] = []
        if not self._text:
            if self._output and not text.strip():
                return []  # the gap between two messages
            self._messages += 1
            events.append(self._item("added", len(self._output), self._message("in_progress", None)))
            # Beside wire api 7: OpenAI's client libraries need a part to which they add the deltas.
            events.append(("response.content_part.added", {**self._place, "part": _part("")}))
        self._text.append(text)
        events.append(("response.output_text.delta", {**self._place, "delta": text}))
        return events

    @property
    def _place(self) -> Item:
        return {"item_id": self._message_id, "output_index": len(self._output), "content_index": 0}

    def _add_reasoning(self, text: str) -> list[Told]:
        events: list[Told] = []
        if not self._thoughts:
            self._reasonings += 1
            events.append(self._item("added", len(self._output), self._reasoning("in_progress", [])))
            place = {**self._reasoning_place, "part": {"type": "summary_text", "text": ""}}
            events.append(("response.reasoning_summary_part.added", place))
        self._thoughts.append(text)
        return [*events, ("response.reasoning_summary_text.delta", {**self._reasoning_place, "delta": text})]

    def _close_reasoning(self) -> list[Told]:
        if not self._thoughts:
            return []
        text = "".join(self._thoughts)
        self._thoughts = []
        part: Item = {"type": "summary_text", "text": text}
        item = self._reasoning("completed", [part])
        events = [
            ("response.reasoning_summary_text.done", {**self._reasoning_place, "text": text}),
            ("response.reasoning_summary_part.done", {**self._reasoning_place, "part": part}),
            self._item("done", len(self._output), item),
        ]
        self._output.append(item)
        return events

    @property
    def _reasoning_id(self) -> str:
        return self._item_id("rs", self._reasonings)

    @property
    def _reasoning_place(self) -> Item:
        return {"item_id": self._reasoning_id, "output_index": len(self._output), "summary_index": 0}

    def _reasoning(self, status: str, summary: list[Item]) -> ResponseItemJson:
        return {"type": "reasoning", "id": self._reasoning_id, "status": status, "summary": summary}

    def _close(self) -> Iterable[Told]:
        if not self._text:
            return self._close_reasoning()
        text = "".join(self._text)
        self._text = []
        message = self._message("completed", text)
        events = [
            ("response.output_text.done", {**self._place, "text": text}),
            ("response.content_part.done", {**self._place, "part": _part(text)}),
            self._item("done", len(self._output), message),
        ]
        self._output.append(message)
        return events

    def _started(self, call: interface.ToolCall) -> list[Told]:
        """Add a call of one of the agent's own tools as an `mcp_call` item, unless it is there; return the events."""
        if call.id in self._calls:
            return []
        place = self._calls[call.id] = len(self._output)
        item: ResponseItemJson = {
            "type": "mcp_call",
            "id": self._item_id("mcp", place),
            "server_label": LABEL,
            "call_id": call.id,
            "name": call.name,
            "arguments": call.arguments,
            "status": "in_progress",
        }
        self._output.append(item)
        where: Item = {"item_id": item["id"], "output_index": place}
        return [
            self._item("added", place, {**item, "arguments": ""}),
            ("response.mcp_call.in_progress", where),
            ("response.mcp_call_arguments.done", {**where, "arguments": call.arguments}),
        ]

    def _finished(self, event: interface.ToolCallFinished) -> list[Told]:
        started = self._started(event.call)  # a denied call has no start
        place, failed = self._calls[event.call.id], event.error is not None
        status = "failed" if failed else "completed"
        item = self._output[place] = self._output[place].copy()
        item["error" if failed else "output"] = event.output
        item["status"] = status
        where: Item = {"item_id": item["id"], "output_index": place}
        return [*started, (f"response.mcp_call.{status}", where), self._item("done", place, item)]

    def _abandoned(self) -> list[Told]:
        """Mark the calls that have no result at the end of the turn as incomplete, and return their events."""
        running = [place for place in self._calls.values() if self._output[place]["status"] == "in_progress"]
        for place in running:
            self._output[place] = self._output[place].copy()
            self._output[place]["status"] = "incomplete"
        return [self._item("done", place, self._output[place]) for place in running]

    def _requested(self, call: interface.ToolCall) -> list[Told]:
        """Add a call that the client is to run, and return the events of its item and its arguments."""
        place = len(self._output)
        item: ResponseItemJson = {
            "type": "function_call",
            "id": self._item_id("fc", place),
            "call_id": call.id,
            "name": call.name,
            "arguments": call.arguments,
            "status": "completed",
        }
        self._output.append(item)
        where: Item = {"item_id": item["id"], "output_index": place}
        return [
            self._item("added", place, {**item, "status": "in_progress", "arguments": ""}),
            ("response.function_call_arguments.delta", {**where, "delta": call.arguments}),
            ("response.function_call_arguments.done", {**where, "name": call.name, "arguments": call.arguments}),
            self._item("done", place, item),
        ]

    def _item(self, what: str, place: int, item: ResponseItemJson) -> Told:
        return f"response.output_item.{what}", {"output_index": place, "item": item}


def _part(text: str) -> Item:
    return {"type": "output_text", "text": text, "annotations": []}


class ResponseProjection:
    """Projection for a client that posted to `/v1/responses` with `stream`."""

    __slots__ = ("_builder", "_number")

    def __init__(self, builder: ResponseBuilder) -> None:
        self._builder = builder
        self._number = 0  # of the next event, from 0

    def encode(self, event: TurnStreamEvent, now: Moment) -> str:
        """Return the response events for an event of the turn, with their numbers; empty for an event without any."""
        frames: list[str] = []
        for name, members in self._builder.add_event(event):
            frames.append(encode_frame({"type": name, "sequence_number": self._number, **members}, event=name))
            self._number += 1
        return "".join(frames)
