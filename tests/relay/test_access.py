"""Access to the relay's routes by address, origin, bearer and grant."""

import pytest

from svc_proto.basics.errors import LocalProtocolError
from svc_proto.commands import Level
from svc_proto.engine.message import Request
from svc_proto.facts import Address
from svc_proto.machines.grants import CHANNELS
from svc_proto.machines.paired_session_registry import PairedSessionRegistry
from svc_proto.relay.access import GRANTS, authorize
from svc_proto.relay.local_access import LocalAuthorizer
from svc_proto.relay_config import RelayConfig
from svc_proto.wire.events import Headers
from tests.relay.harness import PEER, REMOTE, START, PairedPhone, RelayHarness


def request(peer: str = "127.0.0.1", *headers: tuple[bytes, bytes]) -> Request:
    where = Address(peer, 5000)
    return Request(method="GET", path="/", raw_query="", headers=Headers(headers), peer=where, secure=False, params={})


# One reading and one changing route; tests/test_authority_table.py has all routes of each policy.
LOOPBACK_ROUTES = [("GET", "/bridge/status"), ("POST", "/pairing")]


@pytest.mark.parametrize(("method", "path"), LOOPBACK_ROUTES)
def test_loopback_routes_refuse_others_at_once(book: RelayHarness, paired: PairedPhone, method: str, path: str) -> None:
    for token in (None, paired.token):
        answer = book.request(method, path, b"not JSON", peer=REMOTE, token=token)
        assert (answer.status, answer.json["ok"], answer.json["code"]) == (403, False, "loopback_only")


PAGES: list[tuple[bytes, bytes]] = [
    (b"origin", b"http://localhost:25050"), (b"origin", b"http://127.0.0.1:25050"),
    (b"origin", b"https://evil.example"), (b"origin", b"null"), (b"sec-fetch-site", b"same-site"),
    (b"sec-fetch-site", b"cross-site"),
]  # fmt: skip


@pytest.mark.parametrize(("method", "path"), LOOPBACK_ROUTES)
@pytest.mark.parametrize("header", PAGES, ids=str)
def test_loopback_routes_refuse_pages_of_other_ports(method: str, path: str, header: tuple[bytes, bytes]) -> None:
    answer = RelayHarness().request(method, path, headers=[header])
    assert (answer.status, answer.json["code"]) == (403, "loopback_only")


@pytest.mark.parametrize(("method", "path"), LOOPBACK_ROUTES)
def test_loopback_routes_refuse_proxy_headers(method: str, path: str) -> None:
    old = RelayHarness().raw(f"{method} {path} HTTP/1.0\r\nHost: 127.0.0.1:8767\r\n\r\n".encode(), peer=PEER)
    assert old.result.status == 403
    assert RelayHarness().request(method, path, headers=[(b"connection", b"upgrade")]).status == 403


def test_foreign_page_opens_no_websocket_and_causes_no_block(book: RelayHarness) -> None:
    for header in PAGES:
        for path in ("/ws", "/"):
            answer = book.open_websocket(path, peer=PEER, headers=[header]).result
            assert (answer.status, answer.json["code"]) == (403, "origin_not_allowed")
    assert book.open_websocket(peer=PEER).is_open
    assert book.open_websocket(headers=[(b"origin", b"http://127.0.0.1:8767")]).is_open  # as some libraries set it


@pytest.mark.parametrize(("method", "path"), LOOPBACK_ROUTES)
def test_loopback_routes_ignore_authorization(method: str, path: str) -> None:
    answer = RelayHarness().request(method, path, token="unknown")
    assert answer.status not in (401, 403)


@pytest.mark.parametrize("path", ["/sessions", "/ping"])
@pytest.mark.parametrize(
    "value", [None, b"", b"Bearer", b"Bearer unknown", b"Basic abcd", b"abcd", b"Bearer \xff", b"Bearer a b"]
)
def test_others_need_a_good_bearer(path: str, value: bytes | None) -> None:
    headers = [] if value is None else [(b"authorization", value)]
    answer = RelayHarness().request("GET", path, headers=headers, peer=REMOTE)
    assert (answer.status, answer.json["code"]) == (401, "unauthorized")
    assert answer.headers.get(b"www-authenticate") == b"Bearer"


@pytest.mark.parametrize(
    ("scheme", "status"),
    [(b"Bearer  ", 200), (b"bearer ", 200), (b"BEARER ", 200), (b"Basic ", 401), (b"Bearers ", 401), (b"", 401)],
)
def test_a_good_token_counts_as_a_bearer_in_any_case(book: RelayHarness, scheme: bytes, status: int) -> None:
    headers = [(b"authorization", scheme + book.pair().token.encode())]
    assert book.request("GET", "/sessions", headers=headers, peer=REMOTE).status == status


def test_bearers_must_be_valid_and_wrong_ones_are_logged_once_a_minute(book: RelayHarness) -> None:
    assert book.request("GET", "/sessions").status == 200
    assert book.request("GET", "/sessions", token="unknown").status == 401
    assert book.request("GET", "/sessions", host=b"rebound.example").status == 401
    book = RelayHarness()
    for _ in range(2):
        for token in ("guess", None):
            assert book.request("GET", "/sessions", token=token, peer=REMOTE).status == 401
    (log,) = [log for log in book.logs if log.event == "wrong session token"]
    assert (log.level, log.fields) == (Level.WARNING, {"address": REMOTE.host})
    book.after(60)
    book.request("GET", "/sessions", token="guess", peer=REMOTE)
    assert book.events().count("wrong session token") == 2


def test_grants_open_device_control_while_they_last(book: RelayHarness) -> None:
    paired = book.pair(operator={"grants": {"bridge": 60}})
    book.after(59)
    assert book.call("GET", "/ping", token=paired.token).answer is None
    book.after(1)
    answer = book.request("GET", "/ping", token=paired.token)
    assert (answer.status, answer.json["code"]) == (403, "grant_required")
    token = book.pair(operator={"grants": dict.fromkeys(CHANNELS, False) | {"bridge:read": 0}}).token
    answer = book.request("POST", "/tap", {"x": 1, "y": 2}, token=token)
    assert (answer.status, answer.json["code"]) == (403, "grant_required")


def test_voice_routes_have_their_own_authorizer() -> None:
    for access in GRANTS:
        with pytest.raises(LocalProtocolError):
            authorize(access, request(), PairedSessionRegistry(), LocalAuthorizer(RelayConfig()), START)
