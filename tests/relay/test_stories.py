"""Whole stories through the relay core, and what must hold in all of them: no secret in any log or refusal."""

from __future__ import annotations

import base64
import json
from typing import Any

from svc_proto.commands import (
    Compute,
    Exit,
    OpenFile,
    Query,
    ReadConfig,
    Ready,
    Send,
    SweepFolder,
)
from svc_proto.config import LocalTrust, RelayConfig
from svc_proto.engine.core import Engine
from svc_proto.facts import FailureKind, Received, Started, Stopping
from svc_proto.relay.service import Relay
from svc_proto.store import LoadSessions
from tests.playbook import CH, Playbook, accepted, counting_entropy
from tests.relay.world import REMOTE, RelayBook

API_KEY = "api-key-of-the-host"
DAY = 86_400


def test_from_start_to_exit_command_by_command() -> None:
    """The boundary itself: every command of a small life, exactly."""
    with Playbook(Engine(Relay(RelayConfig()), entropy=counting_entropy())) as book:
        book >> Started()
        load = book.order(Query)
        assert load.request == LoadSessions()
        book.answer(load, ())
        book.fail(book.order(OpenFile), FailureKind.NOT_FOUND)
        book.answer(book.order(Compute), ())  # the profile folders
        book.fail(book.order(ReadConfig), FailureKind.NOT_FOUND)  # no public route
        book.fail(book.order(Compute), FailureKind.NOT_FOUND)  # tmux
        places = book.order(Compute)  # where they really are: what may be fetched, and what is protected
        assert isinstance(places, Compute)
        assert places.name == "real_paths"
        assert len(places.args) > 30
        book.answer(places, places.args)
        sweep = book.order(SweepFolder)
        assert sweep.name == "spool"
        book.answer(sweep, 0) << [Ready()]
        book >> accepted() << []
        (
            book
            >> Received(CH, b"GET /health HTTP/1.1\r\nHost: relay.example\r\n\r\n")
            << [
                Send(
                    CH,
                    b"HTTP/1.1 200 OK\r\n"
                    b"date: Fri, 15 Jan 2027 08:00:00 GMT\r\n"
                    b"content-type: application/json\r\n"
                    b"content-length: 58\r\n\r\n"
                    b'{"status":"ok","version":"1.0.0","clients":0,"sessions":0}',
                )
            ]
        )
        book >> Received(CH, b"GET /nope HTTP/1.1\r\nHost: relay.example\r\nConnection: close\r\n\r\n")
        sent = book.take()
        assert sent[0] == Send(
            CH,
            b"HTTP/1.1 404 Not Found\r\n"
            b"date: Fri, 15 Jan 2027 08:00:00 GMT\r\n"
            b"content-type: application/json\r\n"
            b"content-length: 71\r\n"
            b"Connection: close\r\n\r\n"
            b'{"ok":false,"error":"there is nothing at this path","code":"not_found"}',
        )
        book >> Stopping(1.0)
        book.take()
        book.after(3.0)
        assert Exit(0) in book.take()


def story() -> RelayBook:
    """Pair two devices, drive one, fail in every way, patch, revoke, stop; every secret is noted."""
    book = RelayBook(
        RelayConfig(
            home="/home/svc",
            config_path="/home/svc/config.yaml",
            api_key=API_KEY,
            trusted_proxies=(REMOTE.host,),
            local_trust=LocalTrust.ADDRESS,
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


def _drive(book: RelayBook, phone: Any, desktop: Any) -> None:
    book.call("POST", "/type", {"text": desktop.token, "password": API_KEY}, token=desktop.token)
    phone.phone.reply(phone.phone.command(), 200, {"ok": True, "token": phone.token})
    book.call("GET", f"/ping?x={desktop.token}", token=desktop.token)
    book.call("GET", "/ping?device=nobody", token=desktop.token)


def _misuse(book: RelayBook, phone: Any, desktop: Any) -> None:
    code = "WRNGCD"
    book.secrets.add(code)
    for n in range(6):
        knock = book.knock(headers=[(b"x-forwarded-for", b"198.51.100.9")])
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


def test_the_store_never_sees_a_token() -> None:
    book = RelayBook()
    paired = book.pair()
    assert len(book.store) == 1
    assert paired.token not in repr(book.store)


def test_a_day_with_two_phones() -> None:
    book = RelayBook()
    one = book.pair(device_id="d-1", device_name="Kitchen")
    two = book.pair(device_id="d-2", device_name="Hall")
    for paired in (one, two, one):
        name = "kitchen" if paired is one else "hall"
        call = book.call("POST", f"/tap?device={name}", {"x": 1, "y": 2}, token=two.token)
        paired.phone.reply(paired.phone.command(), 200, {"ok": True})
        assert call.result.status == 200
        book.after(3600)
    one.phone.vanish()
    call = book.call("POST", "/tap", {"x": 1, "y": 2}, token=two.token)
    two.phone.reply(two.phone.command(), 403, {"error": "user denied", "error_code": "user_denied"})
    assert call.result.status == 403
    back = book.reconnect(one.token)
    book.step_clock(8 * DAY)  # the bridge grants, seven days by default, have run out
    assert back.is_open
    assert book.request("GET", "/ping", token=two.token).status == 403
    answer = book.request("PATCH", f"/sessions/{two.prefix}", {"ttl_seconds": 30 * DAY}, token=two.token)
    assert answer.json["grants"]["bridge"] == book.now.wall + 7 * DAY
    two.phone.send("bridge", "bridge.status", {"device": {}})
    call = book.call("GET", "/ping", token=two.token)
    two.phone.reply(two.phone.command(), 200, {})
    assert call.result.status == 200
    assert [record["decision"] for record in book.activity()] == [
        "executed",
        "blocked",
        "executed",
        "executed",
        "executed",
    ]
