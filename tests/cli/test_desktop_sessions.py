from collections.abc import Callable, Mapping
from typing import Any, TypeVar
from uuid import UUID

import pytest
from attrs import evolve

from svc_proto.cli import desktop_sessions
from svc_proto.cli.invites import DesktopInvite
from svc_proto.cli.session_store import (
    SessionStoreChange,
    StoredSession,
    UpdateSession,
    apply_change,
    parse_sessions,
    record_members,
)
from svc_proto.commands import EnsureSecret, Exit
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.facts import Failure, FailureKind
from svc_proto.machines.candidate_selection import Candidate
from svc_proto.service_clients.relay_url import RelayUrl
from tests.cli.harness import REFUSED, OneShotHarness, Reply, UpstreamRequest, as_json

T = TypeVar("T")
PIN, PIN_2 = "sha256/" + "A" * 43 + "=", "sha256/" + "B" * 43 + "="
LAN, PUBLIC = Candidate("lan", 0, "ws://192.0.2.1:8767"), Candidate("public", 1, "wss://home.example")
OTHER = "wss://other.example"
STORED = tuple({"role": each.role, "priority": each.priority, "relay": {"url": each.url}} for each in (LAN, PUBLIC))
QR = desktop_sessions.PairRequest(invitation=DesktopInvite("Q7M2ZK", (LAN, PUBLIC), STORED), by_qr=True)
CODE = DesktopInvite("Q7M2ZK", (PUBLIC,))
TYPED = desktop_sessions.PairRequest(invitation=CODE, name="Desk", ttl_seconds=60, grants={"chat": 60, "tui": None})
OK = {"session_token": "t0ken-1234", "server_version": "1.0.0", "expires_at": 5.5, "grants": {"chat": None}}


class Host:
    """Desktop with its session file and pins."""

    def __init__(self, *sessions: StoredSession) -> None:
        self.full = False
        self.text = ""
        for session in sessions:
            self.change(UpdateSession(session.url, record_members(session)))
        self.expected: dict[tuple[str, int], str | None] = {}
        self.pins: dict[tuple[str, int], str] = {}

    def change(self, change: SessionStoreChange) -> Failure | None:
        if self.full:
            return Failure(FailureKind.NO_SPACE)
        self.text = apply_change(self.text, change)
        return None

    def expect(self, host: str, port: int, pin: str | None) -> None:
        self.expected[host, port] = pin

    @property
    def sessions(self) -> dict[str, StoredSession]:
        return parse_sessions(self.text)


