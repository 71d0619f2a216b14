"""Poller of `/health` for a supervisor such as systemd.

Events (`Notify`): "ready" after the first round in which all servers answer, "alive" after each later round in which
all answer, and "stopping".
"""

from collections.abc import Sequence
from functools import partial

from svc_proto.cli.one_shot_service import OneShotService
from svc_proto.commands import Notify
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow, sleep
from svc_proto.engine.http_client import HttpResult, fetch

__all__ = ["ReadinessWatch"]

SOON = 0.2  # s between two rounds before all have answered
RESPONSE_TIMEOUT = 10.0  # s for an answer


class ReadinessWatch(OneShotService[None]):
    """Service that requests `/health` from `urls` until all answer.

    Then it does so twice within `watchdog`, the seconds after which the supervisor kills a silent service; None: never.
    """

    def __init__(self, urls: Sequence[str], watchdog: float | None) -> None:
        super().__init__(partial(_watch, urls, None if watchdog is None else watchdog / 2))

    def on_stopping(self) -> None:
        """Report the stop, and exit without an error."""
        self._engine.emit(Notify("stopping", {}))
        self._engine.exit(0)


def _watch(urls: Sequence[str], every: float | None, engine: Engine) -> Flow[None]:
    while not (yield from _all_answer(engine, urls)):
        yield from sleep(engine, SOON)
    engine.emit(Notify("ready", {}))
    while every is not None:
        yield from sleep(engine, every)
        if (yield from _all_answer(engine, urls)):
            engine.emit(Notify("alive", {}))


def _all_answer(engine: Engine, urls: Sequence[str]) -> Flow[bool]:
    for url in urls:
        answer = yield from fetch(engine, "GET", f"{url}/health", within=RESPONSE_TIMEOUT)
        if not isinstance(answer, HttpResult):
            return False
    return True
