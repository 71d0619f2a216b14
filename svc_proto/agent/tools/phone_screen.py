"""A phone's screen as data: nodes, rows, a fingerprint, and the same node on a later screen (wire bridge 3.2, 3.4)."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from attrs import define, field, frozen

from svc_proto.machines.screen_hash import HashedNode, screen_hash
from svc_proto.schema.json_object import JsonObject
from svc_proto.schema.screen_node import CHECKABLE, KEYBOARD, NO_PLACE, Bounds, ScreenNode, parse_bounds

__all__ = [
    "TEXT_LIMIT",
    "ScreenRow",
    "PhoneScreen",
    "find_again",
    "needs_description",
    "parse_screen",
]

TEXT_LIMIT = 2_000  # characters of a text that phones send (wire bridge 3.2)
MAX_DESCRIBED = 12  # nodes of one screen whose state is requested one by one
LARGEST_ROW = 3  # a row is no higher than this part of the screen; else it is a container of rows
_LOCK = re.compile("keyguard|lock_?icon|lock_?screen|bouncer", re.IGNORECASE)
SYSTEM_UI = "com.android.systemui"


@define(eq=False)
class ScreenRow:
    """A node with the nodes that belong to it. `covered`: another window is over its middle."""

    node: ScreenNode
    inner: list[ScreenNode] = field(factory=list)
    covered: bool = False

    @property
    def texts(self) -> tuple[str, ...]:
        """Return all texts of the row's nodes, each once."""
        return tuple(dict.fromkeys(text for node in (self.node, *self.inner) for text in node.texts))

    @property
    def checked(self) -> bool | None:
        """Return the state of the one thing of this row that can be checked; None if there is none, or several."""
        states = [node.checked for node in (self.node, *self.inner) if node.checked is not None]
        return states[0] if len(states) == 1 else None

    @property
    def target(self) -> ScreenNode:
        """Return the node to touch: the row's node if it has a text, else the first inner node that has one, if any.

        The phone's safety gates read the text of the touched node.
        """
        if self.node.text or self.node.description:
            return self.node
        return next((node for node in self.inner if node.text or node.description), self.node)

    @property
    def key(self) -> tuple[object, ...]:
        """Return a value that identifies the row whatever its place, state and, for a text field, its content."""
        node = self.node
        if node.editable:
            names: tuple[str, ...] = (node.description or node.hint,)
        else:
            names = self.texts
        return node.class_name, node.view_name, node.editable, names

    @property
    def name_key(self) -> tuple[object, ...]:
        """Return a value that identifies the row by its first text alone, since other texts of a list entry change."""
        node = self.node
        return node.class_name, node.view_name, node.editable, self.texts[:1]


