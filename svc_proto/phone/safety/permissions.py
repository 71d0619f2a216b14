"""Permissions that the user granted to the client in the system's dialogs and settings.

Accessibility, drawing over other apps and notification access are switches of the system. They stay until the user
withdraws them, and do not change the master toggle (wire bridge 5.1). Screen capture is a consent for one capture
session, which ends when the master toggle goes off (wire bridge 3.4).
"""

from attrs import define

__all__ = ["SystemPermissions"]


@define(kw_only=True)
class SystemPermissions:
    """Present grants, none at first; `notification_listener` is None until it is set."""

    accessibility: bool = False
    screen_capture: bool = False
    overlay: bool = False
    notification_listener: bool | None = None

    def end_capture_session(self) -> None:
        """End the capture session: the next screenshot needs a new consent."""
        self.screen_capture = False
