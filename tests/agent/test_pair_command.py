import re

import pytest

from svc_proto.agent.interface import EphemeralText, TextDelta
from svc_proto.engine.message import Response, json_response
from svc_proto.relay_config import LocalTrustPolicy
from svc_proto.service_clients.local_secret import HEADER
from svc_proto.wire.events import Headers
from tests.agent.harness import ROUTE, AgentHarness
from tests.support.servers.scripted_service import ScriptedService, row

HERE: tuple[tuple[bytes, bytes], ...] = ()


def shown(world: AgentHarness) -> str:
    return "".join(event.text for event in world.host.events if isinstance(event, EphemeralText))


def kept(world: AgentHarness) -> str:
    return "".join(event.text for event in world.host.events if type(event) is TextDelta)


@pytest.mark.parametrize("model", [None, ROUTE])
@pytest.mark.parametrize("line", ["/svc-relay-pair", " /Hermes-relay-pair\n"])
def test_operator_gets_a_code_and_qr_that_are_not_stored(line: str, model: object) -> None:
    world = AgentHarness(relay=True)
    outcome = world.answer(line, model=model, operator=HERE)  # type: ignore[arg-type]  # a route or none
    assert outcome.finish == "stop"
    text = shown(world)
    code = re.search(r"\*\*([A-Z0-9]{6})\*\* at `ws://[^`]+:8767`", text)
    assert code is not None
    assert "`svc-relay://pair?payload=" in text
    drawn = text.split("```")[1].strip("\n").split("\n")
    assert len({len(line) for line in drawn}) == 1
    assert drawn[0] == "█" * len(drawn[0])
    assert abs(len(drawn) * 2 - len(drawn[0])) <= 1
    assert world.relay.codes.consume(code[1], world.relay.engine.now) is not None
    assert "not kept" in kept(world)
    assert code[1] not in kept(world)
    assert world.model.seen == []


def test_the_code_has_the_defaults_of_the_host(world: AgentHarness) -> None:
    world.start_relay(pair_scope="chat", pair_ttl=3600)
    world.sim.run_for(1.0)
    world.command("/svc-relay-pair", operator=HERE)
    code = re.search(r"\*\*([A-Z0-9]{6})\*\*", shown(world))
    assert code is not None
    meta = world.relay.codes.consume(code[1], world.relay.engine.now)
    assert meta is not None
    assert (meta.ttl_seconds, {*(meta.grants or {})} & {"chat", "bridge"}) == (3600, {"bridge"})


def test_other_users_get_no_code() -> None:
    world = AgentHarness(relay=True)
    world.command("/svc-relay-pair")
    assert shown(world) == ""
    assert "svc pair" in kept(world)
    assert len(world.relay.codes) == 0
    world.command("/svc-relay-pair please", operator=HERE)
    assert shown(world) == ""


def test_relay_requires_the_local_secret(world: AgentHarness) -> None:
    world.start_relay(local_trust=LocalTrustPolicy.SECRET)
    world.sim.run_for(1.0)
    world.command("/svc-relay-pair", operator=HERE)
    assert (shown(world), "local secret" in kept(world)) == ("", True)
    secret = world.disk.files(world.agent_host.state)["local-secret"].data
    world.host.events.clear()
    world.command("/svc-relay-pair", operator=((HEADER, bytes(secret)),))
    assert "not kept" in kept(world)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (json_response(503, {"ok": False, "error": "not now"}), "not now"),
        (json_response(200, {"code": 7}), "nothing of use"),
        (json_response(200, ["code"]), "nothing of use"),
        (Response(200, Headers(), b"hello"), "nothing of use"),
        (None, "does not answer"),
    ],
)
def test_relay_refuses_the_code(world: AgentHarness, answer: Response | None, why: str) -> None:
    if answer is not None:
        relay = ScriptedService([row("POST", "/pairing/mint", lambda request: answer)])
        world.serve(relay, 8767)
    world.command("/svc-relay-pair", operator=HERE)
    assert shown(world) == ""
    assert why in kept(world)


def test_without_a_drawing_the_code_is_enough() -> None:
    world = AgentHarness(relay=True)
    del world.agent_host.compute["qr.rows"]
    world.command("/svc-relay-pair", operator=HERE)
    assert "```" not in shown(world)
    assert re.search(r"\*\*[A-Z0-9]{6}\*\*", shown(world))
