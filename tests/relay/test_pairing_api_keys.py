"""An API key of one pairing, from mint to end, at a relay beside an API server (`machines/pairing_api_keys.py`).

A relay without an API server beside it gives the main key.
"""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest

from svc_proto.basics.brand import SVC
from svc_proto.basics.entropy import sha256_hex
from svc_proto.commands import Compute
from svc_proto.machines.pairing_api_keys import PairingApiKeys
from svc_proto.relay_config import RelayConfig
from svc_proto.store_requests import SaveSession
from svc_proto.wire.events import TextMessage
from tests.relay.harness import FIRST, LOCAL, REMOTE, RelayHarness

CONFIG = RelayConfig(home="/home/svc", config_path="/home/svc/config.yaml", api_key="sk-main")


class Beside:
    """Relay with the pairing API keys that it shares with an API server; `before` is a relay that it replaces."""

    def __init__(self, before: Beside | None = None) -> None:
        self.keys = PairingApiKeys()
        book = None if before is None else before.book
        self.book: RelayHarness = RelayHarness(
            CONFIG,
            keys=self.keys,
            entropy=Random(0 if before is None else 1).randbytes,
            records=book.store.values() if book else (),
            files=book.files if book else None,
        )

    def mint(self, body: object = None) -> tuple[str, str]:
        """Mint an invite and return its code and key."""
        answer = self.book.request("POST", "/pairing/mint", body)
        read: dict[str, Any] = json.loads(answer.json["qr_payload"])
        return read["relay"]["code"], read["key"]

    def pair(self, code: str) -> str:
        """Pair with a code and return the session token."""
        ok = self.book.websocket().auth(pairing_code=code, device_name="Tablet")["payload"]
        assert "key" not in json.dumps(sorted(ok))
        token: str = ok["session_token"]
        return token

    def takes(self, key: str) -> bool:
        return self.keys.accepts(key, self.book.now) is not None

    def revoke(self, token: str) -> tuple[int, Any]:
        answer = self.book.request("DELETE", f"/sessions/{token[:8]}")
        return answer.status, answer.json.get("knows_api_key", False)


@pytest.fixture
def beside() -> Beside:
    return Beside()


def test_invite_keys_end_with_the_session_and_are_stored_as_hashes(beside: Beside) -> None:
    code, key = beside.mint()
    _, unused = beside.mint()
    assert (len(key), key[:3]) == (25, "sk-")
    token = beside.pair(code)
    beside.book.after(1000.0)  # longer than the lifetime of the code
    assert beside.takes(key)
    (record,) = beside.book.store.values()
    assert (record["key_hash"], record["device_name"], record["knows_key"]) == (sha256_hex(key), "Tablet", False)
    assert key not in repr((list(beside.book.logs), beside.book.store, beside.book.files))
    again = Beside(beside)
    assert (again.takes(key), again.takes(unused)) == (True, False)
    assert again.revoke(token) == (200, False)
    assert not again.takes(key)
    assert not Beside(again).takes(key)


@pytest.mark.parametrize(
    ("device", "names"), [({"supports": {"event_schema_version": 1}}, "hermes"), ({"names": "svc"}, "svc"), ({}, "svc")]
)
def test_the_names_of_a_key_are_those_of_its_client(beside: Beside, device: dict[str, object], names: str) -> None:
    code, key = beside.mint()
    phone = beside.book.websocket(peer=REMOTE)
    token = phone.auth(pairing_code=code, **device)["payload"]["session_token"]
    session = beside.keys.sessions.find_by_api_key(sha256_hex(key))
    assert session is not None
    assert (session.brand or SVC).name == names
    headers = [(b"authorization", b"Bearer " + token.encode("ascii"))]
    shown = beside.book.request("GET", "/voice/output/config", headers=headers, peer=REMOTE)
    assert shown.json["protocol"] == f"{names}.voice.output.v0"


def test_an_updated_client_changes_the_names(beside: Beside) -> None:
    code, key = beside.mint()
    token = beside.pair(code)
    session = beside.keys.sessions.find_by_api_key(sha256_hex(key))
    assert session is not None
    assert session.brand is None
    for more, names in (({"names": "hermes"}, "hermes"), ({}, "hermes"), ({"names": "svc"}, "svc")):
        assert beside.book.websocket(peer=REMOTE).auth(session_token=token, **more)["type"] == "auth.ok"
        assert session.names == names


def test_a_pairing_that_is_not_stored_keeps_no_key(beside: Beside) -> None:
    code, key = beside.mint()
    beside.book.refuse = (SaveSession,)
    beside.pair(code)
    assert beside.takes(key)
    assert not Beside(beside).takes(key)
    beside = Beside()
    code, key = beside.mint()
    beside.book.hold = (SaveSession,)
    phone = beside.book.websocket()
    phone.send("system", "auth", {"pairing_code": code})
    assert beside.takes(key)
    phone.vanish()
    assert not beside.takes(key)


@pytest.mark.parametrize(
    ("wanted", "held", "known"), [("sk-given", "sk-given", True), ("", "", False), (None, "", False)]
)
def test_explicit_key_is_used_unchanged(beside: Beside, wanted: str | None, held: str, known: bool) -> None:
    code, key = beside.mint({"api_key": wanted})
    assert (key, beside.takes(key)) == (held, False)
    token = beside.pair(code)
    assert Beside(beside).revoke(token) == (200, known)


