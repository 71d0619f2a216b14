from collections.abc import Callable
from typing import Any

import pytest

from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow, sleep
from svc_proto.facts import FailureKind
from svc_proto.service_clients.local_secret import HEADER, LOCAL_SECRET
from svc_proto.service_clients.service_client import ServiceCallError, ServiceClient, ServiceFault
from svc_proto.wire.multipart import Part
from tests.cli.harness import REFUSED, SILENT, OneShotHarness, Reply, UpstreamRequest, as_json
from tests.support.core_harness import HOME

PEER = ServiceClient("it", "http://h:1", "t0ken", 5.0)
Plan = Callable[[Engine], Flow[Any]]


def failure(plan: Plan, answer: Reply) -> tuple[ServiceCallError, float]:
    """Return the failure of a call, and the seconds that it took."""

    def caught(engine: Engine) -> Flow[ServiceCallError]:
        try:
            found = yield from plan(engine)
        except ServiceCallError as error:
            return error
        raise AssertionError(found)

    world = OneShotHarness(caught, http=answer)
    began = world.now.mono
    return world.run(), world.now.mono - began


def test_a_request() -> None:
    world = OneShotHarness(lambda engine: PEER.json(engine, "POST", "/x", {"a": 1}), http=as_json({"b": 2}))
    assert world.run() == {"b": 2}
    (asked,) = world.asked
    assert (asked.method, asked.path, asked.json) == ("POST", "/x", {"a": 1})
    assert asked.headers.get(b"authorization") == b"Bearer t0ken"
    assert asked.headers.get(b"content-type") == b"application/json"
    assert "t0ken" not in repr(PEER)


@pytest.mark.parametrize(
    ("answer", "fault", "status", "said"),
    [
        ((300, b"{}"), ServiceFault.REFUSED, 300, ""),
        ((400, b'{"error": "why"}'), ServiceFault.REFUSED, 400, "why"),
        ((401, b'{"error": {"message": "why"}}'), ServiceFault.UNAUTHORIZED, 401, "why"),
        ((403, b'{"detail": "why"}'), ServiceFault.FORBIDDEN, 403, "why"),
        ((404, b'"why"'), ServiceFault.NOT_FOUND, 404, "why"),
        ((409, b"404: Not Found"), ServiceFault.CONFLICT, 409, ""),
        ((429, b"[]"), ServiceFault.BLOCKED, 429, ""),
        ((200, b"<html>"), ServiceFault.NO_JSON, 200, ""),
        ((200, b"[]"), ServiceFault.NO_OBJECT, 200, ""),
    ],
)
def test_unsuccessful_answers(answer: Reply, fault: ServiceFault, status: int, said: str) -> None:
    error, _ = failure(lambda engine: PEER.json(engine, "GET", "/"), answer)
    assert (error.fault, error.status, error.server_message, error.why, error.lacks) == (fault, status, said, "", "")
    assert str(error) == f"it: {fault.value}, status {status}"


@pytest.mark.parametrize(
    ("answer", "why", "kind", "seconds"),
    [
        (REFUSED, "connection refused", FailureKind.UNREACHABLE, 0.0),
        (SILENT, "no answer in time", FailureKind.TIMED_OUT, 5.0),
    ],
)
def test_no_answer(answer: Reply, why: str, kind: FailureKind, seconds: float) -> None:
    error, after = failure(lambda engine: PEER.request(engine, "GET", "/"), answer)
    assert (error.fault, error.status, error.server_message, error.why) == (ServiceFault.UNREACHABLE, 0, "", why)
    assert error.failure is not None
    assert (error.failure.kind, after) == (kind, seconds)
    within = min(seconds, 2.0)  # a timeout of this call
    assert failure(lambda engine: PEER.request(engine, "GET", "/", within=2.0), answer)[1] == within


@pytest.mark.parametrize(("local", "shown"), [(True, b"5e" * 32), (False, None)])
def test_the_local_secret(local: bool, shown: bytes | None) -> None:
    peer = ServiceClient("it", "http://h:1", local=local)
    world = OneShotHarness(lambda engine: peer.request(engine, "GET", "/"), http=(204, b""))
    world.disk.put(f"{HOME}/{LOCAL_SECRET}", b"5e" * 32)
    assert world.run().status == 204
    assert world.asked[0].headers.get(HEADER) == shown
    assert world.asked[0].headers.get(b"authorization") is None


