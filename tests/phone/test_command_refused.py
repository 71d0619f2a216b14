"""How a route of the phone ends early (wire bridge 3.1)."""

from __future__ import annotations

from svc_proto.phone.backend import Reply
from svc_proto.phone.command_refused import Refusal


def test_the_reply_of_a_refusal() -> None:
    assert Refusal(404, "gone").reply() == Reply(404, {"error": "gone"})
    assert Refusal(500, "no", "broken").reply() == Reply(500, {"error": "no", "error_code": "broken"})
    on_400 = {"error": "no", "error_code": "broken", "code": "broken", "status": "failed"}
    assert Refusal(400, "no", "broken", status="failed").reply() == Reply(400, on_400)
