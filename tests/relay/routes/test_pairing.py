"""The pairing routes (wire core 2.3 to 2.6)."""

import json
from typing import Any

import pytest

from svc_proto.commands import Compute
from svc_proto.machines.grants import CHANNELS
from svc_proto.relay_config import RelayConfig
from tests.relay.harness import REMOTE, RelayHarness

LAN = {"role": "lan", "priority": 0, "api": {"host": "192.0.2.10", "port": 8642, "tls": False}}
MESH = {"role": "mesh", "priority": 1, "api": {"host": "100.64.0.9", "port": 8642, "tls": False}}
PUBLIC = {"role": "public", "priority": 2, "api": {"host": "relay.example", "port": 443, "tls": True}}
OWN = {**LAN, "dashboard": {"url": "http://192.0.2.10:1"}}


@pytest.mark.parametrize("body", [None, b"not looked at", {"code": "AAAAAA"}])
def test_a_code_is_made(book: RelayHarness, body: object) -> None:
    answer = book.request("POST", "/pairing", body)
    code = answer.json["code"]
    assert (answer.status, answer.json) == (200, {"ok": True, "code": code, "expires_at": 1_800_000_600})
    assert isinstance(answer.json["expires_at"], int)
    assert len(code) == 6
    assert "pairing code made" in book.events()
    assert book.websocket().auth(pairing_code=code)["type"] == "auth.ok"


def test_codes_are_unique_and_none_is_made_for_a_caller_that_left(book: RelayHarness) -> None:
    state = iter(range(0, 240, 6))
    book.engine.entropy = lambda n: bytes(range(start := next(state), start + n))
    codes = [book.request("POST", "/pairing").json["code"] for _ in range(5)]
    assert len(dict.fromkeys(codes)) == 5
    book = RelayHarness()
    book.hold = (Compute,)
    call = book.call("POST", "/pairing/mint")
    call.vanish()
    book.release()
    assert len(book.relay.codes) == 0


def test_registered_terms_and_declined_channels(book: RelayHarness) -> None:
    body = {"code": " q7m2zk ", "ttl_seconds": 604_800, "grants": {"bridge": 3600}, "transport_hint": "ws"}
    answer = book.request("POST", "/pairing/register", body)
    assert (answer.status, answer.json) == (200, {"ok": True, "code": "Q7M2ZK"})
    ok = book.websocket().auth(pairing_code="Q7M2ZK")["payload"]
    assert (ok["expires_at"], ok["grants"]["bridge"]) == (book.now.wall + 604_800, book.now.wall + 3600)
    book = RelayHarness()
    book.register()
    ok = book.websocket().auth(pairing_code="Q7M2ZK", grants={"terminal": False, "chat": True, "own": 5})["payload"]
    assert "terminal" not in ok["grants"]
    assert len(ok["grants"]) == 7
    token = ok["session_token"]
    again = book.request("PATCH", f"/sessions/{token[:8]}", {"grants": {"terminal": 60}}, token=token, peer=REMOTE)
    assert again.json["code"] == "withheld"


@pytest.mark.parametrize("endpoints", [[], [{"role": "lan"}], [1, "x", None]])
def test_register_echoes_endpoints_and_approve_does_not_read_them(book: RelayHarness, endpoints: object) -> None:
    body = {"code": "Q7M2ZK", "endpoints": endpoints}
    assert book.request("POST", "/pairing/register", body).json == {"ok": True, **body}
    assert book.request("POST", "/pairing/approve", body).json == {"ok": True, "code": "Q7M2ZK"}
    assert book.request("POST", "/pairing/approve", {"code": "Q7M2ZK", "endpoints": 5}).status == 200


@pytest.mark.parametrize("path", ["/pairing/register", "/pairing/approve", "/pairing/mint"])
def test_a_channel_is_withheld(book: RelayHarness, path: str) -> None:
    body = {"code": "Q7M2ZK", "grants": {"terminal": False, "bridge": 3600}}
    made = book.request("POST", path, {**body, "code": None} if path.endswith("mint") else body)
    code = made.json["code"]
    # The grants in the device's own request do not count beside the operator's.
    grants = book.websocket().auth(pairing_code=code, grants={"terminal": 60})["payload"]["grants"]
    assert "terminal" not in grants
    assert (grants["bridge"], len(grants)) == (book.now.wall + 3600, 7)


@pytest.mark.parametrize(
    ("path", "code", "clears"),
    [
        ("/pairing/register", "Q7M2ZK", True),
        ("/pairing/approve", "Q7M2ZK", True),
        ("/pairing/mint", None, True),
        ("/pairing", None, False),  # a code for a program
        ("/pairing/register", "bad", False),
    ],
)
def test_success_clears_the_limiter(book: RelayHarness, path: str, code: str | None, clears: bool) -> None:
    for _ in range(5):
        book.websocket().auth(pairing_code="ZZZZZZ")
    assert book.open_websocket().result.status == 429
    assert book.request("POST", path, {"code": code}).status == (400 if code == "bad" else 200)
    assert book.open_websocket().is_open is clears


# --- mint: the answer itself is in test_invite_minting --------------------------------------------------------------


