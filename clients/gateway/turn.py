"""One turn: the events of the API server's stream in, what a desktop renders out (SPEC.md "Events", wire api 4.3)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import cast

from svc_proto.basics import strict_json
from svc_proto.wire.sse import ServerSentEvent

__all__ = ["Turn"]

Tell = Callable[[str, "dict[str, object] | None"], None]
SHOWN = 2000  # characters of a tool's preview or result


class Turn:
    """Says `message.start` once, `message.complete` once and last, and in between what comes."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._started = False
        self._text: list[str] = []
        self._final: str | None = None
        self._usage: object = None
        self._interrupted = False
        self.over = False
        self.run_id: str | None = None

    @property
    def text(self) -> str:
        """The answer so far."""
        return "".join(self._text) if self._final is None else self._final

    def take(self, event: ServerSentEvent) -> None:
        """Take one event of the stream; what is no JSON object, or comes after the end, is passed over."""
        if self.over:
            return
        try:
            value = strict_json.loads(event.data)
        except strict_json.JsonError:
            return
        if not isinstance(value, dict):
            return
        data = cast("dict[str, object]", value)
        self.run_id = _text(data, "run_id") or self.run_id
        self._usage = data["usage"] if isinstance(data.get("usage"), dict) else self._usage
        self._take(event.event, data)

    def complete(self, status: str) -> None:
        """The turn is over: `complete`, `interrupted` or `error`."""
        if self.over:
            return
        self.start()
        self.over = True
        self._tell("message.complete", {"text": self.text, "usage": self._usage or {}, "status": status})

    def fail(self, message: str) -> None:
        """The turn is over because something went wrong."""
        if not self.over:
            self._tell("error", {"message": message})
            self.complete("error")

    def start(self) -> None:
        """The answer begins."""
        if not self._started:
            self._started = True
            self._tell("message.start", None)

    def _take(self, kind: str, data: Mapping[str, object]) -> None:
        match kind:
            case "message.started":
                self.start()
            case "assistant.delta":
                self._delta(_text(data, "delta"))
            case "assistant.completed":
                self._final = _text(data, "content") or self._final
                self._interrupted = data.get("interrupted") is True
            case "run.completed":
                interrupted = self._interrupted or data.get("interrupted") is True
                self.complete("interrupted" if interrupted else "complete")
            case "error":
                self.fail(_text(data, "message") or _text(data, "error") or "the run failed")
            case "done":
                self.complete("interrupted" if self._interrupted else "complete")
            case _:
                self._take_work(kind, data)

    def _take_work(self, kind: str, data: Mapping[str, object]) -> None:
        name = _text(data, "tool_name")
        identity = _text(data, "call_id") or _text(data, "tool_call_id") or name
        match kind:
            case "tool.pending":
                self._tell("tool.generating", {"name": name})
            case "tool.started":
                self._tell("tool.start", {"tool_id": identity, "name": name, "context": _preview(data, "preview")})
            case "tool.progress" if name and not name.startswith("_"):
                self._tell("tool.progress", {"name": name, "preview": _preview(data, "delta")})
            case "tool.progress":
                self._tell("reasoning.delta", {"text": _text(data, "delta")})
            case "tool.completed":
                self._tell("tool.complete", {"tool_id": identity, "name": name, **_outcome(data)})
            case "tool.failed":
                error = _text(data, "error") or "the tool failed"
                self._tell("tool.complete", {"tool_id": identity, "name": name, "error": error})
            case "approval.request":
                words = {key: _text(data, key) for key in ("command", "description")}
                self._tell("approval.request", {**words, "choices": data.get("choices"), "call_id": identity})
            case "memory.updated" | "skill.loaded" | "artifact.created":
                names = ("added", "removed", "name", "target", "path")
                what = next((found for key in names if (found := _preview(data, key))), "")
                self._tell("status.update", {"kind": kind, "text": f"{kind.replace('.', ' ')} {what}".strip()})
            case _:
                pass  # `session.created`, `run.started`, and what later servers may say

    def _delta(self, text: str) -> None:
        if text:
            self.start()
            self._text.append(text)
            self._tell("message.delta", {"text": text})


def _text(data: Mapping[str, object], name: str) -> str:
    value = data.get(name)
    return value if isinstance(value, str) else ""


def _preview(data: Mapping[str, object], name: str) -> str:
    return _text(data, name)[:SHOWN]


def _outcome(data: Mapping[str, object]) -> dict[str, object]:
    outcome: dict[str, object] = {}
    if isinstance(data.get("args"), dict):
        outcome["args"] = data["args"]
    result = _preview(data, "result_preview")
    if result:
        outcome["result"] = result
        outcome["summary"] = result.partition("\n")[0]
    duration = data.get("duration")
    if isinstance(duration, int | float) and not isinstance(duration, bool):
        outcome["duration_s"] = duration
    if data.get("success") is False:
        outcome["error"] = result or "the tool failed"
    return outcome
