"""The screen hash of `/screen_hash` and `/diff_screen` (wire bridge 3.4).

SHA-256 over the UTF-8 of one record per node, in the caller's order, the records joined by U+001E. A record is class
name, text, description, `left,top,right,bottom` and view id, joined by `|`, missing parts empty.
"""

from collections.abc import Iterable
from hashlib import sha256
from typing import TypeAlias

__all__ = ["HashedNode", "screen_hash"]

RECORD_SEPARATOR = "\x1e"
# Class name, text, description, bounds (left, top, right, bottom) and view id.
HashedNode: TypeAlias = tuple[str, str, str, tuple[int, int, int, int], str]


def screen_hash(nodes: Iterable[HashedNode]) -> str:
    """Return the hash of a screen's nodes as 64 lower-case hex digits.

    Focus, selection and the enabled flag do not count.
    """
    return sha256(RECORD_SEPARATOR.join(map(_record, nodes)).encode("utf-8", "replace")).hexdigest()


def _record(node: HashedNode) -> str:
    class_name, text, description, edges, view_id = node
    return "|".join((class_name, text, description, ",".join(map(str, edges)), view_id))