def granted(book: RelayHarness, body: dict[str, object] | None, path: str = "/pairing/mint") -> tuple[set[str], float]:
    """Return the channels and the lifetime in seconds of a session that is paired with a code of this request."""
    code = book.request("POST", path, body).json["code"]
    ok = book.websocket().auth(pairing_code=code)["payload"]
    return set(ok["grants"]), ok["expires_at"] - book.now.wall


def relay_with(environment: dict[str, str] | None = None, **config: Any) -> RelayConfig:
    fixed = environment or {}
    return RelayConfig(home="/home/svc", config_path="/home/svc/config.yaml", pair_environment=fixed, **config)


def write_env(book: RelayHarness, text: bytes) -> None:
    book.disk.put("/home/svc/.env", text)


def test_new_codes_have_the_defaults_of_file_and_environment() -> None:
    book = RelayHarness(relay_with(pair_scope="chat", pair_ttl=3600))
    write_env(book, b"SVC_PAIR_SCOPE=phone\nSVC_PAIR_TTL=60\n")
    channels, lifetime = granted(book, {})
    assert ({"terminal", "tui"} & channels, "bridge" in channels, lifetime) == (set(), True, 60)
    write_env(book, b"SVC_PAIR_SCOPE=\n")
    assert granted(book, {}) == ({*CHANNELS}, 30 * 86_400)
    book = RelayHarness(relay_with({"SVC_PAIR_SCOPE": "chat"}, pair_scope="chat"))
    write_env(book, b"SVC_PAIR_SCOPE=phone\nSVC_PAIR_TTL=60\n")
    assert granted(book, {}) == ({"chat"}, 60)
    book = RelayHarness(relay_with(pair_scope="chat", pair_ttl=3600))
    bodies: list[dict[str, object] | None] = [None, {}, {"grants": None, "ttl_seconds": None}]
    for body in bodies:
        assert granted(book, body) == ({"chat"}, 3600)
    assert granted(book, {"grants": {}}) == ({*CHANNELS}, 3600)
    assert granted(book, {"grants": {"chat": False}, "ttl_seconds": 60}) == ({*CHANNELS} - {"chat"}, 60)
    assert granted(book, None, "/pairing")[0] == {*CHANNELS}  # the agent of this host requests its own grants
    book = RelayHarness(relay_with(pair_scope="chat", pair_ttl=3600, pairing_code="Q7M2ZK"))
    assert {*book.websocket().auth(pairing_code="Q7M2ZK")["payload"]["grants"]} == {"chat"}


@pytest.mark.parametrize(
    ("dotenv", "problem"),
    [
        (b"SVC_PAIR_SCOPE=all\n", "SVC_PAIR_SCOPE"),
        (b"SVC_PAIR_TTL=a day\n", "SVC_PAIR_TTL"),
        (b"SVC_PAIR_SCOPE=chat\nwhat is this\n", "line 2"),
        (b"\xff", "UTF-8"),
    ],
)
def test_an_invalid_file_gives_no_code(dotenv: bytes, problem: str) -> None:
    book = RelayHarness(relay_with(pair_scope="chat"))
    write_env(book, dotenv)
    refused = book.request("POST", "/pairing/mint", {})
    assert (refused.status, refused.json["code"]) == (409, "invalid")
    assert problem in refused.json["error"]


def invite(place: tuple[str, int] | None, body: dict[str, object]) -> dict[str, Any]:
    """Return the payload of an invite; `place` is the address on which the host's dashboard listens, or None."""
    book = RelayHarness(RelayConfig(home="/home/svc", config_path="/home/svc/config.yaml", dashboard=place))
    answer = book.request("POST", "/pairing/mint", body)
    assert answer.status == 200, answer
    payload: dict[str, Any] = json.loads(answer.json["qr_payload"])
    return payload


def boards(payload: dict[str, Any]) -> list[object]:
    return [route.get("dashboard", {}).get("url") for route in payload["endpoints"]]


def test_a_dashboard_is_named_on_the_routes_that_reach_it() -> None:
    found = invite(("0.0.0.0", 9119), {"endpoints": [LAN, MESH, PUBLIC, OWN]})
    assert found["dashboard_url"] == "http://192.0.2.10:9119"
    assert boards(found) == ["http://192.0.2.10:9119", "http://100.64.0.9:9119", None, "http://192.0.2.10:1"]
    found = invite(("100.64.0.9", 9119), {"endpoints": [LAN, MESH]})
    assert found["dashboard_url"] == "http://100.64.0.9:9119"
    assert boards(found) == [None, "http://100.64.0.9:9119"]
    url = "https://board.example"
    assert invite(("0.0.0.0", 9119), {"dashboard_url": url})["dashboard_url"] == url
    book = RelayHarness(RelayConfig(home="/home/svc", config_path="/home/svc/config.yaml", dashboard=("::", 9119)))
    book.refuse = (Compute,)
    assert "dashboard_url" not in book.request("POST", "/pairing/mint", {}).json


@pytest.mark.parametrize(
    ("place", "body"),
    [(None, {}), (("0.0.0.0", 9119), {"grants": {"chat": False}}), (("0.0.0.0", 9119), {"endpoints": None})],
)
def test_the_top_level_address(place: tuple[str, int] | None, body: dict[str, object]) -> None:
    wanted = "http://192.0.2.10:9119" if place and "grants" not in body else None
    assert invite(place, body).get("dashboard_url") == wanted
