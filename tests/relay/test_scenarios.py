"""Secrets of a used and misused relay: none is in a log or an error response; tokens are not in its store."""

from __future__ import annotations

import base64
import json
from typing import Any

from svc_proto.relay_config import LocalTrustPolicy, RelayConfig
from tests.relay.harness import REMOTE, PairedPhone, RelayHarness

API_KEY = "api-key-of-the-host"
DAY = 86_400


def story() -> RelayHarness:
    """Run a relay through pairing, commands, misuse, changes and a stop; return it, with its secrets collected."""
    book = RelayHarness(
        RelayConfig(
            home="/home/svc",
            config_path="/home/svc/config.yaml",
            api_key=API_KEY,
            trusted_proxies=(REMOTE.host,),
            local_trust=LocalTrustPolicy.ADDRESS,
        )
    )
    book.secrets.add(API_KEY)
    minted = book.request("POST", "/pairing/mint").json
    secret_text = minted["qr_payload"]
    book.secrets |= {minted["code"], secret_text, base64.b64encode(bytes(range(32))).decode()}
    assert API_KEY in secret_text
    phone = book.pair(device_name="Kitchen", device_id="d-1")
    desktop = book.pair(client_surface="desktop", operator={"ttl_seconds": 2 * DAY})
    phone.phone.send("bridge", "bridge.status", {"device": {"token": phone.token}})
    _drive(book, phone, desktop)
    _misuse(book, phone, desktop)
    book.after(40)
    book.request("PATCH", f"/sessions/{desktop.prefix}", {"ttl_seconds": 60}, token=phone.token)
    book.request("DELETE", f"/sessions/{phone.token}", token=phone.token)
    book.websocket().auth(session_token=phone.token)
    book.after(3 * DAY)
    book.stop()
    return book


def _drive(book: RelayHarness, phone: Any, desktop: Any) -> None:
    book.call("POST", "/type", {"text": desktop.token, "password": API_KEY}, token=desktop.token)
    phone.phone.reply(phone.phone.command(), 200, {"ok": True, "token": phone.token})
    book.call("GET", f"/ping?x={desktop.token}", token=desktop.token)
    book.call("GET", "/ping?device=absent", token=desktop.token)


def _misuse(book: RelayHarness, phone: Any, desktop: Any) -> None:
    code = "WRNGCD"
    book.secrets.add(code)
    for n in range(6):
        knock = book.open_websocket(headers=[(b"x-forwarded-for", b"198.51.100.9")])
        if knock.is_open:
            knock.auth(pairing_code=code, session_token=f"wrong-{n}-{desktop.token}")
        else:
            book.answers.append(knock.result)
    book.websocket().text(json.dumps({"channel": "system", "type": "hello", "payload": {"pairing_code": code}}))
    phone.phone.text('{"channel": "' + phone.token[:30])
    phone.phone.send("bridge", "other", {"token": phone.token})
    phone.phone.send("chat", "x", {"token": phone.token})
    for path in (f"/nope/{code}", f"/sessions/{code}", f"/sessions/{desktop.token}x", f"/ping?device={desktop.token}"):
        book.request("GET", path, token=desktop.token, peer=REMOTE)
        book.request("DELETE", path, {"code": code}, token=f"{desktop.token}x", peer=REMOTE)
    book.request("POST", "/pairing/register", {"code": code, "ttl_seconds": code, "grants": {code: code}})
    book.request("POST", "/pairing/register", f'{{"code": "{code}", "code": 1}}'.encode())
    book.request("POST", "/pairing/mint", {"api_key": API_KEY, "port": API_KEY, "tls": API_KEY})
    book.request("PATCH", f"/sessions/{desktop.prefix}", {"ttl_seconds": API_KEY}, token=desktop.token)
    bad = book.raw(b"GET / HTTP/1.1\r\nAuthorization Bearer " + desktop.token.encode() + b"\r\n\r\n")
    assert bad.result.status == 400
    book.answers.append(bad.result)


def test_no_secret_is_in_a_log_or_a_refusal() -> None:
    book = story()
    assert len(book.secrets) >= 6
    assert len(book.logs) > 40
    assert len([answer for answer in book.answers if answer.status >= 400]) > 10
    assert book.leaks() == []


def test_the_store_never_sees_a_token(book: RelayHarness, paired: PairedPhone) -> None:
    assert len(book.store) == 1
    assert paired.token not in repr(book.store)