def world(host: Host, plan: Callable[[Engine], Flow[T]], **more: Any) -> OneShotHarness[T]:
    def answer(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        return [{"channel": "system", "type": "auth.ok", "id": "1", "payload": OK}]

    compute = {
        "sessions.read": lambda: host.text,
        "sessions.change": host.change,
        "host.identity": lambda: ("desk", "Linux"),
        "tls.expect": host.expect,
        "tls.seen": lambda name, port: host.pins.get((name, port), Failure(FailureKind.NOT_FOUND)),
    }
    return OneShotHarness(plan, **{"socket": answer, "compute": compute, "http": lambda asked: as_json({}), **more})


def session(**more: Any) -> StoredSession:
    return StoredSession(**{"url": LAN.url, "token": "t0ken-1234", **more})


# --- pairing ------------------------------------------------------------------------------------------------------


def test_by_code() -> None:
    host = Host()
    host.pins["home.example", 443] = PIN
    there = world(host, lambda engine: desktop_sessions.pair_desktop(engine, TYPED))
    paired = there.run()
    assert paired == desktop_sessions.PairingResult(session=host.sessions[PUBLIC.url], transport_hint="unknown")
    assert paired.session == StoredSession(
        url=PUBLIC.url,
        token="t0ken-1234",
        server_version="1.0.0",
        paired_at=int(there.now.wall),
        cert_pin=PIN,
        grants={"chat": None},
        expires_at=5.5,
    )
    assert host.expected == {("home.example", 443): None}
    payload = there.said[0]["payload"]
    assert (payload["device_name"], payload["device_hostname"], payload["ttl_seconds"]) == ("Desk", "desk", 60)
    assert payload["grants"] == {"chat": 60, "tui": False}


@pytest.mark.parametrize(("url", "seconds"), [("ws://h:8767", 604_800), ("wss://h:8767", None)])
def test_default_lifetime_is_a_week_over_plain_ws(url: str, seconds: int | None) -> None:
    wanted = desktop_sessions.PairRequest(invitation=DesktopInvite("Q7M2ZK", (Candidate("", 0, url),)))
    there = world(Host(), lambda engine: desktop_sessions.pair_desktop(engine, wanted)).finished()
    assert there.said[0]["payload"].get("ttl_seconds") == seconds


def test_by_qr_on_the_best_route() -> None:
    def http(asked: UpstreamRequest) -> Reply:
        return as_json({"status": "ok"}) if asked.url.startswith("https://home") else REFUSED

    host = Host(session(url=PUBLIC.url, cert_pin=PIN))
    apis = {LAN.url: "http://192.0.2.1:8642", PUBLIC.url: "https://home.example:8642"}
    wanted = evolve(QR, invitation=evolve(QR.invitation, apis=apis))
    there = world(host, lambda engine: desktop_sessions.pair_desktop(engine, wanted), http=http)
    paired = there.run()
    assert (paired.session.url, paired.session.role) == (PUBLIC.url, "public")
    assert paired.session.api_url == "https://home.example:8642"
    assert "ttl_seconds" not in there.said[0]["payload"]  # the default of this route, which has TLS
    assert host.sessions[PUBLIC.url].candidates == STORED
    assert host.expected == {("home.example", 443): None}  # pairing by QR clears the pin
    invitation = DesktopInvite("Q7M2ZK", (PUBLIC,), STORED[1:], {PUBLIC.url: "https://home.example:8642"}, "s3cret")
    single = desktop_sessions.PairRequest(invitation=invitation, by_qr=True)
    world(host, lambda engine: desktop_sessions.pair_desktop(engine, single), http=http).run()
    assert host.sessions[PUBLIC.url].candidates == ()
    assert host.sessions[PUBLIC.url].api_url == "https://home.example:8642"
    assert host.sessions[PUBLIC.url].api_key == "s3cret"


def test_no_route_answers() -> None:
    there = world(Host(), lambda engine: desktop_sessions.pair_desktop(engine, QR), http=(503, b""))
    tried = "lan ws://192.0.2.1:8767: status 503; public wss://home.example: status 503"
    assert there.fails() == Exit(1, f"no route to the relay answers: {tried}")


@pytest.mark.parametrize(("fresh", "expected"), [(False, PIN), (True, None)])
def test_a_code_for_a_pinned_relay(fresh: bool, expected: str | None) -> None:
    host = Host(session(url=PUBLIC.url, cert_pin=PIN))
    wanted = desktop_sessions.PairRequest(invitation=TYPED.invitation, new_certificate=fresh)
    world(host, lambda engine: desktop_sessions.pair_desktop(engine, wanted)).run()
    assert host.expected == {("home.example", 443): expected}


def test_a_full_disk() -> None:
    host = Host()
    host.full = True
    assert world(host, lambda engine: desktop_sessions.pair_desktop(engine, TYPED)).fails().reason == (
        "paired, but the session cannot be stored: no space left on the device; "
        "make room, revoke t0ken-12 with svc pair --revoke, and pair again"
    )


def test_desktop_identity() -> None:
    there = world(Host(), desktop_sessions.desktop_identity)
    me = there.run()
    assert (me.name, me.hostname, me.platform) == ("desk", "desk", "Linux")
    assert UUID(me.device_id).version == 4
    assert world(Host(), desktop_sessions.desktop_identity).run() == me


def test_identity_of_an_unknown_host() -> None:
    there: OneShotHarness[Any] = OneShotHarness(desktop_sessions.desktop_identity)
    there.refuse = (EnsureSecret,)
    me = there.run()
    assert (me.name, me.platform) == ("desktop", "unknown")
    assert UUID(me.device_id).version == 4


# --- session selection --------------------------------------------------------------------------------------------

A, B = session(), session(url="ws://other:1", token="x")


@pytest.mark.parametrize(
    ("stored", "who", "found"),
    [
        ([A], desktop_sessions.RelaySelection(), A),
        ([A], desktop_sessions.RelaySelection(token="mine"), session(token="mine")),
        ([A, B], desktop_sessions.RelaySelection(remote=B.url), B),
        ([A], desktop_sessions.RelaySelection(remote=A.url, token="mine"), session(token="mine")),
        ([], desktop_sessions.RelaySelection(remote=A.url, token="mine"), session(token="mine")),
    ],
)
def test_finding(stored: list[StoredSession], who: desktop_sessions.RelaySelection, found: StoredSession) -> None:
    result = world(Host(*stored), lambda engine: desktop_sessions.find_stored_session(engine, who)).run()
    assert (result.url, result.token) == (found.url, found.token)
    relay = world(Host(*stored), lambda engine: desktop_sessions.find_relay(engine, who)).run()
    assert (relay.url, relay.token) == (RelayUrl(found.url).http_url, found.token)


PAIR_FIRST = "pair first: svc-relay pair CODE --remote ws://…"
SEVERAL = f"several relays are stored, name one with --remote: {LAN.url}, ws://other:1"


@pytest.mark.parametrize(
    ("stored", "remote", "end"),
    [
        ([], None, Exit(1, f"no session is stored: {PAIR_FIRST}")),
        ([A], "ws://z:1", Exit(1, f"no session is stored for ws://z:1: {PAIR_FIRST}")),
        ([A, B], None, Exit(2, SEVERAL)),
    ],
)
def test_session_not_found(stored: list[StoredSession], remote: str | None, end: Exit) -> None:
    who = desktop_sessions.RelaySelection(remote=remote)
    assert world(Host(*stored), lambda engine: desktop_sessions.find_stored_session(engine, who)).fails() == end


def test_unreadable_file_counts_as_empty() -> None:
    there: OneShotHarness[StoredSession] = OneShotHarness(
        lambda engine: desktop_sessions.find_stored_session(engine, desktop_sessions.RelaySelection())
    )
    assert there.fails().reason.startswith("no session is stored")


# --- authenticated ------------------------------------------------------------------------------------------------


def test_one_route_is_not_probed() -> None:
    there = world(Host(A), lambda engine: desktop_sessions.select_url(engine, A))
    assert there.run() == A.url
    assert there.asked == []


def test_the_best_of_several_routes() -> None:
    many = session(url=PUBLIC.url, candidates=STORED, cert_pin=None, route_pins={PUBLIC.url: PIN})
    host = Host(many)
    assert world(host, lambda engine: desktop_sessions.select_url(engine, many)).run() == LAN.url
    assert host.expected == {("home.example", 443): PIN}


@pytest.mark.parametrize(
    ("stored", "url", "members"),
    [
        (session(url=PUBLIC.url), PUBLIC.url, {"cert_pin": PIN}),
        (session(url=PUBLIC.url, cert_pin=PIN_2), PUBLIC.url, {"cert_pin": PIN_2}),
        (session(), PUBLIC.url, {"route_pins": {PUBLIC.url: PIN}}),
        (session(route_pins={PUBLIC.url: PIN_2}), PUBLIC.url, {"route_pins": {PUBLIC.url: PIN_2}}),
        (session(), LAN.url, {"cert_pin": None}),
        (session(url=OTHER, cert_pin=PIN_2), PUBLIC.url, {"cert_pin": PIN_2, "route_pins": {PUBLIC.url: PIN}}),
        (session(route_pins={OTHER: PIN_2}), PUBLIC.url, {"route_pins": {OTHER: PIN_2, PUBLIC.url: PIN}}),
    ],
)
def test_sign_in_stores_the_first_pin(stored: StoredSession, url: str, members: dict[str, object]) -> None:
    host = Host(stored)
    host.pins["home.example", 443] = PIN
    there = world(host, lambda engine: desktop_sessions.sign_in(engine, stored, url))
    _, welcome = there.run()
    assert welcome.token == "t0ken-1234"
    assert there.said[0]["payload"]["session_token"] == "t0ken-1234"
    (kept,) = host.sessions.values()
    assert {name: getattr(kept, name) for name in members} == members


# --- devices ------------------------------------------------------------------------------------------------------


def test_listing() -> None:
    answer = as_json({"sessions": [{"a": 1}, 7]})
    there = world(Host(A), lambda engine: desktop_sessions.list_devices(engine, A), http=answer)
    assert there.run() == [{"a": 1}]
    assert there.asked[0].headers.get(b"authorization") == b"Bearer t0ken-1234"
    assert world(Host(A), lambda engine: desktop_sessions.list_devices(engine, A)).run() == []


@pytest.mark.parametrize(
    ("there", "pins"),
    [(session(url=PUBLIC.url), (PIN, {})), (session(candidates=STORED), (None, {PUBLIC.url: PIN}))],
    ids=["the only route", "the route in use"],
)
def test_listing_stores_the_first_pin(there: StoredSession, pins: tuple[str | None, dict[str, str]]) -> None:
    def answer(asked: UpstreamRequest) -> Reply:
        return as_json({"sessions": []}) if asked.url.startswith("https://home.example") else REFUSED

    host = Host(there)
    host.pins["home.example", 443] = PIN
    world(host, lambda engine: desktop_sessions.list_devices(engine, there), http=answer).run()
    assert [(kept.cert_pin, kept.route_pins) for kept in host.sessions.values()] == [pins]


def test_failed_listing() -> None:
    there = world(Host(A), lambda engine: desktop_sessions.list_devices(engine, A), http=(401, b""))
    assert there.fails() == Exit(1, "the relay does not know this session any more: pair again with svc-relay pair")


@pytest.mark.parametrize(("prefix", "stored"), [("t0ken-12", (9.0, {"chat": 9.0})), ("other-12", (None, None))])
def test_extending(prefix: str, stored: tuple[float | None, dict[str, float] | None]) -> None:
    host = Host(A)
    answer = {"ok": True, "expires_at": 9.0, "grants": {"chat": 9.0}}
    there = world(host, lambda engine: desktop_sessions.extend_session(engine, A, prefix, 60), http=as_json(answer))
    assert there.run() == answer
    assert (there.asked[0].method, there.asked[0].path) == ("PATCH", f"/sessions/{prefix}")
    assert there.asked[0].json == {"ttl_seconds": 60}
    assert (host.sessions[A.url].expires_at, host.sessions[A.url].grants) == stored


@pytest.mark.parametrize(
    ("status", "says"),
    [
        (401, "the relay does not know this session any more: pair again with svc-relay pair"),
        (404, "no session has a token that begins with 'abcd': see svc-relay devices"),
        (409, "2 match (status 409): give more of the token"),
    ],
)
def test_failed_extension(status: int, says: str) -> None:
    answer = as_json({"error": "2 match"}, status)
    there = world(Host(A), lambda engine: desktop_sessions.extend_session(engine, A, "abcd", 60), http=answer)
    assert there.fails() == Exit(1, says)


def test_forgetting() -> None:
    host = Host(A, B)
    world(host, lambda engine: desktop_sessions.forget_session(engine, A)).run()
    assert list(host.sessions) == [B.url]
