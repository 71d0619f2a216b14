"""The agent's notes between chats: two short lists, read from the state folder at each use (wire api 8.3).

`memory` holds the agent's own notes, `user` its notes about the user. Each is a file of the state folder, with a line
that holds a section sign between entries, so that a person can edit it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import zip_longest
from typing import TYPE_CHECKING, TypeAlias, cast

from attrs import frozen

from svc_proto.agent.interface import MemoryChange
from svc_proto.commands import Level, WriteConfig
from svc_proto.engine.core import Engine
from svc_proto.engine.files import read_state
from svc_proto.engine.flow import Flow, run_operation
from svc_proto.engine.sync import Lock
from svc_proto.facts import Failure

if TYPE_CHECKING:
    from svc_proto.schema.api_types import MemoryChangedJson, MemoryRefusedJson, NoteTarget

__all__ = ["MAX_CHARS", "FILES", "AgentMemory", "MemoryChangeResult", "TARGETS", "file_content", "usage_of"]

TARGETS: tuple[NoteTarget, ...] = ("memory", "user")
FILES = {"memory": "memories/MEMORY.md", "user": "memories/USER.md"}
MAX_CHARS = {"memory": 2_200, "user": 1_375}  # characters of all entries together, wire api 8.3
SEPARATOR = "\n§\n"
MAX_SHOWN = 20  # entries quoted in an error
_Edit: TypeAlias = "Callable[[tuple[str, ...]], MemoryChangeResult | tuple[tuple[str, ...], str]]"


@frozen(kw_only=True)
class MemoryChangeResult:
    """Result of a change: status and JSON of the HTTP answer (wire api 8.3), and the change if there was one."""

    status: int
    body: MemoryChangedJson | MemoryRefusedJson
    note: MemoryChange | None = None
    others: tuple[MemoryChange, ...] = ()  # further changes, of a rewritten list

    @property
    def text(self) -> str:
        """Return the text with which the tool `memory` reports this result to the model."""
        return self.body["message"] if self.body["success"] else self.body["error"]


class AgentMemory:
    """The two lists of notes. Changes are made one after the other.

    A change never raises. Its result has status 200, 400 for a change that is refused, such as one that grows a list
    beyond its limit of characters, or 503 if a file cannot be read or written.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._changing = Lock(engine)

    def entries(self, target: str) -> Flow[tuple[str, ...] | Failure]:
        """Return the entries of one list in the file's order; a `Failure` if the store cannot be read."""
        text = yield from read_state(self._engine, FILES[target])
        if isinstance(text, Failure):
            return text
        return _parse(text) if text else ()

    def add(self, target: str, content: str) -> Flow[MemoryChangeResult]:
        """Add an entry at the end, and return the result. An existing entry is a success without a change.

        The result has status 400 for an unknown list or an empty entry, or if the list would exceed its limit.
        """
        entry = _plain(content)

        def edit(entries: tuple[str, ...]) -> MemoryChangeResult | tuple[tuple[str, ...], str]:
            if not entry:
                return _refused("content must not be empty")
            if entry in entries:
                return _done(target, entries, entries, "This entry is there already: nothing was changed.")
            return (*entries, entry), "Entry added."

        return self._change(target, edit)

    def replace(self, target: str, old_text: str, content: str) -> Flow[MemoryChangeResult]:
        """Replace the one entry that equals `old_text`, else the only one that contains it.

        The result has status 400 for none or several, for an empty text, or if the list would grow beyond its limit. An
        equal entry elsewhere in the list is merged with the new one.
        """
        entry = _plain(content)

        def edit(entries: tuple[str, ...]) -> MemoryChangeResult | tuple[tuple[str, ...], str]:
            if not entry:
                return _refused("content must not be empty; use remove to delete an entry")
            found = _find(entries, old_text)
            if isinstance(found, MemoryChangeResult):
                return found
            kept = [entry if each == found else each for each in entries]
            return tuple(dict.fromkeys(kept)), "Entry replaced."

        return self._change(target, edit)

    def remove(self, target: str, old_text: str) -> Flow[MemoryChangeResult]:
        """Remove the one entry that equals `old_text`, else the only one that contains it.

        The result has status 400 for none or several, or if `old_text` is empty.
        """

        def edit(entries: tuple[str, ...]) -> MemoryChangeResult | tuple[tuple[str, ...], str]:
            found = _find(entries, old_text)
            if isinstance(found, MemoryChangeResult):
                return found
            return tuple(each for each in entries if each != found), "Entry removed."

        return self._change(target, edit)

    def rewrite(self, target: str, content: str) -> Flow[MemoryChangeResult]:
        """Replace all entries of a list by those of `content`, which has the format of the list's file.

        Empty and repeated entries are dropped.
        """
        return self._change(target, lambda entries: (tuple(dict.fromkeys(_parse(content))), "List replaced."))

    def _change(self, target: str, edit: _Edit) -> Flow[MemoryChangeResult]:
        if target not in TARGETS:
            return _refused("target must be memory or user")
        engine = self._engine
        yield from self._changing.acquire()
        try:
            entries = yield from self.entries(target)
            if isinstance(entries, Failure):
                return self._unavailable(entries)
            edited = edit(entries)
            if isinstance(edited, MemoryChangeResult):
                return edited
            kept, message = edited
            if _size(kept) > MAX_CHARS[target] and _size(kept) > _size(entries):
                return _refused(
                    f"{target} would hold {_size(kept):,} of {MAX_CHARS[target]:,} characters: "
                    "shorten or remove other entries first",
                    current_entries=list(entries),
                    usage=usage_of(target, entries),
                )
            order = WriteConfig(engine.new_op(), FILES[target], file_content(kept))
            done = yield from run_operation(engine, order)
            return self._unavailable(done) if isinstance(done, Failure) else _done(target, entries, kept, message)
        finally:
            self._changing.release()

    def _unavailable(self, failure: Failure) -> MemoryChangeResult:
        self._engine.log(Level.WARNING, "memory not available", problem=failure.kind.value)
        return MemoryChangeResult(status=503, body={"success": False, "error": "the memory store is not available"})