@frozen(eq=False)
class PhoneScreen:
    """Screen of a phone. `nodes` are in the phone's order: windows topmost first, parents before children."""

    package: str
    bounds: Bounds
    nodes: tuple[ScreenNode, ...]
    truncated: bool
    locked: bool
    phone_hash: str  # the phone's own hash, with which an act can be bound to the screen; empty: not to be had

    @cached_property
    def fingerprint(self) -> tuple[object, ...]:
        """Return a value that is equal for screens with equal contents, the states of nodes included."""
        return (self.package, self.locked, self.truncated, *map(_seen_of, self.nodes))

    @cached_property
    def rows(self) -> tuple[ScreenRow, ...]:
        """Return the rows in the phone's order."""
        return tuple(_rows_of(self))

    @cached_property
    def title(self) -> str:
        """Return the text of the first node in the upper sixth of the screen that has one and cannot be acted on.

        Keyboards are skipped. The result is empty if there is no such node.
        """
        top = self.bounds[1] + (self.bounds[3] - self.bounds[1]) // 6
        for node in self.nodes:
            if node.text and not node.is_actionable and node.bounds[3] <= top and not self.is_keyboard(node.window):
                return node.text
        return ""

    @cached_property
    def windows(self) -> Mapping[str, str]:
        """Return the windows that have nodes, topmost first, each with the package, but `android`, of most nodes."""
        found: dict[str, list[str]] = {}
        for node in self.nodes:
            found.setdefault(node.window, []).append(node.package)
        return {window: _most(packages) for window, packages in found.items()}

    @cached_property
    def app(self) -> str:
        """Return the package of the app in front; that of a keyboard only if there is no other."""
        if not KEYBOARD.search(self.package):
            return self.package
        others = (package for package in self.windows.values() if package and not KEYBOARD.search(package))
        return next(others, self.package)

    def is_keyboard(self, window: str) -> bool:
        """Report whether a window is an on-screen keyboard; the only window of a screen never is."""
        return bool(KEYBOARD.search(self.windows.get(window, ""))) and len(self.windows) > 1

    def row_of(self, number: str) -> ScreenRow | None:
        """Return the row of the node with this number, or the row that the node belongs to; None if it is not there."""
        wanted = number.rpartition(":")[2]
        for row in self.rows:
            if row.node.number == wanted or any(node.number == wanted for node in row.inner):
                return row
        return None

    def row_at(self, x: int, y: int) -> ScreenRow | None:
        """Return the smallest row at a point, of the topmost window that has one there; None without one."""
        there = [row for row in self.rows if row.node.covers((x, y))]
        top = [row for row in there if row.node.window == there[0].node.window]
        return min(top, key=lambda row: row.node.area, default=None)

    def contains(self, x: int, y: int) -> bool:
        """Report whether a point is on the screen."""
        return self.bounds[0] <= x < self.bounds[2] and self.bounds[1] <= y < self.bounds[3]


def parse_screen(body: JsonObject, described: Mapping[str, JsonObject] | None = None) -> PhoneScreen:
    """Parse the answer to `GET /screen`. `described`: answers to `/describe_node` by node id."""
    found = {} if described is None else described
    parsed = (ScreenNode.parse(given, found.get(given.text("nodeId"))) for given in body.objects("nodes"))
    nodes = tuple(node for node in parsed if node.node_id and node.bounds != NO_PLACE)
    package = body.text("packageName")
    names = " ".join(node.view_name for node in nodes if node.package == SYSTEM_UI)
    return PhoneScreen(
        package=package,
        bounds=parse_bounds(body.get_object("rootBounds")) or _around(nodes),
        nodes=nodes,
        truncated=body.boolean("truncated") is True,
        locked=body.boolean("locked") is True or (package == SYSTEM_UI and bool(_LOCK.search(names))),
        phone_hash="" if body.boolean("truncated") is True else _phone_hash(body),
    )


def needs_description(screen: PhoneScreen) -> list[ScreenNode]:
    """Return the nodes whose state the phone has left out, at most 12: what can be checked, and fields."""
    found = [node for node in screen.nodes if node.checkable is None and (node.editable or node.kind in CHECKABLE)]
    return found[:MAX_DESCRIBED]


def find_again(row: ScreenRow, before: PhoneScreen, now: PhoneScreen) -> ScreenRow | None:
    """Return the row of a later screen that is the same one; None if it is gone, or if several may be it.

    If both screens have equal rows in order, it is the one at the same place. Else a row that looks like others is
    the same only if it stands between the same texts.
    """
    for key in ("key", "name_key"):
        wanted = getattr(row, key)
        old = [each for each in before.rows if getattr(each, key) == wanted]
        new = [each for each in now.rows if getattr(each, key) == wanted]
        if len(old) == len(new) and [each.key for each in before.rows] == [each.key for each in now.rows]:
            return new[old.index(row)]
        if not new:
            continue
        if len(old) == len(new) == 1 and (row.texts or row.node.view_name):
            return new[0]
        place = _surroundings(row, before)
        same = [each for each in new if _surroundings(each, now) == place]
        twins = [each for each in old if _surroundings(each, before) == place]
        return same[0] if len(same) == len(twins) == 1 else None
    return None


def _surroundings(row: ScreenRow, screen: PhoneScreen) -> tuple[object, ...]:
    """Return the nearest texts before and behind a row that differ from its own, with their distances in rows."""
    place = screen.rows.index(row)
    return (
        _nearest(row, screen.rows[place - 1 :: -1] if place else ()),
        _nearest(row, screen.rows[place + 1 :]),
    )


