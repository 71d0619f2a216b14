"""Access for programs on the relay's own host: by address alone, by their user, or with the local secret."""

from typing import Any

import pytest
from attrs import evolve

from svc_proto.commands import Level, ReadConfig, WriteConfig
from svc_proto.facts import Started, Stopping
from svc_proto.relay.local_access import RETRY_INTERVAL
from svc_proto.relay_config import PUBLIC_ROUTE, LocalTrustPolicy, RelayConfig
from svc_proto.service_clients.local_secret import HEADER, LOCAL_SECRET
from tests.relay.harness import PEER, REMOTE, RelayHarness
from tests.relay.test_audit import recorded
from tests.support.http_codec import Response

CONFIG = RelayConfig(home="/home/svc", config_path="/home/svc/config.yaml")
PUBLIC = {"role": "public", "relay": {"url": "wss://home.example/relay"}}
LAN = {"role": "lan", "relay": {"url": "ws://192.0.2.2:8767"}}


def local_harness(**config: Any) -> RelayHarness:
    book = RelayHarness(evolve(CONFIG, **config))
    book.secrets |= {secret(book)} - {""}
    return book


def secret(book: RelayHarness) -> str:
    """Return the content of the secret file, or an empty text if there is none."""
    return book.files.get(f"/home/svc/{LOCAL_SECRET}", b"").decode()


def knock(book: RelayHarness, shown: str | None = None, **more: object) -> Response:
    headers = [] if shown is None else [(HEADER, shown.encode("latin-1"))]
    return book.request("POST", "/pairing", headers=headers, **more)


def is_locked(book: RelayHarness) -> bool:
    statuses = [knock(book).status, knock(book, secret(book)).status]
    assert statuses in ([200, 200], [403, 200])
    return statuses == [403, 200]


@pytest.mark.parametrize(
    ("config", "locked"),
    [
        ({}, False),
        ({"local_trust": LocalTrustPolicy.ADDRESS}, False),
        ({"local_trust": LocalTrustPolicy.SECRET}, True),
        ({"trusted_proxies": ("127.0.0.0/8",)}, True),
        ({"trusted_proxies": ("127.0.0.0/8",), "local_trust": LocalTrustPolicy.ADDRESS}, False),
    ],
)
def test_configurations_that_require_the_secret(config: dict[str, Any], locked: bool) -> None:
    book = local_harness(**config)
    assert is_locked(book) is locked
    assert bool(secret(book)) is locked


def test_other_users_of_the_host_reach_no_local_route() -> None:
    book = local_harness()
    book.peers_user = True
    assert knock(book).status == 200
    book.peers_user = False
    for method, path in (
        ("POST", "/pairing"),
        ("GET", "/bridge/status"),
        ("POST", "/pairing/mint"),
        ("GET", "/metrics"),
    ):
        assert book.request(method, path).status == 403
    for path in ("/sessions", "/notifications/recent", "/openapi.json"):
        assert book.request("GET", path).status == 401
    assert "call it as that user" in book.request("GET", "/sessions").json["error"]
    answer = knock(book)
    assert answer.json["code"] == "loopback_only"
    assert "call it as that user" in answer.json["error"]
    assert "RELAY_LOCAL_TRUST" in answer.json["error"]


def test_every_local_route_requires_the_secret() -> None:
    book = local_harness(local_trust=LocalTrustPolicy.SECRET)
    good = secret(book)
    for wrong in (None, "", good[:-1], good + "0", good[::-1] + "x", "f" * 64, "\xff"):
        answer = knock(book, wrong)
        assert (answer.status, answer.json["code"]) == (403, "loopback_only")
        assert "local secret" in answer.json["error"]
    for method, path in (("GET", "/relay/security"), ("GET", "/bridge/activity"), ("POST", "/pairing/mint")):
        assert book.request(method, path).status == 403
        assert book.request(method, path, headers=[(HEADER, good.encode())]).status == 200
    assert "local secret" in book.request("GET", "/sessions").json["error"]
    for path in ("/sessions", "/notifications/recent"):
        assert book.request("GET", path).status == 401
        assert book.request("GET", path, headers=[(HEADER, good.encode())]).status == 200
    assert book.leaks() == []


def test_the_secret_is_for_programs_of_this_host() -> None:
    book = local_harness(local_trust=LocalTrustPolicy.SECRET)
    shown = [(HEADER, secret(book).encode())]
    assert knock(book, secret(book), peer=REMOTE).status == 403
    for header in ((b"x-forwarded-for", b"203.0.113.9"), (b"origin", b"http://localhost:3000")):
        assert book.request("POST", "/pairing", headers=[*shown, header], peer=PEER).status == 403
    book = local_harness(local_trust=LocalTrustPolicy.SECRET)
    code = book.request("POST", "/pairing", headers=[(HEADER, secret(book).encode())]).json["code"]
    assert book.websocket().auth(pairing_code=code)["type"] == "auth.ok"


