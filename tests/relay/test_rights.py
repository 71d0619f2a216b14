"""Rights of a session beside its channels, and access tokens that are valid for `/mcp` only."""

import pytest

from svc_proto.machines.grants import CHANNELS, RIGHTS, build_rights
from svc_proto.machines.paired_session import PairedSession
from tests.relay.harness import REMOTE, PairedPhone, RelayHarness

NOTHING = dict.fromkeys(CHANNELS, False)
NOTICE = {"package": "com.bank", "title": "forged", "posted_at": 1}


def only(*channels: str, **more: object) -> dict[str, object]:
    return {"grants": {**NOTHING, **dict.fromkeys(channels, 0), **more}}


@pytest.fixture
def owner(book: RelayHarness) -> PairedPhone:
    return book.pair(device_id="owner", device_name="Owner")


@pytest.mark.parametrize(
    ("preset", "rights"),
    [
        (None, RIGHTS),
        ({"terminal": 60.0, "bridge": 0.0}, RIGHTS),
        ({"terminal": None}, ("files", "notifications")),
        ({**dict.fromkeys(CHANNELS), "chat": 0.0}, ("files",)),
        ({**dict.fromkeys(CHANNELS), "bridge": 0.0}, ("files", "notifications")),
        ({**dict.fromkeys(CHANNELS), "voice:realtime": 0.0}, ()),
        (dict.fromkeys(CHANNELS), ()),
        ({**dict.fromkeys(CHANNELS), "manage": 0.0}, ("manage",)),
        ({"manage": None, "files": None}, ("notifications",)),
    ],
)
def test_rights_follow_channels_unless_named(preset: dict[str, float | None] | None, rights: tuple[str, ...]) -> None:
    assert build_rights(preset) == rights


@pytest.mark.parametrize(
    ("terms", "files", "notifications", "manages"),
    [
        ({}, True, True, True),
        (only("chat"), True, False, False),
        (only("bridge"), True, True, False),
        (only("voice:realtime"), False, False, False),
        (only(), False, False, False),
        (only("chat", manage=0, files=False), False, False, True),
    ],
)
def test_routes_by_right(
    terms: dict[str, object], files: bool, notifications: bool, manages: bool, book: RelayHarness, owner: PairedPhone
) -> None:
    limited = book.pair(operator=terms, device_id="tablet", device_name="Tablet")

    def status(method: str, path: str, body: object = None) -> int:
        return book.request(method, path, body, token=limited.token, peer=REMOTE).status

    assert [status("POST", "/media/upload"), status("GET", "/media/by-path"), status("POST", "/clipboard/inbox")] == (
        [400] * 3 if files else [403] * 3
    )
    assert status("GET", "/media/none") == 404
    assert status("GET", "/notifications/recent") == (200 if notifications else 403)
    limited.phone.send("notifications", "notification.posted", NOTICE)
    kept = book.request("GET", "/notifications/recent").json["notifications"]
    assert [found["package"] for found in kept] == (["com.bank"] if notifications else [])
    listed = book.request("GET", "/sessions", token=limited.token, peer=REMOTE).json["sessions"]
    assert len(listed) == (2 if manages else 1)
    assert status("PATCH", f"/sessions/{owner.prefix}", {"grants": {"bridge": False}}) == (200 if manages else 403)
    assert status("PATCH", f"/sessions/{limited.prefix}", {"ttl_seconds": 60}) == 200
    assert status("DELETE", f"/sessions/{owner.prefix}") == (200 if manages else 403)
    assert status("DELETE", f"/sessions/{limited.prefix}") == 200


def test_a_right_is_given_by_the_operator_alone(book: RelayHarness, owner: PairedPhone) -> None:
    limited = book.pair(operator=only("chat"), device_id="tablet")
    path = f"/sessions/{limited.prefix}"
    for token in (limited.token, owner.token):
        refused = book.request("PATCH", path, {"grants": {"manage": 0}}, token=token, peer=REMOTE)
        assert (refused.status, refused.json["code"]) == (403, "withheld")
    assert book.request("PATCH", path, {"grants": {"files": False}}, token=limited.token, peer=REMOTE).status == 200
    assert book.request("PATCH", path, {"grants": {"manage": 0}}).status == 200
    (session,) = (
        found for found in book.relay.sessions.active(book.engine.now) if found.token_prefix == limited.prefix
    )
    assert (session.rights, "manage" in session.grants) == (("manage",), False)
    assert PairedSession.from_record(session.to_record()).rights == ("manage",)


@pytest.mark.parametrize(
    ("withheld", "name", "rights", "audience"),
    [((), "Phone", RIGHTS, ""), (CHANNELS[1:], "Phone", ("files",), ""), ((), "MCP: scripts", RIGHTS, "mcp")],
)
def test_records_of_earlier_versions(
    withheld: tuple[str, ...], name: str, rights: tuple[str, ...], audience: str, book: RelayHarness
) -> None:
    terms = {"grants": dict.fromkeys(withheld, False)}
    prefix = book.pair(operator=terms, device_name=name, client_surface="agent").prefix
    (record,) = (dict(found) for found in book.store.values() if found["token_prefix"] == prefix)
    del record["rights"], record["audience"]
    session = PairedSession.from_record(record)
    assert (session.rights, session.audience) == (rights, audience)


@pytest.mark.parametrize("grants", [{**NOTHING, "bridge": 0}, {**NOTHING, "bridge:read": 0}], ids=["full", "read-only"])
def test_a_token_for_mcp_opens_nothing_else(grants: dict[str, object], book: RelayHarness, owner: PairedPhone) -> None:
    token = book.pair(operator={"grants": grants, "audience": "mcp"}, device_name="MCP: watcher").token

    def status(method: str, path: str) -> int:
        return book.request(method, path, token=token, peer=REMOTE).status

    for method, path in (
        ("GET", "/sessions"),
        ("GET", "/media/none"),
        ("POST", "/tap"),
        ("DELETE", f"/sessions/{owner.prefix}"),
    ):
        assert status(method, path) == 401, path
    assert status("GET", "/voice/config") in (401, 403)
    socket = book.websocket()
    assert socket.auth(session_token=token)["type"] == "auth.fail"
    assert status("POST", "/mcp") == 415  # reached: the request names no media type of its body
    (session,) = (found for found in book.relay.sessions.active(book.engine.now) if found.device_name == "MCP: watcher")
    assert PairedSession.from_record(session.to_record()).audience == "mcp"