def usage_of(target: str, entries: tuple[str, ...]) -> str:
    """Return the fill level of a list, as `12% - 264/2,200 chars`."""
    size, cap = _size(entries), MAX_CHARS[target]
    return f"{size * 100 // cap}% - {size:,}/{cap:,} chars"


def file_content(entries: Iterable[str]) -> str:
    """Return the content of the file of a list with these entries."""
    return SEPARATOR.join(entries) + "\n"


def _parse(content: str) -> tuple[str, ...]:
    """Return the entries in the content of a list's file, stripped and without empty ones."""
    return tuple(entry.strip() for entry in content.replace("\r\n", "\n").split(SEPARATOR) if entry.strip())


def _plain(content: str) -> str:
    r"""Return an entry in its stored form: stripped, with `\n` for each CRLF and without the separator `§`."""
    return content.replace("\r\n", "\n").replace("§", "").strip()


def _size(entries: tuple[str, ...]) -> int:
    return sum(map(len, entries))


def _find(entries: tuple[str, ...], old_text: str) -> str | MemoryChangeResult:
    """Return the one distinct entry that contains a text, or equals it; else the result that refuses the change."""
    wanted = old_text.strip()
    if not wanted:
        return _refused("old_text must not be empty")
    found = list(dict.fromkeys(entry for entry in entries if wanted in entry))
    if wanted in found:
        return wanted  # an exact match has precedence over entries that contain the text
    if not found:
        return _refused("no entry contains old_text", current_entries=list(entries)[:MAX_SHOWN])
    if len(found) > 1:
        return _refused("several entries contain old_text: be more specific", matches=found[:MAX_SHOWN])
    return found[0]


def _done(target: str, before: tuple[str, ...], entries: tuple[str, ...], message: str) -> MemoryChangeResult:
    body: MemoryChangedJson = {
        "success": True,
        "target": cast("NoteTarget", target),
        "entry_count": len(entries),
        "usage": usage_of(target, entries),
        "message": message,
    }
    added = [entry for entry in entries if entry not in before]
    removed = [entry for entry in before if entry not in entries]
    notes = [
        MemoryChange(target=target, count=len(entries), added=new, removed=old)
        for new, old in zip_longest(added, removed)
    ]
    return MemoryChangeResult(status=200, body=body, note=notes[0] if notes else None, others=tuple(notes[1:]))


def _refused(error: str, **more: object) -> MemoryChangeResult:
    body = cast("MemoryRefusedJson", {"success": False, "error": error, **more})
    return MemoryChangeResult(status=400, body=body)
