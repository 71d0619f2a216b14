"""Interfaces of the phone backend for the safety gates: the app in front, texts of nodes, permissions, waking."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from svc_proto.basics.moment import Moment
from svc_proto.phone.backend import PhoneBackend, PhoneCommand
from svc_proto.phone.safety.permissions import SystemPermissions

__all__ = ["GuardedBackend", "TargetTextSource", "SystemBackend"]


class GuardedBackend(PhoneBackend, Protocol):
    """Phone backend with the information on its screen that the gates need."""

    @property
    def foreground(self) -> str:
        """The package in front; `unknown` if that cannot be determined."""

    def text_of(self, node_id: str) -> str | None:
        """Return the text of a node on the screen, else its description; None without either."""


@runtime_checkable
class TargetTextSource(Protocol):
    """Phone backend with more information on the target of a command than `text_of` has.

    The documented rule (wire bridge 5.4) does not cover three cases: children of a node without a text of its own, the
    node under a coordinate, and the whole text that `/tap_text` matches in part. With this method they are covered.
    """

    def texts_pressed(self, command: PhoneCommand) -> Sequence[str]:
        """Return every text by which a user recognizes the target of this command; empty when there is none."""


class SystemBackend(GuardedBackend, Protocol):
    """Phone backend of a whole phone: with its build, the system's grants, and a way to wake it."""

    @property
    def build(self) -> str:
        """The build: `sideload` or `googlePlay`."""

    @property
    def consents(self) -> SystemPermissions:
        """The grants of the user; the gates use this object itself, so that there is one copy."""

    def wake(self, now: Moment) -> bool:
        """Turn the display on and dismiss a lock without credential; return whether the phone is usable now."""
