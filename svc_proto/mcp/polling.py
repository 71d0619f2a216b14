"""Change detection by polling, for sources without change events (decision 163)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from svc_proto.basics.errors import ToolError
from svc_proto.engine.flow import Flow, sleep

if TYPE_CHECKING:
    from svc_proto.engine.core import Engine

__all__ = ["watch_by_polling"]

POLL_INTERVAL = 2.0  # s between two polls


def watch_by_polling(engine: Engine, read: Callable[[], Flow[str]], tell: Callable[[], None]) -> Callable[[], None]:
    """Call `tell` after each change of the value that `read` returns; the returned function ends the polling.

    A failed read (`ToolError`) counts as no change.
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
