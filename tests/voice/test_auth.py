"""What the API server says of a bearer. What follows from it is in tests/relay/test_voice_access.py."""

from __future__ import annotations

import pytest

from svc_proto.basics.errors import Refused
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow, sleep
from svc_proto.voice import auth
from svc_proto.voice.auth import CACHE_SECONDS, ApiProbe
from tests.client.world import REFUSED, SILENT, Asked
from tests.voice.plans import world_of

URL = "http://api.example:8642"


def guarded(asked: Asked) -> object:
    assert asked.url == f"{URL}/v1/models"
    return (200 if asked.headers.get(b"authorization") == b"Bearer key" else 401), b""


def asks(*bearers: str | None, pause: float = 0.0) -> tuple[list[bool], list[Asked]]:
    """Ask about each, None about nobody; what was said, and what the API server was asked."""

    def plan(engine: Engine) -> Flow[list[bool]]:
        probe = ApiProbe(engine, URL)
        found = []
        for bearer in bearers:
            found.append((yield from (probe.keyed() if bearer is None else probe.accepts(bearer))))
            yield from sleep(engine, pause)
        return found

    world = world_of(plan, http=guarded)
    return world.run(), world.asked


def test_the_api_server_is_asked_and_remembered() -> None:
    found, asked = asks("key", "key", "other", "other")
    assert found == [True, True, False, False]
    assert [request.headers.get(b"authorization") for request in asked] == [
        b"Bearer key",
        b"Bearer other",
        b"Bearer other",
    ]


def test_so_many_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auth, "MAX_CACHED", 2)
    bearers = ("a", "b", "c", "c", "b", "a")
    world = world_of(lambda engine: _each(ApiProbe(engine, URL), bearers), http=lambda asked: (200, b""))
    world.run()
    assert len(world.asked) == 4


def _each(probe: ApiProbe, bearers: tuple[str, ...]) -> Flow[None]:
    for bearer in bearers:
        yield from probe.accepts(bearer)


def test_for_a_minute() -> None:
    assert len(asks("key", "key", pause=CACHE_SECONDS - 1)[1]) == 1
    assert len(asks("key", "key", pause=CACHE_SECONDS)[1]) == 2


@pytest.mark.parametrize(("status", "accepted"), [(200, True), (299, True), (300, False), (401, False), (500, False)])
def test_what_counts_as_a_yes(status: int, accepted: bool) -> None:
    world = world_of(lambda engine: ApiProbe(engine, URL).accepts("key"), http=lambda asked: (status, b""))
    assert world.run() is accepted


def test_whether_it_has_a_key() -> None:
    found, asked = asks(None, None)
    assert (found, len(asked)) == ([True, True], 1)
    assert asked[0].headers.get(b"authorization") is None
    assert len(asks(None, None, pause=CACHE_SECONDS)[1]) == 2


def test_a_server_without_a_key_is_asked_each_time() -> None:
    def plan(engine: Engine) -> Flow[tuple[bool, bool]]:
        probe = ApiProbe(engine, URL)
        first = yield from probe.keyed()
        return first, (yield from probe.keyed())

    world = world_of(plan, http=lambda asked: (200, b"{}"))
    assert (world.run(), len(world.asked)) == ((False, False), 2)


@pytest.mark.parametrize("answer", [REFUSED, SILENT, (302, b""), (500, b"")])
def test_everything_else_is_a_no(answer: object) -> None:
    def plan(engine: Engine) -> Flow[bool]:
        return (yield from ApiProbe(engine, URL).accepts("key"))

    world = world_of(plan, http=lambda asked: answer)
    began = world.now.mono
    assert world.run() is False
    assert world.now.mono - began == (5.0 if answer is SILENT else 0.0)


def test_so_many_are_checked_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auth, "MAX_PROBES", 1)

    def plan(engine: Engine) -> Flow[bool]:
        probe = ApiProbe(engine, URL)
        engine.spawn(probe.accepts("key"))
        with pytest.raises(Refused, match="too many") as full:
            yield from probe.accepts("other")
        assert full.value.status == 503
        yield from sleep(engine, 6.0)
        return (yield from probe.accepts("other"))

    assert world_of(plan, http=lambda asked: SILENT).run() is False
