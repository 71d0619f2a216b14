"""Invalid input at the API's routes: missing keys, wrong methods, paths and bodies, and leaked secrets."""

import json
from typing import Any

import pytest

from svc_proto.api.access import ApiAccess
from svc_proto.api.config import ApiConfig
from svc_proto.commands import Level, WriteConfig
from svc_proto.engine.router import Route
from tests.api.harness import CONFIG, KEY, ApiHarness
from tests.support.core_harness import REFUSED
from tests.support.http_codec import Response
from tests.support.http_harness import Reply, UpstreamRequest, as_json
from tests.support.scenario_plan import some

MANAGEMENT = ("/api/config", "/api/memory", "/api/skills", "/api/available-models")
ELSEWHERE = ("/metrics", "/healthz", "/readyz", "/openapi.json", "/docs")  # see tests/engine
ROUTES = [route for route in ApiHarness(started=False).api.router.routes if route.pattern not in ELSEWHERE]
IDS = [f"{route.method} {route.pattern}" for route in ROUTES]
# Requests of the first three have no body, and tests/mcp has the messages of the last.
OTHERS = ("/stop", "/reload", "/rotate", "/mcp")
WITH_BODY = [route for route in ROUTES if route.method in ("POST", "PATCH") and not route.pattern.endswith(OTHERS)]
with_body = pytest.mark.parametrize("route", WITH_BODY, ids=[f"{route.method} {route.pattern}" for route in WITH_BODY])
KEYED = f"HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {KEY}\r\n"


def path_of(route: Route) -> str:
    return route.pattern.replace("{id}", "unknown").replace("{run_id}", "unknown").replace("{name}", "unknown")


def problem(answer: Response, path: str) -> dict[str, Any]:
    """Return the error of an answer after a check of its form."""
    assert answer.headers.get(b"content-type") == b"application/json"
    body = json.loads(answer.body)
    if path.startswith(MANAGEMENT):
        assert isinstance(body["error"], str)
        return {"code": None, "message": body["error"]}
    error: dict[str, Any] = body["error"]
    assert set(error) <= {"message", "type", "param", "code"}
    assert isinstance(error["message"], str)
    assert error["type"] in ("invalid_request_error", "server_error", "rate_limit_error")
    return error


def unchanged(book: ApiHarness) -> bool:
    total = book.request("GET", "/api/sessions").json["total"]
    return total == 0 and not any(isinstance(command, WriteConfig) for command in book.commands)


@pytest.fixture(scope="module")
def book() -> ApiHarness:
    return ApiHarness()


MEMBERS = (
    *("message", "input", "messages", "title", "id", "session_id", "model", "system_prompt", "system_message"),
    *("personality", "pinned", "archived", "end_reason", "provider", "base_url", "target", "content", "old_text"),
    *("choice", "conversation_history", "previous_response_id", "stream", "instructions", "attachments"),
)
NOT_FOUND = ("session_not_found", "run_not_found", "not_found")


@pytest.mark.parametrize("route", ROUTES, ids=IDS)
def test_nothing_of_a_body_is_read_before_the_key(book: ApiHarness, route: Route) -> None:
    head = f"{route.method} {path_of(route)} HTTP/1.1\r\nHost: x\r\nContent-Length: 9999999\r\n\r\n"
    call = book.raw(head.encode())
    assert bytes(call.heard).startswith(b"HTTP/1.1 413 " if route.access is ApiAccess.PUBLIC else b"HTTP/1.1 401 ")
    call.vanish()
    assert not book.leaks()


def test_routes_with_and_without_body() -> None:
    book = ApiHarness()
    assert book.request("GET", "/health", b"{}").status == 200
    assert book.request("GET", "/api/sessions", b"{}").status == 200
    assert book.request("OPTIONS", "/nowhere", b"{}").status == 404
    assert book.request("OPTIONS", "/health", b"{}").status == 200
    assert book.request("OPTIONS", "/nowhere", bytes(70_000)).status == 413


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"\xff\xfe", b"null", b"[]", b"7", b'"x"', b'{"a":1,"a":2}', b"NaN", b"[" * 100, b'{"a":"\\ud800"}'],
    ids=range(11),
)
@with_body
def test_non_object_bodies_are_refused(book: ApiHarness, route: Route, body: bytes) -> None:
    path = path_of(route)
    answer = book.request(route.method, path, body)
    if answer.status == 404:  # chat routes look up the session first, wire api 2.1
        assert problem(answer, path)["code"] in NOT_FOUND
    else:
        assert answer.status == 400
        assert problem(answer, path)["code"] is None
    assert unchanged(book)


@with_body
def test_bodies_too_slow_to_parse_are_refused(route: Route) -> None:
    book = ApiHarness()
    path = path_of(route)
    answer = book.request(route.method, path, b"[" + b"{}," * 100_000 + b"0]")
    assert answer.status in (404, 413)  # chat routes look up the session first, wire api 2.1
    assert problem(answer, path)["code"] in (*NOT_FOUND, "body_too_large", None)
    assert unchanged(book)


