import pytest

from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow, sleep
from svc_proto.machines.candidate_selection import Candidate
from svc_proto.service_clients.candidate_prober import CandidateProber, parse_candidate
from svc_proto.service_clients.relay_url import DERIVED_PROBE
from tests.cli.harness import REFUSED, SILENT, OneShotHarness, Reply, UpstreamRequest, as_json

LAN, LAN_2 = Candidate("lan", 0, "ws://192.0.2.1:8767"), Candidate("lan", 0, "ws://192.0.2.2:8767")
PUBLIC = Candidate("public", 1, "wss://home.example")
WELL = as_json({"status": "ok"})


def world(answers: dict[str, Reply]) -> OneShotHarness[Candidate | None]:
    def plan(engine: Engine) -> Flow[Candidate | None]:
        routes = CandidateProber(engine, [PUBLIC, LAN, LAN_2])
        chosen = yield from routes.select()
        assert set(routes.problems) <= {LAN, LAN_2, PUBLIC}
        return chosen

    def http(asked: UpstreamRequest) -> Reply:
        return answers.get(asked.url.removesuffix("/health"), REFUSED)

    return OneShotHarness(plan, http=http)


def test_the_best_tier_wins_even_when_a_worse_one_answers() -> None:
    there = world({"http://192.0.2.2:8767": WELL, "https://home.example:443": WELL})
    assert there.run() == LAN_2
    assert {asked.url for asked in there.asked} <= {"http://192.0.2.1:8767/health", "http://192.0.2.2:8767/health"}


def test_the_next_tier_when_the_first_is_silent() -> None:
    there = world(
        {"http://192.0.2.1:8767": SILENT, "http://192.0.2.2:8767": (500, b""), "https://home.example:443": WELL}
    )
    began = there.now.mono
    assert there.run() == PUBLIC
    assert there.now.mono == began + 4.0


def test_selection_is_cached_until_the_network_changes() -> None:
    def plan(engine: Engine) -> Flow[list[int]]:
        routes, counts = CandidateProber(engine, [LAN]), list[int]()
        for anew in (False, False, True):
            assert (yield from routes.select(anew=anew)) == LAN
            counts.append(len(there.asked))
        return counts

    there = OneShotHarness(plan, http=WELL)
    assert there.run() == [1, 1, 2]


@pytest.mark.parametrize(
    ("status", "probe", "there"),
    [(status, "/health", status in (200, 299)) for status in (200, 299, 300, 401, 403, 404, 503)]
    + [(status, DERIVED_PROBE, status in (200, 401, 403)) for status in (200, 302, 401, 403, 404, 502)],
)
def test_accepted_probe_answers(status: int, probe: str, there: bool) -> None:
    """Accept also 401 and 403 from a derived candidate, whose probe is a voice route that requires a credential."""
    plan = lambda engine: CandidateProber(engine, [LAN], probe=probe).select()  # noqa: E731
    world = OneShotHarness(plan, http=(status, b""))
    assert world.run() == (LAN if there else None)
    assert [asked.path for asked in world.asked] == [probe]


def test_failure_reasons_of_candidates() -> None:
    none = Candidate("lan", 0, "ws://")
    answers: dict[str, Reply] = {"192.0.2.1": SILENT, "192.0.2.2": (500, b""), "home.example": REFUSED}

    def plan(engine: Engine) -> Flow[dict[Candidate, str]]:
        routes = CandidateProber(engine, [none, LAN, LAN_2, PUBLIC])
        assert (yield from routes.select()) is None
        problems = dict(routes.problems)
        answers["192.0.2.2"] = WELL
        assert (yield from routes.select(anew=True)) == LAN_2
        assert LAN_2 not in routes.problems  # the reasons are those of the latest selection
        return problems

    world = OneShotHarness(
        plan, http=lambda asked: next(answer for host, answer in answers.items() if host in asked.url)
    )
    assert world.run() == {
        none: "the URL has no usable host or port",
        LAN: "no answer in time",
        LAN_2: "status 500",
        PUBLIC: "connection refused",
    }


@pytest.mark.parametrize(
    ("change", "candidate"),
    [
        ({}, Candidate("lan", 2, LAN.url)),
        ({"priority": None}, None),
        ({"priority": "1"}, None),
        ({"role": ""}, None),
        ({"role": "x"}, Candidate("x", 2, LAN.url)),
        ({"role": "x" * 64}, Candidate("x" * 64, 2, LAN.url)),
        ({"role": "x" * 65}, None),
        ({"relay": {"url": "http://192.0.2.1:8767"}}, None),
        ({"relay": LAN.url}, None),
    ],
)
def test_a_route_of_an_invite(change: dict[str, object], candidate: Candidate | None) -> None:
    assert parse_candidate({"role": "lan", "priority": 2, "relay": {"url": LAN.url}} | change) == candidate


def test_minimal_candidate_of_an_invite() -> None:
    assert parse_candidate({"role": "lan", "relay": {"url": LAN.url}}) == LAN
    assert parse_candidate(None) is None


def test_selection_cancels_other_probes() -> None:
    def plan(engine: Engine) -> Flow[Candidate | None]:
        chosen = yield from CandidateProber(engine, [LAN, LAN_2]).select()
        yield from sleep(engine, 0.0)
        assert [line.gone for line in there.upstreams] == [True, True]
        return chosen

    there = OneShotHarness(plan, http=lambda asked: WELL if LAN_2.url.removeprefix("ws") in asked.url else SILENT)
    assert there.run() == LAN_2


def test_cancelled_selection_cancels_its_probes() -> None:
    def plan(engine: Engine) -> Flow[str]:
        routes = CandidateProber(engine, [LAN, PUBLIC])
        task = engine.spawn(routes.select())
        yield from sleep(engine, 1.0)
        assert [line.gone for line in there.upstreams] == [False]
        task.cancel()
        yield from sleep(engine, 1.0)
        assert [line.gone for line in there.upstreams] == [True]
        yield from sleep(engine, 10.0)  # the next tier is not probed either
        assert len(there.asked) == 1
        yield from routes.select()
        return "done"

    there = OneShotHarness(plan, http=SILENT)
    assert there.run() == "done"
    assert len(there.asked) == 3
