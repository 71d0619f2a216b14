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
from tests.loops.world import REMOTE, ApiHandle, World

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


CHAT = f"/api/sessions/{ID}/chat/stream"
EMPTY: tuple[object, ...] = (None, "", " \n\t", "\u200b", [])
WRONG: list[tuple[str, str, object, int, str | None]] = [
    *(("POST", CHAT, {"message": value}, 400, "missing_message") for value in EMPTY),
    ("POST", CHAT, {}, 400, "missing_message"),
    ("POST", CHAT, {"message": {}}, 400, "invalid_content_part"),
    ("POST", CHAT, {"message": "Hi", "system_message": 5}, 400, "invalid_system_message"),
    ("POST", CHAT, {"message": [{"type": "file", "file": {}}]}, 400, "unsupported_content_type"),
    ("POST", CHAT, {"message": [{"type": "image_url", "image_url": "file:///etc/passwd"}]}, 400, "invalid_image_url"),
    ("POST", CHAT, {"message": [5]}, 400, "invalid_content_part"),
    ("POST", "/api/sessions/nobody/chat/stream", {"message": "Hi"}, 404, "session_not_found"),
    ("POST", "/api/sessions/nobody/chat", {"message": "Hi"}, 404, "session_not_found"),
    ("GET", "/api/sessions/nobody", None, 404, "session_not_found"),
    ("GET", "/api/sessions/nobody/messages", None, 404, "session_not_found"),
    ("DELETE", "/api/sessions/nobody", None, 404, "session_not_found"),
    ("PATCH", "/api/sessions/nobody", {"title": "T"}, 404, "session_not_found"),
    ("PATCH", f"/api/sessions/{ID}", {"colour": "red"}, 400, "unsupported_session_field"),
    ("PATCH", f"/api/sessions/{ID}", {"title": "x" * 101}, 400, "invalid_title"),
    ("POST", "/api/sessions", {"title": "x" * 101}, 400, "invalid_title"),
    ("POST", "/api/sessions", {"title": 5}, 400, "invalid_title"),
    ("POST", "/api/sessions", {"id": "../etc"}, 400, "invalid_session_id"),
    ("POST", "/api/sessions", {"id": "x" * 257}, 400, "invalid_session_id"),
    ("POST", "/api/sessions", {"system_prompt": 5}, 400, "invalid_system_prompt"),
    ("POST", "/v1/chat/completions", {"messages": []}, 400, None),
    ("POST", "/v1/chat/completions", {"messages": "Hi"}, 400, None),
    ("POST", "/v1/chat/completions", {"messages": [{"role": "user"}], "stream": "perhaps"}, 400, None),
    ("POST", "/v1/runs", {}, 400, None),
    ("POST", "/v1/runs", {"input": "Hi", "conversation_history": "x"}, 400, None),
    ("GET", "/v1/runs/nothing", None, 404, "run_not_found"),
    ("POST", "/v1/runs/nothing/stop", {}, 404, "run_not_found"),
    ("POST", "/v1/runs/nothing/approval", {"choice": "once"}, 404, "run_not_found"),
    ("GET", "/api/sessions/search?q=", None, 400, None),
    ("GET", "/api/sessions/search?q=x&limit=-1", None, 400, None),
]


def test_values_that_make_no_sense(served_api: Served) -> None:
    _, api, session = served_api
    client = api.client()
    for method, path, body, status, code in WRONG:
        data = b"" if body is None else json.dumps(body).encode()
        answer = client.ask(method, path.replace(ID, session), headers=api.headers, body=data)
        error = answer.json["error"]
        assert (answer.status, error["code"]) == (status, code), (method, path, body, answer)
        assert error["type"] == "invalid_request_error"
    client.wire.close()
    assert nothing_stored(served_api)


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
        body = json.dumps({"message": f"/echo {text}"}).encode()
        answer = client.ask("POST", path, headers=api.headers, body=body, timeout=60.0)
        assert answer.status == 200, answer
        whole = f"/echo {text}"
        rows = api.messages(session)
        assert rows[-2]["content"] == whole
        assert rows[-1]["content"] == answer.json["message"]["content"] == whole[6:].strip()
    client.wire.close()


def test_strangers_are_turned_away(served_api: Served) -> None:
    """Wrong keys, web pages, wrong methods, unknown paths: on any path, with any body."""
    world, api, session = served_api
    for key in ("", "wrong", KEY[:-1], f"{KEY}x", KEY.upper()):
        wire = send(served_api, f"GET /api/sessions/{session} HTTP/1.1", b"\r\n", key=key)
        status, _, body = read_response(wire)
        error = json.loads(body)["error"]
        assert (status, error["code"], set(error)) == (401, "invalid_api_key", {"message", "type", "code"})
        wire.close()
    client = api.client()
    page = client.ask("GET", "/v1/models", headers={**api.headers, "origin": "https://evil.example"})
    assert (page.status, page.body) == (403, b"")
    wrong = client.ask("PUT", "/api/sessions", headers=api.headers)
    assert (wrong.status, wrong.headers.get(b"allow")) == (405, b"GET,HEAD,POST")
    assert client.ask("GET", "/api/nothing", headers=api.headers).status == 404
    assert client.ask("GET", "/health").status == 200
    client.wire.close()
    far = world.connect(REMOTE, port=api.server.port)
    far.send(f"GET /v1/models HTTP/1.1\r\nHost: api.example\r\nAuthorization: Bearer {KEY}\r\n\r\n".encode())
    assert read_response(far)[0] == 200
    far.close()
    assert nothing_stored(served_api)
