"""Verification of bearer tokens by the API server; the consequences are in tests/relay/voice/test_access.py."""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import pytest

from svc_proto.basics.errors import Refused
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow, sleep
from svc_proto.relay.voice import access
from svc_proto.relay.voice.access import CACHE_SECONDS, ApiBearerVerifier
from tests.cli.harness import REFUSED, SILENT, OneShotHarness, Reply, UpstreamRequest

Plan: TypeAlias = "Callable[[Engine], Flow[list[bool]]]"
URL = "http://api.example:8642"


def guarded(asked: UpstreamRequest) -> Reply:
    assert asked.url == f"{URL}/v1/models"
    return (200 if asked.headers.get(b"authorization") == b"Bearer key" else 401), b""


def plan(bearers: Sequence[str | None], pause: float = 0.0) -> Plan:
    """Return a flow that verifies the bearers, with a pause after each; None checks whether a key is required."""

    def flow(engine: Engine) -> Flow[list[bool]]:
        probe, found = ApiBearerVerifier(engine, URL), []
        for bearer in bearers:
            found.append((yield from (probe.requires_key() if bearer is None else probe.is_valid(bearer))))
            yield from sleep(engine, pause)
        return found

    return flow


def asks(*bearers: str | None, pause: float = 0.0, answer: Any = guarded) -> tuple[list[bool], list[bytes | None]]:
    """Return the results, and the credentials that the API server received."""
    world = OneShotHarness(plan(bearers, pause), http=answer)
    found = world.run()
    return found, [request.headers.get(b"authorization") for request in world.asked]


def test_only_acceptance_is_cached_in_a_bounded_table(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = [b"Bearer key", b"Bearer other", b"Bearer other"]
    assert asks("key", "key", "other", "other") == ([True, True, False, False], shown)
    assert asks(None, None) == ([True, True], [None])
    assert asks(None, None, answer=lambda asked: (200, b"{}")) == ([False, False], [None, None])
    monkeypatch.setattr(access, "MAX_CACHED", 2)
    assert len(asks("a", "b", "c", "c", "b", "a", answer=lambda asked: (200, b""))[1]) == 4


@pytest.mark.parametrize("bearer", ["key", None])
def test_acceptance_is_cached_for_a_minute(bearer: str | None) -> None:
    assert len(asks(bearer, bearer, pause=CACHE_SECONDS - 1)[1]) == 1
    assert len(asks(bearer, bearer, pause=CACHE_SECONDS)[1]) == 2


@pytest.mark.parametrize(
    ("answer", "accepted"),
    [*(((status, b""), status < 300) for status in (200, 299, 300, 302, 401, 500)), (REFUSED, False), (SILENT, False)],
)
def test_accepted_answers(answer: Reply, accepted: bool) -> None:
    world = OneShotHarness(plan(["key"]), http=answer)
    began = world.now.mono
    assert world.run() == [accepted]
    assert world.now.mono - began == (5.0 if answer is SILENT else 0.0)


def test_concurrent_probes_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "MAX_PROBES", 1)

    def flow(engine: Engine) -> Flow[bool]:
        probe = ApiBearerVerifier(engine, URL)
        engine.spawn(probe.is_valid("key"))
        with pytest.raises(Refused, match="too many") as full:
            yield from probe.is_valid("other")
        assert full.value.status == 503
        yield from sleep(engine, 6.0)
        return (yield from probe.is_valid("other"))

    assert OneShotHarness(flow, http=SILENT).run() is False
