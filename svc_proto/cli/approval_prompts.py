"""Approval prompts of a turn at a terminal, shown one at a time (wire api 6.3, 6.5).

A typed line answers the shown prompt. A line that comes right after a second or later prompt appeared may be meant for
the earlier one, so the prompt is shown again instead. An unclear answer denies, and so does the end of the input.
"""

from collections.abc import Callable

from attrs import frozen

from svc_proto.cli.error_text import sanitize_line
from svc_proto.cli.voice_chat_io import InputEnded, VoiceChatEvent
from svc_proto.cli.voice_chat_io import TypedLine as Typed
from svc_proto.commands import Notify
from svc_proto.machines.approvals import DENY, DOUBLE_ANSWER_WINDOW
from svc_proto.machines.confirmations import choice_for
from svc_proto.schema.chat_events import ApprovalRequest

__all__ = ["ApprovalPrompts"]

MAX_TEXT = 20_000  # characters of a question: more than our API server sends


@frozen
class _Prompt:
    call_id: str
    text: str
    choices: tuple[str, ...]


class ApprovalPrompts:
    """Open approval prompts, oldest first. `notify` shows a prompt, `answer(call_id, choice)` sends the choice."""

    def __init__(
        self, clock: Callable[[], float], notify: Callable[[Notify], None], answer: Callable[[str, str], None]
    ) -> None:
        self._clock = clock  # monotonic seconds
        self._notify = notify
        self._answer = answer
        self._open: list[_Prompt] = []
        self._shown = 0  # number of prompts shown so far
        self._since = 0.0  # when the last of them was shown
        self._ended = False  # no more input can come

    def show(self, approval_request: ApprovalRequest) -> None:
        """Add a prompt, and show it if it is the only one; after the end of the input, deny it at once.

        A request without a call id is ignored, because it cannot be answered.
        """
        if not approval_request.call_id:
            return  # it could not be answered
        words = (
            sanitize_line(text, MAX_TEXT) for text in (approval_request.description, approval_request.command) if text
        )
        offered = ("once", DENY) if approval_request.choices is None else tuple(approval_request.choices)
        self._open.append(_Prompt(approval_request.call_id, "\n".join(words), offered))
        if self._ended:
            self._resolve(self._open[-1], DENY)
        elif len(self._open) == 1:
            self._show()

    def resolve(self, call_id: object) -> None:
        """Remove the prompt of this call; if that one was shown, show the next prompt, if any."""
        head = self._open[:1]
        self._open = [each for each in self._open if each.call_id != call_id]
        if self._open and self._open[:1] != head:
            self._show()

    def answer_line(self, news: VoiceChatEvent) -> None:
        """Answer the shown prompt by the user's input, or show it again if it is not the first and appeared just now.
        A line that stands for no offered choice denies. The end of the input denies all prompts, open and later ones.
        Other input without an open prompt is ignored.
        """
        if isinstance(news, InputEnded):
            self._ended = True
            for question in list(self._open):
                self._resolve(question, DENY)
        elif self._open and self._shown > 1 and self._clock() < self._since + DOUBLE_ANSWER_WINDOW:
            self._show(again=True)
        elif self._open:
            question = self._open[0]
            choice = choice_for(news.text) if isinstance(news, Typed) else DENY
            self._resolve(question, choice if choice in question.choices else DENY)

    def _resolve(self, question: _Prompt, choice: str) -> None:
        self._answer(question.call_id, choice)
        self.resolve(question.call_id)

    def _show(self, *, again: bool = False) -> None:
        if not again:
            self._shown += 1
            self._since = self._clock()
        question = self._open[0]
        yes = [choice for choice in question.choices if choice != DENY]
        self._notify(Notify("question", {"text": question.text, "choices": [*yes, DENY]}))
