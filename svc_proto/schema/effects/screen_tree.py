"""Screen of a phone as `GET /screen` reports it (wire bridge 3.1), for rules on the target of a touch.

    tree = ScreenTree.parse(body)
    targets = tree.targets("/tap_text", {"text": "Call"})

Only the members of the wire are used, so the rules hold for every phone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from attrs import frozen

from svc_proto.schema.json_object import JsonObject
from svc_proto.schema.screen_node import ScreenNode

__all__ = ["ScreenTree", "TouchedControl"]

MAX_NODES = 512  # nodes of one screen (wire bridge 3.4)
LARGE = 0.4  # part of the screen; a larger container is no control
_BUTTONS = ("Button", "ImageView", "Chip", "Fab")


@frozen(kw_only=True)
class TouchedControl:
    """The control that a touch reaches: its own node and, unless that is `LARGE`, the nodes inside of it."""

    node: ScreenNode
    parts: tuple[ScreenNode, ...]
    package: str

    @property
    def labels(self) -> tuple[str, ...]:
        """Return the texts and descriptions of the nodes of the control, each once."""
        return tuple(dict.fromkeys(label for part in self.parts for label in part.labels))

    @property
    def label(self) -> str:
        """Return the labels for a question, with ` / ` between them."""
        return " / ".join(self.labels)

    @property
    def is_checkable(self) -> bool:
        """Report whether the control has a state: a switch, a check box, a bar."""
        return any(part.has_state for part in self.parts)

    @property
    def hides_its_state(self) -> bool:
        """Report whether the control has a state that the phone does not report."""
        return any(part.has_state and part.reported_checked is None for part in self.parts)

    @property
    def is_button(self) -> bool:
        """Report whether the control is a button or an icon by its class."""
        return self.node.class_name.endswith(_BUTTONS)

    @property
    def is_row(self) -> bool:
        """Report whether the control is an entry of a list: several texts, no button, and no state."""
        return len(self.labels) > 1 and not self.is_button and not self.is_checkable


@frozen(kw_only=True)
class ScreenTree:
    """The first `MAX_NODES` nodes of a screen, topmost window first."""

    package: str = ""
    nodes: tuple[ScreenNode, ...] = ()
    area: int = 0

    @classmethod
    def parse(cls, body: Mapping[str, object]) -> ScreenTree:
        """Build the tree from a body of `GET /screen`."""
        members = JsonObject.of(body)
        nodes = tuple(ScreenNode.parse(node) for node in members.objects("nodes")[:MAX_NODES])
        root = ScreenNode.parse(JsonObject(bounds=members.get("rootBounds")))
        return cls(package=members.text("packageName"), nodes=nodes, area=root.area)

    @property
    def fields(self) -> tuple[ScreenNode, ...]:
        """Return the nodes that are editable."""
        return tuple(node for node in self.nodes if node.editable)

    @property
    def texts(self) -> tuple[str, ...]:
        """Return the texts and descriptions of all nodes that are not blank."""
        return tuple(label for node in self.nodes for label in node.labels)

    @property
    def field(self) -> ScreenNode | None:
        """Return the field that text goes into: the focused one, else the first; None without fields."""
        return next((node for node in self.fields if node.focused), next(iter(self.fields), None))

    def package_of(self, node: ScreenNode) -> str:
        """Return the package of a node's window: the screen's, or for a lower window that of its view ids, if any."""
        top = self.nodes[0].window if self.nodes else ""
        if node.window == top:
            return self.package
        owners = (each.view_id.partition(":id/")[0] for each in self.nodes if each.window == node.window)
        return next((owner for owner in owners if "." in owner), self.package)

    def targets(self, path: str, arguments: Mapping[str, object]) -> tuple[TouchedControl, ...]:
        """Return the controls that a touch may reach: none, one, or several if a text matches several nodes."""
        given = JsonObject.of(arguments)
        if path == "/tap_text":
            nodes = tuple(self._named(given.text("text")))
        elif (node_id := given.text("nodeId", "node_id")) != "":
            nodes = tuple(node for node in self.nodes if node.node_id == node_id)
        else:
            x, y = (given.integer(name) for name in ("x", "y"))
            x = given.integer("start_x") if x is None else x
            y = given.integer("start_y") if y is None else y
            return () if x is None or y is None else tuple(self._at((x, y)))
        found = [self._control(node) for node in nodes]
        return tuple({control.node.node_id: control for control in found}.values())

    def _named(self, text: str) -> Iterator[ScreenNode]:
        wanted = text.strip().casefold()
        if not wanted:
            return
        exact = [node for node in self.nodes if any(label.strip().casefold() == wanted for label in node.labels)]
        yield from exact
        partly = (node for node in self.nodes if any(wanted in label.casefold() for label in node.labels))
        yield from (node for node in partly if not exact or node.clickable)

    def _control(self, node: ScreenNode) -> TouchedControl:
        """Return the control of a node: the node itself, or the smallest clickable node around it."""
        if not node.clickable and not node.editable:
            around = [each for each in self.nodes if each.clickable and self._contains(each, node)]
            node = min(around, key=lambda each: each.area, default=node)
        return self._whole(node)

    def _at(self, point: tuple[int, int]) -> Iterator[TouchedControl]:
        """Yield the control at a point of the topmost window that has a node there, if any does."""
        hit = [node for node in self.nodes if node.covers(point)]
        hit = [node for node in hit if node.window == hit[0].window]
        reacting = [node for node in hit if node.clickable or node.editable] or hit
        if reacting:
            yield self._whole(min(reacting, key=lambda node: node.area))

    def _whole(self, node: ScreenNode) -> TouchedControl:
        inside = (each for each in self.nodes if each is not node and self._contains(node, each))
        parts = (node, *inside) if node.area < self.area * LARGE else (node,)
        return TouchedControl(node=node, parts=parts, package=self.package_of(node))

    @staticmethod
    def _contains(outer: ScreenNode, inner: ScreenNode) -> bool:
        left, top, right, bottom = inner.bounds
        return (
            outer.window == inner.window
            and inner.area > 0
            and outer.bounds[0] <= left
            and right <= outer.bounds[2]
            and outer.bounds[1] <= top
            and bottom <= outer.bounds[3]
        )
