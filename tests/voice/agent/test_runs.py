"""The run of a session: stopped before anybody was asked for it."""

from __future__ import annotations

from typing import Any, cast

from svc_proto.engine.flow import Flow, wait
from svc_proto.machines.broker_orders import StartRun
from svc_proto.voice.agent.runs import RunHolder
from svc_proto.voice.principal import Principal
from tests.voice.rig import PHONE, Rig


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
    holder = RunHolder(voice, PHONE, cast("Any", None))  # nobody is told anything
    rig.do(holder.leave)
    rig.do(lambda: holder.start(StartRun(call_id="k1", text="x"), ""))
    rig.do(holder.stop)
    assert ended == [True]
    rig.after(120.0)
