from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from svc_proto.api.openapi.operations import API_DOC
from tests.api.harness import ApiHarness
from tests.support.http_codec import Response
from tests.support.openapi_validation import OpenApiValidator, answer_differences, queries
from tests.support.routes_page import API, assert_shown


def ask(book: ApiHarness, path: str) -> Response:
    answer = book.call("GET", path)
    book.after(2.0)
    return answer.result


BOOK = ApiHarness()
DOCUMENTED = OpenApiValidator.of(BOOK.request("GET", "/openapi.json").body)
SESSION = BOOK.session(title="Trip", system_prompt="Be brief.")


@pytest.fixture(scope="module")
def places() -> dict[str, str]:
    """Create a skill, a run and a response; return the values of path parameters for them and for `SESSION`."""
    BOOK.disk.put("/home/svc/skills/fly/SKILL.md", b"---\nname: fly\ndescription: To fly\n---\nFlap.\n")
    turn = BOOK.call("POST", f"/api/sessions/{SESSION}/chat", {"message": "Hello"})
    run = BOOK.request("POST", "/v1/runs", {"input": "Hello"})
    response = BOOK.call("POST", "/v1/responses", {"input": "Hello"})
    BOOK.after(60.0)
    for label, answer in (
        ("POST /api/sessions/{id}/chat", turn.result),
        ("POST /v1/runs", run),
        ("POST /v1/responses", response.result),
    ):
        DOCUMENTED.check(label, answer)
    return {"id": SESSION, "run_id": run.json["run_id"], "response_id": response.result.json["id"], "name": "fly"}


def test_handlers_return_the_documented_types() -> None:
    assert answer_differences(BOOK.api.router.routes, API_DOC) == ["POST /mcp"]  # messages of JSON-RPC


def test_document_has_exactly_the_routes() -> None:
    DOCUMENTED.expect_routes(BOOK.api.router.routes)


def test_routes_page_matches_the_document() -> None:
    assert_shown(API, DOCUMENTED.document)


@pytest.mark.parametrize("path", DOCUMENTED.gets())
def test_get_answers_match_the_document(places: dict[str, str], path: str) -> None:
    known = DOCUMENTED.get_and_check(lambda target: ask(BOOK, target), path, places)
    assert known.status in (200, 400, 404, 406)
    unknown = DOCUMENTED.get_and_check(lambda target: ask(BOOK, target), path, {})
    assert unknown.status in (200, 400, 404, 406)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_get_with_any_query_matches_the_document(data: st.DataObject) -> None:
    path, query = data.draw(queries(DOCUMENTED))
    answer = DOCUMENTED.get_and_check(lambda target: ask(BOOK, target), path, {"id": SESSION}, query)
    assert answer.status < 500


@pytest.mark.parametrize(
    ("label", "path", "body", "status"),
    [
        ("POST /api/sessions", "/api/sessions", {"title": "One"}, 201),
        ("POST /api/sessions", "/api/sessions", {"id": SESSION}, 409),
        ("POST /api/sessions", "/api/sessions", {"title": 5}, 400),
        ("PATCH /api/sessions/{id}", f"/api/sessions/{SESSION}", {"pinned": True}, 200),
        ("POST /api/sessions/{id}/fork", f"/api/sessions/{SESSION}/fork", {}, 201),
        ("DELETE /api/sessions/{id}", "/api/sessions/none", None, 404),
        ("POST /api/memory", "/api/memory", {"target": "memory", "content": "Likes tea"}, 200),
        ("PATCH /api/memory", "/api/memory", {"target": "memory", "old_text": "tea", "content": "Likes oolong"}, 200),
        ("DELETE /api/memory", "/api/memory", {"target": "memory", "old_text": "coffee"}, 400),
        ("DELETE /api/memory", "/api/memory", {"target": "pets", "old_text": "coffee"}, 400),
        ("PUT /api/skills/toggle", "/api/skills/toggle", {}, 501),
        ("PATCH /api/config", "/api/config", {}, 200),
        ("POST /api/key/reload", "/api/key/reload", None, 409),
        ("POST /v1/runs/{run_id}/stop", "/v1/runs/none/stop", None, 404),
        ("DELETE /v1/responses/{response_id}", "/v1/responses/none", None, 404),
    ],
)
def test_answers_to_changes_match_the_document(label: str, path: str, body: Any, status: int) -> None:
    answer = BOOK.request(label.partition(" ")[0], path, body)
    assert answer.status == status
    DOCUMENTED.check(label, answer)