def _nearest(row: ScreenRow, others: Sequence[ScreenRow]) -> tuple[int, tuple[str, ...]] | None:
    for distance, other in enumerate(others):
        if other.texts and other.texts != row.texts:
            return distance, other.texts
    return None


def _rows_of(screen: PhoneScreen) -> Iterator[ScreenRow]:
    """Yield the rows of a screen, in the phone's order.

    A node that cannot be acted on belongs to the smallest row around it that can be clicked, also for long, and is at
    most a third of the screen high. Without such a row, and for a slider, it is a row itself.
    """
    highest = max(1, (screen.bounds[3] - screen.bounds[1]) // LARGEST_ROW)
    containers: list[ScreenRow] = []
    window, over, current = "", list[Bounds](), list[Bounds]()
    found: list[ScreenRow] = []
    for node in screen.nodes:
        if node.window != window:
            if current and (window in screen.windows):
                over.append(_union(current))
            window, current = node.window, []
            containers = []
        current.append(node.bounds)
        owner = None if node.is_actionable or node.kind == "slider" else _owner(node, containers)
        if owner is not None:
            owner.inner.append(node)
            continue
        row = ScreenRow(node, covered=any(_is_inside(node.center, bounds) for bounds in over))
        found.append(row)
        if (node.clickable or node.long_clickable) and node.bounds[3] - node.bounds[1] <= highest:
            containers.append(row)
    for row in found:
        _add_state(row, found)
    yield from found


def _owner(node: ScreenNode, containers: Sequence[ScreenRow]) -> ScreenRow | None:
    around = [row for row in containers if _encloses(row.node.bounds, node.bounds)]
    return min(reversed(around), key=lambda row: row.node.area, default=None)


def _add_state(row: ScreenRow, rows: Sequence[ScreenRow]) -> None:
    """Give a clickable row without a state that of the one switch inside that is a row and has no other text."""
    if not row.node.clickable or row.node.checked is not None or any(node.checked is not None for node in row.inner):
        return
    inside = [
        each.node
        for each in rows
        if each is not row and each.node.checked is not None and each.node.window == row.node.window
        and _encloses(row.node.bounds, each.node.bounds)
    ]  # fmt: skip
    if len(inside) == 1 and set(inside[0].texts) <= set(row.texts):
        row.inner.append(inside[0])


def _phone_hash(body: JsonObject) -> str:
    """Return the hash that the phone has for this screen (wire bridge 3.4).

    Empty if a text may have been cut, or if a node has no bounds.
    """
    nodes = list[HashedNode]()
    for given in body.objects("nodes"):
        text, description = given.text("text"), given.text("contentDescription")
        bounds = parse_bounds(given.get_object("bounds"))
        if bounds is None or max(len(text), len(description)) >= TEXT_LIMIT:
            return ""
        nodes.append((given.text("className"), text, description, bounds, given.text("viewId")))
    return screen_hash(nodes)


def _seen_of(node: ScreenNode) -> tuple[object, ...]:
    return (
        node.node_id, node.text, node.description, node.class_name, node.view_name, node.bounds, node.focused,
        node.selected, node.enabled, node.checked, node.value,
    )  # fmt: skip


def _around(nodes: Iterable[ScreenNode]) -> Bounds:
    return _union([node.bounds for node in nodes] or [(0, 0, 0, 0)])


def _union(all_bounds: Sequence[Bounds]) -> Bounds:
    lefts, tops, rights, bottoms = zip(*all_bounds, strict=True)
    return min(lefts), min(tops), max(rights), max(bottoms)


def _is_inside(point: tuple[int, int], bounds: Bounds) -> bool:
    return bounds[0] <= point[0] < bounds[2] and bounds[1] <= point[1] < bounds[3]


def _encloses(outer: Bounds, inner: Bounds) -> bool:
    return outer[0] <= inner[0] and outer[1] <= inner[1] and outer[2] >= inner[2] and outer[3] >= inner[3]


def _most(packages: Sequence[str]) -> str:
    named = [package for package in packages if package and package != "android"]
    return max(dict.fromkeys(named), key=named.count, default="")
