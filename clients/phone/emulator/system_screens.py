"""System screens: home screen, recents, shade, quick settings, power menu, share sheet, lock screen."""

from collections.abc import Iterable
from enum import Enum

from attrs import frozen

from clients.phone.emulator.actions import Dismiss, Launch
from clients.phone.emulator.layout import App, Screen, entry, label, switch
from clients.phone.emulator.view_tree import FULL, Bounds, ViewNode, Window

__all__ = [
    "LAUNCHER",
    "POWER_MENU",
    "QUICK_SETTINGS",
    "SYSTEM_UI",
    "Notice",
    "Overlay",
    "app_list",
    "keyguard",
    "shade",
]

LAUNCHER = "com.example.launcher"
SYSTEM_UI = "com.android.systemui"
CHOOSER = "com.android.intentresolver"


class Overlay(Enum):
    """A system window over the app, and the package that owns it."""

    RECENTS = ("recents", LAUNCHER)
    SHADE = ("shade", SYSTEM_UI)
    QUICK_SETTINGS = ("quick settings", SYSTEM_UI)
    POWER_MENU = ("power menu", SYSTEM_UI)
    SHARE_SHEET = ("share sheet", CHOOSER)

    @property
    def package(self) -> str:
        """Return the package that owns the window."""
        return self.value[1]


@frozen
class Notice:
    """A notification in the shade; a tap opens its app."""

    package: str
    title: str
    text: str


CLOSE = entry("Close", None, Dismiss())
QUICK_SETTINGS = Screen(  # the switches are those of the settings app
    title="Quick settings",
    rows=(switch("wifi", "Wi-Fi"), switch("mobile", "Mobile data"), switch("airplane", "Airplane mode")),
    foot=(CLOSE,),
)
POWER_MENU = Screen(  # every entry only closes the menu: a simulated phone stays on
    title="Power", rows=tuple(entry(text, None, Dismiss()) for text in ("Power off", "Restart", "Cancel"))
)


def app_list(title: str, apps: Iterable[App]) -> Screen:
    """Build a screen with one entry for each app: home screen, recents, share sheet."""
    rows = tuple(entry(app.label, None, Launch(app.package)) for app in apps)
    return Screen(title=title, rows=rows or (label("No items"),))


def shade(notices: Iterable[Notice]) -> Screen:
    """Build the notification shade with an entry for each notification."""
    rows = tuple(entry(notice.title, notice.text, Launch(notice.package)) for notice in notices)
    return Screen(title="Notifications", rows=rows or (label("No notifications"),), foot=(CLOSE,))


def keyguard() -> Window:
    """Build the lock screen."""
    clock = ViewNode(class_name="android.widget.TextView", bounds=Bounds(0, 400, 1080, 700), text="Locked")
    return Window(SYSTEM_UI, ViewNode(class_name="android.widget.FrameLayout", bounds=FULL, children=(clock,)))
