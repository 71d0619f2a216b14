"""What the gates need of a handset beside its commands: what is in front, what a node is called, what was granted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from svc_proto.basics.moment import Moment
from svc_proto.phone.backend import PhoneBackend, PhoneCommand
from svc_proto.phone.safety.permissions import SystemPermissions

__all__ = ["GuardedBackend", "TargetTextSource", "SystemBackend"]


class GuardedBackend(PhoneBackend, Protocol):
    """A handset, and what the gates have to know about its screen."""

    @property
    def foreground(self) -> str:
        """The package in front, `unknown` when nobody can tell."""

    def text_of(self, node_id: str) -> str | None:
        """The text of a node on the screen, else its description; None when there is neither."""


@runtime_checkable
class TargetTextSource(Protocol):
    """A handset that can say more about what a command presses than `text_of` can.

    The documented rule (wire bridge 5.4) does not look into a node that has no text of its own, at the node under a
    coordinate, or at the whole text of what `/tap_text` finds by a part of it. On a handset with this method the verbs
    count in what it returns as well.
    """

    def texts_pressed(self, command: PhoneCommand) -> Sequence[str]:
        """Every text by which a person would know what this command presses; empty when there is none."""


class SystemBackend(GuardedBackend, Protocol):
    """A handset that a phone is made of: it knows its build, keeps the system's grants, and can be woken."""

    @property
    def build(self) -> str:
        """`sideload` or `googlePlay`."""

    @property
    def consents(self) -> SystemPermissions:
        """What the user granted. The gates work on this very object, so that there is one truth."""

    def wake(self, now: Moment) -> bool:
        """Turn the display on, dismiss a lock without credential, and say whether the phone is usable now."""
