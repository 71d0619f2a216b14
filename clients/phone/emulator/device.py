"""The simulated device: apps and their screens, touch, navigation, and all other state.

It has no policy (blocklist, confirmation, master toggle) and no clock; `now` comes with every call. The effect of a
locked or unreadable screen on an action is a property of the device, so it is here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import assert_never

from clients.phone.emulator.environment import (
    SAMPLE_CONTACTS,
    SAMPLE_FIXES,
    Contact,
    EmulatedPermissions,
    Fix,
    Gesture,
    OutboxItem,
    Radio,
)
from clients.phone.emulator.events import EventBuffer, EventKind
from clients.phone.emulator.layout import App, Screen, ScreenState, build_window, longest_scroll
from clients.phone.emulator.sample_apps import MUSIC, SETTINGS
from clients.phone.emulator.system_screens import (
    LAUNCHER,
    POWER_MENU,
    QUICK_SETTINGS,
    SYSTEM_UI,
    Notice,
    Overlay,
    app_list,
    keyguard,
    shade,
)
from clients.phone.emulator.view_tree import (
    Action,
    Dismiss,
    Focus,
    GoBack,
    Launch,
    Playback,
    SelectEntry,
    ShowScreen,
    Submit,
    ToggleSwitch,
    ViewNode,
    Window,
    hit_test,
    traverse,
)
from svc_proto.basics.moment import Moment
from svc_proto.phone.arguments import clamp
from svc_proto.phone.command_refused import CommandRefused

__all__ = ["MAX_VOLUME", "EmulatedDevice"]

MAX_VOLUME = 15  # steps of the music stream
RECORDS = 500  # outbox items and gestures kept, oldest dropped
NOTICES = 50  # notifications kept, oldest dropped
TRACKS = ("Prelude", "Nocturne", "Toccata")
SHADE_EDGE = 80  # px from the top where a pull opens the shade
SHADE_PULL = 300  # px that a pull must travel
DISMISS_PULL = 300  # px that a stroke to the side must travel to remove a recent app
BUTTON = "android.widget.Button"


class EmulatedDevice:
    """A device that is on, unlocked and at its home screen. Tests and drivers may read its attributes."""

    def __init__(self, apps: Iterable[App], *, client: App) -> None:
        self.client = client
        self.apps: dict[str, App] = {app.package: app for app in (*apps, client)}
        self.front = LAUNCHER
        self.overlay: Overlay | None = None
        self.screen_on = True
        self.locked = False
        self.credential_lock = False
        self.battery_percent = 64
        self.permissions = EmulatedPermissions()
        self.radio = Radio.OK
        self.clipboard = ""
        self.playing = False
        self.track = 0
        self.volume = 7
        self.events = EventBuffer()
        self.contacts: tuple[Contact, ...] = SAMPLE_CONTACTS
        self.location_on = True
        self.fixes: tuple[Fix, ...] = SAMPLE_FIXES
        self.outbox: deque[OutboxItem] = deque(maxlen=RECORDS)
        self.gestures: deque[Gesture] = deque(maxlen=RECORDS)
        self.notices: deque[Notice] = deque(maxlen=NOTICES)
        self.texts: dict[tuple[str, str], str] = {}  # by package and field
        self.switches: dict[tuple[str, str], bool] = {(SETTINGS, "wifi"): True, (SETTINGS, "mobile"): True}
        self._selected: dict[tuple[str, str], bool] = {}
        self._stacks: dict[str, list[str]] = {}  # screens of each app, the shown one last
        self._offsets: dict[tuple[str, str], int] = {}  # scroll by package and screen, px
        self._recent: list[str] = []  # packages, newest first
        self._cursor: tuple[str, str] | None = None
        self._share_title = ""

    # --- the screen ------------------------------------------------------------------------------------------

    def windows(self) -> tuple[Window, ...]:
        """Return the windows of the accessibility service, topmost first; empty without its permission."""
        if not self.permissions.accessibility:
            return ()
        if self.locked:
            return (keyguard(),)
        app = self._window(self.front, self._app_screen(), self._visible_screen())
        if self.overlay is None:
            return (app,)
        return self._window(self.overlay.package, self._overlay_screen(self.overlay), self.overlay.value[0]), app

    def readable(self) -> tuple[Window, ...]:
        """Return the windows. Raises `CommandRefused` with 500 when there are none."""
        windows = self.windows()
        if not windows:
            raise CommandRefused(500, "no accessibility window is readable")
        return windows

    def touchable(self) -> None:
        """Raise `CommandRefused` with 400 when no gesture is possible."""
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

    def _window(self, package: str, screen: Screen, name: str) -> Window:
        state = SETTINGS if package == SYSTEM_UI else package
        look = ScreenState(
            texts={key: text for (owner, key), text in self.texts.items() if owner == state},
            on=frozenset(key for (owner, key), on in self.switches.items() if owner == state and on),
            selected=frozenset(key for (owner, key), on in self._selected.items() if owner == state and on),
            cursor=self._cursor[1] if self._cursor is not None and self._cursor[0] == state else None,
            offset=min(self._offsets.get((package, name), 0), longest_scroll(screen)),
            deep=len(self._stacks.get(package, ())) > 1,
        )
        return build_window(package, screen, look)

    def _visible_screen(self) -> str:
        stack = self._stacks.get(self.front)
        return stack[-1] if stack else ""

    def _app_screen(self) -> Screen:
        app = self.apps.get(self.front)
        return app_list("Home", self.apps.values()) if app is None else app.screens[self._visible_screen()]

    def _overlay_screen(self, overlay: Overlay) -> Screen:
        match overlay:
            case Overlay.RECENTS:
                return app_list("Recent apps", [self.apps[package] for package in self._recent])
            case Overlay.SHADE:
                return shade(self.notices)
            case Overlay.QUICK_SETTINGS:
                return QUICK_SETTINGS
            case Overlay.POWER_MENU:
                return POWER_MENU
            case Overlay.SHARE_SHEET:
                return app_list(self._share_title, self.apps.values())
            case _ as never:
                assert_never(never)

    # --- navigation ------------------------------------------------------------------------------------------

    def launch(self, package: str, now: Moment, screen: str | None = None) -> bool:
        """Bring an app to the front; return False when it is not installed."""
        app = self.apps.get(package)
        if app is None:
            return False
        stack = self._stacks.setdefault(package, [app.home])
        if screen is not None and screen in app.screens and screen != stack[-1]:
            self._push(package, stack, screen)
        if package in self._recent:
            self._recent.remove(package)
        self._recent.insert(0, package)
        self.front = package
        self._changed(now)
        return True

    def global_action(self, key: str, now: Moment) -> bool:
        """Perform a global action by its name on the wire; return False for an unknown name.

        Raises `CommandRefused` while the phone is locked, unless the key is for that.
        """
        if key not in ("lock_screen", "wakeup"):
            self.unlocked()
        match key:
            case "home":
                self.front = LAUNCHER
                self._changed(now)
            case "back":
                self.back(now)
            case "recents" | "recent_apps" | "overview":
                self._changed(now, Overlay.RECENTS)
            case "notifications":
                self._changed(now, Overlay.SHADE)
            case "quick_settings":
                self._changed(now, Overlay.QUICK_SETTINGS)
            case "power_dialog":
                self._changed(now, Overlay.POWER_MENU)
            case "lock_screen":
                self.locked, self.screen_on = True, False
                self._changed(now)
            case "enter":
                self.enter(now)
            case "wakeup":
                self.wake(now)
            case _:
                return False
        return True

    def wake(self, now: Moment) -> bool:
        """Turn the display on and dismiss a lock without credential; return whether the phone is usable."""
        self.screen_on = True
        if self.locked and not self.credential_lock:
            self.locked = False
            self._changed(now)
        return not self.locked

    def enter(self, now: Moment) -> None:
        """End the input: move the focus to the next field, or press a button below that only shows another screen."""
        fields = [each for each in traverse(self.windows()) if each.node.field is not None and each.node_id is not None]
        place = next((index for index, each in enumerate(fields) if each.node.focused), None)
        if place is not None and place + 1 < len(fields):
            self._do(Focus(str(fields[place + 1].node.field)), fields[place + 1].window.package, now)
            return
        if fields:
            buttons = (each for each in traverse(self.windows()) if isinstance(each.node.press, ShowScreen))
            pressed = next((each for each in buttons if each.node.class_name == BUTTON), None)
            if pressed is not None:
                self.click(pressed.node, pressed.window.package, now)

    def back(self, now: Moment) -> None:
        """Close the system window, or go back one screen, or go home."""
        if self.overlay is None:
            stack = self._stacks.get(self.front, [])
            if len(stack) > 1:
                stack.pop()
            else:
                self.front = LAUNCHER
        self._changed(now)

    def share(self, title: str, now: Moment) -> None:
        """Open the share sheet."""
        self._share_title = title
        self._changed(now, Overlay.SHARE_SHEET)

    def _changed(self, now: Moment, overlay: Overlay | None = None) -> None:
        """Set the window on top, and record the change."""
        self.overlay = overlay
        self._cursor = None
        package = self.front if overlay is None else overlay.package
        title = "" if self.locked else (self._app_screen() if overlay is None else self._overlay_screen(overlay)).title
        self.events.record(EventKind.STATE_CHANGED, package, now, class_name="android.widget.FrameLayout", text=title)

    def _push(self, package: str, stack: list[str], screen: str) -> None:
        if screen in stack:  # no screen twice, so a stack is no longer than its app
            del stack[stack.index(screen) + 1 :]
            return
        stack.append(screen)
        self._offsets.pop((package, screen), None)

    # --- touch -----------------------------------------------------------------------------------------------

    def touch(self, kind: str, points: tuple[tuple[int, int], ...], duration_ms: int, now: Moment) -> None:
        """Perform a gesture: the node under the first point reacts."""
        self.gestures.append(Gesture(kind, points, duration_ms, int(now.wall * 1000)))
        (x, y), end_y = points[0], points[-1][1]
        if kind in ("swipe", "drag"):
            end_x = points[-1][0]
            if self.overlay is Overlay.RECENTS and abs(end_x - x) > max(abs(end_y - y), DISMISS_PULL):
                self._dismiss_recent(x, y, now)
            else:
                self._pull(x, y, end_y - y, now)
            return
        top = self.readable()[0]
        node = hit_test(top, x, y, hold=kind == "long_press")
        if node is not None:
            self.click(node, top.package, now, hold=kind == "long_press")

    def click(self, node: ViewNode, package: str, now: Moment, *, hold: bool = False) -> None:
        """Press or hold a node, wherever it is."""
        action = node.hold if hold else node.press
        if action is None or not node.enabled:
            return
        if not hold:
            self.events.record(
                EventKind.CLICK,
                package,
                now,
                class_name=node.class_name,
                text=" ".join(each.text for each in (node, *node.children) if each.text),
                description=node.description,
            )
        self._do(action, package, now)

    def type_text(self, text: str, now: Moment) -> bool:
        """Replace the text of the focused field, or of the first one; return False when the screen has none."""
        fields = [
            (each.node.field, each.node, each.window.package)
            for each in traverse(self.readable())
            if each.node.field is not None and each.node_id is not None
        ]
        if not fields:
            return False
        key, node, package = next((each for each in fields if each[1].focused), fields[0])
        self.texts[package, key] = text
        shown = None if node.password else text
        self.events.record(EventKind.TEXT_CHANGED, package, now, class_name=node.class_name, text=shown)
        return True

    def _dismiss_recent(self, x: int, y: int, now: Moment) -> None:
        """Remove the app whose card is at a point from the recent ones."""
        node = hit_test(self.readable()[0], x, y)
        if node is not None and isinstance(node.press, Launch):
            self._recent.remove(node.press.package)
            self._changed(now, Overlay.RECENTS)

    def _pull(self, x: int, y: int, distance: int, now: Moment) -> None:
        if y < SHADE_EDGE and distance > SHADE_PULL:
            self._changed(now, Overlay.SHADE)
            return
        top = self.readable()[0]
        if hit_test(top, x, y, scrollable=True) is None:
            return
        overlay = self.overlay
        screen = self._app_screen() if overlay is None else self._overlay_screen(overlay)
        place = (self.front, self._visible_screen()) if overlay is None else (overlay.package, overlay.value[0])
        before = min(self._offsets.get(place, 0), longest_scroll(screen))
        after = clamp(before - distance, 0, longest_scroll(screen))
        if after != before:
            self._offsets[place] = after
            list_class = "androidx.recyclerview.widget.RecyclerView"
            self.events.record(EventKind.SCROLL, top.package, now, class_name=list_class)

    def _do(self, action: Action, package: str, now: Moment) -> None:
        owner = SETTINGS if package == SYSTEM_UI else package
        match action:
            case ShowScreen():
                self.texts.update({(package, key): text for key, text in action.fill})
                self.launch(package, now, action.screen)
            case GoBack() | Dismiss():
                self.back(now)
            case ToggleSwitch():
                self.switches[owner, action.key] = not self.switches.get((owner, action.key), False)
                self._updated(package, now)
            case SelectEntry():
                self._selected[owner, action.key] = not self._selected.get((owner, action.key), False)
                self._updated(package, now)
            case Focus():
                self._cursor = (owner, action.key)
                self._updated(package, now)
            case Launch():
                self.launch(action.package, now, action.screen)
            case Playback():
                self.playback(action.action)
                self._updated(package, now)
            case Submit():
                self._submit(action, package, now)
            case _ as never:
                assert_never(never)

    def _submit(self, action: Submit, package: str, now: Moment) -> None:
        texts = {key: self.texts.pop((package, key), "") for key in action.fields}
        self.record(action.kind, now, {"app": package, "screen": self._visible_screen(), "fields": texts})
        if action.fields:
            self.texts[package, "sent"] = texts[action.fields[-1]]
        self._stacks[package] = [self.apps[package].home]
        self.launch(package, now, action.then)

    def _updated(self, package: str, now: Moment) -> None:
        self.events.record(EventKind.CONTENT_CHANGED, package, now, class_name="android.widget.FrameLayout")

    # --- the rest --------------------------------------------------------------------------------------------

    def record(self, kind: str, now: Moment, details: Mapping[str, object]) -> None:
        """Record an item in the outbox."""
        self.outbox.append(OutboxItem(kind, int(now.wall * 1000), details))

    def notify(self, notice: Notice, now: Moment) -> None:
        """Post a notification, the newest on top."""
        self.notices.appendleft(notice)
        self._updated(SYSTEM_UI, now)

    def playback(self, action: str) -> None:
        """Perform a media key: play, pause, toggle, next or previous."""
        self.playing = not self.playing if action == "toggle" else action != "pause"
        self.track = (self.track + {"next": 1, "previous": -1}.get(action, 0)) % len(TRACKS)
        self.texts[MUSIC, "track"] = f"{'Playing' if self.playing else 'Paused'}: {TRACKS[self.track]}"

    def fill(self, package: str, texts: Mapping[str, str]) -> None:
        """Set texts of an app's fields, as a hand-over from another app does."""
        self.texts.update({(package, key): text for key, text in texts.items()})
