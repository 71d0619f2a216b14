"""The screen hash of `/screen_hash` and `/diff_screen` (wire/bridge.md 3.4).

SHA-256 over the UTF-8 of one record per interesting node in walk order, the records joined by U+001E. A record is
class name, text, description, `left,top,right,bottom` and view id, joined by `|`, missing parts empty.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256

from clients.phone.emulator.view_tree import ViewNode

__all__ = ["screen_hash"]

RECORD_SEPARATOR = "\x1e"


def screen_hash(nodes: Iterable[ViewNode]) -> str:
    """Return 64 lower-case hex digits. Focus, selection and the enabled flag do not count."""
    return sha256(RECORD_SEPARATOR.join(map(_record, nodes)).encode("utf-8", "replace")).hexdigest()


def _record(node: ViewNode) -> str:
    bounds = node.bounds
    edges = f"{bounds.left},{bounds.top},{bounds.right},{bounds.bottom}"
    return "|".join((node.class_name, node.text or "", node.description or "", edges, node.view_id or ""))
