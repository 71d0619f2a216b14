"""The relay as a whole: start and stop, the authentication rate limiter, and the end of sessions."""

from collections.abc import Mapping
from enum import Enum

import pytest

from svc_proto.basics.errors import Refused
from svc_proto.commands import Level, Query, SendFile
from svc_proto.engine.message import Request
from svc_proto.facts import Address, Started
from svc_proto.machines.paired_session_registry import PairedSessionRegistry
from svc_proto.machines.pairing_codes import PairingMeta
from svc_proto.relay.service import EXPIRY_PAUSE, Relay
from svc_proto.relay_config import RelayConfig
from svc_proto.store_requests import AppendAuditEvent, DeleteSession, LoadSessions, SaveSession
from svc_proto.wire.events import NO_HEADERS, RequestHead, StreamId
from tests.relay.harness import REMOTE, HttpCall, PairedPhone, RelayHarness, paired_relay
from tests.relay.routes.media_harness import open_book as open_media

OTHER = Address("203.0.113.8", 50_000)


def fail_once(book: RelayHarness, peer: Address = REMOTE, **headers: str) -> str:
    """Fail one authentication with a wrong code, and return the type of the answer."""
    fields = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return str(book.websocket(peer=peer, headers=fields).auth(pairing_code="ZZZZZZ")["type"])


def test_refusals_and_policies_of_the_routes() -> None:
    head = RequestHead(StreamId(1), "GET", "/voice/output/config?x", NO_HEADERS)
    answer = Relay(RelayConfig()).error_response(Refused(401, "unauthorized", "no such vöice \ud800"), head)
    assert (answer.status, answer.body) == (401, "no such vöice ?".encode())
    assert answer.headers.get(b"content-type") == b"text/plain; charset=utf-8"
    assert answer.headers.get(b"www-authenticate") == b"Bearer"

    class Foreign(Enum):
        ANY = "any"

    request = Request(method="GET", path="/", raw_query="", headers=NO_HEADERS, peer=REMOTE, secure=False, params={})
    with pytest.raises(TypeError):
        RelayHarness().relay.authorize(Foreign.ANY, request)


def test_the_store_is_needed_at_the_start() -> None:
    book = RelayHarness(started=False)
    book.hold = (LoadSessions,)
    book.feed(Started())
    before = book.ready
    book.release()
    assert (before, book.ready) == (False, True)
    book = RelayHarness(started=False)
    book.refuse = (LoadSessions,)
    book.feed(Started())
    assert not book.ready
    assert [(exit_.code, exit_.reason) for exit_ in book.exits] == [(1, "the session store cannot be read: no_space")]
    book = RelayHarness(started=False)
    book.hold = (LoadSessions,)
    book.feed(Started())
    book.after(30)
    assert [exit_.code for exit_ in book.exits] == [1]


def test_records_that_are_bad_or_expired() -> None:
    good = RelayHarness()
    good.pair()
    (record,) = good.store.values()
    records: list[Mapping[str, object]] = [
        {"token_hash": "x"},
        {**record, "token_hash": "f" * 64, "grants": 5},
        record,
        {**record, "token_hash": "e" * 64, "expires_at": float("nan")},
    ]
    book = RelayHarness(records=records)
    assert len(book.sessions()) == 1
    assert book.events(Level.WARNING) == ["stored session skipped"] * 3
    first = RelayHarness()
    first.pair(operator={"ttl_seconds": 60})
    (record,) = first.store.values()
    expired = {**record, "expires_at": first.now.wall - 1}
    book = RelayHarness(records=[expired])
    assert book.store == {}
    assert book.sessions() == []
    first = RelayHarness()
    first.pair()
    (record,) = first.store.values()
    old = {**record, "token": "0123456789", "expires_at": 1.0}
    del old["token_hash"]
    book = RelayHarness(started=False)
    book.store = {"old": old}
    book.feed(Started())
    assert book.ready
    assert list(book.store) == ["old"]