@pytest.mark.parametrize("path", ["/pairing/register", "/pairing/mint"])
def test_public_route_in_an_invite_requires_the_secret_permanently(path: str) -> None:
    book = local_harness()
    assert book.request("POST", path, {"code": "Q7M2ZK", "endpoints": [LAN, "odd"]}).status == 200
    assert not is_locked(book)
    assert book.request("POST", path, {"code": "Q7M2ZK", "endpoints": [LAN, PUBLIC]}).status == 200
    assert is_locked(book)
    first = secret(book)
    again = book.request("POST", path, {"code": "Q7M2ZL", "endpoints": [PUBLIC]}, headers=[(HEADER, first.encode())])
    assert (again.status, secret(book)) == (200, first)
    assert f"/home/svc/{PUBLIC_ROUTE}" in book.files
    restarted = RelayHarness(CONFIG, files=book.files, entropy=lambda n: b"\x07" * n)
    assert is_locked(restarted)
    assert secret(restarted) != first  # an old secret is worthless
    told = RelayHarness(evolve(CONFIG, local_trust=LocalTrustPolicy.ADDRESS), files=book.files)
    assert not is_locked(told)
    assert told.request("POST", path, {"code": "Q7M2ZK", "endpoints": [PUBLIC]}).status == 200
    assert not is_locked(told)


def test_unstored_secrets_refuse_local_callers_until_the_disk_recovers_or_the_stop() -> None:
    book = RelayHarness(evolve(CONFIG, local_trust=LocalTrustPolicy.SECRET), started=False)
    book.refuse = (WriteConfig,)
    book.feed(Started())
    assert book.ready
    assert book.events(Level.ERROR) == ["local secret not stored"]
    assert [knock(book).status, knock(book, "").status] == [403, 403]
    assert book.websocket().is_open
    book = RelayHarness(evolve(CONFIG, local_trust=LocalTrustPolicy.SECRET), started=False)
    book.refuse = (WriteConfig,)
    book.feed(Started())
    book.refuse = ()
    book.after(RETRY_INTERVAL - 1.0)
    book.raw(b"POST /pairing HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9\r\n\r\n{")
    book.feed(Stopping(5.0))
    book.after(2.0)
    assert book.engine.stopping
    assert book.exits == []  # the rest of the request is awaited
    assert secret(book) == ""


@pytest.mark.parametrize("config", [{}, {"local_trust": LocalTrustPolicy.SECRET}])
def test_secret_is_stored_when_the_disk_recovers(config: dict[str, Any]) -> None:
    book = RelayHarness(evolve(CONFIG, **config), started=False)
    book.refuse = (ReadConfig, WriteConfig)
    book.feed(Started())
    book.after(2 * RETRY_INTERVAL)
    assert [knock(book).status, knock(book, "").status] == [403, 403]
    assert book.events(Level.ERROR) == ["local secret not stored"]
    book.refuse = (ReadConfig,)
    book.after(RETRY_INTERVAL)
    assert is_locked(book)
    book.refuse = ()
    book.after(RETRY_INTERVAL)
    assert is_locked(book) is bool(config)  # the note of a public route is missing
    assert book.events(Level.INFO).count("state of local access restored") == 1
    first = secret(book)
    book.after(2 * RETRY_INTERVAL)
    assert secret(book) == first


def test_a_public_route_counts_while_its_note_is_unreadable() -> None:
    book = RelayHarness(CONFIG, started=False)
    book.refuse = (ReadConfig,)
    book.feed(Started())
    assert is_locked(book)
    shown = [(HEADER, secret(book).encode())]
    body = {"code": "Q7M2ZK", "endpoints": [PUBLIC]}
    assert book.request("POST", "/pairing/register", body, headers=shown).status == 200
    book.refuse = ()
    book.after(RETRY_INTERVAL)
    assert is_locked(book)  # because of the public route of the invite
    assert f"/home/svc/{PUBLIC_ROUTE}" in book.files
    book = RelayHarness(CONFIG, started=False)
    book.refuse = (ReadConfig,)
    book.feed(Started())
    book.refuse, book.hold = (), (ReadConfig,)
    book.after(RETRY_INTERVAL)
    shown = [(HEADER, secret(book).encode())]
    body = {"code": "Q7M2ZK", "endpoints": [PUBLIC]}
    assert book.request("POST", "/pairing/register", body, headers=shown).status == 200
    book.hold = ()
    book.disk.remove(f"/home/svc/{PUBLIC_ROUTE}")  # as it was read before the invite
    book.release()
    assert is_locked(book)


