"""Unattended access: commands of routes with `wakes_screen` wake the phone or report a lock (wire bridge 5.7).

It is off at first. While it is off, a sleeping or locked phone is not woken, and the backend answers. A lock without
credential (a swipe) is dismissed; a PIN, a pattern, a password or a finger can only come from the user.
"""

from collections.abc import Callable

from attrs import define

from svc_proto.basics.moment import Moment

__all__ = ["UnattendedAccess"]


@define
class UnattendedAccess:
    """Switch for unattended access.

    `wake` turns the display on and dismisses a lock that has no credential; it returns whether the phone is usable now.
    It is None if the backend cannot be woken.
    """

    wake: Callable[[Moment], bool] | None = None
    enabled: bool = False

    @property
    def wakes(self) -> bool:
        """Report whether a command of a route with `wakes_screen` wakes the phone."""
        return self.enabled and self.wake is not None

    def make_ready(self, now: Moment) -> bool:
        """Wake the phone if `wakes`; return False if it was not usable after that: the answer is a 423."""
        return not self.enabled or self.wake is None or self.wake(now)
