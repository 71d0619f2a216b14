"""Routes of the core and read groups, and of events (wire/bridge.md 3.3, 3.4, 3.6)."""

from collections.abc import Iterable
from itertools import islice

from clients.phone.emulator.device import EmulatedDevice
from clients.phone.emulator.events import CAPACITY
from clients.phone.emulator.png import draw
from clients.phone.emulator.view_tree import LIMIT, ViewNode, VisitedNode, bounding_box, find_node, list_nodes, traverse
from svc_proto.basics.moment import Moment
from svc_proto.machines.screen_hash import screen_hash
from svc_proto.phone.arguments import CommandArguments, clamp
from svc_proto.phone.backend import CommandRefused, CommandReply, CommandResponse, UploadReply

__all__ = [
    "current_app",
    "describe_node",
    "diff_screen",
    "events",
    "events_stream",
    "find_nodes",
    "hash_of",
    "get_apps",
    "ping",
    "return_to_client",
    "screen",
    "screenshot",
    "setup",
    "screen_hash_route",
]

TEXT_LIMIT = 2000  # characters of a text in a reply, 3.2


# --- core ----------------------------------------------------------------------------------------------------


def ping(_device: EmulatedDevice, _args: CommandArguments, now: Moment) -> CommandResponse:
    """Answer `GET /ping` with `pong` and the time."""
    return CommandReply(200, {"pong": True, "ts": int(now.wall * 1000)})


def setup(_device: EmulatedDevice, _args: CommandArguments, _now: Moment) -> CommandResponse:
    """Reply that nothing needs to be set up."""
    return CommandReply(200, {"ok": True, "note": "connected; there is nothing to set up"})


def current_app(device: EmulatedDevice, _args: CommandArguments, _now: Moment) -> CommandResponse:
    """Return the package in front; `unknown` without the accessibility service."""
    return CommandReply(200, {"package": device.foreground()})


def return_to_client(device: EmulatedDevice, _args: CommandArguments, now: Moment) -> CommandResponse:
    """Bring the client itself to the front."""
    package = device.client.package
    if device.front == package and device.overlay is None:
        return CommandReply(200, {"ok": True, "package": package, "note": "already foreground"})
    device.launch(package, now)
    return CommandReply(200, {"ok": True, "package": package})


# --- read ----------------------------------------------------------------------------------------------------


def screen(device: EmulatedDevice, args: CommandArguments, _now: Moment) -> CommandResponse:
    """Return the first 512 interesting nodes of all windows; with `include_bounds` false, without their `bounds`."""
    include_bounds = args.boolean("include_bounds") is not False
    windows = device.readable()
    nodes, truncated = list_nodes(windows)
    listed = [_node(seen, bounds=include_bounds) for seen in nodes]
    return CommandReply(
        200,
        {
            "packageName": windows[0].package,
            "rootBounds": bounding_box(windows).to_json(),
            "nodes": listed,
            "truncated": truncated,
            "nodeCount": len(listed),
            "locked": device.locked,
        },
    )


def screen_hash_route(device: EmulatedDevice, _args: CommandArguments, _now: Moment) -> CommandResponse:
    """Return the hash of the screen."""
    return CommandReply(200, _fingerprint(device))


def diff_screen(device: EmulatedDevice, args: CommandArguments, _now: Moment) -> CommandResponse:
    """Return the hash of the screen, and whether it differs from `previous_hash`."""
    previous = args.required("previous_hash")
    now = _fingerprint(device)
    return CommandReply(200, {"changed": now["hash"] != previous, **now})


def find_nodes(device: EmulatedDevice, args: CommandArguments, _now: Moment) -> CommandResponse:
    """Return interesting nodes that meet all given conditions, at most `limit` (default 20).

    Only the first 512 nodes of any kind are examined.
    """
    text = args.non_blank_text("text")
    class_name = args.non_blank_text("class_name")
    resource = args.non_blank_text("resource_id", "view_id", "resourceId", "viewId")
    clickable = args.boolean("clickable")
    limit = args.integer("limit")
    limit = clamp(20 if limit is None else limit, 1, LIMIT)

    def fits(node: ViewNode) -> bool:
        return (
            (text is None or mentions(node, text))
            and (class_name is None or node.class_name == class_name)
            and (clickable is None or node.clickable == clickable)
            and (resource is None or resource in (node.view_id, (node.view_id or "").partition(":id/")[2]))
        )

    seen = (each for each in islice(traverse(device.readable()), LIMIT) if each.node_id is not None and fits(each.node))
    matches = [_node(each) for each in islice(seen, limit)]
    return CommandReply(200, {"matches": matches, "count": len(matches)})


