"""Touches of a phone's screen, with reports of what was touched and what changed (wire bridge 3.5)."""

from collections.abc import Mapping
from typing import Self

from svc_proto.agent.tools.phone_looks import PhoneLooks
from svc_proto.agent.tools.phone_result import ERROR_HINTS, body_of
from svc_proto.agent.tools.phone_screen import PhoneScreen, ScreenRow, find_again
from svc_proto.agent.tools.phone_screen_text import describe_row, quote
from svc_proto.agent.tools.tool import Arguments
from svc_proto.basics.errors import ToolError
from svc_proto.engine.flow import Flow
from svc_proto.schema.json_object import JsonObject
from svc_proto.service_clients.phone_control import PhoneControl, PhoneResponse

__all__ = ["TouchActions", "device_of", "members_of", "rows_with"]

SWIPE_PART = {"short": 15, "medium": 30, "long": 45}  # per cent of the axis for a swipe
MAX_SCROLLS = 20  # strokes in search of a text
MAX_LISTED = 10  # rows that are named beside the one that was touched
POINTS = ("start_x", "start_y", "end_x", "end_y")
TOUCH_TRIES = 4  # of one touch on a screen that changes; the last is not bound to the screen
NOTHING = "changed: false; nothing on the screen changed"
KEPT_OUT = "what it now shows cannot be read: {why}"
LOCKED = "423 keyguard_blocked: the phone is locked, and nothing of this can be seen."


