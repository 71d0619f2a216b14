"""Texts of audit events: one line, printable, of limited length; and the events' names."""

import pytest

from svc_proto.basics.audit_event import MAX_TEXT, AuditEvent


@pytest.mark.parametrize("text", ["a\nb\x1b[0m", "x" * 300, "a \ud800 surrogate", ""])
def test_texts_are_one_line_and_short(text: str) -> None:
    event = AuditEvent.of(1.0, "paired", text, text, device=text, none=None)
    assert event.principal == event.address == event.about["device"]
    assert len(event.principal) <= MAX_TEXT
    assert event.principal.isprintable()
    event.principal.encode("utf-8")
    assert "none" not in event.about
