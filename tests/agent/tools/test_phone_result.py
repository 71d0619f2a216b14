from typing import Any

import pytest

from svc_proto.agent.tools.phone_result import ERROR_HINTS, STOP, result_of, text_of
from svc_proto.basics.brand import HERMES, SVC
from svc_proto.basics.errors import ToolError
from svc_proto.service_clients.phone_control import PhoneResponse


def failed(status: int, **body: Any) -> str:
    with pytest.raises(ToolError) as failure:
        result_of("tap", PhoneResponse(status, body), SVC)
    return str(failure.value)


def test_a_result_is_json() -> None:
    assert result_of("ping", PhoneResponse(399, {}), SVC) == "{}"
    assert failed(400).startswith("400: ")
    assert text_of(PhoneResponse(399, {}, "{ }")) == "{ }"
    with pytest.raises(ToolError, match="400: "):
        text_of(PhoneResponse(400, {}, "{}"))
    assert result_of("ping", PhoneResponse(200, {"pong": True}), SVC) == '{"pong":true}'
    assert result_of("screenshot", PhoneResponse(200, {"media": "/tmp/a.png"}), SVC).endswith("\nMEDIA:/tmp/a.png")
    assert result_of("screenshot", PhoneResponse(200, {"image": "x"}), SVC) == '{"image":"x"}'


@pytest.mark.parametrize("scheme", ["svc-relay", "hermes-relay"])
@pytest.mark.parametrize("brand", [SVC, HERMES])
def test_a_screenshot_is_a_marker_on_its_own_line(scheme: str, brand: Any) -> None:
    text = result_of("screenshot", PhoneResponse(200, {"media": f"MEDIA:{scheme}://abc"}), brand)
    assert text.splitlines()[-1] == f"MEDIA:{brand.scheme}://abc"


@pytest.mark.parametrize("code", sorted(ERROR_HINTS))
@pytest.mark.parametrize("key", ["code", "error_code"])
def test_failure_explains_its_code(code: str, key: str) -> None:
    assert failed(403, error="a\n b", **{key: code}) == f"403 {code}: a b.\n{ERROR_HINTS[code]}"


def test_denial_is_final() -> None:
    text = failed(
        403, error="no", error_code="user_denied", reason="confirmation_denied_or_timeout", final=True,
        instruction="Do not retry.", required_action="",
    )  # fmt: skip
    assert text.count(STOP) == 1
    assert "do not try the same by other means" in text
    assert "Do not retry." in text


def test_failures_without_a_code() -> None:
    assert failed(400, error="x must be a whole number") == "400: x must be a whole number."
    assert failed(500) == "500: no reason given."
    assert failed(403, error="blocked package com.bank").endswith(STOP)
    assert failed(423, error="locked", final=True) == f"423: locked.\n{STOP}"
    assert failed(400, error="x" * 1_000, code=5) == f"400: {'x' * 500}."
    text = failed(403, error="off", error_code="bridge_disabled", required_action="Open the app")
    assert text.endswith("Open the app")
