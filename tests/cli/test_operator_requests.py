import json
from typing import Any

import pytest
from attrs import evolve

from svc_proto.cli.errors import CliError
from svc_proto.cli.operator_requests import (
    answer_consent,
    build_registration,
    find_consent,
    local_relay,
    message_line,
    public_route_setting,
    register,
    revoke,
    security_setting,
    send_message,
    token_prefix,
    wait_for_replies,
)
from svc_proto.commands import Exit
from svc_proto.machines.pairing_codes import PairingMeta
from svc_proto.relay_config import RelayConfig
from svc_proto.schema.json_object import JsonObject
from svc_proto.service_clients.local_secret import HEADER, LOCAL_SECRET
from tests.cli.harness import OneShotHarness, Reply, UpstreamRequest, as_json
from tests.support.core_harness import HOME

CONFIG = RelayConfig()
RELAY = local_relay(CONFIG)
META = PairingMeta(ttl_seconds=60.0, grants={"bridge": 3600.0, "tui": None}, transport_hint="ws")


@pytest.mark.parametrize(
    ("config", "url"),
    [
        ({"host": "0.0.0.0"}, "http://127.0.0.1:8767"),
        ({"host": "::"}, "http://[::1]:8767"),
        ({"host": "192.0.2.10"}, "http://192.0.2.10:8767"),
        ({"ssl_cert": "c", "ssl_key": "k"}, "https://127.0.0.1:8767"),
        ({"ssl_cert": "c", "ssl_key": "k", "inside": "http://127.0.0.1:9"}, "http://127.0.0.1:9"),
    ],
)
def test_relay_address(config: dict[str, Any], url: str) -> None:
    assert local_relay(evolve(CONFIG, **config)).url == url


SECRET = "0123456789abcdef" * 4


@pytest.mark.parametrize(("host", "shown"), [("0.0.0.0", SECRET.encode()), ("localhost", SECRET.encode()), ("h", None)])
def test_local_secret_is_shown_on_loopback_only(host: str, shown: bytes | None) -> None:
    relay = local_relay(evolve(CONFIG, host=host))
    for plan in (
        lambda engine: register(engine, relay, "Q7M2ZK", META),
        lambda engine: revoke(engine, relay, "1c2d3e4f"),
        lambda engine: security_setting(engine, relay, True),
    ):
        world: OneShotHarness[object] = OneShotHarness(plan, http=as_json({"ok": True}))
        world.disk.put(f"{HOME}/{LOCAL_SECRET}", SECRET.encode())
        world.run()
        assert [asked.headers.get(HEADER) for asked in world.asked] == [shown]


def test_registration() -> None:
    assert build_registration("Q7M2ZK", PairingMeta()) == {"code": "Q7M2ZK"}
    body = {"code": "Q7M2ZK", "ttl_seconds": 60, "transport_hint": "ws", "grants": {"bridge": 3600, "tui": False}}
    assert build_registration("Q7M2ZK", META) == body
    assert '"tui": false' in json.dumps(build_registration("Q7M2ZK", META))  # and not 0, which would never expire
    more = PairingMeta(own_key=True, keep_earlier=True)
    assert build_registration("Q7M2ZK", more) == {"code": "Q7M2ZK", "own_key": True, "keep_earlier": True}
    endpoints: list[Any] = [{"role": "public"}]
    assert build_registration("Q7M2ZK", PairingMeta(endpoints=endpoints))["endpoints"] == endpoints


def test_a_refused_code() -> None:
    refused = as_json({"error": "loopback only"}, 403)
    world = OneShotHarness(lambda engine: register(engine, RELAY, "Q7M2ZK", META), http=refused)
    only = "takes this only from its own host, over loopback: loopback only (status 403)"
    assert world.fails() == Exit(1, f"the relay at {RELAY.url} {only}")


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (404, "no session has a token that begins with '1c2d3e4f': it may be over already"),
        (409, "2 sessions match (status 409): give more of the token"),
    ],
)
def test_failed_revocation(status: int, reason: str) -> None:
    answer = as_json({"error": "2 sessions match"}, status)
    world = OneShotHarness(lambda engine: revoke(engine, RELAY, " 1c2d3e4f "), http=answer)
    assert world.fails() == Exit(1, reason)


