"""The routes that act on the screen and the system (wire/bridge.md 3.5)."""

from __future__ import annotations

import re

from clients.phone.emulator.device import MAX_VOLUME, Device
from clients.phone.emulator.intents import Intent, resolve
from clients.phone.emulator.touch_target import take_aim
from clients.phone.emulator.view_tree import HEIGHT, WIDTH, Bounds, find_node
from svc_proto.basics.moment import Moment
from svc_proto.phone.arguments import Arguments, clamp, scalar_text, sendable, utf16_length
from svc_proto.phone.backend import Later, Performed, Reply
from svc_proto.phone.command_refused import Refusal

__all__ = [
    "broadcast",
    "drag",
    "long_press",
    "media",
    "open_app",
    "press_key",
    "read_clipboard",
    "scroll",
    "send_intent",
    "swipe",
    "tap",
    "tap_text",
    "type_text",
    "wait",
    "write_clipboard",
]

MAX_WAIT = 15_000  # ms, spec "Limits": capped at 15 seconds
MAX_STROKE = 60_000  # ms, the platform's limit on one gesture
POINTS = ("start_x", "start_y", "end_x", "end_y")
DISTANCES = {"short": 15, "medium": 30, "long": 45}  # percent of the axis
DIRECTIONS = {"up": (0, -1), "down": (0, 1), "left": (-1, 0), "right": (1, 0)}  # of the finger
KEYCODES = {"play": 126, "pause": 127, "toggle": 85, "next": 87, "previous": 88, "volume_up": 24, "volume_down": 25}
_COMPONENT = re.compile(r"[^/\s]+/[^/\s]+")


# --- touch ---------------------------------------------------------------------------------------------------


def tap(device: Device, args: Arguments, now: Moment) -> Performed:
    """Tap the centre of a node, else a point."""
    node_id = args.filled("nodeId")
    duration = _duration(args, "duration_ms", 100)
    if node_id is not None:
        seen = find_node(device.readable(), node_id)
        if seen is None:
            raise Refusal(404, "nodeId: no such node on the screen")
        x, y = seen.node.bounds.center
    else:
        x, y = _point(args, "nodeId or x and y")
    device.touchable()
    device.touch("tap", ((x, y),), duration, now)
    return Reply(200, {"x": x, "y": y, "duration_ms": duration})


def tap_text(device: Device, args: Arguments, now: Moment) -> Performed:
    """Click what carries a text: the whole text first (the node, then an ancestor), then a part of it.

    When nothing that carries it can be clicked, the centre of the best match is tapped.
    """
    needle = args.required("text")
    exact_only = args.boolean("exact") is True
    device.touchable()
    aim = take_aim(device.readable(), needle, exact_only=exact_only)
    if aim is None:
        raise Refusal(400, "text: nothing on the screen matches")
    if aim.pressed is not None:
        device.click(aim.pressed, aim.seen.window.package, now)
        via = "direct click" if aim.level == 0 else f"parent click ({aim.level} levels up)"
        message = f"Clicked '{needle}'"
        return Reply(200, {"ok": True, "via": via, "message": message, "depth": aim.level, "needle": needle})
    x, y = aim.seen.node.bounds.center
    device.touch("tap", ((x, y),), 100, now)
    message = f"Tapped at ({x}, {y})"
    return Reply(200, {"ok": True, "via": "coordinate fallback", "message": message, "x": x, "y": y, "needle": needle})


def long_press(device: Device, args: Arguments, now: Moment) -> Performed:
    """Hold a point or a node. Every failure is a 400."""
    node_id = args.filled("node_id", "nodeId")
    duration = args.integer("duration", "duration_ms")
    duration = 500 if duration is None else duration
    if not 100 <= duration <= 3000:
        raise Refusal(400, "duration must be 100..3000 ms")
    has_point = args.raw("x") is not None or args.raw("y") is not None
    if has_point == (node_id is not None):
        raise Refusal(400, "give exactly one of x and y, or node_id")
    if node_id is None:
        x, y = _point(args, "x and y")
        device.touchable()
        device.touch("long_press", ((x, y),), duration, now)
        return Reply(200, {"x": x, "y": y, "duration_ms": duration, "mode": "gesture"})
    device.touchable()
    seen = find_node(device.windows(), node_id)
    if seen is None:
        raise Refusal(400, "node_id: no such node on the screen")
    if not seen.node.long_clickable:
        raise Refusal(400, "node_id: the node does not take a long press")
    device.click(seen.node, seen.window.package, now, hold=True)
    return Reply(200, {"node_id": node_id, "mode": "action_long_click"})