def describe_node(device: EmulatedDevice, args: CommandArguments, _now: Moment) -> CommandResponse:
    """Return the properties of one node. Raises `CommandRefused` 404 if it is not on the screen."""
    node_id = args.required("nodeId", "node_id")
    seen = find_node(device.readable(), node_id)
    if seen is None:
        raise CommandRefused(404, "nodeId: no such node on the screen")
    node = seen.node
    center_x, center_y = node.bounds.center
    bounds = {
        **node.bounds.to_json(),
        "centerX": center_x,
        "centerY": center_y,
        "width": node.bounds.width,
        "height": node.bounds.height,
    }
    return CommandReply(
        200,
        {
            "nodeId": node_id,
            "bounds": bounds,
            "className": node.class_name,
            "text": _cut(node.text),
            "contentDescription": _cut(node.description),
            "hintText": _cut(node.hint),
            "viewIdResourceName": node.view_id,
            "childCount": len(node.children),
            "clickable": node.clickable,
            "longClickable": node.long_clickable,
            "focusable": node.clickable or node.editable,
            "focused": node.focused,
            "editable": node.editable,
            "scrollable": node.scrollable,
            "checkable": node.checked is not None,
            "checked": node.checked,
            "enabled": node.enabled,
            "selected": node.selected,
            "password": node.password,
        },
    )


def screenshot(device: EmulatedDevice, _args: CommandArguments, now: Moment) -> CommandResponse:
    """Return a PNG picture of the screen, for the caller to upload.

    Raises `CommandRefused` 500 without the permission for screen capture.
    """
    if not device.permissions.screen_capture:
        raise CommandRefused(500, "screen capture has not been allowed on the phone")
    data = draw(device.windows(), screen_on=device.screen_on)
    return UploadReply(f"screenshot-{int(now.wall * 1000)}.png", "image/png", data)


def get_apps(device: EmulatedDevice, _args: CommandArguments, _now: Moment) -> CommandResponse:
    """Return the apps that can be launched."""
    apps = [{"package": app.package, "label": app.label} for app in device.apps.values()]
    return CommandReply(200, {"apps": apps, "count": len(apps)})


# --- events --------------------------------------------------------------------------------------------------


def events_stream(device: EmulatedDevice, args: CommandArguments, _now: Moment) -> CommandResponse:
    """Turn the capture of events on or off."""
    enabled = args.boolean("enabled")
    if enabled is None:
        raise CommandRefused(400, "missing or not a boolean: enabled")
    device.events.switch(enabled)
    return CommandReply(200, {"streaming": enabled, "buffer_cleared": True})


def events(device: EmulatedDevice, args: CommandArguments, _now: Moment) -> CommandResponse:
    """Return the newest events, oldest first: at most `limit` (default 50), with `since` (epoch ms) only later ones."""
    limit = args.integer("limit")
    since = args.integer("since", bits=64)
    entries = device.events.newest(clamp(50 if limit is None else limit, 1, CAPACITY), since or 0)
    return CommandReply(200, {"entries": entries, "count": len(entries), "streaming": device.events.streaming})


# --- helpers -------------------------------------------------------------------------------------------------


def hash_of(nodes: Iterable[VisitedNode]) -> str:
    """Return the screen hash of these nodes."""
    return screen_hash(
        (
            each.node.class_name,
            each.node.text or "",
            each.node.description or "",
            (each.node.bounds.left, each.node.bounds.top, each.node.bounds.right, each.node.bounds.bottom),
            each.node.view_id or "",
        )
        for each in nodes
    )


def mentions(node: ViewNode, text: str) -> bool:
    """Report whether `text` occurs in the node's text or description, ignoring case."""
    needle = text.lower()
    return needle in (node.text or "").lower() or needle in (node.description or "").lower()


def _fingerprint(device: EmulatedDevice) -> dict[str, object]:
    nodes, truncated = list_nodes(device.readable())
    return {"hash": hash_of(nodes), "node_count": len(nodes), "truncated": truncated}


def _node(seen: VisitedNode, *, bounds: bool = True) -> dict[str, object]:
    node = seen.node
    result: dict[str, object] = {
        "nodeId": seen.node_id,
        "text": _cut(node.text),
        "contentDescription": _cut(node.description),
        "className": node.class_name,
        "viewId": node.view_id,
    }
    if bounds:
        result["bounds"] = node.bounds.to_json()
    if node.text is not None and len(node.text) > TEXT_LIMIT:
        result["textLength"] = len(node.text)
    return {
        **result,
        "hintText": _cut(node.hint),
        "checkable": node.checked is not None,
        "checked": node.checked,
        "password": node.password,
        **({"more": node.more} if node.more else {}),
        **({"value": node.value} if node.value else {}),
        "clickable": node.clickable,
        "longClickable": node.long_clickable,
        "scrollable": node.scrollable,
        "editable": node.editable,
        "focused": node.focused,
        "selected": node.selected,
        "enabled": node.enabled,
    }


def _cut(text: str | None) -> str | None:
    return text[:TEXT_LIMIT] if text is not None and text.strip() else None
