"""The route by which programs of the host read the audit log."""

import pytest

from svc_proto.commands import Query
from svc_proto.relay.routes.status import DEFAULT_EVENTS, MAX_LISTED_EVENTS
from svc_proto.store_requests import ListAuditEvents
from tests.relay.harness import REMOTE, RelayHarness


def test_events_are_listed_newest_first_if_the_store_can_be_read(book: RelayHarness) -> None:
    phone = book.pair(device_name="Phone")
    assert book.request("DELETE", f"/sessions/{phone.prefix}").status == 200
    events = book.request("GET", "/audit").json["events"]
    assert [(each["event"], each["principal"], each["about"]) for each in events] == [
        ("session revoked", "operator", {"session": f"{phone.prefix} Phone"}),
        ("paired", f"{phone.prefix} Phone", {}),
    ]
    assert events[0]["at"] == book.now.wall
    assert [each["event"] for each in book.request("GET", "/audit?limit=1").json["events"]] == ["session revoked"]
    assert book.request("GET", "/audit", token=phone.token, peer=REMOTE).status == 403
    book.refuse = (ListAuditEvents,)
    answer = book.request("GET", "/audit")
    assert (answer.status, answer.json["code"]) == (503, "store_unavailable")


@pytest.mark.parametrize(
    ("query", "limit"), [("", DEFAULT_EVENTS), ("?limit=7", 7), ("?limit=12345678901", MAX_LISTED_EVENTS)]
)
def test_limit_of_the_list(book: RelayHarness, query: str, limit: int) -> None:
    assert book.request("GET", f"/audit{query}").status == 200
    requests = [command.request for command in book.commands if isinstance(command, Query)]
    assert [each.limit for each in requests if isinstance(each, ListAuditEvents)] == [limit]
