"""The simulated device: navigation, touch and input. `device_state` has the windows that it shows.

It has no policy (blocklist, confirmation, master toggle).
"""

from collections import deque
from collections.abc import Iterable, Mapping
from typing import assert_never

from clients.phone.emulator import actions
from clients.phone.emulator.device_state import DeviceState, top_window
from clients.phone.emulator.environment import Gesture, OutboxItem
from clients.phone.emulator.events import EventKind
from clients.phone.emulator.layout import App, Form
from clients.phone.emulator.pickers import Picker
from clients.phone.emulator.sample_apps import MUSIC, SETTINGS
from clients.phone.emulator.system_screens import LAUNCHER, SYSTEM_UI, Notice, Overlay
from clients.phone.emulator.view_tree import ViewNode, hit_test, traverse, window_at
from clients.phone.emulator.widgets import longest_scroll
from svc_proto.basics.moment import Moment
from svc_proto.phone.arguments import clamp

__all__ = ["MAX_VOLUME", "EmulatedDevice"]

MAX_VOLUME = 15  # steps of the music stream
TRACKS = ("Prelude", "Nocturne", "Toccata")
SHADE_EDGE = 80  # px from the top where a pull opens the shade
SHADE_PULL = 300  # px that a pull must travel
DISMISS_PULL = 300  # px that a stroke to the side must travel to remove a recent app
TOAST = 3.0  # s
PENDING = 100  # touches whose effect is to come
BUTTON = "android.widget.Button"