def drag(device: Device, args: Arguments, now: Moment) -> Performed:
    """Drag from one point to another."""
    points = [args.required_integer(name) for name in POINTS]
    for name, value in zip(POINTS, points, strict=True):
        if value < 0:
            raise Refusal(400, f"{name} must not be negative")
    duration = args.integer("duration_ms")
    return _stroke(device, "drag", points, clamp(500 if duration is None else duration, 100, 3000), now)


def swipe(device: Device, args: Arguments, now: Moment) -> Performed:
    """Swipe between two points, else in a direction (the finger's) from the middle of the screen.

    A body with both forms is taken by its coordinates, as other phones take it.
    """
    duration = _duration(args, "duration_ms", 400)
    points = [args.integer(name) for name in POINTS]
    known = [value for value in points if value is not None]
    if len(known) == len(POINTS):
        return _stroke(device, "swipe", known, duration, now)
    if args.filled("direction") is None:
        missing = next(name for name, value in zip(POINTS, points, strict=True) if value is None)
        raise Refusal(400, f"missing or not an integer: {missing} (or give direction)")
    dx, dy = _direction(args)
    percent = DISTANCES.get((args.filled("distance") or "medium").lower())
    if percent is None:
        raise Refusal(400, "distance must be short, medium or long")
    area = Bounds(0, 0, WIDTH, HEIGHT)
    return _stroke(device, "swipe", _line(area, dx, dy, percent), duration, now)


def scroll(device: Device, args: Arguments, now: Moment) -> Performed:
    """Scroll a node or the window on top: the finger goes half its size, against the direction."""
    dx, dy = _direction(args)
    node_id = args.filled("nodeId")
    windows = device.readable()
    area = windows[0].root.bounds
    if node_id is not None:
        seen = find_node(windows, node_id)
        if seen is None:
            raise Refusal(404, "nodeId: no such node on the screen")
        area = seen.node.bounds
    return _stroke(device, "swipe", _line(area, -dx, -dy, 50), 400, now)


# --- keys and text -------------------------------------------------------------------------------------------


def type_text(device: Device, args: Arguments, now: Moment) -> Performed:
    """Replace the text of a field."""
    text = args.text("text")
    if not text:
        raise Refusal(400, "missing or empty argument: text")
    if not device.windows():
        raise Refusal(400, "no accessibility window is readable")
    if not device.type_text(text, now):
        raise Refusal(400, "no text field on the screen")
    return Reply(200, {"length": utf16_length(text)})


def press_key(device: Device, args: Arguments, now: Moment) -> Performed:
    """A global action of the system."""
    key = args.required("key")
    if not device.global_action(key.strip().lower(), now):
        names = "home, back, recents, notifications, quick_settings, power_dialog, lock_screen"
        raise Refusal(400, f"key must be one of {names}")
    return Reply(200, {"key": key})


def wait(_device: Device, args: Arguments, _now: Moment) -> Performed:
    """A plain sleep, held by the caller."""
    ms = clamp(args.integer("ms") or 0, 0, MAX_WAIT)
    return Later(ms / 1000, Reply(200, {"slept_ms": ms}))


def open_app(device: Device, args: Arguments, now: Moment) -> Performed:
    """Launch an app."""
    package = args.required("package")
    if not device.launch(package, now):
        raise Refusal(404, "package: no such app to launch")
    return Reply(200, {"ok": True, "package": package})


def read_clipboard(device: Device, _args: Arguments, _now: Moment) -> Performed:
    """The clipboard's text, empty when it holds none."""
    return Reply(200, {"text": device.clipboard})


