from __future__ import annotations

import pytest

from svc_proto.client.calls import Target, error_text, fields_for, request, request_json
from svc_proto.client.pins import PIN_CHANGED
from svc_proto.commands import Exit
from svc_proto.engine.client import Fetched
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.facts import Failure, FailureKind
from svc_proto.wire.events import Headers
from tests.client.world import REFUSED, SILENT, Answer, World, as_json

RELAY = Target("the relay", "http://127.0.0.1:8767", token="t0ken", remedy="start it")


def ask(engine: Engine) -> Flow[dict[str, object]]:
    return (yield from request_json(engine, RELAY, "POST", "/x", {"a": 1}))


def test_a_request() -> None:
    world = World(ask, http=lambda asked: as_json({"b": 2}))
    assert world.run() == {"b": 2}
    (asked,) = world.asked
    assert (asked.method, asked.path, asked.json) == ("POST", "/x", {"a": 1})
    assert asked.headers.get(b"authorization") == b"Bearer t0ken"
    assert "t0ken" not in repr(RELAY)


def test_without_a_body() -> None:
    world = World(lambda engine: request(engine, Target("it", "http://h"), "GET", "/"), http=lambda asked: (204, b""))
    assert world.run().status == 204
    assert world.asked[0].body == b""
    assert fields_for(Target("it", "http://h"))[0] == (b"content-type", b"application/json")


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (REFUSED, "the relay at http://127.0.0.1:8767 cannot be reached: connection refused; start it"),
        (SILENT, "the relay at http://127.0.0.1:8767 cannot be reached: no answer in time; start it"),
        (as_json({"error": "not so"}, 400), "the relay refuses: not so (status 400)"),
        (as_json({"error": "elsewhere"}, 300), "the relay refuses: elsewhere (status 300)"),
        ((299, b"<html>"), "the relay at http://127.0.0.1:8767 does not answer in JSON: is it really one?"),
        ((200, b"<html>"), "the relay at http://127.0.0.1:8767 does not answer in JSON: is it really one?"),
        (
            as_json([1]),
            "the relay at http://127.0.0.1:8767 answers with something else than an object: is it really one?",
        ),
    ],
)
def test_problems(answer: Answer, text: str) -> None:
    assert World(ask, http=lambda asked: answer).fails() == Exit(1, text)


def test_another_certificate() -> None:
    changed = Failure(FailureKind.TLS, PIN_CHANGED)
    reason = World(ask, connect=lambda host, port: changed).fails().reason
    assert reason.startswith("http://127.0.0.1:8767 shows another certificate than when you paired")


def test_nobody_there() -> None:
    plan = lambda engine: request(engine, Target("it", "http://h"), "GET", "/")  # noqa: E731
    nobody = Failure(FailureKind.UNREACHABLE, "name not resolved")
    assert World(plan, connect=lambda host, port: nobody).fails().reason == (
        "it at http://h cannot be reached: name not resolved"
    )


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b'{"error": "why"}', "why (status 400)"),
        (b'{"error": {"message": "why"}}', "why (status 400)"),
        (b'{"error": {"message": 7}}', "status 400"),
        (b'{"detail": "why"}', "why (status 400)"),
        (b"404: Not Found", "404: Not Found (status 400)"),
        (b'"text"', "text (status 400)"),
        (b"[]", "status 400"),
        (b"", "status 400"),
        (b"\xff\x1b[2Jx", "\ufffd [2Jx (status 400)"),
    ],
)
def test_what_servers_say(body: bytes, text: str) -> None:
    assert error_text(Fetched(400, Headers(()), body)) == text
