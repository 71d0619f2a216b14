"""The runs of a session: stopped or left before anybody was asked for them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from svc_proto.engine.flow import Flow, sleep, wait
from svc_proto.voice.agent.chat_run import RunTrouble
from svc_proto.voice.agent.runs import ApiRuns
from svc_proto.voice.principal import Principal
from svc_proto.voice.realtime.orders import StartRun
from tests.voice.rig import PHONE, Rig

NOBODY = cast("Any", SimpleNamespace(run_event=pytest.fail))  # is told anything


def test_it_is_stopped_before_it_is_asked_for() -> None:
    rig = Rig()
    ended: list[bool] = []

    def credential(principal: Principal) -> Flow[str | None]:
        try:
            yield from wait(rig.engine.new_op(), rig.engine.now.mono + 60.0)
        finally:
            ended.append(True)
        return None

    voice = cast("Any", rig.voice)
    voice.api_credential = credential
    holder = ApiRuns(voice, PHONE, NOBODY)
    rig.do(lambda: holder.leave("k1"))
    rig.do(lambda: holder.stop("k1"))
    rig.do(lambda: holder.start(StartRun(call_id="k1", text="x"), ""))
    rig.do(lambda: holder.stop("k1"))
    assert ended == [True]
    rig.after(120.0)


def test_nobody_is_told_of_a_run_that_was_left_and_fails() -> None:
    rig = Rig()

    def credential(principal: Principal) -> Flow[str | None]:
        holder.leave("k1")  # before anything holds its task
        yield from sleep(rig.engine, 1.0)
        raise RunTrouble("too late to matter")

    voice = cast("Any", rig.voice)
    voice.api_credential = credential
    holder = ApiRuns(voice, PHONE, NOBODY)
    rig.do(lambda: holder.start(StartRun(call_id="k1", text="x"), ""))
    rig.after(2.0)
