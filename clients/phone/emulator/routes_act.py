"""Routes that act on the screen and the system (wire/bridge.md 3.5)."""

import re

from clients.phone.emulator.device import MAX_VOLUME, EmulatedDevice
from clients.phone.emulator.intents import Intent, resolve
from clients.phone.emulator.touch_target import find_touch_target
from clients.phone.emulator.view_tree import Bounds, find_node
from svc_proto.basics.moment import Moment
from svc_proto.phone.arguments import CommandArguments, clamp, replace_lone_surrogates, scalar_text, utf16_length
from svc_proto.phone.backend import CommandRefused, CommandReply, CommandResponse, DelayedReply

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


def tap(device: EmulatedDevice, args: CommandArguments, now: Moment) -> CommandResponse:
    """Tap the centre of a node, or a point. Raises `CommandRefused` 404 if the node is not on the screen."""
    node_id = args.non_blank_text("nodeId")
    duration = _duration(args, "duration_ms", 100)
    if node_id is not None:
        seen = find_node(device.readable(), node_id)
        if seen is None:
            raise CommandRefused(404, "nodeId: no such node on the screen")
        x, y = seen.node.bounds.center
    else:
        x, y = _point(args, "nodeId or x and y")
    device.touchable()
    device.touch("tap", ((x, y),), duration, now)
    return CommandReply(200, {"x": x, "y": y, "duration_ms": duration})


def tap_text(device: EmulatedDevice, args: CommandArguments, now: Moment) -> CommandResponse:
    """Click a node with a text: the whole text first (the node, then an ancestor), then a part of it.

    With `exact`, only the whole text matches. If no matching node can be clicked, tap the centre of the best match.
    """
    needle = args.required("text")
    exact_only = args.boolean("exact") is True
    device.touchable()
    aim = find_touch_target(device.readable(), needle, exact_only=exact_only)
    if aim is None:
        raise CommandRefused(400, "text: nothing on the screen matches")
    if aim.pressed is not None:
        device.click(aim.pressed, aim.seen.window.package, now)
        via = "direct click" if aim.level == 0 else f"parent click ({aim.level} levels up)"
        message = f"Clicked '{needle}'"
        return CommandReply(200, {"ok": True, "via": via, "message": message, "depth": aim.level, "needle": needle})
    x, y = aim.seen.node.bounds.center
    device.touch("tap", ((x, y),), 100, now)
    message = f"Tapped at ({x}, {y})"
    return CommandReply(
        200, {"ok": True, "via": "coordinate fallback", "message": message, "x": x, "y": y, "needle": needle}
    )


def long_press(device: EmulatedDevice, args: CommandArguments, now: Moment) -> CommandResponse:
    """Hold a point or a node. Every failure is a 400."""
    node_id = args.non_blank_text("node_id", "nodeId")
    duration = args.integer("duration", "duration_ms")
    duration = 500 if duration is None else duration
    if not 100 <= duration <= 3000:
        raise CommandRefused(400, "duration must be 100..3000 ms")
    has_point = args.value("x") is not None or args.value("y") is not None
    if has_point == (node_id is not None):
        raise CommandRefused(400, "give exactly one of x and y, or node_id")
    if node_id is None:
        x, y = _point(args, "x and y")
        device.touchable()
        device.touch("long_press", ((x, y),), duration, now)
        return CommandReply(200, {"x": x, "y": y, "duration_ms": duration, "mode": "gesture"})
    device.touchable()
    seen = find_node(device.windows(), node_id)
    if seen is None:
        raise CommandRefused(400, "node_id: no such node on the screen")
    if not seen.node.long_clickable:
        raise CommandRefused(400, "node_id: the node does not take a long press")
    device.click(seen.node, seen.window.package, now, hold=True)
    return CommandReply(200, {"node_id": node_id, "mode": "action_long_click"})


def drag(device: EmulatedDevice, args: CommandArguments, now: Moment) -> CommandResponse:
    """Drag from one point to another."""
    points = [args.required_integer(name) for name in POINTS]
    for name, value in zip(POINTS, points, strict=True):
        if value < 0:
            raise CommandRefused(400, f"{name} must not be negative")
    duration = args.integer("duration_ms")
    return _stroke(device, "drag", points, clamp(500 if duration is None else duration, 100, 3000), now)