class EmulatedDevice(DeviceState):
    """Simulated device that reacts to touches, keys, typed text and launches."""

    def __init__(self, apps: Iterable[App], *, client: App) -> None:
        super().__init__(apps, client=client)
        self._pending: deque[tuple[float, actions.Action, str, float]] = deque(maxlen=PENDING)

    def advance(self, now: Moment) -> None:
        """Set the current time, and perform the delayed effects that are due."""
        self._now = now
        while self._pending and self._pending[0][0] <= now.mono:
            _, action, package, part = self._pending.popleft()
            self._do(action, package, now, part)

    # --- navigation ------------------------------------------------------------------------------------------

    def launch(self, package: str, now: Moment, screen: str | None = None) -> bool:
        """Bring an app to the front, on the named screen if it has that; return False when the app is not installed."""
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

        Raises `CommandRefused` while the phone is locked, unless `key` is `lock_screen` or `wakeup`.
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
        """Turn the display on and dismiss a lock without credential; return whether the phone is unlocked."""
        self.screen_on = True
        if self.locked and not self.credential_lock:
            self.locked = False
            self._changed(now)
        return not self.locked

    def enter(self, now: Moment) -> None:
        """End the input: move the focus to the next field, else press the first button that shows a screen.

        The button is also pressed if no field has the focus. On a screen without fields, nothing happens.
        """
        fields = [each for each in traverse(self.windows()) if each.node.field is not None and each.node_id is not None]
        place = next((index for index, each in enumerate(fields) if each.node.focused), None)
        if place is not None and place + 1 < len(fields):
            self._do(actions.Focus(str(fields[place + 1].node.field)), fields[place + 1].window.package, now, 0.5)
            return
        if fields:
            buttons = (each for each in traverse(self.windows()) if isinstance(each.node.press, actions.ShowScreen))
            pressed = next((each for each in buttons if each.node.class_name == BUTTON), None)
            if pressed is not None:
                self.click(pressed.node, pressed.window.package, now)

    def back(self, now: Moment) -> None:
        """Hide the keyboard, else close the window on top, else go back one screen, else go home."""
        if self.has_keyboard and self._cursor is not None:
            self._cursor = None
            self._updated(self.front, now)
            return
        if self._picker is not None:
            self._picker = None
        elif self.overlay is None:
            stack = self._stacks.get(self.front, [])
            if len(stack) > 1:
                stack.pop()
            else:
                self.front = LAUNCHER
        self._changed(now)

    def share(self, title: str, now: Moment) -> None:
        """Open the share sheet with a title."""
        self._share_title = title
        self._changed(now, Overlay.SHARE_SHEET)

    def _changed(self, now: Moment, overlay: Overlay | None = None) -> None:
        """Show a system window, or none, over the app; reset cursor and picker, and record the change as an event."""
        self.overlay = overlay
        self._cursor = self._picker = None
        self._shown_at = now.mono
        package = self.front if overlay is None else overlay.package
        title = "" if self.locked else (self._app_screen() if overlay is None else self._overlay_screen(overlay)).title
        self.events.record(EventKind.STATE_CHANGED, package, now, class_name="android.widget.FrameLayout", text=title)

    def _push(self, package: str, stack: list[str], screen: str) -> None:
        while self.apps[package].screens[stack[-1]].form is not Form.WHOLE:  # a menu and a dialog end with a choice
            stack.pop()
        if screen in stack:  # no screen twice, so a stack is no longer than its app
            del stack[stack.index(screen) + 1 :]
            return
        stack.append(screen)
        self._offsets.pop((package, screen), None)

    # --- touch -----------------------------------------------------------------------------------------------

    def touch(self, kind: str, points: tuple[tuple[int, int], ...], duration_ms: int, now: Moment) -> None:
        """Perform a gesture: a press acts on its node, or goes back beside a dialog.

        A swipe or drag scrolls, pulls the notification shade, or removes a recent app.
        """
        self.gestures.append(Gesture(kind, points, duration_ms, int(now.wall * 1000)))
        (x, y), end_y = points[0], points[-1][1]
        if kind in ("swipe", "drag"):
            end_x = points[-1][0]
            if self.overlay is Overlay.RECENTS and abs(end_x - x) > max(abs(end_y - y), DISMISS_PULL):
                self._dismiss_recent(x, y, now)
            else:
                self._pull(x, y, end_y - y, now)
            return
        windows = self.readable()
        top, first = window_at(windows, x, y), top_window(windows)
        if top is None or (top is not first and top.package == first.package):
            if x < self.size[0] and y < self.size[1]:  # beside a dialog
                self.back(now)
            return
        node = hit_test(top, x, y, hold=kind == "long_press")
        if node is not None:
            part = (x - node.bounds.left) / node.bounds.width
            self.click(node, top.package, now, hold=kind == "long_press", part=part)

    def click(self, node: ViewNode, package: str, now: Moment, *, hold: bool = False, part: float = 0.5) -> None:
        """Press or hold a node; `part` (0 to 1) is where in its width it is touched.

        The effect follows after `delay` seconds. Does nothing if the node is disabled, or has no effect for a press or
        a hold.
        """
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
        if self.delay:
            self._pending.append((now.mono + self.delay, action, package, part))
        else:
            self._do(action, package, now, part)

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
        """Remove the app whose card is at a point from the recent ones; without a card there, do nothing."""
        node = hit_test(self.top(), x, y)
        if node is not None and isinstance(node.press, actions.Launch):
            self._recent.remove(node.press.package)
            self._changed(now, Overlay.RECENTS)

    def _pull(self, x: int, y: int, distance: int, now: Moment) -> None:
        if y < SHADE_EDGE and distance > SHADE_PULL:
            self._changed(now, Overlay.SHADE)
            return
        top = window_at(self.readable(), x, y)
        if top is None or hit_test(top, x, y, scrollable=True) is None:
            return
        overlay = self.overlay
        screen = self._app_screen() if overlay is None else self._overlay_screen(overlay)
        place = (self.front, self._visible_screen()) if overlay is None else (overlay.package, overlay.value[0])
        before = min(self._offsets.get(place, 0), longest_scroll(screen, self.size))
        after = clamp(before - distance, 0, longest_scroll(screen, self.size))
        if after != before:
            self._offsets[place] = after
            list_class = "androidx.recyclerview.widget.RecyclerView"
            self.events.record(EventKind.SCROLL, top.package, now, class_name=list_class)

    def _do(self, action: actions.Action, package: str, now: Moment, part: float) -> None:
        owner = SETTINGS if package == SYSTEM_UI else package
        match action:
            case actions.ShowScreen():
                self.texts.update({(package, key): text for key, text in action.fill})
                self.launch(package, now, action.screen)
                self.content.set_defaults(package, self.apps[package].screens[action.screen])
            case actions.GoBack() | actions.Dismiss():
                self.back(now)
            case (
                actions.ToggleSwitch()
                | actions.SelectEntry()
                | actions.ClearSelection()
                | actions.SetText()
                | actions.SetBar()
            ):
                self.content.apply(action, owner, part)
                if isinstance(action, actions.SetText) and action.closes:
                    self._picker = None
                self._updated(package, now)
            case actions.Focus() | actions.OpenPicker() | actions.EditText() | actions.PressKey():
                self._input(action, owner, now)
                self._updated(package, now)
            case actions.ChangeRecords():
                self._change(action, package, now)
            case actions.Launch():
                self.launch(action.package, now, action.screen)
            case actions.Playback():
                self.playback(action.action)
                self._updated(package, now)
            case actions.Submit():
                self._submit(action, package, now)
            case _ as never:
                assert_never(never)

    def _input(
        self,
        action: actions.Focus | actions.OpenPicker | actions.EditText | actions.PressKey,
        package: str,
        now: Moment,
    ) -> None:
        match action:
            case actions.Focus(key):
                self._cursor = package, key
            case actions.OpenPicker():
                self._cursor, self._picker = None, Picker(package, action)
            case actions.EditText(key, ""):
                self._cursor, self._picker = (package, key), Picker(package, action)
            case actions.EditText(key, command):
                self._picker = None
                self.clipboard = self.content.edit(command, (package, key), self.clipboard)
            case actions.PressKey("Enter"):
                self.enter(now)
            case actions.PressKey(letter):
                if self._cursor is not None:
                    self.content.edit(letter, self._cursor, letter)
            case _ as never:
                assert_never(never)

    def _change(self, action: actions.ChangeRecords, package: str, now: Moment) -> None:
        outcome = self.content.change(action, package)
        if outcome.then:
            stack = self._stacks[package]
            if outcome.then not in stack:
                stack[:] = [self.apps[package].home]
            self.launch(package, now, outcome.then)
        if outcome.toast:
            self._toast = package, outcome.toast, now.mono + TOAST
        self._updated(package, now)

    def _submit(self, action: actions.Submit, package: str, now: Moment) -> None:
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
        """Add an item to the outbox, which drops its oldest one if it is full."""
        self.outbox.append(OutboxItem(kind, int(now.wall * 1000), details))

    def notify(self, notice: Notice, now: Moment) -> None:
        """Post a notification, the newest on top; the oldest one beyond the limit is dropped."""
        self.notices.appendleft(notice)
        self._updated(SYSTEM_UI, now)

    def playback(self, action: str) -> None:
        """Perform a media key: play, pause, toggle, next or previous; the last two also play."""
        self.playing = not self.playing if action == "toggle" else action != "pause"
        self.track = (self.track + {"next": 1, "previous": -1}.get(action, 0)) % len(TRACKS)
        self.texts[MUSIC, "track"] = f"{'Playing' if self.playing else 'Paused'}: {TRACKS[self.track]}"

    def fill(self, package: str, texts: Mapping[str, str]) -> None:
        """Set texts of an app's fields, by key."""
        self.texts.update({(package, key): text for key, text in texts.items()})
