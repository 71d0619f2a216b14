"""Knowing of changes by looking again and again, where nobody tells of them (decision 163)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from svc_proto.basics.errors import ToolError
from svc_proto.engine.flow import Flow, sleep

if TYPE_CHECKING:
    from svc_proto.engine.core import Engine

__all__ = ["watch_by_polling"]

POLL_INTERVAL = 2.0  # s between two looks


def watch_by_polling(engine: Engine, read: Callable[[], Flow[str]], tell: Callable[[], None]) -> Callable[[], None]:
    """Have `tell` called when what is read is another than at the last look, until what this returns is called.

    What cannot be read at the moment (`ToolError`) is as it was.
    """

    def look() -> Flow[None]:
        last: str | None = None
        while True:
            try:
                found = yield from read()
            except ToolError:
                pass
            else:
                if last not in (None, found):
                    tell()
                last = found
            yield from sleep(engine, POLL_INTERVAL)

    return engine.spawn(look()).cancel
