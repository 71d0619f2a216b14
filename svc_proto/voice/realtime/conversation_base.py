"""Base class of the native conversation (a provider that listens and answers) and the rendered conversation."""

from collections import deque
from collections.abc import Callable

from svc_proto.voice.realtime.actions import ConversationAction, Emit, LogEvent
from svc_proto.voice.realtime.voice_runs import VoiceRuns

__all__ = ["ConversationBase"]


class ConversationBase:
    """Conversation of one session: events arrive as calls; `out` collects the resulting actions in order.

    `now` returns monotonic seconds; the owner calls `advance` at `due`.
    """

    def __init__(self, runs: VoiceRuns, now: Callable[[], float]) -> None:
        self.runs = runs
        self.now = now
        self.word = runs.word
        self.out: deque[ConversationAction] = deque()

    def confirm(self, confirmation_id: str | None, answer: str) -> None:
        """Forward the user's answer to a confirmation request of a run.

        Without such a request, report that to the client.
        """
        approved = self.runs.approve(confirmation_id, answer)
        self.out += approved
        if not approved:
            self._forwarded(confirmation_id, None)

    def approved(self, call_id: str, confirmation_id: str, answer: str | None) -> None:
        """Report a forwarded answer to the client, or None if the API server did not accept it.

        Then remove the confirmation request of a live run, and show the next one if the removed one hid it.
        """
        self._forwarded(confirmation_id, answer)
        run = self.runs.live(call_id)
        if run is not None:
            self.out += run.story.resolve_confirmation(confirmation_id)

    # --- for subclasses ---

    def _emit(self, kind: str, **fields: object) -> None:
        self.out.append(Emit(kind, fields))

    def _note(self, kind: str, **fields: object) -> None:
        self.out.append(LogEvent(kind, fields))

    def _forwarded(self, confirmation_id: str | None, answer: str | None) -> None:
        self._emit(f"{self.word}.confirmation.forwarded", confirmation_id=confirmation_id, answer=answer)
