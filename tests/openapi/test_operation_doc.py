"""What a route says is data: equal where it says the same."""

from __future__ import annotations

from svc_proto.openapi.operation_doc import DoorWords, Says


def test_what_is_not_said() -> None:
    says = Says("Something")
    assert (says.answer, says.status, says.body, says.query, says.headers) == (None, 200, None, None, None)
    assert (says.also, says.no, says.details, says.events, says.heard, says.said) == ({}, {}, "", {}, {}, {})
    assert says == Says("Something", None, 200)
    assert DoorWords("For anybody.").schemes == ()
