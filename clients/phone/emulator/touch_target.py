"""Targets of touches: the node that `/tap_text` presses, and the texts that describe a target to a user.

The same search performs and checks `/tap_text`, so that a gate examines the node that will be pressed.
"""

from collections.abc import Iterator, Sequence

from attrs import frozen

from clients.phone.emulator.device import EmulatedDevice
from clients.phone.emulator.routes_read import mentions
from clients.phone.emulator.view_tree import ViewNode, VisitedNode, Window, find_node, hit_test, traverse, window_at
from svc_proto.phone.arguments import CommandArguments
from svc_proto.phone.backend import CommandRefused, PhoneCommand

__all__ = ["TouchTarget", "find_touch_target", "texts_at_target"]

CLICK_STEPS = 8  # nodes tried for a click: the node itself and its ancestors


@frozen
class TouchTarget:
    """A node with the searched text, and the node that is clicked for it: itself (level 0) or an ancestor.

    `pressed` is None if neither the node nor a near ancestor can be clicked; then the centre of `seen` is tapped.
    """

    seen: VisitedNode
    pressed: ViewNode | None
    level: int = 0


def find_touch_target(windows: Sequence[Window], needle: str, *, exact_only: bool) -> TouchTarget | None:
    """Return the target of a text, or None if no node matches.

    Nodes with the whole text come first (the node itself, then an ancestor), then, unless `exact_only`, nodes that
    contain the text.
    """
    visible = [seen for seen in traverse(windows) if seen.node_id is not None]
    exact = [seen for seen in visible if _is_called(seen, needle)]
    partly = [] if exact_only else [seen for seen in visible if mentions(seen.node, needle) and seen not in exact]
    tries = [(seen, tier) for tier in (_itself, _ancestor) for seen in exact]
    tries += [(seen, tier) for seen in partly for tier in (_itself, _ancestor)]
    for seen, tier in tries:
        if (aim := tier(seen)) is not None:
            return aim
    fallback = next(iter(exact or partly), None)
    return None if fallback is None else TouchTarget(fallback, None)


def texts_at_target(device: EmulatedDevice, command: PhoneCommand) -> tuple[str, ...]:
    """Return texts and descriptions of the node that a tap or long press names or presses, and of its descendants.

    A tap on a named node acts at its centre, where another node may react: then the texts of both are returned. Empty
    for any other command, and without a node.
    """
    args, windows = CommandArguments(command.body), device.windows()
    if not windows:
        return ()
    try:
        match command.path:
            case "/tap_text":
                nodes = _of_text(windows, args)
            case "/tap":
                nodes = _of_tap(windows, args)
            case "/long_press":
                nodes = _of_long_press(windows, args)
            case _:
                nodes = ()
    except CommandRefused:  # arguments that the route will refuse
        return ()
    return tuple(dict.fromkeys(text for node in nodes for text in _texts(node)))


def _is_called(seen: VisitedNode, needle: str) -> bool:
    wanted = needle.strip().lower()
    return wanted in ((seen.node.text or "").strip().lower(), (seen.node.description or "").strip().lower())


def _itself(seen: VisitedNode) -> TouchTarget | None:
    return TouchTarget(seen, seen.node) if seen.node.clickable and seen.node.enabled else None


def _ancestor(seen: VisitedNode) -> TouchTarget | None:
    if seen.node.clickable:  # disabled: pressing its surroundings would have another effect
        return None
    for level, node in enumerate(seen.parents[: CLICK_STEPS - 1], 1):
        if node.clickable and node.enabled:
            return TouchTarget(seen, node, level)
    return None


def _of_text(windows: Sequence[Window], args: CommandArguments) -> Sequence[ViewNode]:
    aim = find_touch_target(windows, args.required("text"), exact_only=args.boolean("exact") is True)
    if aim is None:
        return ()
    return (aim.seen.node, *_at(windows, *aim.seen.node.bounds.center)) if aim.pressed is None else (aim.pressed,)


def _of_tap(windows: Sequence[Window], args: CommandArguments) -> Sequence[ViewNode]:
    node_id = args.non_blank_text("nodeId")
    if node_id is not None:
        seen = find_node(windows, node_id)
        return () if seen is None else (seen.node, *_at(windows, *seen.node.bounds.center))
    x, y = args.integer("x"), args.integer("y")
    return () if x is None or y is None else _at(windows, x, y)


def _of_long_press(windows: Sequence[Window], args: CommandArguments) -> Sequence[ViewNode]:
    node_id = args.non_blank_text("node_id", "nodeId")
    if node_id is not None:
        seen = find_node(windows, node_id)
        return () if seen is None else (seen.node,)
    x, y = args.integer("x"), args.integer("y")
    return () if x is None or y is None else _at(windows, x, y, hold=True)


def _at(windows: Sequence[Window], x: int, y: int, *, hold: bool = False) -> Sequence[ViewNode]:
    """Return the node that reacts at a point, as a sequence of one or none.

    It is in the topmost window there, which may cover the node that a command names.
    """
    window = window_at(windows, x, y)
    node = None if window is None else hit_test(window, x, y, hold=hold)
    return () if node is None else (node,)


def _texts(node: ViewNode) -> Iterator[str]:
    yield from (text for text in (node.text, node.description) if text)
    for child in node.children:
        yield from _texts(child)