class TouchActions:
    """Touches on the phones behind one link, and the report of any act."""

    def __init__(self, link: PhoneControl) -> None:
        self.link = link
        self.looks = PhoneLooks(link)

    def over(self, link: PhoneControl, chat: str) -> Self:
        """Return the same acts over another link to the same phones, with the looks of a chat."""
        other = type(self)(link)
        other.looks = self.looks.over(link, chat)
        return other

    # --- touching -------------------------------------------------------------------------------------------------

    def tap(self, arguments: Arguments) -> Flow[str]:
        """Tap a node, or a point, and return the report. Raises `ToolError` if it is not there or the phone refuses."""
        return (yield from self._press(arguments, "/tap", "tapped", {}))

    def long_press(self, arguments: Arguments) -> Flow[str]:
        """Press a node, or a point, for long, and return the report. Raises `ToolError` as `tap` does."""
        more = {name: arguments[name] for name in ("duration",) if name in arguments}
        return (yield from self._press(arguments, "/long_press", "pressed for long:", more))

    def tap_text(self, arguments: Arguments) -> Flow[str]:
        """Tap the row with a text, and return the report. Of several rows, `index` selects one, by default the first.

        `rows_with` returns the rows. If the screen cannot be read, the phone searches the text itself. Raises
        `ToolError` if no row has the text or the `index`, if the row is disabled, or if the phone refuses.
        """
        device, wanted = device_of(arguments), str(arguments["text"])
        before = yield from self.read_before(device)
        if before is None:  # the phone refuses the call with its reason
            answer = yield from self.link.call("POST", "/tap_text", {**members_of(device), "text": wanted})
            body_of(answer)
            return (yield from self.finish(device, f"tapped {quote(wanted)}", before))
        rows = rows_with(before, wanted, exact=arguments.get("exact") is True)
        if not rows:
            raise ToolError(f"nothing on the screen has the text {quote(wanted)}", self.looks.show(device, before))
        given = JsonObject.of(arguments).integer("index")
        index = 1 if given is None else given
        if not 1 <= index <= len(rows):
            raise ToolError(f"index must be 1 to {len(rows)}: so many have this text", _list(rows))
        row = rows[index - 1]
        about = ""
        if len(rows) > 1:
            others = _list([each for each in rows if each is not row])
            about = (
                f"\nnumber {index} of {len(rows)} with this text; choose by index or nodeId. The others:\n{others}\n"
            )
        return (yield from self._touch(device, row, before, "/tap", "tapped", {}, about))

    def swipe(self, arguments: Arguments) -> Flow[str]:
        """Swipe between two points, or in a direction, which is converted to points (wire bridge 3.9).

        Returns the report. Raises `ToolError` if neither is given, or if the phone refuses.
        """
        device = device_of(arguments)
        line = {name: arguments[name] for name in POINTS if name in arguments}
        before = yield from self.read_before(device)
        if len(line) < len(POINTS):
            direction = arguments.get("direction")
            if direction is None:
                raise ToolError("give direction, or all of start_x, start_y, end_x and end_y")
            if before is None:
                before = yield from self.looks.read(device)  # raises the reason
            line = _line(before, str(direction), SWIPE_PART[str(arguments.get("distance", "medium"))])
        more = {name: arguments[name] for name in ("duration_ms",) if name in arguments}
        told = "swiped from {start_x},{start_y} to {end_x},{end_y}".format(**line)
        return (yield from self._perform(device, "/swipe", {**line, **more}, told, before))

    def drag(self, arguments: Arguments) -> Flow[str]:
        """Drag from one point to another, and return the report."""
        device = device_of(arguments)
        before = yield from self.read_before(device)
        told = "dragged from {start_x},{start_y} to {end_x},{end_y}".format(**arguments)
        line = {name: value for name, value in arguments.items() if name != "device"}
        return (yield from self._perform(device, "/drag", line, told, before))

    def scroll(self, arguments: Arguments) -> Flow[str]:
        """Scroll the screen or a node, once, or until a text is shown, and return the report.

        The search ends after `MAX_SCROLLS` times, or if the screen does not change. If the screen cannot be read, it is
        scrolled once. Raises `ToolError` if the text is not found, or if the phone refuses.
        """
        device, until = device_of(arguments), str(arguments.get("until", ""))
        before = yield from self.read_before(device)
        body: dict[str, object] = {"direction": arguments["direction"]}
        row = None
        if before is not None and arguments.get("nodeId") is not None:
            row = self.resolve(device, arguments, before)
        told = f"scrolled {arguments['direction']}"
        if not until or before is None:
            if row is not None:
                body["nodeId"] = row.node.node_id
            result = yield from self._perform(device, "/scroll", body, told, before)
            return result.replace(NOTHING, f"{NOTHING}: this is the end", 1)
        count, now = 0, before
        while not (found := rows_with(now, until, exact=False)) and count < MAX_SCROLLS:
            if row is not None:
                row = find_again(row, before, now) or row
                body["nodeId"] = row.node.node_id
            yield from self.call("/scroll", device, body)
            count += 1
            last = now
            now, _ = yield from self.looks.settle(device, last)
            if now.fingerprint == last.fingerprint:
                break
            before = last
        if not found:
            raise ToolError(
                f"{quote(until)} was not found: {told} {count} times, to the end", self.looks.show(device, now)
            )
        return f"{told} {count} times; {quote(until)} is {describe_row(found[0])}\n{self.looks.show(device, now)}"

    def set_bar(self, arguments: Arguments) -> Flow[str]:
        """Set a bar to `percent` of its length by a tap, and return the report.

        Raises `ToolError` if it is not there or is no bar, or if the phone refuses.
        """
        device, percent = device_of(arguments), int(str(arguments["percent"]))
        before = yield from self.read_before(device)
        if before is None:
            before = yield from self.looks.read(device)  # raises the reason
        row = self.resolve(device, arguments, before)
        if row.node.kind != "slider":
            raise ToolError(f"{describe_row(row)} is no bar. Nothing was done.")
        left, _, right, _ = row.node.bounds
        x = min(right - 1, left + (right - left) * percent // 100)
        told = f"set {describe_row(row)} to {percent} %"
        return (yield from self._perform(device, "/tap", {"x": x, "y": row.node.center[1]}, told, before, field=row))

    # --- helpers --------------------------------------------------------------------------------------------------

    def call(self, path: str, device: str, body: Mapping[str, object]) -> Flow[JsonObject]:
        """Call an acting route and return its answer. Raises `ToolError` if the phone refuses."""
        answer = yield from self.link.call("POST", path, {**members_of(device), **body})
        return body_of(answer)

    def read_before(self, device: str) -> Flow[PhoneScreen | None]:
        """Return the screen before an act; None if it cannot be read, which the act itself reports."""
        try:
            return (yield from self.looks.read(device))
        except ToolError:
            return None

    def resolve(self, device: str, arguments: Arguments, now: PhoneScreen) -> ScreenRow:
        """Return the row that the arguments `look` and `nodeId` name. Raises `ToolError` if it is not on the screen."""
        look = JsonObject.of(arguments).integer("look")
        return self.looks.resolve(device, str(arguments["nodeId"]), look, now)

    def _press(self, arguments: Arguments, path: str, verb: str, more: Mapping[str, object]) -> Flow[str]:
        device = device_of(arguments)
        x, y = (JsonObject.of(arguments).integer(name) for name in ("x", "y"))
        before = yield from self.read_before(device)
        if arguments.get("nodeId") is not None:
            if before is None:
                before = yield from self.looks.read(device)  # raises the reason
            row = self.resolve(device, arguments, before)
            return (yield from self._touch(device, row, before, path, verb, more))
        if x is None or y is None:
            raise ToolError("give nodeId, the number of a node on the screen, or x and y in pixels")
        told = f"{verb} {x},{y}"
        if before is not None:
            then = self.looks.screen_of(device, JsonObject.of(arguments).integer("look"))
            before = yield from self._press_point(device, (x, y), then or before, before, path, more)
            there = before.row_at(x, y)
            told = f"{told}: {'nothing is there' if there is None else describe_row(there)}"
            return (yield from self.finish(device, told, before))
        return (yield from self._perform(device, path, {"x": x, "y": y, **more}, told, before))

    def _press_point(
        self,
        device: str,
        point: tuple[int, int],
        then: PhoneScreen,
        now: PhoneScreen,
        path: str,
        more: Mapping[str, object],
    ) -> Flow[PhoneScreen]:
        """Touch a point if the row there is the same as on the screen `then`; return the screen that was touched.

        Raises `ToolError` if another row is there, the point is outside of the screen, or the phone refuses.
        """
        if not now.contains(*point):
            raise ToolError(f"{point[0]},{point[1]} is outside of the screen {now.bounds}. Nothing was done.")
        body = {**members_of(device), "x": point[0], "y": point[1], **more}
        tries = TOUCH_TRIES
        while True:
            wanted, there = then.row_at(*point), now.row_at(*point)
            if (wanted and wanted.name_key) != (there and there.name_key):
                stands = "nothing" if there is None else describe_row(there)
                raise ToolError(
                    f"the screen has changed: at {point[0]},{point[1]} is now {stands}. Nothing was done.",
                    self.looks.show(device, now),
                )
            tries -= 1
            bound = {"if_hash": now.phone_hash} if now.phone_hash and tries else {}
            answer = yield from self.link.call("POST", path, {**body, **bound})
            if not bound or not _is_refused_as_changed(answer):
                body_of(answer)
                return now
            now = yield from self.looks.read(device)

    def _touch(
        self,
        device: str,
        row: ScreenRow,
        before: PhoneScreen,
        path: str,
        verb: str,
        more: Mapping[str, object],
        about: str = "",
    ) -> Flow[str]:
        """Touch a row as `touch_row` does, and return the report."""
        row, before = yield from self.touch_row(device, row, before, path, more)
        told = f"{verb} {describe_row(row)} ({row.node.class_name}){about}"
        return (yield from self.finish(device, told, before, field=row))

    def touch_row(
        self, device: str, row: ScreenRow, before: PhoneScreen, path: str, more: Mapping[str, object]
    ) -> Flow[tuple[ScreenRow, PhoneScreen]]:
        """Touch a row; return it with the screen on which it was touched. Raises `ToolError`.

        A phone that supports `if_hash` refuses the touch if the screen has changed; then the row is found again and
        touched there.
        """
        tries = TOUCH_TRIES
        while True:
            if not row.node.enabled:
                raise ToolError(f"{describe_row(row)} is disabled. Nothing was done.")
            node = row.node if path == "/long_press" else row.target
            tries -= 1
            bound = {"if_hash": before.phone_hash} if before.phone_hash and tries else {}
            answer = yield from self.link.call(
                "POST", path, {**members_of(device), "nodeId": node.node_id, **more, **bound}
            )
            if not bound or not _is_refused_as_changed(answer):
                body_of(answer)
                return row, before
            now = yield from self.looks.read(device)
            row, before = self.looks.find(device, row, before, now), now

    def _perform(
        self,
        device: str,
        path: str,
        body: Mapping[str, object],
        told: str,
        before: PhoneScreen | None,
        *,
        field: ScreenRow | None = None,
    ) -> Flow[str]:
        """Call an acting route with a body, and return the report of what changed on the screen."""
        yield from self.call(path, device, body)
        return (yield from self.finish(device, told, before, field=field))

    def finish(
        self, device: str, told: str, before: PhoneScreen | None, *, opens: bool = False, field: ScreenRow | None = None
    ) -> Flow[str]:
        """Wait for a limited time until the screen has settled, and return the report of an act, also without a screen.

        `opens`: the act opens an app. Behind a lock phones report that as done; then this raises `ToolError`.
        """
        try:
            after, settled = yield from self.looks.settle(device, before)
        except ToolError as unread:
            return f"{told}; {KEPT_OUT.format(why=unread.message)}"
        if after.locked and opens:
            raise ToolError(LOCKED, ERROR_HINTS["keyguard_blocked"])
        if field is not None and before is not None and after.fingerprint != before.fingerprint:
            now = find_again(field, before, after)
            if now is not None and (now.checked, now.node.value) != (field.checked, field.node.value):
                told = f"{told}; it is now {describe_row(now)}"
        return self.report(device, told, before, after, settled=settled)

    def report(self, device: str, told: str, before: PhoneScreen | None, after: PhoneScreen, *, settled: bool) -> str:
        """Return the report of an act: what was done, what changed, and the new screen.

        An unchanged screen that is equal to the newest look at the phone is named by its number instead.
        """
        if before is not None and before.fingerprint == after.fingerprint:
            shown = self.looks.latest(device)
            if shown is not None and shown[1].fingerprint == after.fingerprint:
                return f"{told}; {NOTHING}: it is still screen {shown[0]}"
            return f"{told}; {NOTHING}\n{self.looks.show(device, after, settled=settled)}"
        changes = [] if before is None else ["changed: true"]
        if before is not None and before.app != after.app:
            changes.append(f"app: {before.app} -> {after.app}")
        if before is not None and before.title != after.title:
            changes.append(f"title: {quote(before.title)} -> {quote(after.title)}")
        return "\n".join(["; ".join([told, *changes]), self.looks.show(device, after, settled=settled)])


def device_of(arguments: Arguments) -> str:
    """Return the selector of a call's phone; empty: the phone that the relay chooses."""
    return str(arguments.get("device", ""))


def members_of(device: str) -> dict[str, object]:
    """Return the selector of a phone as a member of a route's arguments; no member if the selector is empty."""
    return {"device": device} if device else {}


def _is_refused_as_changed(answer: PhoneResponse) -> bool:
    """Report whether the phone did nothing, since its screen is another one than the touch is bound to.

    The phone's gates have the same code with another status, after a question to the user, which is not repeated.
    """
    return answer.status == 400 and JsonObject.of(answer.body).text("error_code") == "screen_changed"


def rows_with(screen: PhoneScreen, text: str, *, exact: bool) -> list[ScreenRow]:
    """Return the rows with a text, of the best kind only: whole text before a part, clickable before others.

    Text fields are returned only if no other row has the text or a part of it. With `exact`, parts do not count.
    """
    wanted = " ".join(text.split()).lower()
    whole, part = list[ScreenRow](), list[ScreenRow]()
    for row in screen.rows:
        texts = [" ".join(each.split()).lower() for each in row.texts]
        if wanted in texts:
            whole.append(row)
        elif not exact and any(wanted in each for each in texts):
            part.append(row)
    others = [[row for row in rows if not row.node.editable] for rows in (whole, part)]
    tiers = [tier for rows in others for tier in ([row for row in rows if row.node.clickable], rows)]
    return next((tier for tier in (*tiers, whole, part) if tier), [])


def _list(rows: list[ScreenRow]) -> str:
    return "\n".join(describe_row(row) for row in rows[:MAX_LISTED])


def _line(screen: PhoneScreen, direction: str, percent: int) -> dict[str, object]:
    """Return the end points of a swipe through the middle of the screen, over `percent` of its width or height."""
    left, top, right, bottom = screen.bounds
    middle_x, middle_y = (left + right) // 2, (top + bottom) // 2
    across, along = (right - left) * percent // 200, (bottom - top) * percent // 200
    step_x = {"left": -across, "right": across}.get(direction, 0)
    step_y = {"up": -along, "down": along}.get(direction, 0)
    points = (middle_x - step_x, middle_y - step_y, middle_x + step_x, middle_y + step_y)
    return dict(zip(POINTS, points, strict=True))
