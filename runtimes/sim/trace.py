"""Events of a simulation: a digest, and the last ones as text."""

import hashlib
from collections import defaultdict, deque
from functools import partial

from attrs import frozen

from svc_proto.commands import Command, Send
from svc_proto.facts import Done, Fact, Received, Sent

__all__ = ["TraceRecord", "Trace"]

LAST = 40  # events of a process that are kept and shown in an error message
PAGE = 8  # rows of an answer; of more rows only the first and the last are in the digest
SHOWN = 160  # characters shown of each event


@frozen
class TraceRecord:
    """A fact given to a core (None: a call without one), a command of a core, or a change of a process.

    A change is a text: `started`, `killed` or `exited 0`, for example.
    """

    when: float  # monotonic seconds
    process: str
    what: Fact | Command | str | None

    def __str__(self) -> str:
        text = repr(self.what)
        return f"{self.when:.6f} {self.process}: {text if len(text) <= SHOWN else text[:SHOWN] + '...'}"


class Trace:
    """Recorder of facts, commands and changes; without `keep`, it stores only the last `LAST` of each process."""

    def __init__(self, *, keep: bool = False) -> None:
        self.records: list[TraceRecord] | None = [] if keep else None
        self._added = 0
        self._last: defaultdict[str, deque[tuple[int, float, Fact | Command | str | None]]]
        self._last = defaultdict(partial(deque, maxlen=LAST))
        self._digest = hashlib.blake2b(digest_size=16)

    def add(self, when: float, process: str, what: Fact | Command | str | None) -> None:
        """Record one event of a process, at the monotonic time `when`."""
        self._added += 1
        self._last[process].append((self._added, when, what))
        if self.records is not None:
            self.records.append(TraceRecord(when, process, what))
        if isinstance(what, Received | Send):  # most events: their bytes are hashed without `repr`
            self._digest.update(f"{when!r} {process} {type(what).__name__} {what.ch} {len(what.data)} ".encode())
            self._digest.update(what.data)
        elif isinstance(what, Sent):  # equal to its `repr`, which takes longer
            self._digest.update(f"{when!r} {process} Sent(ch={what.ch}, n={what.n})\n".encode())
        elif isinstance(what, Done) and isinstance(what.result, tuple) and len(what.result) > PAGE:
            count, first, last = len(what.result), what.result[0], what.result[-1]
            self._digest.update(f"{when!r} {process} Done({what.op}, {count}, {first!r}, {last!r})\n".encode())
        else:
            self._digest.update(f"{when!r} {process} {what!r}\n".encode())

    def digest(self) -> str:
        """Return a hex digest of the events so far, equal for equal runs.

        Of a result with over `PAGE` rows, only the number and the first and last row are in it.
        """
        return self._digest.hexdigest()

    def last(self, count: int = LAST) -> list[TraceRecord]:
        """Return the last events of each process in order: `count` of each, and no more than `LAST`."""
        entries = [
            (number, TraceRecord(when, process, what))
            for process, events in self._last.items()
            for number, when, what in list(events)[-count:]
        ]
        return [record for _, record in sorted(entries, key=lambda entry: entry[0])]

    def tail(self) -> str:
        """Return the last 40 events of all processes as text, one on each line."""
        return "\n".join(f"  {record}" for record in self.last()[-LAST:])
