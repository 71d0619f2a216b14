"""State of the simulated device, and the windows that it shows.

There is no clock: `advance` brings the time of each command. A locked or unreadable screen is a property of the device,
so its effect on an action is here.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import assert_never

from attrs import evolve

from clients.phone.emulator import environment, system_screens
from clients.phone.emulator.app_content import AppContent
from clients.phone.emulator.events import EventBuffer
from clients.phone.emulator.layout import App, Form, Screen, ScreenState, label
from clients.phone.emulator.pickers import Picker, picker_screen
from clients.phone.emulator.sample_apps import SETTINGS
from clients.phone.emulator.view_tree import HEIGHT, WIDTH, Window
from clients.phone.emulator.widgets import KEYBOARD, build_keyboard, build_toast, build_window, longest_scroll
from svc_proto.basics.moment import Moment
from svc_proto.phone.backend import CommandRefused

__all__ = ["DeviceState", "top_window"]

RECORDS = 500  # outbox items and gestures kept, oldest dropped
NOTICES = 50  # notifications kept, oldest dropped
LOADING = label("Loading")


class DeviceState:
    """State of a device, at first on, unlocked and at its home screen.

    Tests and drivers may read and set its attributes.
    """

    def __init__(self, apps: Iterable[App], *, client: App) -> None:
        self.client = client
        self.apps: dict[str, App] = {app.package: app for app in (*apps, client)}
        self.front = system_screens.LAUNCHER
        self.overlay: system_screens.Overlay | None = None
        self.screen_on = True
        self.locked = False
        self.credential_lock = False
        self.rotated = False
        self.has_keyboard = False  # whether a keyboard covers the lower part of the screen while a field has the cursor
        self.delay = 0.0  # s from a touch to its effect
        self.battery_percent = 64
        self.permissions = environment.EmulatedPermissions()
        self.radio = environment.Radio.OK
        self.clipboard = ""
        self.playing = False
        self.track = 0
        self.volume = 7
        self.events = EventBuffer()
        self.contacts: tuple[environment.Contact, ...] = environment.SAMPLE_CONTACTS
        self.location_on = True
        self.fixes: tuple[environment.Fix, ...] = environment.SAMPLE_FIXES
        self.outbox: deque[environment.OutboxItem] = deque(maxlen=RECORDS)
        self.gestures: deque[environment.Gesture] = deque(maxlen=RECORDS)
        self.notices: deque[system_screens.Notice] = deque(maxlen=NOTICES)
        self.content = AppContent(self.apps.values())
        self.texts = self.content.texts  # by package and field
        self.switches = self.content.switches
        self.switches |= {(SETTINGS, "wifi"): True, (SETTINGS, "mobile"): True}  # also of quick settings alone
        self._now = Moment(0.0, 0.0)
        self._shown_at = 0.0  # since when the screen of the app is shown
        self._stacks: dict[str, list[str]] = {}  # screens of each app, the shown one last
        self._offsets: dict[tuple[str, str], int] = {}  # scroll by package and screen, px
        self._recent: list[str] = []  # packages, newest first
        self._cursor: tuple[str, str] | None = None
        self._share_title = ""
        self._picker: Picker | None = None
        self._toast: tuple[str, str, float] | None = None  # package, text and end

    @property
    def size(self) -> tuple[int, int]:
        """Return width and height in pixels."""
        return (HEIGHT, WIDTH) if self.rotated else (WIDTH, HEIGHT)

    def windows(self) -> tuple[Window, ...]:
        """Return the windows of the accessibility service, topmost first; empty without its permission.

        While the phone is locked, the lock screen is the only one.
        """
        if not self.permissions.accessibility:
            return ()
        return (system_screens.keyguard(),) if self.locked else tuple(self._windows())

    def top(self) -> Window:
        """Return the topmost window that is neither a notice nor a keyboard. Raises as `readable` does."""
        return top_window(self.readable())

    def readable(self) -> tuple[Window, ...]:
        """Return the windows of the accessibility service. Raises `CommandRefused` with 500 when there are none."""
        windows = self.windows()
        if not windows:
            raise CommandRefused(500, "no accessibility window is readable")
        return windows

    def touchable(self) -> None:
        """Raise `CommandRefused` with 400 without the accessibility service, or while the phone is locked."""
        if not self.permissions.accessibility:
            raise CommandRefused(
                400,
                "the accessibility service is not running",
                "service_unavailable",
                required_action="Turn on the accessibility service of the client in the system settings.",
            )
        self.unlocked()

    def unlocked(self) -> None:
        """Raise `CommandRefused` with 400 while the lock screen is in the way."""
        if self.locked:
            raise CommandRefused(
                400,
                "the lock screen is in the way",
                "keyguard_blocked",
                required_action="Unlock the phone.",
                final=True,
            )

    def foreground(self) -> str:
        """Return the package of the app in front; `unknown` without the accessibility service."""
        return self.front if self.permissions.accessibility else "unknown"

    def _windows(self) -> Iterator[Window]:
        if self._toast is not None and self._now.mono < self._toast[2]:
            yield build_toast(*self._toast[:2], self.size)
        if self.has_keyboard and self._cursor is not None:
            yield build_keyboard(self.size)
        if self.overlay is not None:
            yield self._window(self.overlay.package, self._overlay_screen(self.overlay), self.overlay.value[0])
        if self._picker is not None:
            package = self._picker.package
            yield self._window(package, picker_screen(self._picker, self.content.texts_of(package)), "")
        for name in reversed(self._stacks.get(self.front, [""])):
            screen = self._screen(name)
            yield self._window(self.front, screen, name)
            if screen.form is Form.WHOLE:
                return

    def _window(self, package: str, screen: Screen, name: str) -> Window:
        state = SETTINGS if package == system_screens.SYSTEM_UI else package
        look = ScreenState(
            texts=self.content.texts_of(state),
            on=frozenset(key for (owner, key), on in self.switches.items() if owner == state and on),
            selected=frozenset(key for owner, key in self.content.selected if owner == state),
            cursor=self._cursor[1] if self._cursor is not None and self._cursor[0] == state else None,
            offset=min(self._offsets.get((package, name), 0), longest_scroll(screen, self.size)),
            deep=len(self._stacks.get(package, ())) > 1,
            size=self.size,
        )
        return build_window(package, screen, look)

    def _visible_screen(self) -> str:
        stack = self._stacks.get(self.front)
        return stack[-1] if stack else ""

    def _app_screen(self) -> Screen:
        return self._screen(self._visible_screen())

    def _screen(self, name: str) -> Screen:
        app = self.apps.get(self.front)
        if app is None:
            return system_screens.app_list("Home", self.apps.values())
        screen = app.screens[name]
        if self._now.mono < self._shown_at + screen.late:
            screen = evolve(screen, rows=(LOADING,))
        return self.content.fill(screen, self.front)

    def _overlay_screen(self, overlay: system_screens.Overlay) -> Screen:
        match overlay:
            case system_screens.Overlay.RECENTS:
                return system_screens.app_list("Recent apps", [self.apps[package] for package in self._recent])
            case system_screens.Overlay.SHADE:
                return system_screens.shade(self.notices)
            case system_screens.Overlay.QUICK_SETTINGS:
                return system_screens.QUICK_SETTINGS
            case system_screens.Overlay.POWER_MENU:
                return system_screens.POWER_MENU
            case system_screens.Overlay.SHARE_SHEET:
                return system_screens.app_list(self._share_title, self.apps.values())
            case _ as never:
                assert_never(never)


def top_window(windows: Sequence[Window]) -> Window:
    """Return the first window that is neither a notice nor a keyboard; there must be one."""
    return next(each for each in windows if each.reacts and each.package != KEYBOARD)
