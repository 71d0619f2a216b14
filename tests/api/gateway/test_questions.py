from __future__ import annotations

import pytest

from svc_proto.schema.json_rpc import INVALID_PARAMS
from tests.api.gateway_client import open_gateway
from tests.api.harness import ApiHarness


@pytest.mark.parametrize("kind", ["clarify", "sudo", "secret", "terminal.read"])
def test_answers_to_questions_that_were_not_asked_are_too_late(kind: str) -> None:
    phone = open_gateway(ApiHarness())
    assert phone.call(f"{kind}.respond", request_id="r")["status"] == "expired"


def test_an_approval_is_answered_by_its_session() -> None:
    book = ApiHarness()
    phone = open_gateway(book)
    session = phone.new_session()
    assert phone.call("approval.respond", session_id=session, choice="once")["status"] == "expired"
    assert phone.refusal("approval.respond", session_id=session, choice="perhaps")[0] == INVALID_PARAMS
    phone.call("prompt.submit", session_id=session, text="/approve")
    book.after(1.0)
    assert phone.last("approval.request")["choices"]
    assert phone.call("approval.respond", session_id=session, choice="deny", all=True) == {"resolved": 1}
    book.after(10.0)
    kinds = phone.kinds()
    assert kinds.index("approval.expire") < kinds.index("tool.complete") < kinds.index("message.complete")
    assert phone.last("approval.expire")["answered"] is True
