from __future__ import annotations

import json
from typing import Any

import pytest

from svc_proto.api.errors import (
    error_response,
    invalid_request,
    not_found,
    session_not_found,
    shutting_down,
    store_unavailable,
)
from svc_proto.basics.errors import Refused


def body(refused: Refused, path: str = "/v1/models") -> Any:
    return json.loads(error_response(refused, path).body)


@pytest.mark.parametrize(
    ("refused", "status", "error"),
    [
        (
            invalid_request("x must be a y"),
            400,
            {"message": "x must be a y", "type": "invalid_request_error", "param": None, "code": None},
        ),
        (
            invalid_request("not so", code="session_exists", param="id", status=409),
            409,
            {"message": "not so", "type": "invalid_request_error", "param": "id", "code": "session_exists"},
        ),
        (
            session_not_found("7c1e"),
            404,
            {
                "message": "No such session: 7c1e",
                "type": "invalid_request_error",
                "param": None,
                "code": "session_not_found",
            },
        ),
        (
            not_found("none such"),
            404,
            {"message": "none such", "type": "invalid_request_error", "param": None, "code": None},
        ),
        (
            Refused(429, "rate_limit_exceeded", "busy"),
            429,
            {"message": "busy", "type": "rate_limit_error", "param": None, "code": "rate_limit_exceeded"},
        ),
        (
            Refused(400, "invalid_field", "n must be a number", extra={"field": "n"}),
            400,
            {"message": "n must be a number", "type": "invalid_request_error", "param": "n", "code": None},
        ),
        (
            Refused(401, "invalid_api_key", "Invalid API key"),
            401,
            {"message": "Invalid API key", "type": "invalid_request_error", "code": "invalid_api_key"},
        ),
        (
            Refused(500, "config_write_failed", "not so"),
            500,
            {"message": "not so", "type": "server_error", "param": None, "code": "config_write_failed"},
        ),
        (
            store_unavailable(),
            503,
            {
                "message": "the session store is unavailable",
                "type": "server_error",
                "param": None,
                "code": "session_db_unavailable",
            },
        ),
    ],
)
def test_the_openai_form(refused: Refused, status: int, error: dict[str, object]) -> None:
    assert error_response(refused, "/v1/models").status == status
    assert body(refused) == {"error": error}


@pytest.mark.parametrize("path", ["/api/config", "/api/memory", "/api/skills/x", "/api/available-models"])
def test_the_short_form_of_the_management_routes(path: str) -> None:
    assert body(invalid_request("x must be a y", code="invalid_title"), path) == {"error": "x must be a y"}


def test_draining_answer_has_a_retry_after() -> None:
    answer = error_response(shutting_down(), "/api/sessions/x/chat/stream")
    assert answer.status == 503
    assert answer.headers.get(b"retry-after") == b"1"
    assert json.loads(answer.body)["error"]["message"].startswith("gateway_draining")


def test_a_long_id_is_cut() -> None:
    assert len(str(session_not_found("x" * 10_000))) < 200
