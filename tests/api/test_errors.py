import json
from typing import Any

import pytest

from svc_proto.api import errors
from svc_proto.basics.errors import Refused

INVALID = "invalid_request_error"
TAKEN = errors.invalid_request("not so", code="session_exists", param="id", status=409)


def body(refused: Refused, path: str = "/v1/models") -> Any:
    return json.loads(errors.error_response(refused, path).body)


@pytest.mark.parametrize(
    ("refused", "status", "kind", "param", "code"),
    [
        (errors.invalid_request("x must be a y"), 400, INVALID, None, None),
        (TAKEN, 409, INVALID, "id", "session_exists"),
        (errors.session_not_found("7c1e"), 404, INVALID, None, "session_not_found"),
        (errors.not_found("none such"), 404, INVALID, None, None),
        (Refused(429, "rate_limit_exceeded", "busy"), 429, "rate_limit_error", None, "rate_limit_exceeded"),
        (Refused(400, "invalid_field", "n must be a number", extra={"field": "n"}), 400, INVALID, "n", None),
        (Refused(500, "config_write_failed", "not so"), 500, "server_error", None, "config_write_failed"),
        (errors.store_unavailable(), 503, "server_error", None, "session_db_unavailable"),
    ],
)
def test_the_openai_form(refused: Refused, status: int, kind: str, param: str | None, code: str | None) -> None:
    assert errors.error_response(refused, "/v1/models").status == status
    assert body(refused) == {"error": {"message": refused.message, "type": kind, "param": param, "code": code}}


def test_the_refusal_of_a_key_has_no_param() -> None:
    error = {"message": "Invalid API key", "type": INVALID, "code": "invalid_api_key"}
    assert body(Refused(401, "invalid_api_key", "Invalid API key")) == {"error": error}


@pytest.mark.parametrize("path", ["/api/config", "/api/memory", "/api/skills/x", "/api/available-models"])
def test_the_short_form_of_the_management_routes(path: str) -> None:
    assert body(errors.invalid_request("x must be a y", code="invalid_title"), path) == {"error": "x must be a y"}


def test_a_long_id_is_cut() -> None:
    assert errors.session_not_found("7c1e").message == "No such session: 7c1e"
    assert len(str(errors.session_not_found("x" * 10_000))) < 200
