"""Questions of a chat run to the person who speaks: shown one at a time, and the one that is shown may be answered.

The answer names its call, but an API server that does not know such names answers its oldest (wire api 6.5).
"""

from __future__ import annotations

from attrs import frozen

__all__ = ["DENY", "PendingConfirmations", "Confirmation", "choice_for"]

MAX_OPEN = 32  # questions of one run; a further one is not shown, and denied by its own deadline
DENY = "deny"
_CHOICES = {
    "once": ("allow", "allow_once", "allowed", "approve", "approved", "confirm", "ok", "okay", "once", "yes", "y"),
    "session": ("allow_session", "session"),
    "always": ("allow_always", "always"),
}
_CHOICE_BY_WORD = {word: choice for choice, words in _CHOICES.items() for word in words}


@frozen
class Confirmation:
    """What may be allowed; `id` is the client's name for it."""

    id: str
    message: str


class PendingConfirmations:
    """The open questions of a run."""

    def __init__(self) -> None:
        self._open: dict[str, Confirmation] = {}
        self._taken = False  # an answer to the head is on its way

    @property
    def head(self) -> Confirmation | None:
        """The one to be answered now."""
        return next(iter(self._open.values()), None)

    def add(self, question: Confirmation) -> bool:
        """There is a question; whether it is the one to be shown now."""
        if question.id in self._open or len(self._open) >= MAX_OPEN:
            return False
        self._open[question.id] = question
        return len(self._open) == 1

    def resolve(self, question_id: str) -> bool:
        """It needs no answer any more; whether `head` has changed, so that the next is to be shown."""
        was = self.head
        self._open.pop(question_id, None)
        if was is self.head:
            return False
        self._taken = False
        return True

    def pop(self, question_id: str | None) -> Confirmation | None:
        """The question that an answer is for: the head, by its name or by none; `resolve` follows.

        None when there is none such, or when it has an answer already.
        """
        head = self.head
        if head is None or self._taken or question_id not in (None, "", head.id):
            return None
        self._taken = True
        return head


def choice_for(answer: str) -> str:
    """The API server's word for what a person said; whatever is not clearly a yes is a no."""
    return _CHOICE_BY_WORD.get(answer.strip().lower().replace(" ", "_").replace("-", "_"), DENY)