@pytest.mark.parametrize("prefix", ["abcd", "x" * 64, " !~!~ "])
def test_good_prefixes(prefix: str) -> None:
    assert token_prefix(prefix) == prefix.strip()


@pytest.mark.parametrize("prefix", ["", "abc", "abc\x7f", "x" * 65, "ab cd", "ab\x1bcd", "\u00e9\u00e9\u00e9\u00e9"])
def test_bad_prefixes(prefix: str) -> None:
    with pytest.raises(CliError) as caught:
        token_prefix(prefix)
    assert caught.value.code == 2


@pytest.mark.parametrize(
    ("plan", "method", "body"),
    [
        (lambda engine: security_setting(engine, RELAY, None), "GET", None),
        (lambda engine: security_setting(engine, RELAY, True), "PATCH", {"allow_insecure_api_bearer": True}),
        (lambda engine: security_setting(engine, RELAY, False), "PATCH", {"allow_insecure_api_bearer": False}),
        (lambda engine: public_route_setting(engine, RELAY, remove=False), "GET", None),
        (lambda engine: public_route_setting(engine, RELAY, remove=True), "PATCH", {"public_route": False}),
    ],
)
def test_security_settings(plan: Any, method: str, body: object) -> None:
    world: OneShotHarness[object] = OneShotHarness(plan, http=as_json({"ok": True}))
    assert world.run() == {"ok": True}
    (asked,) = world.asked
    assert (asked.method, asked.path, asked.json if asked.body else None) == (method, "/relay/security", body)


def test_consent_request_of_an_agent() -> None:
    world = OneShotHarness(lambda engine: find_consent(engine, RELAY, " q7/2 "), http=as_json({"code": "Q"}))
    assert world.run() == {"code": "Q"}
    assert (world.asked[0].method, world.asked[0].path) == ("GET", "/mcp/questions/q7%2F2")
    gone = OneShotHarness(lambda engine: find_consent(engine, RELAY, "Q"), http=as_json({"error": "none"}, 404))
    assert gone.fails() == Exit(1, "the relay refuses: none (status 404)")


def test_consent_answer_to_an_agent() -> None:
    asked = JsonObject(code="ABC123", ballot="b")
    world = OneShotHarness(lambda engine: answer_consent(engine, RELAY, asked, allow=True), http=as_json({}))
    assert world.run() == {}
    assert (world.asked[0].method, world.asked[0].path) == ("POST", "/mcp/questions/ABC123")
    assert world.asked[0].json == {"ballot": "b", "allow": True, "scope": None, "ttl_seconds": None}


# --- messages to the owner --------------------------------------------------------------------------------------------


RELAY = local_relay(RelayConfig())


def test_message_is_sent() -> None:
    answer = {"ok": True, "delivered": True, "message_id": "m"}
    world = OneShotHarness(lambda engine: send_message(engine, RELAY, "Hi", "T"), http=as_json(answer))
    assert world.run() == answer
    assert (world.asked[0].path, world.asked[0].json) == ("/phone/message", {"text": "Hi", "title": "T"})


def test_refusal_of_a_message_is_explained() -> None:
    refused = as_json({"error": "loopback only"}, 403)
    world = OneShotHarness(lambda engine: send_message(engine, RELAY, "Hi", None), http=refused)
    reason = f"the relay at {RELAY.url} accepts this only from its own host: loopback only (status 403)"
    assert world.fails() == Exit(1, reason)


def test_wait_ends_with_the_first_replies() -> None:
    replies = iter([[], [{"text": "Yes"}, {"text": "No"}]])

    def answer(asked: UpstreamRequest) -> Reply:
        return as_json({"ok": True, "replies": next(replies)})

    world = OneShotHarness(lambda engine: wait_for_replies(engine, RELAY, "m&1", 60.0), http=answer)
    assert world.run() == [{"text": "Yes"}, {"text": "No"}]
    assert [asked.path for asked in world.asked] == ["/phone/replies?timeout=25&message_id=m%261"] * 2
    assert OneShotHarness(lambda engine: wait_for_replies(engine, RELAY, "m", 0.0)).run() == []


def test_line() -> None:
    assert message_line(JsonObject(delivered=True)) == "Delivered to the phone."
    waits = "No phone listens: the message waits in the queue (3) until one connects."
    assert message_line(JsonObject(delivered=False, buffered=3)) == waits