def swipe(device: EmulatedDevice, args: CommandArguments, now: Moment) -> CommandResponse:
    """Swipe between two points, or in a direction (of the finger) through the middle of the screen.

    If a body has both forms, the coordinates are used, as on other phones.
    """
    duration = _duration(args, "duration_ms", 400)
    points = [args.integer(name) for name in POINTS]
    known = [value for value in points if value is not None]
    if len(known) == len(POINTS):
        return _stroke(device, "swipe", known, duration, now)
    if args.non_blank_text("direction") is None:
        missing = next(name for name, value in zip(POINTS, points, strict=True) if value is None)
        raise CommandRefused(400, f"missing or not an integer: {missing} (or give direction)")
    dx, dy = _direction(args)
    percent = DISTANCES.get((args.non_blank_text("distance") or "medium").lower())
    if percent is None:
        raise CommandRefused(400, "distance must be short, medium or long")
    area = Bounds(0, 0, *device.size)
    return _stroke(device, "swipe", _line(area, dx, dy, percent), duration, now)


def scroll(device: EmulatedDevice, args: CommandArguments, now: Moment) -> CommandResponse:
    """Scroll a node or the top window: the finger moves half its size, against the direction."""
    dx, dy = _direction(args)
    node_id = args.non_blank_text("nodeId")
    windows = device.readable()
    area = device.top().root.bounds
    if node_id is not None:
        seen = find_node(windows, node_id)
        if seen is None:
            raise CommandRefused(404, "nodeId: no such node on the screen")
        area = seen.node.bounds
    return _stroke(device, "swipe", _line(area, -dx, -dy, 50), 400, now)


# --- keys and text -------------------------------------------------------------------------------------------


def type_text(device: EmulatedDevice, args: CommandArguments, now: Moment) -> CommandResponse:
    """Replace the text of the focused field, or of the first one; with `clear`, an empty text empties it."""
    text = args.text("text") or ""
    if not text and args.boolean("clear") is not True:
        raise CommandRefused(400, "missing or empty argument: text")
    if not device.windows():
        raise CommandRefused(400, "no accessibility window is readable")
    if not device.type_text(text, now):
        raise CommandRefused(400, "no text field on the screen")
    return CommandReply(200, {"length": utf16_length(text)})


def press_key(device: EmulatedDevice, args: CommandArguments, now: Moment) -> CommandResponse:
    """Perform a global action of the system, such as `home` or `back`."""
    key = args.required("key")
    if not device.global_action(key.strip().lower(), now):
        names = "home, back, recents, notifications, quick_settings, power_dialog, lock_screen, enter, wakeup"
        raise CommandRefused(400, f"key must be one of {names}")
    return CommandReply(200, {"key": key})


def wait(_device: EmulatedDevice, args: CommandArguments, _now: Moment) -> CommandResponse:
    """Delay the reply by `ms`, at most `MAX_WAIT`."""
    ms = clamp(args.integer("ms") or 0, 0, MAX_WAIT)
    return DelayedReply(ms / 1000, CommandReply(200, {"slept_ms": ms}))


def open_app(device: EmulatedDevice, args: CommandArguments, now: Moment) -> CommandResponse:
    """Launch the app of a package. Raises `CommandRefused` 404 if it is not installed."""
    package = args.required("package")
    device.unlocked()
    if not device.launch(package, now):
        raise CommandRefused(404, "package: no such app to launch")
    return CommandReply(200, {"ok": True, "package": package})


def read_clipboard(device: EmulatedDevice, _args: CommandArguments, _now: Moment) -> CommandResponse:
    """Return the clipboard's text, empty when it has none."""
    return CommandReply(200, {"text": device.clipboard})


def write_clipboard(device: EmulatedDevice, args: CommandArguments, _now: Moment) -> CommandResponse:
    """Replace the clipboard's text; an empty one clears it."""
    text = args.text("text")
    if text is None:
        raise CommandRefused(400, "missing argument: text")
    device.clipboard = text
    return CommandReply(200, {"success": True, "length": utf16_length(text)})


