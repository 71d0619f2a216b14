from __future__ import annotations

import pytest

from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow, sleep
from svc_proto.machines.route_choice import Candidate
from svc_proto.peers.remote import DERIVED_PROBE
from svc_proto.peers.routes import Routes
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
        third = yield from routes.choose(anew=True)
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


@pytest.mark.parametrize(
    ("status", "probe", "there"),
    [(status, "/health", status in (200, 299)) for status in (200, 299, 300, 401, 403, 404, 503)]
    + [(status, DERIVED_PROBE, status in (200, 401, 403)) for status in (200, 302, 401, 403, 404, 502)],
)
def test_what_counts_as_an_answer(status: int, probe: str, there: bool) -> None:
    """A relay that was derived is asked for its voice, and may want to know who asks."""
    plan = lambda engine: Routes(engine, [LAN], probe=probe).choose()  # noqa: E731
    world = World(plan, http=lambda asked: (status, b""))
    assert world.run() == (LAN if there else None)
    assert [asked.path for asked in world.asked] == [probe]


def test_an_address_that_is_none() -> None:
    routes: list[Routes] = []

    def plan(engine: Engine) -> Flow[Candidate | None]:
        routes.append(Routes(engine, [Candidate("lan", 0, "ws://"), PUBLIC]))
        return (yield from routes[0].choose())

    assert World(plan, http=lambda asked: WELL).run() == PUBLIC
    assert list(routes[0].problems.values()) == ["the URL has no usable host or port"]


def test_given_up_with_whoever_asked() -> None:
    def plan(engine: Engine) -> Flow[str]:
        routes = Routes(engine, [LAN])
        task = engine.spawn(routes.choose())
        yield from sleep(engine, 1.0)
        task.cancel()
        yield from sleep(engine, 1.0)
        yield from routes.choose()
        return "done"

    there = World(plan, http=lambda asked: SILENT)
    assert there.run() == "done"
    assert len(there.asked) == 2
