"""Unknown members of a message or a call, collected over the pieces of a stream, to be sent back to the server.

Texts are concatenated unless their name is in `CONSTANT`, objects are merged. Items of a list with an equal `index`,
and an equal `type` if the later one has any, are merged; others are appended.
"""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet

from svc_proto.agent.interface import ToolCall
from svc_proto.basics import strict_json
from svc_proto.schema.json_object import JsonObject, as_array, as_object, as_text

__all__ = ["MAX_EXTRA", "ExtraMembers", "call_row"]

MAX_EXTRA = 256 * 1024  # characters as JSON; members that exceed the limit are dropped
MAX_DEPTH = 16  # levels that are merged; deeper values replace each other
CONSTANT = ("type", "id", "format", "index", "name", "role")  # texts with these names are replaced, not joined


class ExtraMembers:
    """Unknown members of a message, merged from the pieces of a stream."""

    def __init__(self) -> None:
        self.members: dict[str, object] = {}
        self._size = 0

    def add(self, source: Mapping[str, object], known: AbstractSet[str]) -> None:
        """Merge the members of a piece, without `known` and empty ones; those beyond `MAX_EXTRA` are dropped."""
        if known >= source.keys():
            return
        for name, value in source.items():
            if name in known or value in (None, "", [], {}):
                continue
            self._size += len(name) + len(strict_json.dumps(value))
            if self._size <= MAX_EXTRA:
                self.members[name] = _merge(name, self.members.get(name), value, MAX_DEPTH)


def call_row(call: ToolCall, arguments: str) -> dict[str, object]:
    """Return a tool call in OpenAI's form, with its further members."""
    function = {**JsonObject.of(call.extra).get_object("function"), "name": call.name, "arguments": arguments}
    return {**call.extra, "id": call.id, "type": "function", "function": function}


def _merge(name: str, old: object, new: object, depth: int) -> object:
    if old is None or not depth:
        return new
    if new is None:
        return old
    old_text, new_text = as_text(old), as_text(new)
    if old_text is not None and new_text is not None:
        return new if name in CONSTANT else old_text + new_text
    old_object, new_object = as_object(old), as_object(new)
    if old_object is not None and new_object is not None:
        merged = dict(old_object)
        for member, value in new_object.items():
            merged[member] = _merge(member, merged.get(member), value, depth - 1)
        return merged
    old_items, new_items = as_array(old), as_array(new)
    if old_items is not None and new_items is not None:
        return _merge_items(old_items, new_items, depth)
    return new


def _merge_items(old: list[object], new: list[object], depth: int) -> list[object]:
    items = list(old)
    for item in new:
        index = JsonObject.of(item).integer("index")
        same = None
        if index is not None:
            kind = JsonObject.of(item).get("type")
            same = next((place for place, each in enumerate(items) if _is_same(each, index, kind)), None)
        if same is None:
            items.append(item)
        else:
            items[same] = _merge("", items[same], item, depth - 1)
    return items


def _is_same(item: object, index: int, kind: object) -> bool:
    members = JsonObject.of(item)
    return members.integer("index") == index and kind in (None, members.get("type"))
