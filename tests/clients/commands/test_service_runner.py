import pytest

from clients.commands.service_runner import ProgressLine, run_flow
from svc_proto.commands import Notify
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow, sleep

WAITING = Notify("waiting", {"seconds": 1})


def test_progress_is_shown_until_the_next_event(capsys: pytest.CaptureFixture[str]) -> None:
    heard: list[Notify] = []
    progress = ProgressLine(heard.append)
    progress.on_notify(Notify("doing", {"text": "calling"}))
    progress.on_notify(WAITING)
    progress.on_notify(WAITING)
    assert capsys.readouterr().err == "\r\x1b[Kcalling … 1 s\r\x1b[Kcalling … 2 s"
    progress.on_notify(Notify("text", {"text": "x"}))
    assert capsys.readouterr().err == "\r\x1b[K"
    progress.on_notify(WAITING)  # an answer is printed: no progress is written into it
    assert capsys.readouterr().err == ""
    progress.on_notify(Notify("doing", {"text": "calling again"}))
    progress.on_notify(WAITING)
    assert capsys.readouterr().err == "\r\x1b[Kcalling again … 1 s"
    progress.clear()
    progress.clear()
    assert capsys.readouterr().err == "\r\x1b[K"
    assert heard == [Notify("text", {"text": "x"})]


def test_a_closed_output_ends_the_run() -> None:
    told: list[Notify] = []

    def show(news: Notify) -> None:
        told.append(news)
        raise BrokenPipeError

    def endless(engine: Engine) -> Flow[str]:
        while True:
            engine.emit(Notify("text", {}))
            yield from sleep(engine, 0.001)

    with pytest.raises(BrokenPipeError):
        run_flow(endless, "anyio", on_tell=show)
    assert len(told) == 1
