"""Unattended access: commands that act may wake the phone, and say so when a lock is in the way (wire bridge 5.7).

Off at first. While it is off a sleeping or locked phone is left as it is, and the handset answers for itself. A lock
without credential (a swipe) is dismissed; a PIN, a pattern, a password or a finger is the user's alone to give.
"""

from __future__ import annotations

from collections.abc import Callable

from attrs import define

from svc_proto.basics.moment import Moment

__all__ = ["UnattendedAccess"]


@define
class UnattendedAccess:
    """The user's switch.

    `wake` turns the display on and dismisses a lock that has no credential, and says whether the phone is usable now;
    None when there is nothing that could.
    """

    wake: Callable[[Moment], bool] | None = None
    enabled: bool = False

    @property
    def wakes(self) -> bool:
        """Whether a command that acts wakes the phone."""
        return self.enabled and self.wake is not None

    def make_ready(self, now: Moment) -> bool:
        """Wake the phone if the user allows that. False when a credential is in the way: the answer is a 423."""
        return not self.enabled or self.wake is None or self.wake(now)
