"""Turn of a live session: the events of a run, converted into events of the gateway (wire terminal 2.4).

One approval request or question of the agent is shown at a time.
"""

from collections.abc import Callable, Mapping
from typing import TypeAlias

from attrs import frozen

from svc_proto.agent import interface
from svc_proto.api.projections.turn_events import TurnEnded, TurnStarted, TurnStreamEvent
from svc_proto.api.runs.run import PARAGRAPH_BREAK, Run
from svc_proto.engine.core import Engine
from svc_proto.machines.approvals import DENY, ApprovalAnswer

__all__ = ["LiveTurn", "SendEvent"]

SendEvent: TypeAlias = Callable[[str, "Mapping[str, object] | None"], None]
MAX_PREVIEW = 2_000  # characters of a tool's result
MAX_ANSWER = 10_000  # characters of an answer to a question
YES, NO = "Yes", "No"  # the choices of a question, beside an answer in words
CUT_OFF = "a limit of tokens or of model calls cut the answer off"


@frozen
class _Question:
    event: interface.ApprovalRequested
    until: float  # monotonic seconds


class LiveTurn:
    """Converter of one run's events. `on_ended` is called after the last one."""

    def __init__(
        self, engine: Engine, run: Run, send: SendEvent, *, approval_timeout: float, on_ended: Callable[[], None]
    ) -> None:
        self.run = run
        self._engine = engine
        self._send = send
        self._approval_timeout = approval_timeout
        self._on_ended = on_ended
        self._handlers: dict[type, Callable[..., None]] = {
            TurnStarted: self._on_started,
            interface.ReasoningDelta: self._on_reasoning,
            interface.TurnNotice: self._on_reasoning,
            interface.TextRetracted: self._on_text_retracted,
            interface.ToolCallPending: lambda event: self._announce(event.call),
            interface.ToolCallStarted: self._on_tool_started,
            interface.ToolCallFinished: self._on_tool_finished,
            interface.MemoryChanged: self._on_memory_changed,
            interface.ApprovalRequested: self._on_approval_requested,
            interface.ApprovalResolved: self._on_approval_resolved,
            TurnEnded: self._on_turn_ended,
        }
        self._segment: list[str] = [run.text] if run.text else []  # text since the last tool call
        self._started = bool(run.user_text)
        self._announced: set[str] = set()  # ids of announced calls; never iterated
        self._questions: dict[str, _Question] = {}  # pending ones by call id, oldest first; the first is shown
        self._settled = ""  # the id of the call that a client of the gateway answers
        for event in run.pending_approvals:  # its time has begun before: the client may show a little more than is left
            self._questions[event.call.id] = _Question(event, engine.now.mono + approval_timeout)
        run.observe(self.add_event)

    @property
    def text(self) -> str:
        """The answer's text since the last tool call that this turn has announced or started."""
        return "".join(self._segment)

    def add_event(self, event: TurnStreamEvent) -> None:
        """Send the gateway events that one event of the run results in."""
        if isinstance(event, interface.TextDelta):
            if event.text != PARAGRAPH_BREAK or self._segment:
                self._segment.append(event.text)
                self._send("message.delta", {"text": event.text})
        else:
            self._handlers[type(event)](event)

    def show_question(self, send: SendEvent) -> None:
        """Send the approval request or the question that is shown, if there is one."""
        question = next(iter(self._questions.values()), None)
        if question is None:
            return
        event, seconds = question.event, max(1, int(question.until - self._engine.now.mono))
        if event.is_question:
            payload: dict[str, object] = {"question": event.command, "choices": [YES, NO]}
            send("clarify.request", {"request_id": self._request_id(event), **payload, "timeout_seconds": seconds})
            return
        payload = {
            "command": event.command,
            "description": event.description,
            "choices": list(event.choices),
            "allow_session": "session" in event.choices,
            "allow_permanent": "always" in event.choices,
            "timeout_seconds": seconds,
            "call_id": event.call.id,
        }
        send("approval.request", payload)

    def answer(self, choice: str, *, call_id: str = "", everything: bool = False) -> list[interface.ApprovalRequested]:
        """Answer the shown approval request, or the one of `call_id`; `everything` answers all pending ones.

        Return those that were answered: none if no such request is pending, or the run is being stopped. Without
        `call_id` and `everything`, none is answered while a question of the agent is shown. Raises `Refused` 400 for a
        choice that is not offered.
        """
        approvals = [question.event for question in self._questions.values() if not question.event.is_question]
        shown = call_id or next(iter(self._questions), "")
        wanted = [event for event in approvals if everything or event.call.id == shown]
        return [event for event in wanted if self._answer(event.call.id, choice)]

    def answer_question(self, request_id: str, text: str) -> int:
        """Answer the agent's question with this request id; return 0 if it is not pending here or the run is stopping.

        An empty text and `No` deny, `Yes` allows, and other words allow and are passed on.
        """
        for call, question in self._questions.items():
            if question.event.is_question and self._request_id(question.event) == request_id:
                word = text.strip()
                if word.casefold() in ("", NO.casefold()):
                    return self._answer(call, DENY)
                return self._answer(call, "once", "" if word.casefold() == YES.casefold() else word[:MAX_ANSWER])
        return 0

    def _answer(self, call: str, choice: str, text: str = "") -> int:
        if self.run.stopping:
            return 0
        self._settled = call
        return self.run.answer(ApprovalAnswer(choice=choice, call_id=call, text=text))

    def _request_id(self, event: interface.ApprovalRequested) -> str:
        return f"{self.run.record.id} {event.call.id}"

    # --- events ---

    def _on_started(self, event: TurnStarted) -> None:
        self._started = True
        self._send("message.start", None)

    def _on_reasoning(self, event: interface.ReasoningDelta) -> None:
        self._send("reasoning.delta", {"text": event.text})

    def _on_text_retracted(self, event: interface.TextRetracted) -> None:
        """Remove retracted text from the end of the answer. Clients receive no event for it."""
        self._segment = [self.text[: -event.length]]

    def _announce(self, call: interface.ToolCall) -> None:
        if call.id not in self._announced:
            self._announced.add(call.id)
            self._seal()
            self._send("tool.generating", {"name": call.name})

    def _seal(self) -> None:
        """Send the text since the last tool call, if any, as complete, before the next tool call is shown."""
        if self._segment:
            self._send("message.interim", {"text": self.text, "already_streamed": True})
            self._segment = []

    def _on_tool_started(self, event: interface.ToolCallStarted) -> None:
        call = event.call
        self._seal()
        context = (call.preview or "")[:MAX_PREVIEW]
        self._send("tool.start", {"tool_id": call.id, "name": call.name, "args": dict(call.args), "context": context})

    def _on_tool_finished(self, event: interface.ToolCallFinished) -> None:
        call, preview = event.call, (event.preview or "")[:MAX_PREVIEW]
        outcome: dict[str, object] = {"summary": preview, "result_text": preview, "duration_s": round(event.seconds, 3)}
        if event.error is not None:
            outcome = {"error": event.error or "the tool failed", "duration_s": round(event.seconds, 3)}
        self._send("tool.complete", {"tool_id": call.id, "name": call.name, **outcome})

    def _on_memory_changed(self, event: interface.MemoryChanged) -> None:
        change = event.change
        text = change.added if change.added is not None else f"removed: {change.removed}"
        self._send("status.update", {"kind": "memory", "text": f"memory updated: {text}"[:MAX_PREVIEW]})

    def _on_approval_requested(self, event: interface.ApprovalRequested) -> None:
        self._announce(event.call)
        self._questions[event.call.id] = _Question(event, self._engine.now.mono + self._approval_timeout)
        if len(self._questions) == 1:
            self.show_question(self._send)

    def _on_approval_resolved(self, event: interface.ApprovalResolved) -> None:
        call_id = event.call.id
        shown = next(iter(self._questions), "") == call_id
        question = self._questions.pop(call_id, None)
        if question is None or not shown:
            return
        # Also after an answer: the other clients of the session show the question still.
        self._expire(question.event, {"call_id": call_id, "answered": self._settled == call_id})
        self.show_question(self._send)

    def _expire(self, event: interface.ApprovalRequested, payload: dict[str, object]) -> None:
        if event.is_question:
            self._send("clarify.expire", {"request_id": self._request_id(event), **payload})
        else:
            self._send("approval.expire", payload)

    def _on_turn_ended(self, event: TurnEnded) -> None:
        if self._questions:
            shown = next(iter(self._questions.values()))
            self._questions.clear()
            self._expire(shown.event, {})
        if not self._started:
            self._send("message.start", None)
        status = "interrupted" if event.interrupted else "complete" if event.error is None else "error"
        payload: dict[str, object] = {"text": self.text, "status": status, "usage": self.usage(event)}
        if status == "error":
            payload |= {"error": event.error, "recoverable": True}
        if event.finish == "length":
            payload["warning"] = CUT_OFF
        self._send("message.complete", payload)
        self._on_ended()

    def usage(self, event: TurnEnded) -> dict[str, object]:
        """Return the token counts of a turn, and those of the context, under the names that clients read."""
        usage = event.usage
        return {
            "input": usage.input_tokens,
            "output": usage.output_tokens,
            "total": usage.total_tokens,
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
            "total_tokens": usage.total_tokens,
            "context_used": self.run.context_used,
        }
