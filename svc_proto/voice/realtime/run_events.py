"""Mapping of a chat run's events to the events of a voice session's client (wire terminal-voice 6.5, 6.7).

A tool call without a reported start gets a synthetic one, except for names that clients do not show as tools.
"""

from collections.abc import Mapping
from enum import Enum
from typing import TypeAlias, assert_never

from attrs import frozen

from svc_proto.machines.confirmations import Confirmation, PendingConfirmations
from svc_proto.schema import chat_events as events
from svc_proto.voice.realtime.actions import Emit, FetchApproval

__all__ = ["ApiRunStarted", "VoiceRunEvent", "RunEventMapper", "ChatSessionBound", "ToolEvent", "ToolEventReceived"]

MAX_ANSWER = 64 * 1024  # characters of an answer that are kept; the rest is in the chat
MAX_PREVIEW = 2_000  # characters of a result, wire terminal-voice 6.5
COMMAND = {"running": "Running command.", "done": "Command finished.", "failed": "Command failed."}
MAX_TOOLS = 256  # calls of one run that are kept; a late event of a dropped one gets a start of its own


# --- events of a run: from the API server's stream, and from its records beside the stream --------------------------


@frozen
class ChatSessionBound:
    """Event: the run has got a new chat session, because none was requested or the requested one is missing."""

    session_id: str
    profile: str | None = None
    reason: str | None = None


@frozen
class ApiRunStarted:
    """Start of the run at the API server."""

    run_id: str


ToolEvent: TypeAlias = (
    events.ToolPending | events.ToolStarted | events.ToolProgress | events.ToolCompleted | events.ToolFailed
)


@frozen
class ToolEventReceived:
    """Event of one tool call."""

    call_id: str
    name: str
    event: ToolEvent


# A confirmation is a request to the user; progress of no tool is a thought.
VoiceRunEvent: TypeAlias = (
    ChatSessionBound
    | ApiRunStarted
    | ToolEventReceived
    | Confirmation
    | events.MessageStarted
    | events.AssistantDelta
    | events.ToolProgress
    | events.AssistantCompleted
    | events.RunCompleted
)


# --- events for the client ----------------------------------------------------------------------------------------


class _Stage(Enum):
    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"


@frozen
class _Tool:
    name: str
    stage: _Stage