def test_codes_of_the_configuration_and_sessions_at_the_start() -> None:
    book = RelayHarness(RelayConfig(pairing_code="Q7M2ZK"))
    assert book.websocket().auth(pairing_code="q7m2zk")["type"] == "auth.ok"
    book = RelayHarness(RelayConfig(pairing_code="Q7M2ZK", begins=False))  # a later process of the same start
    assert book.websocket().auth(pairing_code="q7m2zk")["type"] == "auth.fail"
    book = RelayHarness(RelayConfig(pairing_code="no code"), started=False)
    book.logs.bugs = True
    book.feed(Started())
    assert not book.ready
    assert [(exit_.code, exit_.reason) for exit_ in book.exits] == [(70, "internal error, reference bug-1")]
    first = RelayHarness()
    paired = first.pair(device_name="Kitchen", operator={"ttl_seconds": 3_600, "grants": {"bridge": 60}})
    second = RelayHarness(records=first.store.values())
    assert second.sessions() == [{**each, "online": False} for each in first.sessions()]
    second.reconnect(paired.token).vanish()
    second.after(3_600)
    assert second.store == {}


def test_five_failures_in_a_minute_block_upgrades_for_five_minutes(book: RelayHarness) -> None:
    for _ in range(5):
        assert fail_once(book) == "auth.fail"
        book.after(10)
    answer = book.open_websocket("/").result
    assert (answer.status, answer.headers.get(b"retry-after")) == (429, b"290")
    assert (answer.json["ok"], answer.json["code"], answer.json["retry_after"]) == (False, "rate_limited", 290)
    assert book.websocket(peer=OTHER).is_open
    book.after(289)
    assert book.open_websocket().result.status == 429
    book.after(1)
    assert book.websocket().is_open
    book = RelayHarness()
    for _ in range(6):
        book.websocket().text("no JSON")
        book.websocket().close()
        assert book.request("GET", "/sessions", token="bad", peer=REMOTE).status == 401
        book.websocket()
    book.after(31)
    assert book.websocket().is_open
    book = RelayHarness()
    local = Address("127.0.0.1", 4000)
    for _ in range(5):
        fail_once(book, local)
    assert book.open_websocket(peer=local).result.status == 429
    assert book.request("GET", "/health", peer=local).status == 200
    assert book.request("GET", "/sessions", peer=local).status == 200


def test_a_block_refuses_codes_and_never_a_good_token(book: RelayHarness, paired: PairedPhone) -> None:
    """Refuse codes and wrong tokens of a blocked address, and accept its valid token until that is revoked."""
    stock = [book.websocket() for _ in range(2)]
    for _ in range(5):
        fail_once(book)
    assert paired.phone.is_open
    shown = [(b"authorization", b"Bearer " + paired.token.encode())]
    for wrong in ([], [(b"authorization", b"Bearer nonsense")], [(b"authorization", b"Basic " + shown[0][1][7:])]):
        assert book.open_websocket(headers=wrong).result.status == 429
    assert book.websocket(headers=shown).auth(session_token=paired.token)["type"] == "auth.ok"
    assert stock[0].auth(session_token=paired.token)["type"] == "auth.ok"
    book.relay.codes.register("Q7M2ZK", book.now, PairingMeta())
    for phone in (stock[1], book.websocket(headers=shown)):  # nor does a valid token allow guesses of codes
        assert "rate limited" in phone.auth(pairing_code="Q7M2ZK")["payload"]["reason"]
    assert book.websocket(peer=OTHER).auth(pairing_code="Q7M2ZK")["type"] == "auth.ok"  # the code is still unused
    assert book.open_websocket().result.status == 429
    book.request("DELETE", f"/sessions/{paired.prefix}")
    assert book.open_websocket(headers=shown).result.status == 429


@pytest.mark.parametrize(("proxies", "trust"), [((), False), (("127.0.0.0/8",), False), ((f"{REMOTE.host}/24",), True)])
def test_limiter_counts_forwarded_addresses_of_named_proxies(proxies: tuple[str, ...], trust: bool) -> None:
    """Accept forwarded addresses only from a named proxy, since invented addresses would allow endless guesses."""
    book = RelayHarness(RelayConfig(trusted_proxies=proxies))
    for n in range(5):
        fail_once(book, x_forwarded_for=f"10.0.0.{n}, 198.51.100.9")
    header = [(b"x-forwarded-for", b"198.51.100.9")]
    assert book.open_websocket(headers=header).result.status == 429
    other = book.open_websocket(headers=[(b"x-forwarded-for", b"198.51.100.9, 198.51.100.10")])
    assert other.is_open is trust


