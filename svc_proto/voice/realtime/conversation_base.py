"""What both kinds of conversation share: one whose provider hears and speaks by itself, and one that is rendered."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from svc_proto.voice.realtime.actions import ConversationAction, Emit, LogEvent
from svc_proto.voice.realtime.voice_runs import VoiceRuns

__all__ = ["ConversationBase"]


class ConversationBase:
    """One session's. What happens is said by calls; `out` has what is to be done then, in that order.

    `now` tells monotonic seconds; whoever owns it calls `advance` at `due`.
    """

    def __init__(self, runs: VoiceRuns, now: Callable[[], float]) -> None:
        self.runs = runs
        self.now = now
        self.word = runs.word
        self.out: deque[ConversationAction] = deque()

    def confirm(self, confirmation_id: str | None, answer: str) -> None:
        """The person answers a question of a run."""
        approved = self.runs.approve(confirmation_id, answer)
        self.out += approved
        if not approved:
            self._forwarded(confirmation_id, None)

    def approved(self, call_id: str, confirmation_id: str, answer: str | None) -> None:
        """The API server has taken an answer; None: it did not want one any more."""
        self._forwarded(confirmation_id, answer)
        run = self.runs.live(call_id)
        if run is not None:
            self.out += run.story.resolve_confirmation(confirmation_id)

    # --- for each kind ---

    def _emit(self, kind: str, **fields: object) -> None:
        self.out.append(Emit(kind, fields))

    def _note(self, kind: str, **fields: object) -> None:
        self.out.append(LogEvent(kind, fields))

    def _forwarded(self, confirmation_id: str | None, answer: str | None) -> None:
        self._emit(f"{self.word}.confirmation.forwarded", confirmation_id=confirmation_id, answer=answer)
