"""View of the gates for a screen or a terminal, as one value (spec "Bridge safety gates" 5 d, e, f)."""

from __future__ import annotations

from enum import Enum

from attrs import frozen

from svc_proto.basics.moment import Moment
from svc_proto.phone.safety.activity_log import ActivityEntry
from svc_proto.phone.safety.confirmation import SafetyConfirmation
from svc_proto.phone.safety.master_toggle import MasterState, MasterTrigger

__all__ = [
    "ACCESSIBILITY_HINT",
    "NOTIFICATION",
    "StatusChip",
    "ForegroundNotification",
    "ConfirmationView",
    "SafetyView",
]

ACCESSIBILITY_HINT = "Turn on the accessibility service of this app in the system settings."


class StatusChip(Enum):
    """Status overlay: optional, "forced visible when unattended access is on", only over other apps."""

    HIDDEN = "hidden"
    SHOWN = "shown"
    FORCED = "forced"


@frozen(kw_only=True)
class ForegroundNotification:
    """Notification that is shown while the master toggle is on; it cannot be dismissed."""

    text: str
    actions: tuple[str, ...]
    dismissible: bool


# wire bridge 5.1
NOTIFICATION = ForegroundNotification(text="Device Control is on", actions=("Disable", "Settings"), dismissible=False)


@frozen(kw_only=True)
class ConfirmationView:
    """Open confirmation: "the command, the flagged verb and the full text"."""

    confirmation_id: str
    request_id: str
    method: str
    path: str
    verb: str | None  # None on the always-confirmed routes
    text: str
    seconds_left: float

    @classmethod
    def of(cls, confirmation: SafetyConfirmation, now: Moment) -> ConfirmationView:
        """Return the view of an open confirmation."""
        command, question = confirmation.command, confirmation.question
        return cls(
            confirmation_id=confirmation.confirmation_id,
            request_id=command.request_id,
            method=command.method,
            path=command.path,
            verb=question.verb,
            text=question.text,
            seconds_left=max(0.0, confirmation.deadline - now.mono),
        )


@frozen(kw_only=True)
class SafetyView:
    """State of the gates at one instant.

    `turned_off_by` is the reason why the toggle is off, None when it is on or was never on. `hint` is a step that the
    user must take before the toggle can be turned on, None if there is none. The lists are in their own order;
    `overlays` oldest first, `activity` newest first.
    """

    flavor: str
    master: MasterState
    turned_off_by: MasterTrigger | None
    hint: str | None
    auto_disable_minutes: int
    auto_disable_at_ms: int | None
    accessibility_granted: bool
    screen_capture_granted: bool
    overlay_granted: bool
    notification_listener_granted: bool | None
    unattended: bool
    notification: ForegroundNotification | None
    chip: StatusChip
    banner: bool
    confirmation_timeout: float
    blocklist: tuple[str, ...]
    verbs: tuple[str, ...]
    trusted_verbs: tuple[str, ...]
    trusted_actions: tuple[str, ...]
    overlays: tuple[ConfirmationView, ...]
    activity: tuple[ActivityEntry, ...]
