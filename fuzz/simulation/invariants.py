"""Invariants of every simulation, each with a text that states it."""

from enum import Enum
from typing import NoReturn


class Invariant(Enum):
    """A rule that every simulation must satisfy; its value states the rule."""

    CODE_ONCE = "Limits, pairing code: single-use, valid 10 minutes after registration"
    LIVE_CODE = "Pairing flow: a code counts until it is used up, which a good token beside it, or a block, does not do"
    GRANT_CLAMPED = "Grants: a grant never outlives its session; grants are clamped on the server"
    LIVE_GRANT = "Bridge safety gates 1: the session must hold a `bridge` grant"
    GRANT_HELD = "Grants: a live grant opens what it is for, also one that was given anew by PATCH"
    LIFETIME = "Paired session: it lasts as long as was asked, or as the default, from now by the host's wall clock"
    LIVE_TOKEN = "Pairing flow 7: the token lasts until its lifetime elapses or until it is revoked"
    DEAD_TOKEN = "Paired session: revoked or expired, the token is no longer accepted"
    SOCKETS_ENDED = "decision 6: a revoked or expired session loses its sockets at once"
    RESOLVED = "decision 6: a revoked or expired session loses its waiting calls (401) at once"
    REACHED = "wire bridge 2.2: 503 is for no phone, 502 for one that left, 504 for one that does not answer in time"
    BLOCKED = "Rate limiting: after 5 failures within 60 seconds the IP is blocked for 5 minutes and receives 429"
    NOT_BLOCKED = "Rate limiting: no address is blocked without 5 failures; a registration clears all blocks"
    ONE_ANSWER = "Bridge command record: one decision; each operation has exactly one answer"
    OWN_ANSWER = "Device Control: a caller gets the answer to its own command, from the phone that got it"
    REPORTED = "wire bridge 1.3, 4, core 7.2: a status is its phone's own and newest; reports are as things were"
    IN_TIME = "Limits: a bridge command gets its answer within 30 seconds, or `timeout`"
    OWN_BYTES = "Media: the bytes that were uploaded; chat stream: the events of one's own session and run"
    MEDIA_LIFE = "wire core 6.5: media live for their time, which reading does not extend, or until they are evicted"
    NO_SECRET = "Client storage: tokens and keys are never logged or put into error messages; params are redacted"
    ACCOUNTING = "decisions 6, 16: nothing outlives its owner, and a count is that of what is there"
    BOUNDED = "Limits of the wire: every buffer has a limit"
    STORED = "Chat: what was told is what is stored, and it is stored before it is told"
    HISTORY = "decisions 16, 18: turns of a session come one after another, and the model is given what was said"
    STREAM = "Events: the order of the table; `done` comes last, once"
    ACCESS = "decisions 7, 46: on each route a stranger, a page, a proxy and a dead token meet what the table says"
    AFTER_END = "decision 6: nothing is done for a session after its end, however far it had come"
    AS_PREDICTED = (
        "An answer is what the specification says after all that the client has done, and that no other can undo"
    )
    STATUS = "Errors: the statuses of the specification, in well-formed answers"
    NO_BUG = "ARCHITECTURE.md: no exception but the declared ones; the contract of facts and commands"
    TUI_ERROR = (
        "wire terminal-voice 2.2: `tui.error` is for the loss of a gateway that had started, behind its last line"
    )
    ONE_END = "wire api 4: every turn and every stream ends, once, and is never silent for long"
    CANCELLED = "wire api 4.4: no model works for a client that has left, or for a deleted chat"
    CONFIRMED = "Approvals: an answer counts once, and what asks first happens only after a yes"
    RECOVERY = "When all faults are over every client can connect and work again, and nothing is left behind"


class Violation(AssertionError):  # noqa: N818 - the name describes the event
    """Violated invariant, with details."""

    def __init__(self, invariant: Invariant, detail: str) -> None:
        super().__init__(f"{invariant.name}: {detail}\n  guards: {invariant.value}")
        self.invariant = invariant
        self.detail = detail


def violated(invariant: Invariant, detail: str) -> NoReturn:
    """Raise a `Violation` of an invariant."""
    raise Violation(invariant, detail)