def write_clipboard(device: Device, args: Arguments, _now: Moment) -> Performed:
    """Replace the clipboard's text; an empty one clears it."""
    text = args.text("text")
    if text is None:
        raise Refusal(400, "missing argument: text")
    device.clipboard = text
    return Reply(200, {"success": True, "length": utf16_length(text)})


def media(device: Device, args: Arguments, _now: Moment) -> Performed:
    """A media key, or the volume: a step up or down, or a level of 0..15."""
    action = args.required("action").strip().lower()
    if action == "volume":
        level = args.integer("level")
        if level is None or not 0 <= level <= MAX_VOLUME:
            raise Refusal(400, f"level must be 0..{MAX_VOLUME}")
        device.volume = level
        return Reply(200, {"action": action, "level": level})
    keycode = KEYCODES.get(action)
    if keycode is None:
        raise Refusal(400, f"action must be one of {', '.join(KEYCODES)}, volume")
    if action.startswith("volume"):
        device.volume = clamp(device.volume + (1 if action == "volume_up" else -1), 0, MAX_VOLUME)
        return Reply(200, {"action": action, "keycode": keycode, "level": device.volume})
    device.playback(action)
    return Reply(200, {"action": action, "keycode": keycode})


def send_intent(device: Device, args: Arguments, now: Moment) -> Performed:
    """Start an activity."""
    intent = _intent(args)
    intent_component = args.filled("component") or ""
    if intent_component and _COMPONENT.fullmatch(intent_component) is None:
        raise Refusal(400, "component must be package/class")
    category = args.filled("category") or ""
    details = {**intent.to_json(), "component": intent_component, "category": category, "extras": intent.extras}
    target = intent_component.partition("/")[0] or intent.package
    if not resolve(device, intent, target, now):
        raise Refusal(400, "action: no activity handles this intent")
    device.record("intent", now, details)
    names = ("action", "package", "component", "data")
    return Reply(200, {name: details[name] for name in names})


def broadcast(device: Device, args: Arguments, now: Moment) -> Performed:
    """Send a broadcast."""
    intent = _intent(args)
    device.record("broadcast", now, {**intent.to_json(), "extras": intent.extras})
    return Reply(200, intent.to_json())


# --- helpers -------------------------------------------------------------------------------------------------


def _point(args: Arguments, wanted: str) -> tuple[int, int]:
    x, y = args.integer("x"), args.integer("y")
    if x is None or y is None:
        raise Refusal(400, f"missing or not integers: {wanted}")
    if x < 0 or y < 0:
        raise Refusal(400, "x and y must not be negative")
    return x, y


def _duration(args: Arguments, name: str, default: int) -> int:
    duration = args.integer(name)
    duration = default if duration is None else duration
    if not 0 < duration <= MAX_STROKE:
        raise Refusal(400, f"{name} must be 1..{MAX_STROKE} ms")
    return duration


def _direction(args: Arguments) -> tuple[int, int]:
    direction = DIRECTIONS.get((args.filled("direction") or "").strip().lower())
    if direction is None:
        raise Refusal(400, "direction must be up, down, left or right")
    return direction


def _line(area: Bounds, dx: int, dy: int, percent: int) -> list[int]:
    """Start and end of a stroke through the middle of `area`, `percent` of its size long."""
    x, y = area.center
    half_x, half_y = dx * area.width * percent // 200, dy * area.height * percent // 200
    return [x - half_x, y - half_y, x + half_x, y + half_y]


def _stroke(device: Device, kind: str, points: list[int], duration: int, now: Moment) -> Reply:
    start_x, start_y, end_x, end_y = points
    device.touchable()
    device.touch(kind, ((start_x, start_y), (end_x, end_y)), duration, now)
    numbers: dict[str, object] = dict(zip(POINTS, points, strict=True))
    return Reply(200, {**numbers, "duration_ms": duration})


def _intent(args: Arguments) -> Intent:
    extras = {
        sendable(key): scalar_text(value, f"extras.{key}")
        for key, value in args.mapping("extras").items()
        if isinstance(value, str | bool | int | float)
    }
    return Intent(args.required("action"), args.filled("data") or "", args.filled("package") or "", extras)
