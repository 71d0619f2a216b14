"""Turn of a gateway session: converts events of the API's stream into desktop events (SPEC.md, wire api 4.3)."""

from __future__ import annotations

from collections.abc import Callable

from svc_proto.schema import chat_events as events
from svc_proto.schema.json_object import JsonObject
from svc_proto.wire.sse import ServerSentEvent

__all__ = ["GatewayTurn"]

EventCallback = Callable[[str, "dict[str, object] | None"], None]
SHOWN = 2000  # shown characters of a tool's preview or result


class GatewayTurn:
    """Converter of one turn's events: `message.start` first, `message.complete` last, each once."""

    def __init__(self, tell: EventCallback) -> None:
        self._tell = tell
        self._started = False
        self._text: list[str] = []
        self._final: str | None = None
        self._usage: JsonObject = JsonObject()
        self._interrupted = False
        self.over = False
        self.run_id: str | None = None

    @property
    def text(self) -> str:
        """Return the answer so far."""
        return "".join(self._text) if self._final is None else self._final

    def add_event(self, event: ServerSentEvent) -> None:
        """Convert one event of the stream; ignore events that are no JSON object or follow the end."""
        data = JsonObject.parse(event.data)
        if self.over or data is None:
            return
        self.run_id = data.text("run_id") or self.run_id
        if "usage" in data:
            self._usage = data.get_object("usage")
        self._handle_event(event.event, data)

    def complete(self, status: str) -> None:
        """End the turn with the status `complete`, `interrupted` or `error`."""
        if self.over:
            return
        self.start()
        self.over = True
        self._tell("message.complete", {"text": self.text, "usage": self._usage, "status": status})

    def fail(self, message: str) -> None:
        """End the turn with an error."""
        if not self.over:
            self._tell("error", {"message": message})
            self.complete("error")

    def start(self) -> None:
        """Report the start of the answer."""
        if not self._started:
            self._started = True
            self._tell("message.start", None)

    def _handle_event(self, kind: str, data: JsonObject) -> None:
        match events.parse_event(kind, data):
            case events.AssistantDelta(delta=delta) if delta:
                self.start()
                self._text.append(delta)
                self._tell("message.delta", {"text": delta})
            case events.MessageStarted():
                self.start()
            case events.AssistantCompleted(content=content, interrupted=interrupted):
                self._final = content or self._final
                self._interrupted = interrupted
            case events.RunCompleted(interrupted=interrupted):
                self.complete("interrupted" if self._interrupted or interrupted else "complete")
            case events.Error(message=message):
                self.fail(message or "the run failed")
            case events.Done():
                self.complete("interrupted" if self._interrupted else "complete")
            case event:
                self._take_work(kind, event, data)

    def _take_work(self, kind: str, event: events.ChatEvent | None, data: JsonObject) -> None:
        match event:
            case events.ToolPending(tool_name=name):
                self._tell("tool.generating", {"name": name})
            case events.ToolStarted(tool_name=name, preview=preview):
                self._tell("tool.start", {**_call(data, name), "context": (preview or "")[:SHOWN]})
            case events.ToolProgress(tool_name=name, delta=delta) if name and not name.startswith("_"):
                self._tell("tool.progress", {"name": name, "preview": delta[:SHOWN]})
            case events.ToolProgress(delta=delta):
                self._tell("reasoning.delta", {"text": delta})
            case events.ToolCompleted(tool_name=name):
                self._tell("tool.complete", {**_call(data, name), **_outcome(event)})
            case events.ToolFailed(tool_name=name, error=error):
                self._tell("tool.complete", {**_call(data, name), "error": error or "the tool failed"})
            case events.ApprovalRequest(command=command, description=description, choices=choices, tool_name=name):
                words = {"command": command, "description": description, "choices": choices}
                self._tell("approval.request", {**words, "call_id": _call(data, name)["tool_id"]})
            case _ if kind in ("memory.updated", "skill.loaded", "artifact.created"):
                what = data.text("added", "removed", "name", "target", "path")[:SHOWN]
                self._tell("status.update", {"kind": kind, "text": f"{kind.replace('.', ' ')} {what}".strip()})
            case _:
                pass  # `session.created`, `run.started`, and events of later servers


def _call(data: JsonObject, name: str) -> dict[str, object]:
    return {"tool_id": data.text("call_id", "tool_call_id") or name, "name": name}


def _outcome(event: events.ToolCompleted) -> dict[str, object]:
    outcome: dict[str, object] = {} if event.args is None else {"args": event.args}
    result = (event.result_preview or "")[:SHOWN]
    if result:
        outcome |= {"result": result, "summary": result.partition("\n")[0]}
    if event.duration is not None:
        outcome["duration_s"] = event.duration
    if not event.success:
        outcome["error"] = result or "the tool failed"
    return outcome
