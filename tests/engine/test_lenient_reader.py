"""Lenient reader: deviations are counted by kind of peer, and the first of each is logged."""

import pytest

from svc_proto.basics.strict_json import JsonError
from svc_proto.engine.lenient_reader import LenientReader
from tests.engine.toy_service import ToyPlaybook


def test_a_deviation_is_counted_and_its_first_case_logged(book: ToyPlaybook) -> None:
    mcp, phone = LenientReader(book.engine, "mcp"), LenientReader(book.engine, "phone")
    book.act(lambda: [mcp.read("[NaN]"), mcp.read(b"[NaN]"), phone.read("[NaN]"), phone.read("[1]")]).drain_commands()
    with pytest.raises(JsonError):
        mcp.read("[NaN", max_bytes=100)
    number = "unrepresentable number"
    assert book.engine.counts.json_deviations == {("mcp", number): 2, ("phone", number): 1}
    assert [(log.event, log.fields) for log in book.logs] == [
        ("a peer deviates from JSON", {"source": source, "how": number}) for source in ("mcp", "phone")
    ]