class RunEventMapper:
    """Mapper of one run's events: `word` is the brand's name, `call_id` identifies the run in its voice session."""

    def __init__(self, word: str, call_id: str, session_id: str | None) -> None:
        self.word = word
        self.call_id = call_id
        self.session_id = session_id
        self.run_id = ""
        self.confirmations = PendingConfirmations()
        self.interrupted = False
        self.last_tool_name: str | None = None
        self.last_tool_status: str | None = None
        self.last_tool_message: str | None = None
        self.completed_tool_count = 0
        self.drafting = False
        self._began = False
        self._completed = False
        self._tools: dict[str, _Tool] = {}
        self._reported_texts: dict[str, list[str]] = {"answer": [], "thoughts": []}
        self._room = {"answer": MAX_ANSWER, "thoughts": MAX_ANSWER}
        self._content = ""

    @property
    def answer(self) -> str:
        """The answer so far: the text of the deltas, else the completed text, else the thoughts."""
        answer, thoughts = ("".join(pieces).strip() for pieces in self._reported_texts.values())
        return answer or self._content.strip() or thoughts

    @property
    def active_tool_name(self) -> str | None:
        """The tool that started last among those that have not ended, or None; it may wait for an approval."""
        return next((tool.name for tool in reversed(self._tools.values()) if tool.stage is not _Stage.DONE), None)

    def map_event(self, event: VoiceRunEvent) -> list[Emit | FetchApproval]:
        """Return the client's events for an event of the run; if a tool call waits, also the order `FetchApproval`."""
        match event:
            case ChatSessionBound(session_id=session_id):
                self.session_id = session_id
                bound: dict[str, object] = {"session_id": session_id, "profile": event.profile}
                if event.reason is not None:
                    bound["reason"] = event.reason
                return [Emit(f"{self.word}.session.bound", bound)]
            case ApiRunStarted(run_id=run_id):
                self.run_id = run_id
                began, self._began = self._began, True
                return [] if began else [self.emit("run.started")]
            case events.MessageStarted(message=message):
                return [self.emit("message.started", message_id=message.text("id"))]
            case events.AssistantDelta(delta=delta):
                self.add_hidden_text(delta)
                return []
            case events.ToolProgress(delta=delta):
                self.add_hidden_text(delta, "thoughts")
                return [self.emit("tool.delta", delta=delta, tool_name=events.THINKING, message="Thinking.")]
            case ToolEventReceived():
                return self._of_tool(event.call_id, event.name, event.event)
            case Confirmation():
                tool = self._tools.get(event.id)
                late = tool is not None and tool.stage is not _Stage.WAITING  # it was allowed meanwhile
                return [self._confirmation_event(event)] if not late and self.confirmations.add(event) else []
            case events.AssistantCompleted(content=content, interrupted=interrupted):
                self._content, self.interrupted = content[:MAX_ANSWER], interrupted
                return []
            case events.RunCompleted(interrupted=interrupted):
                if interrupted:
                    self._content, self.interrupted = "", True
                return []
            case _:
                assert_never(event)

    def add_hidden_text(self, delta: str, what: str = "answer") -> None:
        """Append a piece to the run's answer, or to its thoughts (`what`); text beyond the limit is dropped."""
        piece = delta[: self._room[what]]
        if piece:
            self._room[what] -= len(piece)
            self._reported_texts[what].append(piece)

    def complete(self) -> list[Emit]:
        """Return the event of the run's end; nothing after the first call."""
        if self._completed:
            return []
        self._completed = True
        return [self.emit("run.completed")]

    def cancelled(self) -> Emit:
        """Return the event of a stopped run."""
        return self.emit("run.cancelled")

    def resolve_confirmation(self, question_id: str) -> list[Emit]:
        """Remove a confirmation request.

        Return the event that shows the next one, if it was hidden behind the removed one.
        """
        head = self.confirmations.head if self.confirmations.resolve(question_id) else None
        return [] if head is None else [self._confirmation_event(head)]

    def status(self) -> tuple[str, str, str]:
        """Return `status`, `status_key` and a message for people (wire terminal-voice 6.5)."""
        active = self.active_tool_name
        if self.confirmations.head is not None:
            return "waiting_for_confirmation", "confirmation", "Waiting for your confirmation."
        if active is not None:
            return "running", f"tool:{active}:running", tool_status_text(active, "running")
        if self.drafting:
            return "running", "run:drafting", "Drafting the answer."
        return "running", f"run:waiting_{self.word}", "Still working."

    def tools(self) -> dict[str, object]:
        """Return the members of progress events about tools."""
        return {
            "active_tool_name": self.active_tool_name,
            "last_tool_name": self.last_tool_name,
            "completed_tool_count": self.completed_tool_count,
        }

    def emit(self, kind: str, **fields: object) -> Emit:
        """Build an event of the run for the client."""
        return Emit(f"{self.word}.{kind}", {"session_id": self.session_id, "run_id": self.run_id, **fields})

    # --- helpers ---

    def _of_tool(self, call_id: str, name: str, event: ToolEvent) -> list[Emit | FetchApproval]:
        match event:
            case events.ToolPending(preview=preview):
                ask = FetchApproval(
                    call_id=self.call_id,
                    run_id=self.run_id,
                    tool_call_id=call_id,
                    message=f"Allow {name}{': ' + preview if preview else ''}?",
                )
                return [*self._start(call_id, _Tool(name, _Stage.WAITING), event), ask]
            case events.ToolStarted():
                told = self._start(call_id, _Tool(name, _Stage.RUNNING), event)
                self._tools[call_id] = _Tool(name, _Stage.RUNNING)
                return [*told, *self.resolve_confirmation(call_id)]
            case events.ToolProgress(delta=delta):
                said = self.emit("tool.delta", delta=delta, tool_name=name, message=tool_status_text(name, "running"))
                return [*self._made_up(call_id, name), said]
            case events.ToolCompleted() | events.ToolFailed():
                return self._end_tool(call_id, name, event)
            case _:
                assert_never(event)

    def _start(self, call_id: str, tool: _Tool, call: events.ToolPending | events.ToolStarted) -> list[Emit]:
        known = self._tools.get(call_id)
        if known is not None and known.stage is not _Stage.DONE:
            return []
        told = {} if call.preview is None else {"message": call.preview[:MAX_PREVIEW]}
        return [self._open(call_id, tool, call.args, **told)]

    def _made_up(self, call_id: str, name: str) -> list[Emit]:
        if call_id in self._tools or name == self.word or name.startswith("_"):
            return []  # clients show no tool by these names (wire terminal-voice 0.1)
        return [self._open(call_id, _Tool(name, _Stage.RUNNING), None, synthetic=True)]

    def _open(self, call_id: str, tool: _Tool, arguments: Mapping[str, object] | None, **more: object) -> Emit:
        name = tool.name
        self._tools.pop(call_id, None)
        self._tools[call_id] = tool
        if len(self._tools) > MAX_TOOLS:
            del self._tools[next(iter(self._tools))]
        self._last(name, "running")
        return self.emit("tool.started", tool_call_id=call_id, tool_name=name, arguments=arguments, **more)

    def _end_tool(
        self, call_id: str, name: str, end: events.ToolCompleted | events.ToolFailed
    ) -> list[Emit | FetchApproval]:
        made_up = self._made_up(call_id, name)
        if call_id in self._tools:
            self._tools[call_id] = _Tool(self._tools[call_id].name, _Stage.DONE)
        self.completed_tool_count += 1
        about: dict[str, object]
        if isinstance(end, events.ToolFailed):
            kind, well, about = "tool.failed", False, {"error": end.error[:MAX_PREVIEW]}
        else:
            preview = None if end.result_preview is None else end.result_preview[:MAX_PREVIEW]
            kind, well, about = "tool.completed", end.success, {"result_preview": preview, "success": end.success}
        message = self._last(name, "done" if well else "failed")
        told = self.emit(kind, tool_call_id=call_id, tool_name=name, **about, message=message)
        return [*made_up, told, *self.resolve_confirmation(call_id)]

    def _last(self, name: str, status: str) -> str:
        self.last_tool_name, self.last_tool_status = name, status
        self.last_tool_message = tool_status_text(name, status)
        return self.last_tool_message

    def _confirmation_event(self, question: Confirmation) -> Emit:
        return self.emit("confirmation.requested", confirmation_id=question.id, message=question.message)


# --- texts for people ---------------------------------------------------------------------------------------------


def tool_status_text(tool: str, status: str) -> str:
    """Return a short sentence for people about a tool that runs (`running`), is finished (`done`) or `failed`."""
    plain = tool.replace("_", " ").strip()[:80] or "a tool"
    words = {"running": f"Using {plain}.", "done": f"Finished {plain}.", "failed": f"{plain} failed.".capitalize()}
    return (COMMAND if tool == "terminal" else words)[status]
