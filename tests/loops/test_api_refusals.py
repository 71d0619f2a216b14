"""Bad input on real sockets and every loop: the codes of wire api 2.1, nothing stored, and the server goes on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from svc_proto.wire.limits import DEFAULT_LIMITS
from tests.loops.conftest import open_world
from tests.loops.raw import read_response
from tests.loops.wires import Wire
from tests.loops.world import ApiHandle, World

KEY = "sk-refusals-5b08"
LIMIT = 10_000_000  # bytes, SPEC.md "Limits"
DRAINED = 2 * DEFAULT_LIMITS.max_drain  # bytes
ID = "{id}"  # stands for a session that is there
Served = tuple[World, ApiHandle, str]


@pytest.fixture(scope="module")
def served_api(
    any_loop: str, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Served]:
    """One server with one session for all of these tests: they leave nothing behind."""
    folder: Path = tmp_path_factory.mktemp("refusals")
    with open_world(any_loop, folder, request) as world:
        api = world.api(key=KEY, relay_url="http://127.0.0.1:9")
        yield world, api, api.session(title="Kept")


def send(served: Served, head: str, body: bytes = b"", *, key: str = KEY) -> Wire:
    """A request by hand."""
    world, api, _ = served
    wire = world.connect(port=api.server.port)
    lines = [head, f"Host: 127.0.0.1:{api.server.port}", f"Authorization: Bearer {key}"]
    wire.send("\r\n".join(lines).encode() + b"\r\n" + body)
    return wire


def problem(wire: Wire) -> tuple[int, Any]:
    """Status and `error` of the refusal; the form is that of wire api 2.1."""
    status, fields, body = read_response(wire)
    assert fields["content-type"] == "application/json"
    error = json.loads(body)["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert KEY not in repr(error)
    return status, error


def nothing_stored(served: Served) -> bool:
    _, api, session = served
    listed = api.ask("GET", "/api/sessions").json
    return [(one["id"], one["message_count"]) for one in listed["sessions"]] == [(session, 0)]


POSTS = [f"/api/sessions/{ID}/chat/stream", "/v1/chat/completions", "/v1/runs", "/v1/responses", "/api/sessions"]


@pytest.mark.parametrize("path", POSTS)
def test_a_body_that_is_too_long_is_not_read(served_api: Served, path: str) -> None:
    """The answer is there before a byte of the body, which never comes."""
    path = path.replace(ID, served_api[2])
    wire = send(served_api, f"POST {path} HTTP/1.1", b"Content-Length: %d\r\n\r\n" % (LIMIT + 1))
    status, error = problem(wire)
    assert (status, error["code"]) == (413, "body_too_large")
    wire.send(bytes(DRAINED))  # whoever sends on is hung up on, soon
    assert wire.read_all() == b""
    wire.close()
    assert nothing_stored(served_api)


def test_a_body_that_turns_out_too_long(served_api: Served) -> None:
    piece = b"%x\r\n" % 0x10000 + b" " * 0x10000 + b"\r\n"
    wire = send(
        served_api, f"POST {POSTS[0]} HTTP/1.1".replace(ID, served_api[2]), b"Transfer-Encoding: chunked\r\n\r\n"
    )
    for _ in range(LIMIT // 0x10000 + 2):
        wire.send(piece)
    status, error = problem(wire)
    assert (status, error["code"]) == (413, "body_too_large")
    wire.close()
    assert nothing_stored(served_api)


def test_a_body_just_within_the_limit(served_api: Served) -> None:
    body = b'{"message": ""}'
    body = body[:-1] + b" " * (LIMIT - len(body)) + b"}"
    path = POSTS[0].replace(ID, served_api[2])
    wire = send(served_api, f"POST {path} HTTP/1.1", b"Content-Length: %d\r\n\r\n" % len(body) + body)
    status, error = problem(wire)
    assert (status, error["code"]) == (400, "missing_message")
    wire.close()


def test_texts_that_are_hard_to_store(world: World) -> None:
    """Half a surrogate pair is no text; NUL is in none; everything else comes back as it was sent."""
    api = world.api(key=KEY, relay_url="http://127.0.0.1:9")
    session = api.session()
    client = api.client()
    path = f"/api/sessions/{session}/chat"
    halves = client.ask("POST", path, headers=api.headers, body=b'{"message": "a \\ud83d b"}')
    assert halves.status in (200, 400)
    for text in (
        "\u202eabc\u2066",
        "e\u0301 \U0001f469\u200d\U0001f4bb",
        "a\x01b\x7f",
        "\\u0000 \\ \" '",
        "x" * 200_000 + "END",
    ):
        whole = f"/echo {text}"
        answer = client.ask("POST", path, {"message": whole}, headers=api.headers, timeout=60.0)
        assert answer.status == 200, answer
        rows = api.messages(session)
        assert rows[-2]["content"] == whole
        assert rows[-1]["content"] == answer.json["message"]["content"] == whole[6:].strip()
    client.wire.close()