def test_only_the_relay_gives_keys_and_none_without_chat(beside: Beside) -> None:
    assert beside.mint({"grants": {"chat": False}})[1] == ""
    code, _ = beside.mint({"api_key": "sk-given", "grants": {"chat": False}})
    assert beside.revoke(beside.pair(code)) == (200, False)
    body = {"code": "Q7M2ZK", "own_key": True, "grants": {"chat": False}}
    assert "api_key" not in beside.book.request("POST", "/pairing/register", body).json
    _, key = beside.mint()
    beside.book.register()
    phone = beside.book.websocket()
    phone.auth(pairing_code="Q7M2ZK", key_hash=sha256_hex("sk-mine"), own_key=True)
    assert (beside.takes(key), beside.takes("sk-mine")) == (True, False)
    book = RelayHarness(CONFIG)
    minted = book.request("POST", "/pairing/mint").json
    assert json.loads(minted["qr_payload"])["key"] == "sk-main"
    token = book.websocket().auth(pairing_code=minted["code"])["payload"]["session_token"]
    assert book.request("DELETE", f"/sessions/{token[:8]}").json["knows_api_key"] is True
    body = {"code": "Q7M2ZK", "own_key": True}
    assert book.request("POST", "/pairing/register", body).json == {"ok": True, "code": "Q7M2ZK"}


def test_registration_may_request_a_key(beside: Beside) -> None:
    body = {"code": "q7m2zk", "own_key": True, "carries_key": True}  # `carries_key`: without an own key
    answer = beside.book.request("POST", "/pairing/register", body).json
    key = answer.pop("api_key")
    assert answer == {"ok": True, "code": "Q7M2ZK"}
    assert beside.takes(key)
    assert beside.revoke(beside.pair("Q7M2ZK")) == (200, False)
    assert not beside.takes(key)


@pytest.mark.parametrize(
    ("way", "body"),
    [
        ("register", {"carries_key": False}),
        ("register", {"carries_key": True}),
        ("register", {"carries_key": True, "own_key": False}),
        ("approve", {"carries_key": True, "own_key": True}),
    ],
)
def test_no_key_without_a_request(beside: Beside, way: str, body: dict[str, object]) -> None:
    answer = beside.book.request("POST", f"/pairing/{way}", {"code": "Q7M2ZK", **body})
    assert answer.json == {"ok": True, "code": "Q7M2ZK"}
    assert beside.revoke(beside.pair("Q7M2ZK")) == (200, body["carries_key"])  # the main key


def voice(beside: Beside, key: str) -> int:
    call = beside.book.call("GET", "/voice/config", token=key)
    return call.result.status


def test_on_voice_routes_the_key_counts_and_ends_at_once(beside: Beside) -> None:
    beside.book.http = lambda head: (401, b"")
    code, key = beside.mint()
    token = beside.pair(code)
    assert (voice(beside, key), voice(beside, "sk-wrong")) == (200, 401)
    assert len(beside.book.asked) == 1  # the relay checks its own keys itself and caches no result
    assert beside.revoke(token) == (200, False)
    assert voice(beside, key) == 401


def test_voice_requests_and_sessions_of_a_key_end_with_the_session(beside: Beside) -> None:
    code, key = beside.mint()
    token = beside.pair(code)
    beside.book.hold = (Compute,)
    call = beside.book.call("GET", "/voice/config", token=key)
    assert call.answer is None
    assert beside.revoke(token) == (200, False)
    assert call.result.status == 401
    beside = Beside()
    beside.book.engines["speak"] = True
    code, key = beside.mint()
    token = beside.pair(code)
    made = beside.book.request("POST", "/voice/realtime/session", {}, token=key)
    assert made.status == 200, made
    assert beside.book.request("DELETE", f"/sessions/{token[:8]}").status == 200
    families = beside.book.relay.voice_side.sessions
    assert [len(family.sessions()) for family in families.values()] == [0, 0, 0]  # of each manager


@pytest.mark.parametrize("way", ["taken", "over", "unpaired"])
def test_voice_socket_of_a_key_ends_with_the_chat_grant(beside: Beside, way: str) -> None:
    book = beside.book
    book.engines["speak"] = True
    code, key = beside.mint({"grants": {"chat": 30}})
    token = "" if way == "unpaired" else beside.pair(code)
    made = book.request("POST", "/voice/realtime/session", {}, token=key).json
    bearer = (b"authorization", f"Bearer {key}".encode())
    socket = book.websocket(made["websocket_path"], peer=LOCAL, headers=[bearer])
    if way == "taken":
        assert book.request("PATCH", f"/sessions/{token[:8]}", {"grants": {"chat": False}}).status == 200
    elif way == "over":
        book.after(31.0)
    else:
        socket.send_events(TextMessage(FIRST, "{}"))
        assert socket.is_open
        book.after(601.0)
        socket.send_events(TextMessage(FIRST, "{}"))
    assert socket.close_code == 1008