@pytest.mark.parametrize("refusal", [401, 403])  # 401: of a route that also has a bearer token
@pytest.mark.parametrize("stored", [b"5e" * 32, None])  # None: the first start in a new home
def test_a_secret_that_the_relay_has_just_created(stored: bytes | None, refusal: int) -> None:
    peer = ServiceClient("it", "http://h:1", local=True)

    def relay(asked: UpstreamRequest) -> Reply:
        if asked.headers.get(HEADER) == b"6f" * 32:
            return 200, b""
        world.disk.put(f"{HOME}/{LOCAL_SECRET}", b"6f" * 32)
        return refusal, b""

    world = OneShotHarness(lambda engine: peer.request(engine, "GET", "/"), http=relay)
    if stored is not None:
        world.disk.put(f"{HOME}/{LOCAL_SECRET}", stored)
    assert (world.run().status, len(world.asked)) == (200, 2)


@pytest.mark.parametrize("refusal", [401, 403])
def test_an_unchanged_secret_is_not_sent_again(refusal: int) -> None:
    peer = ServiceClient("it", "http://h:1", local=True)
    world = OneShotHarness(lambda engine: peer.request(engine, "GET", "/"), http=(refusal, b""))
    world.disk.put(f"{HOME}/{LOCAL_SECRET}", b"5e" * 32)
    assert (world.run().status, len(world.asked)) == (refusal, 1)


@pytest.mark.parametrize(
    ("shown", "found", "statuses"),
    [
        ("old", "new", (200, 200)),
        ("old", "old", (401, 401)),
        ("", "new", (200, 200)),
        ("", "", (401, 401)),
        ("old", "odd", (401, 401)),
    ],
)
def test_replaced_token_is_found_and_stored(shown: str, found: str, statuses: tuple[int, int]) -> None:
    looked: list[str] = []

    def find(known: str) -> Flow[str]:
        assert known in (shown, found)
        looked.append(known)
        yield from ()
        return found

    peer = ServiceClient("it", "http://h:1", shown, find_token=find)

    def plan(engine: Engine) -> Flow[tuple[int, int]]:
        first = yield from peer.request(engine, "GET", "/")
        return first.status, (yield from peer.request(engine, "GET", "/")).status

    good = b"Bearer new"
    world = OneShotHarness(plan, http=lambda asked: (200 if asked.headers.get(b"authorization") == good else 401, b""))
    assert world.run() == statuses
    assert len(looked) == max(1, statuses.count(401))  # never after an invalid answer
    tries = [asked.headers.get(b"authorization") for asked in world.asked]
    assert tries.count(b"Bearer old" if shown else None) == {"new": 1, "old": 2, "odd": 1, "": 2}[found]


def test_secret_and_token_are_each_replaced_once_within_the_time_of_the_call() -> None:
    def find(known: str) -> Flow[str]:
        yield from sleep(world.engine, 2.0)
        return known + "+"

    peer = ServiceClient("it", "http://h:1", "old", 5.0, local=True, find_token=find)

    def relay(asked: UpstreamRequest) -> Reply:
        world.disk.put(f"{HOME}/{LOCAL_SECRET}", b"6f" * 32)
        return SILENT if asked.headers.get(b"authorization") == b"Bearer old+" else (401, b"")

    def plan(engine: Engine) -> Flow[float]:
        with pytest.raises(ServiceCallError):
            yield from peer.request(engine, "GET", "/")
        return engine.now.mono - began

    world = OneShotHarness(plan, http=relay)
    began = world.now.mono
    assert world.run() == 5.0
    shown = [(asked.headers.get(HEADER), asked.headers.get(b"authorization")) for asked in world.asked]
    assert shown == [(None, b"Bearer old"), (b"6f" * 32, b"Bearer old"), (b"6f" * 32, b"Bearer old+")]


def test_a_file() -> None:
    part = Part(name="file", filename="a.txt", content_type="text/plain", data=b"hello")
    world = OneShotHarness(lambda engine: PEER.upload(engine, "/up", part, within=1.0), http=(200, b""))
    assert world.run().status == 200
    (asked,) = world.asked
    assert (asked.headers.get(b"content-type") or b"").startswith(b"multipart/form-data; boundary=")
    assert b'name="file"; filename="a.txt"' in asked.body


class Ear:
    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *_: None


def test_a_socket() -> None:
    opening: Plan = lambda engine: PEER.socket(engine, "/ws", Ear(), within=1.0)  # noqa: E731
    world = OneShotHarness(opening, socket=lambda message: [])
    assert world.run().writable
    assert failure(opening, (503, b""))[0].fault is ServiceFault.REFUSED