def test_expiry_closes_sockets_and_erases_in_pages(book: RelayHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    paired = book.pair(operator={"ttl_seconds": 60})
    book.after(59.5)
    assert paired.phone.is_open
    book.after(0.5)
    answer = paired.phone.only()
    assert (answer["type"], answer["payload"]["error"]) == ("error", "session_ended")
    assert paired.phone.close_code == 1008
    assert book.store == {}
    assert "session expired" in book.events()
    assert book.request("GET", "/health").json["sessions"] == 0
    assert book.request("GET", "/bridge/devices").json["count"] == 0
    monkeypatch.setattr(PairedSessionRegistry.expire_due, "__defaults__", (2,))
    book = RelayHarness()
    phones = [book.pair(device_id=f"P{n}", operator={"ttl_seconds": 60}).phone for n in range(3)]
    book.after(60.0)
    assert sum(phone.is_open for phone in phones) == 1
    book.after(EXPIRY_PAUSE)
    assert not any(phone.is_open for phone in phones)
    assert book.store == {}


def test_the_end_of_a_session_follows_the_wall_clock_and_patches(book: RelayHarness, paired: PairedPhone) -> None:
    book.step_clock(40 * 86_400)
    assert paired.phone.is_open
    book.after(3600)
    assert paired.phone.close_code == 1008
    book, paired = paired_relay()
    book.hold = (SaveSession,)  # a slow store does not delay the end
    book.call("PATCH", f"/sessions/{paired.prefix}", {"ttl_seconds": 60}, token=paired.token)
    book.after(60)
    assert paired.phone.close_code == 1008


def test_changes_are_stored_in_order(book: RelayHarness, paired: PairedPhone) -> None:
    book.hold = (SaveSession,)
    patch = book.call("PATCH", f"/sessions/{paired.prefix}", {"ttl_seconds": 60}, token=paired.token)
    deletion = book.call("DELETE", f"/sessions/{paired.prefix}")
    orders = [command.request for command in book.commands if isinstance(command, Query)]
    changes = [type(order) for order in orders if not isinstance(order, AppendAuditEvent)]
    assert changes[-2:] == [SaveSession, DeleteSession]
    book.release()
    assert (patch.result.status, deletion.result.status) == (401, 200)  # its session ended while the request waited
    assert book.store == {}


SMS = b'{"to": "+15550100", "body": "Hello"}'
HALF_SMS = "POST /send_sms HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n"


def half_sent(book: RelayHarness, token: str) -> HttpCall:
    """Send a request for `/send_sms` without the last byte of its body."""
    return book.raw((HALF_SMS % (token, len(SMS))).encode() + SMS[:-1])


def test_half_sent_requests_are_refused_with_their_session_or_grant(book: RelayHarness) -> None:
    phone, caller = book.pair(), book.pair(device_id="caller")
    call = half_sent(book, caller.token)
    book.request("DELETE", f"/sessions/{caller.prefix}")
    assert call.result.json == {"ok": False, "error": "the session was revoked", "code": "unauthorized"}
    call.say_bytes(SMS[-1:])
    assert phone.phone.envelopes() == []
    assert len(book.engine.revocables) == 0
    book = RelayHarness()
    phone, caller = book.pair(), book.pair(device_id="caller", operator={"grants": {"bridge": 10}})
    call = half_sent(book, caller.token)
    book.after(10)
    call.say_bytes(SMS[-1:])
    assert (call.result.status, call.result.json["code"]) == (403, "grant_required")
    assert phone.phone.envelopes() == []


def test_files_under_way_end_with_their_session() -> None:
    book = open_media()
    paired = book.pair()
    book.hold = (SendFile,)
    download = book.call("GET", "/media/by-path?path=/tmp/a.txt", token=paired.token)
    book.request("DELETE", f"/sessions/{paired.prefix}")
    assert (download.answer, download.aborted, book.held) == (None, True, [])
    assert book.node.operations.open_handles == 0
    book = open_media()
    paired = book.pair()
    head = f"POST /media/upload HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {paired.token}\r\n"
    fields = "Content-Type: multipart/form-data; boundary=x\r\nContent-Length: 1000\r\n\r\n--x\r\n"
    part = 'Content-Disposition: form-data; name="file"; filename="a.png"\r\n\r\n' + "x" * 200
    call = book.raw((head + fields + part).encode())
    assert book.disk.files("/home/svc/spool") != {}
    book.request("DELETE", f"/sessions/{paired.prefix}")
    assert call.result.status == 401
    assert book.disk.files("/home/svc/spool") == {}


def test_stopping_waits_for_the_store(book: RelayHarness, paired: PairedPhone) -> None:
    book.hold = (DeleteSession,)
    call = book.call("DELETE", f"/sessions/{paired.prefix}")
    book.stop()
    assert book.exits == []
    book.release()
    assert call.result.status == 200
    assert [exit_.code for exit_ in book.exits] == [0]