@pytest.mark.unmeasured
@pytest.mark.parametrize(
    "value", some([None, True, 7, -1.5, "", "x\x00y", "x" * 70_000, [], [None], {}, {"a": []}]), ids=range(11)
)
@with_body
def test_members_of_every_type(route: Route, value: object) -> None:
    """Check that a member of another type causes no bug, and no error response but 400, 404 and 502."""
    book = ApiHarness()
    path = path_of(route)
    for name in MEMBERS:
        answer = book.call(route.method, path, {name: value})
        book.after(0.0)
        if answer.answer is not None and answer.result.status >= 400:
            found = problem(answer.result, path)
            assert answer.result.status in (400, 404, 502), (name, found)
        assert not [event for event in book.events(Level.ERROR) if event == "bug"], name
        assert KEY not in answer.text


@with_body
def test_too_large_bodies_are_refused(book: ApiHarness, route: Route) -> None:
    path, limit = path_of(route), 10_000_000
    head = f"{route.method} {path} {KEYED}Content-Length: {limit + 1}\r\n\r\n"
    answer = book.raw(head.encode()).result  # before the first byte of the body
    assert answer.status == 413
    assert problem(answer, path)["message"] == f"the body may have at most {limit} bytes"
    if not path.startswith(MANAGEMENT):
        assert answer.json["error"]["code"] == "body_too_large"


@pytest.mark.parametrize("length", ["x", "-1", "1.5", "+1", "1e3"])
@pytest.mark.parametrize("path", ["/api/sessions", "/api/memory"])
def test_invalid_content_lengths_are_refused(book: ApiHarness, path: str, length: str) -> None:
    answer = book.raw(f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n".encode()).result
    assert answer.status == 400
    assert answer.json["error"]["code"] == "invalid_content_length"  # the path of an unreadable head is not parsed


@pytest.mark.parametrize("path", ["/", "/nowhere", "/v1", "/api/sessions/x/y/", "/api/sessions/x/y", "/api/skills/x/y"])
def test_unknown_paths(book: ApiHarness, path: str) -> None:
    answer = book.request("GET", path, key="")
    assert answer.status == 404
    assert problem(answer, path)["message"] == "there is nothing at this path"


SECRETS = ("sk-api-0001", "sk-model-0002", "relay-token-0003", "sk-file-0004", "sk-alias-0005", "sk-env-file-0006")
SECRET_FILE = f"""
model: {{default: m, base_url: 'http://127.0.0.1:9000/v1', api_key: {SECRETS[3]}, extra: {{token: {SECRETS[3]}}}}}
platforms:
  api_server:
    extra: {{key: {SECRETS[5]}, model_routes: {{fast: {{model: a, api_key: {SECRETS[4]}}}}}}}
agent: {{api_key: {SECRETS[3]}, personalities: {{brief: {{system_prompt: Hi, key: {SECRETS[3]}}}}}}}
display: {{skin: default, token: {SECRETS[3]}}}
"""


def parrot(asked: UpstreamRequest) -> Reply:
    """Refuse requests to port 9000, with their bearer key in the text; other upstreams are unreachable."""
    key = (asked.headers.get(b"authorization") or b"absent").decode()
    return as_json({"error": {"message": f"who is {key}?", "code": key}}, 401) if ":9000/" in asked.url else REFUSED


@pytest.mark.parametrize("there", [True, False], ids=["upstream", "no upstream"])
def test_no_secret_is_leaked(there: bool) -> None:
    """Check that no log, answer or received byte has a secret after calls of all routes but DELETE.

    With `there`, the model's server repeats its key in the text of a refusal.
    """
    config = ApiConfig(key=SECRETS[0], model_api_key=SECRETS[1], relay_token=SECRETS[2])
    book = ApiHarness(config, files={CONFIG: SECRET_FILE})
    book.http = parrot if there else None
    book.secrets |= set(SECRETS)
    session = book.session(title="t")
    for route in sorted(ROUTES, key=lambda each: each.pattern.startswith("/api/key/")):  # they change the key
        if route.method == "DELETE":
            continue
        path = route.pattern.replace("{id}", session).replace("{name}", "x").replace("{run_id}", "run_1")
        for body in ({"message": "/phone ping", "input": "Hi", "messages": [{"role": "user", "content": "Hi"}]}, b"{"):
            book.call(route.method, path, body)
            book.call(route.method, path, body, key=SECRETS[0][:-1])
            book.after(1.0)
    book.after(120.0)
    book.stop()
    book.after(10.0)
    assert [each.code for each in book.exits] == [0]
    assert book.events(Level.ERROR) == []
    assert not book.leaks()
    sent = [asked.headers.get(b"authorization") for asked in book.asked]
    assert (f"Bearer {SECRETS[3]}".encode() in sent) is there  # so that there was a secret to leak
