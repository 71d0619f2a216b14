"""Nodes, windows and their traversal: the accessibility service's view of a screen.

Rules (wire/bridge.md 3.1): a node is interesting when it has a text or a description that is not blank, or is
clickable, long-clickable, scrollable or editable, and its bounds are not empty. Its id is `w<window>:<n>`, with the
window's index (topmost first) and a counter over the interesting nodes of all windows in walk order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from attrs import frozen

from clients.phone.emulator.actions import Action

__all__ = [
    "FULL",
    "HEIGHT",
    "LIMIT",
    "WIDTH",
    "Bounds",
    "ViewNode",
    "VisitedNode",
    "Window",
    "find_node",
    "hit_test",
    "list_nodes",
    "bounding_box",
    "traverse",
    "window_at",
]

WIDTH, HEIGHT = 1080, 2400  # pixels
LIMIT = 512  # nodes in one answer, 3.4


@frozen
class Bounds:
    """A rectangle in absolute screen pixels."""

    left: int
    top: int
    right: int
    bottom: int

    @property
    def width(self) -> int:
        """Return the width in pixels."""
        return self.right - self.left

    @property
    def height(self) -> int:
        """Return the height in pixels."""
        return self.bottom - self.top

    @property
    def center(self) -> tuple[int, int]:
        """Return the point in the middle."""
        return (self.left + self.right) // 2, (self.top + self.bottom) // 2

    @property
    def empty(self) -> bool:
        """Report whether the rectangle has no area."""
        return self.width <= 0 or self.height <= 0

    def contains(self, x: int, y: int) -> bool:
        """Report whether a point is inside."""
        return self.left <= x < self.right and self.top <= y < self.bottom

    def clip(self, frame: Bounds) -> Bounds:
        """Return the part inside `frame`; empty when there is none."""
        return Bounds(
            max(self.left, frame.left),
            max(self.top, frame.top),
            min(self.right, frame.right),
            min(self.bottom, frame.bottom),
        )

    def to_json(self) -> dict[str, object]:
        """Return the bounds object of wire/bridge.md 3.1."""
        return {"left": self.left, "top": self.top, "right": self.right, "bottom": self.bottom}


FULL = Bounds(0, 0, WIDTH, HEIGHT)


# --- what is on the screen -----------------------------------------------------------------------------------


@frozen(kw_only=True)
class ViewNode:
    """An accessibility node with its children. `press` and `hold` are the effects of a tap and a long press."""

    class_name: str
    bounds: Bounds
    text: str | None = None
    description: str | None = None
    hint: str | None = None
    view_id: str | None = None
    scrollable: bool = False
    more: str = ""  # where a list goes on: above, below, both; empty: nowhere
    focused: bool = False
    selected: bool = False
    enabled: bool = True
    password: bool = False
    checked: bool | None = None  # None: not checkable
    value: str = ""  # of a bar, in percent
    press: Action | None = None
    hold: Action | None = None
    field: str | None = None  # key of the text that `/type` sets
    children: tuple[ViewNode, ...] = ()

    @property
    def clickable(self) -> bool:
        """Report whether a tap has an effect while the node is enabled."""
        return self.press is not None

    @property
    def long_clickable(self) -> bool:
        """Report whether a long press has an effect while the node is enabled."""
        return self.hold is not None

    @property
    def editable(self) -> bool:
        """Report whether the node takes text."""
        return self.field is not None

    @property
    def interesting(self) -> bool:
        """Report whether the node is interesting by the module's rules, and therefore gets an id."""
        if self.bounds.empty:
            return False
        labelled = bool((self.text or "").strip() or (self.description or "").strip())
        return labelled or self.clickable or self.long_clickable or self.scrollable or self.editable


@frozen
class Window:
    """An accessibility window: the app's, or a system one on top of it."""

    package: str
    root: ViewNode
    reacts: bool = True  # a notice that disappears lets touches through


@frozen
class VisitedNode:
    """A visited node; `parents` nearest first, `node_id` None when the node is not interesting."""

    node: ViewNode
    window: Window
    parents: tuple[ViewNode, ...] = ()
    node_id: str | None = None


def traverse(windows: Sequence[Window]) -> Iterator[VisitedNode]:
    """Yield every node, windows topmost first, parents before children."""
    count = 0
    for index, window in enumerate(windows):
        stack: list[tuple[ViewNode, tuple[ViewNode, ...]]] = [(window.root, ())]
        while stack:
            node, parents = stack.pop()
            stack.extend((child, (node, *parents)) for child in reversed(node.children))
            node_id = None
            if node.interesting:
                node_id = f"w{index}:{count}"
                count += 1
            yield VisitedNode(node, window, parents, node_id)


def list_nodes(windows: Sequence[Window]) -> tuple[list[VisitedNode], bool]:
    """Return the interesting nodes, at most 512, and whether there were more."""
    seen = list(islice((each for each in traverse(windows) if each.node_id is not None), LIMIT + 1))
    return seen[:LIMIT], len(seen) > LIMIT


def find_node(windows: Sequence[Window], node_id: str) -> VisitedNode | None:
    """Return the node with an id, or None when no node has it."""
    return next((each for each in traverse(windows) if each.node_id == node_id), None)


def hit_test(window: Window, x: int, y: int, *, scrollable: bool = False, hold: bool = False) -> ViewNode | None:
    """Return the innermost enabled node at a point that reacts, or None; of overlapping siblings, the last.

    It reacts to a scroll with `scrollable`, else to a long press with `hold`, else to a tap.
    """
    found: ViewNode | None = None
    for each in traverse((window,)):
        node = each.node
        reacts = node.scrollable if scrollable else node.long_clickable if hold else node.clickable
        if reacts and node.enabled and node.bounds.contains(x, y):
            found = node
    return found


def window_at(windows: Sequence[Window], x: int, y: int) -> Window | None:
    """Return the topmost window at a point that takes touches, or None."""
    return next((each for each in windows if each.reacts and each.root.bounds.contains(x, y)), None)


def bounding_box(windows: Sequence[Window]) -> Bounds:
    """Return the smallest rectangle around all windows (at least one)."""
    roots = [window.root.bounds for window in windows]
    return Bounds(
        min(bounds.left for bounds in roots),
        min(bounds.top for bounds in roots),
        max(bounds.right for bounds in roots),
        max(bounds.bottom for bounds in roots),
    )
