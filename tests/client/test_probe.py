from __future__ import annotations

from svc_proto.client.probe import Routes
from svc_proto.device.route_choice import Candidate
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow, sleep
from tests.client.world import REFUSED, SILENT, Answer, Asked, World, as_json

LAN, LAN_2 = Candidate("lan", 0, "ws://192.0.2.1:8767"), Candidate("lan", 0, "ws://192.0.2.2:8767")
PUBLIC = Candidate("public", 1, "wss://home.example")
WELL = as_json({"status": "ok"})


def world(answers: dict[str, Answer], *, again: bool = False) -> World[list[Candidate | None]]:
    def plan(engine: Engine) -> Flow[list[Candidate | None]]:
        routes = Routes(engine, [PUBLIC, LAN, LAN_2])
        first = yield from routes.choose()
        assert set(routes.problems) <= {LAN, LAN_2, PUBLIC}
        if not again:
            return [first]
        second = yield from routes.choose()
        third = yield from routes.choose_anew()
        return [first, second, third]

    def http(asked: Asked) -> Answer:
        return answers.get(asked.url.removesuffix("/health"), REFUSED)

    return World(plan, http=http)


def test_the_best_tier_wins_even_when_a_worse_one_answers() -> None:
    there = world({"http://192.0.2.2:8767": WELL, "https://home.example:443": WELL})
    assert there.run() == [LAN_2]
    assert {asked.url for asked in there.asked} <= {"http://192.0.2.1:8767/health", "http://192.0.2.2:8767/health"}


def test_the_next_tier_when_the_first_is_silent() -> None:
    there = world(
        {"http://192.0.2.1:8767": SILENT, "http://192.0.2.2:8767": (500, b""), "https://home.example:443": WELL}
    )
    began = there.now.mono
    assert there.run() == [PUBLIC]
    assert there.now.mono == began + 4.0


def test_none() -> None:
    assert world({}).run() == [None]


def test_what_answered_is_believed_until_the_network_changes() -> None:
    there = world({"http://192.0.2.1:8767": WELL}, again=True)
    assert there.run() == [LAN, LAN, LAN]
    asked = [asked.url for asked in there.asked]
    assert asked.count("http://192.0.2.1:8767/health") == 2


def test_given_up_with_whoever_asked() -> None:
    def plan(engine: Engine) -> Flow[str]:
        task = engine.spawn(Routes(engine, [LAN]).choose())
        yield from sleep(engine, 1.0)
        task.cancel()
        yield from sleep(engine, 1.0)
        return "done"

    there = World(plan, http=lambda asked: SILENT)
    assert there.run() == "done"
    assert len(there.asked) == 1
