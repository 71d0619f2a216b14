"""Refused input of the relay's routes: a 400 in JSON, which may name a field, or in plain text from a voice route.

The requests are in `refused_input.tsv`: `path` is empty if it is that of the route, `code` is `text` for plain text,
which contains `names` (wire terminal-voice 3), and `-` where every input has a meaning. The tests of the handlers have
more. A new route without a row fails `test_every_route_has_a_row`; `/mcp`, OAuth, `/.well-known` and Device Control
have tests of their own.
"""

import pytest

from svc_proto.relay.access import RelayAccess
from svc_proto.relay.service import Relay
from svc_proto.relay_config import RelayConfig
from svc_proto.schema.device_control_routes import DEVICE_CONTROL
from tests.relay.harness import RelayHarness
from tests.support.tables import read_table

TABLE = Relay(RelayConfig()).router.routes
ROUTES = {f"{route.method} {route.pattern}" for route in TABLE}
ROWS = read_table("tests/relay/refused_input.tsv")
REFUSED = [row for row in ROWS if row["code"] != "-"]
REFUSED += [{**row, "body": row["body"].replace("100000", "9" * 5000)} for row in REFUSED if "100000" in row["body"]]


def test_every_route_has_a_row() -> None:
    # JSON-RPC and OAuth have refusals of their own: tests/mcp, tests/relay/oauth/test_authorization_server. Those of
    # Device Control are in tests/schema/test_device_control_arguments and routes/test_device_control.
    others = {name for name in ROUTES if any(part in name for part in (" /mcp", " /oauth/", " /.well-known/"))}
    others |= {f"{method} {path}" for method, path in DEVICE_CONTROL}
    assert {row["route"] for row in ROWS} == ROUTES - others


def test_routes_are_unique() -> None:
    assert len(ROUTES) == len(TABLE)


def test_bridge_grant_routes_are_the_forwarded_ones() -> None:
    forwarded = sorted((route.method, route.pattern) for route in TABLE if route.access is RelayAccess.BRIDGE)
    assert forwarded == sorted(DEVICE_CONTROL)


@pytest.mark.parametrize("row", REFUSED, ids=lambda row: f"{row['route']} {row['body'][:40]}")
def test_refused_input(book: RelayHarness, row: dict[str, str]) -> None:
    method, pattern = row["route"].split()
    body, code, names = row["body"].encode(), row["code"], row["names"]
    answer = book.call(method, row["path"] or pattern, body, token=book.pair().token).result
    assert answer.status == 400, answer
    content_type = answer.headers.get(b"content-type")
    if code == "text":
        assert (content_type, names in answer.body.decode()) == (b"text/plain; charset=utf-8", True)
        return
    assert content_type == b"application/json"
    assert (answer.json["ok"], answer.json["code"], answer.json.get("field")) == (False, code, names or None)
    assert names in answer.json["error"] or code != "invalid_field"