def test_relays_that_share_a_home_share_the_secret_when_it_is_there() -> None:
    first = local_harness(shares_home=True)
    assert is_locked(first)
    next_one = RelayHarness(evolve(CONFIG, shares_home=True, begins=False), files=first.files)
    assert secret(next_one) == secret(first)
    assert knock(next_one, secret(first)).status == 200
    alone = RelayHarness(evolve(CONFIG, shares_home=True, begins=False))
    assert alone.events(Level.ERROR) == ["local secret not read"]
    assert [knock(alone).status, knock(alone, "").status] == [403, 403]
    trusting = local_harness(shares_home=True, local_trust=LocalTrustPolicy.ADDRESS)
    assert not is_locked(trusting)
    first = local_harness(shares_home=True)
    config = evolve(CONFIG, shares_home=True, begins=False)
    alone = RelayHarness(config, entropy=lambda n: b"\x07" * n)
    assert knock(alone, secret(first)).status == 403
    alone.host.disk.put(f"/home/svc/{LOCAL_SECRET}", secret(first).encode())
    alone.after(RETRY_INTERVAL)
    assert knock(alone, secret(first)).status == 200


def test_a_public_route_is_reported_stored_and_removed() -> None:
    book = local_harness()
    state = {"local_trust": "user", "public_route": False}
    assert state.items() <= book.request("GET", "/relay/security").json.items()
    assert book.request("POST", "/pairing/register", {"code": "Q7M2ZK", "endpoints": [PUBLIC]}).status == 200
    shown = [(HEADER, secret(book).encode())]
    told = {"local_trust": "secret", "public_route": True}
    assert told.items() <= book.request("GET", "/relay/security", headers=shown).json.items()
    assert book.request("GET", "/relay/info", headers=shown).json["public_route"] is True
    remove = {"public_route": False}
    assert book.request("PATCH", "/relay/security", remove).status == 403
    book.refuse = (WriteConfig,)
    assert book.request("PATCH", "/relay/security", remove, headers=shown).status == 500
    assert "setting changed" not in [event.event for event in recorded(book)]
    assert is_locked(book)
    book.refuse = ()
    assert state.items() <= book.request("PATCH", "/relay/security", remove, headers=shown).json.items()
    assert not is_locked(book)
    assert not is_locked(RelayHarness(CONFIG, files=book.files))
    forced = local_harness(local_trust=LocalTrustPolicy.SECRET)
    shown = [(HEADER, secret(forced).encode())]
    assert forced.request("PATCH", "/relay/security", remove, headers=shown).json["local_trust"] == "secret"
    assert is_locked(forced)
    book = local_harness()
    book.refuse = (WriteConfig,)
    assert book.request("POST", "/pairing/register", {"code": "Q7M2ZK", "endpoints": [PUBLIC]}).status == 200
    assert book.events(Level.ERROR) == ["local secret not stored", "public route not stored"]
    assert knock(book).status == 403
    book.after(RETRY_INTERVAL)
    assert f"/home/svc/{PUBLIC_ROUTE}" not in book.files
    book.refuse = ()
    book.after(RETRY_INTERVAL)
    assert is_locked(book)
    assert f"/home/svc/{PUBLIC_ROUTE}" in book.files
    assert book.events(Level.INFO).count("state of local access restored") == 1


def test_a_removed_public_route_stays_removed_and_a_later_one_is_retried() -> None:
    book = RelayHarness(CONFIG, started=False)
    book.refuse = (ReadConfig,)
    book.feed(Started())
    shown = [(HEADER, secret(book).encode())]
    invite = {"code": "Q7M2ZK", "endpoints": [PUBLIC]}
    book.refuse = (ReadConfig, WriteConfig)
    assert book.request("POST", "/pairing/register", invite, headers=shown).status == 200
    assert book.events(Level.ERROR) == ["public route not stored"]
    book.refuse = (ReadConfig,)
    assert book.request("PATCH", "/relay/security", {"public_route": False}, headers=shown).status == 200
    book.after(2 * RETRY_INTERVAL)
    assert not is_locked(book)
    assert book.files[f"/home/svc/{PUBLIC_ROUTE}"] == b""
    book.refuse = (WriteConfig,)
    assert book.request("POST", "/pairing/register", invite).status == 200
    assert knock(book).status == 403
    book.refuse = ()
    book.after(RETRY_INTERVAL)
    assert is_locked(book)
    assert book.files[f"/home/svc/{PUBLIC_ROUTE}"] != b""
    book = RelayHarness(CONFIG, started=False)
    book.refuse = (ReadConfig,)
    book.feed(Started())
    shown = [(HEADER, secret(book).encode())]
    assert book.request("PATCH", "/relay/security", {"public_route": False}, headers=shown).status == 200
    book.after(2 * RETRY_INTERVAL)  # the old note, which cannot be read, counts no more
    assert book.request("GET", "/relay/security").json["public_route"] is False