def media(device: EmulatedDevice, args: CommandArguments, _now: Moment) -> CommandResponse:
    """Press a media key, or set the volume: a step up or down, or a level of 0..15."""
    action = args.required("action").strip().lower()
    if action == "volume":
        level = args.integer("level")
        if level is None or not 0 <= level <= MAX_VOLUME:
            raise CommandRefused(400, f"level must be 0..{MAX_VOLUME}")
        device.volume = level
        return CommandReply(200, {"action": action, "level": level})
    keycode = KEYCODES.get(action)
    if keycode is None:
        raise CommandRefused(400, f"action must be one of {', '.join(KEYCODES)}, volume")
    if action.startswith("volume"):
        device.volume = clamp(device.volume + (1 if action == "volume_up" else -1), 0, MAX_VOLUME)
        return CommandReply(200, {"action": action, "keycode": keycode, "level": device.volume})
    device.playback(action)
    return CommandReply(200, {"action": action, "keycode": keycode})


def send_intent(device: EmulatedDevice, args: CommandArguments, now: Moment) -> CommandResponse:
    """Start the app that handles an intent, or open the share sheet, and record the intent in the outbox.

    Raises `CommandRefused` 400 if nothing handles the intent.
    """
    intent = _intent(args)
    device.unlocked()
    intent_component = args.non_blank_text("component") or ""
    if intent_component and _COMPONENT.fullmatch(intent_component) is None:
        raise CommandRefused(400, "component must be package/class")
    category = args.non_blank_text("category") or ""
    details = {**intent.to_json(), "component": intent_component, "category": category, "extras": intent.extras}
    target = intent_component.partition("/")[0] or intent.package
    if not resolve(device, intent, target, now):
        raise CommandRefused(400, "action: no activity handles this intent")
    device.record("intent", now, details)
    names = ("action", "package", "component", "data")
    return CommandReply(200, {name: details[name] for name in names})


def broadcast(device: EmulatedDevice, args: CommandArguments, now: Moment) -> CommandResponse:
    """Record a broadcast in the outbox; no app receives it."""
    intent = _intent(args)
    device.record("broadcast", now, {**intent.to_json(), "extras": intent.extras})
    return CommandReply(200, intent.to_json())


# --- helpers -------------------------------------------------------------------------------------------------


def _point(args: CommandArguments, wanted: str) -> tuple[int, int]:
    x, y = args.integer("x"), args.integer("y")
    if x is None or y is None:
        raise CommandRefused(400, f"missing or not integers: {wanted}")
    if x < 0 or y < 0:
        raise CommandRefused(400, "x and y must not be negative")
    return x, y


def _duration(args: CommandArguments, name: str, default: int) -> int:
    duration = args.integer(name)
    duration = default if duration is None else duration
    if not 0 < duration <= MAX_STROKE:
        raise CommandRefused(400, f"{name} must be 1..{MAX_STROKE} ms")
    return duration


def _direction(args: CommandArguments) -> tuple[int, int]:
    direction = DIRECTIONS.get((args.non_blank_text("direction") or "").strip().lower())
    if direction is None:
        raise CommandRefused(400, "direction must be up, down, left or right")
    return direction


def _line(area: Bounds, dx: int, dy: int, percent: int) -> list[int]:
    """Return start and end (x1, y1, x2, y2) of a stroke through the middle of `area`, `percent` of its size long."""
    x, y = area.center
    half_x, half_y = dx * area.width * percent // 200, dy * area.height * percent // 200
    return [x - half_x, y - half_y, x + half_x, y + half_y]


def _stroke(device: EmulatedDevice, kind: str, points: list[int], duration: int, now: Moment) -> CommandReply:
    start_x, start_y, end_x, end_y = points
    device.touchable()
    device.touch(kind, ((start_x, start_y), (end_x, end_y)), duration, now)
    numbers: dict[str, object] = dict(zip(POINTS, points, strict=True))
    return CommandReply(200, {**numbers, "duration_ms": duration})


def _intent(args: CommandArguments) -> Intent:
    extras = {
        replace_lone_surrogates(key): scalar_text(value, f"extras.{key}")
        for key, value in args.mapping("extras").items()
        if isinstance(value, str | bool | int | float)
    }
    return Intent(
        args.required("action"), args.non_blank_text("data") or "", args.non_blank_text("package") or "", extras
    )
