import json
from typing import Any

import pytest

from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.engine.response_readers import EventReader
from svc_proto.service_clients.api_client import ApiClient
from svc_proto.service_clients.service_client import ServiceFault
from svc_proto.wire.events import Headers
from svc_proto.wire.sse import ServerSentEvent
from tests.cli.harness import REFUSED, SILENT, OneShotHarness, Reply, as_json
from tests.service_clients.test_service_client import Plan, failure
from tests.support.http_harness import HarnessResponse

API = ApiClient("it", "http://h:1", "k3y")


def asked(plan: Plan, answer: Reply) -> tuple[Any, str, bytes]:
    world = OneShotHarness(plan, http=answer)
    found = world.run()
    (request,) = world.asked
    return found, f"{request.method} {request.path}", request.body


@pytest.mark.parametrize("answer", [{"id": "s1"}, {"session": {"id": "s1"}}, {"session_id": "s1"}])
def test_a_new_session(answer: object) -> None:
    found = asked(lambda engine: API.create_session(engine, {"title": "T"}), as_json(answer, 201))
    assert found == ("s1", "POST /api/sessions", b'{"title":"T"}')


@pytest.mark.parametrize("answer", [{}, {"id": True}, {"session": {"id": ""}}, []])
def test_a_session_without_a_name(answer: object) -> None:
    error, _ = failure(lambda engine: API.create_session(engine, {}), as_json(answer))
    assert (error.fault, error.lacks) == (ServiceFault.UNAVAILABLE, "session id")


@pytest.mark.parametrize(
    "answer",
    [
        {"messages": [{"a": 1}]},
        {"items": [{"a": 1}]},
        {"data": [{"a": 1}]},
        [{"a": 1}],
        {"items": [{"b": 1}], "messages": [{"a": 1}]},  # its own member first
        {"data": [{"b": 1}], "items": [{"a": 1}]},
    ],
)
def test_a_list(answer: object) -> None:
    found = asked(lambda engine: API.messages(engine, "s 1"), as_json(answer))
    assert found == ([{"a": 1}], "GET /api/sessions/s%201/messages", b"")


@pytest.mark.parametrize(
    ("order", "request_line", "body"),
    [(("r 1",), "GET /v1/runs/r%201", b""), (("r", "stop"), "POST /v1/runs/r/stop", b"{}"),
     (("r", "approval", {"choice": "once"}), "POST /v1/runs/r/approval", b'{"choice":"once"}')],
)  # fmt: skip
def test_a_run(order: tuple[Any, ...], request_line: str, body: bytes) -> None:
    found = asked(lambda engine: API.post_run(engine, *order), as_json({}, 404))
    assert (found[0].status, *found[1:]) == (404, request_line, body)


STREAM = b"event: a\ndata: 1\n\nevent: b\ndata: 2\n\n"
BEGUN = HarnessResponse(200, Headers(), STREAM, open=True)


def turn(engine: Engine, enough: str = "") -> Flow[str]:
    heard, readers = list[ServerSentEvent](), list[EventReader]()

    def take(event: ServerSentEvent) -> bool:
        heard.append(event)
        return event.event == enough

    yield from API.stream_turn(engine, "s/1", {"message": "hi"}, take, readers.append, fields=((b"x", b"y"),))
    assert readers[0].gone
    return "".join(event.event for event in heard)


def test_a_turn() -> None:
    world = OneShotHarness(turn, http=(200, STREAM))
    assert world.run() == "ab"
    (request,) = world.asked
    assert (request.path, json.loads(request.body)) == ("/api/sessions/s%2F1/chat/stream", {"message": "hi"})
    assert (request.headers.get(b"accept"), request.headers.get(b"x")) == (b"text/event-stream", b"y")
    heard: list[str] = []  # by a reader without a result
    plan: Plan = lambda engine: API.stream_turn(engine, "s", {}, lambda event: heard.append(event.event))  # noqa: E731
    OneShotHarness(plan, http=(200, STREAM)).run()
    assert heard == ["a", "b"]


def test_reader_ends_an_endless_stream() -> None:
    """End the read when the reader has enough; the stream itself never ends."""
    world = OneShotHarness(lambda engine: turn(engine, "a"), http=BEGUN)
    assert world.run() == "ab"


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        (REFUSED, ServiceFault.UNREACHABLE),
        (SILENT, ServiceFault.UNREACHABLE),
        ((404, b"{}"), ServiceFault.NOT_FOUND),
        ((200, b"{}"), ServiceFault.REFUSED),
    ],
)
def test_refused_turn(answer: Reply, fault: ServiceFault) -> None:
    assert failure(turn, answer)[0].fault is fault


@pytest.mark.parametrize("more", [b"", b"event: c\ndata: 3\n\n"])  # that arrives at the loss of the connection
def test_broken_turn(more: bytes) -> None:
    def lose(world: OneShotHarness[str]) -> None:
        world.unfinished(more)
        world.break_connections()

    long = HarnessResponse(200, Headers([(b"content-length", b"9999")]), STREAM * 99, open=True)
    world = OneShotHarness(turn, http=BEGUN if more else long, script=[(1.0, lose)])
    assert world.fails().reason == "the answer broke off: reset"
