"""Confirmation requests of a chat run: shown one at a time, and only the one shown can be answered."""

from attrs import frozen

__all__ = ["DENY", "PendingConfirmations", "Confirmation", "choice_for"]

MAX_OPEN = 32  # confirmations of one run; a further one is not shown, and denied by its own deadline
DENY = "deny"
_CHOICES = {
    "once": ("allow", "allow_once", "allowed", "approve", "approved", "confirm", "ok", "okay", "once", "yes", "y"),
    "session": ("allow_session", "session"),
    "always": ("allow_always", "always"),
}
_CHOICE_BY_WORD = {word: choice for choice, words in _CHOICES.items() for word in words}


@frozen
class Confirmation:
    """A confirmation request; `id` is the client's name for it."""

    id: str
    message: str


class PendingConfirmations:
    """Open confirmations of a run."""

    def __init__(self) -> None:
        self._open: dict[str, Confirmation] = {}
        self._taken = False  # an answer to the head is pending

    @property
    def head(self) -> Confirmation | None:
        """The confirmation that is shown now; None without one."""
        return next(iter(self._open.values()), None)

    def add(self, question: Confirmation) -> bool:
        """Add a confirmation; return whether it is to be shown now.

        One with the id of an open confirmation, or one above `MAX_OPEN`, is dropped.
        """
        if question.id in self._open or len(self._open) >= MAX_OPEN:
            return False
        self._open[question.id] = question
        return len(self._open) == 1

    def resolve(self, question_id: str) -> bool:
        """Remove a confirmation; return whether `head` has changed, so that the next one, if any, is to be shown."""
        was = self.head
        self._open.pop(question_id, None)
        if was is self.head:
            return False
        self._taken = False
        return True

    def pop(self, question_id: str | None) -> Confirmation | None:
        """Return the shown confirmation for an answer to it, and mark it as answered; `resolve` removes it.

        An answer without an id is for the shown one. Return None for another id, for a second answer, and if none is
        shown.
        """
        head = self.head
        if head is None or self._taken or question_id not in (None, "", head.id):
            return None
        self._taken = True
        return head


def choice_for(answer: str) -> str:
    """Return the API server's choice for a person's answer; anything but a clear yes is a denial."""
    return _CHOICE_BY_WORD.get(answer.strip().lower().replace(" ", "_").replace("-", "_"), DENY)
