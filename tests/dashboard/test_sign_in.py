import json
from collections.abc import Callable

import pytest

from svc_proto.basics.errors import Refused
from svc_proto.commands import ReadConfig, WriteConfig
from svc_proto.dashboard import sign_in
from svc_proto.dashboard.sign_in import FILE, MAX_SESSIONS, SESSION_TTL, TICKET_TTL, USE_RESOLUTION, cookie_token
from svc_proto.wire.events import Headers
from tests.dashboard.app_client import AppClient, AppHarness
from tests.support.core_harness import HOME

STATE = f"{HOME}/{FILE}"


def test_a_broken_or_outdated_file_is_not_read() -> None:
    book = AppHarness()
    token = book.sign_in(headers=[(b"user-agent", b"okhttp/5")]).token
    stored = book.files[STATE]
    assert token.encode() not in stored
    assert b"correct horse" not in stored
    again = AppHarness(files={STATE: stored})
    rows = [AppClient(each, token).request("GET", "/api/auth/sessions").json["sessions"] for each in (book, again)]
    assert rows[0] == rows[1]
    other = AppHarness(files={STATE: stored}, password="another horse")
    assert AppClient(other, token).request("GET", "/api/auth/me").status == 401
    book = AppHarness()
    token = book.sign_in().token
    state = json.loads(book.files[STATE])
    state["sessions"] += [
        {"token_hash": "x"},
        {"token_hash": "y", "created_at": 1, "used_at": book.now.wall - SESSION_TTL},
    ]
    again = AppHarness(files={STATE: json.dumps(state)})
    assert len(AppClient(again, token).request("GET", "/api/auth/sessions").json["sessions"]) == 1


def test_sessions_end_unused_and_their_use_is_stored_once_a_day() -> None:
    book = AppHarness()
    phone, idle = book.sign_in(), book.sign_in()
    for _ in range(2):
        book.step_clock(SESSION_TTL / 2 + 1)
        assert phone.request("GET", "/api/auth/me").status == 200
    assert idle.request("GET", "/api/auth/me").status == 401
    (row,) = json.loads(book.files[STATE])["sessions"]
    assert row["used_at"] == book.now.wall
    book = AppHarness()
    used, unused = book.sign_in(), book.sign_in()
    book.step_clock(USE_RESOLUTION)
    used.request("GET", "/api/auth/me")
    for _ in range(MAX_SESSIONS - 2):
        book.step_clock(1.0)
        book.sign_in()
    last = book.sign_in()
    answers = [client.request("GET", "/api/auth/me").status for client in (used, unused, last)]
    assert answers == [200, 401, 200]
    book = AppHarness()
    phone = book.sign_in()
    writes = [command for command in book.commands if isinstance(command, WriteConfig)]
    book.step_clock(USE_RESOLUTION - 1.0)
    phone.request("GET", "/api/auth/me")
    assert [command for command in book.commands if isinstance(command, WriteConfig)] == writes
    book.step_clock(1.0)
    phone.request("GET", "/api/auth/me")
    assert len([command for command in book.commands if isinstance(command, WriteConfig)]) == len(writes) + 1


def sign_out(client: AppClient) -> None:
    client.request("POST", "/auth/logout")


def revoke_from_another_client(client: AppClient) -> None:
    (session,) = client.book.dashboard.gate.sign_ins
    client.book.sign_in().request("DELETE", f"/api/auth/sessions/{session.id}")


def reach_limit(client: AppClient) -> None:
    for _ in range(MAX_SESSIONS):
        client.book.step_clock(1.0)
        client.book.sign_in()


def expire(client: AppClient) -> None:
    client.book.step_clock(SESSION_TTL)
    client.request("GET", "/api/auth/me")


@pytest.mark.parametrize("end", [sign_out, revoke_from_another_client, reach_limit, expire])
def test_the_end_of_a_session_closes_its_sockets_and_revokes_its_tickets(end: Callable[[AppClient], None]) -> None:
    book = AppHarness()
    client = book.sign_in()
    (session,) = book.dashboard.gate.sign_ins
    socket, ticket = client.socket(), client.ticket()
    end(client)
    assert session.id not in book.files[STATE].decode()
    assert client.request("GET", "/api/auth/me").status == 401
    assert not socket.is_open
    assert book.open_socket(ticket).result.status == 401


@pytest.mark.parametrize("text", ["", "{", "[]", '{"salt": "x", "password": "y", "sessions": []}'])
def test_a_broken_file_holds_no_session(text: str) -> None:
    book = AppHarness(files={STATE: text})
    assert book.sign_in().request("GET", "/api/auth/me").status == 200
    assert len(json.loads(book.files[STATE])["sessions"]) == 1


def test_a_disk_that_fails_keeps_sessions_in_memory() -> None:
    book = AppHarness()
    book.refuse = (WriteConfig,)
    phone = book.sign_in()
    assert phone.request("GET", "/api/auth/me").status == 200
    assert "sign-ins not stored" in book.events()
    book = AppHarness()
    registry = book.dashboard.gate.sign_ins
    book.refuse = (ReadConfig,)
    book.spawn(registry.load())
    assert "sign-ins not read" in book.events()
    before = book.files.get(STATE)
    assert book.sign_in().request("GET", "/api/auth/me").status == 200
    assert book.files.get(STATE) == before


def test_a_ticket_is_for_one_use_within_half_a_minute() -> None:
    book = AppHarness()
    phone = book.sign_in()
    registry = book.dashboard.gate.sign_ins
    tickets = [phone.ticket() for _ in range(2)]
    assert registry.pop_ticket(tickets[0])
    with pytest.raises(Refused):
        registry.pop_ticket(tickets[0])
    book.after(TICKET_TTL)
    with pytest.raises(Refused):
        registry.pop_ticket(tickets[1])


@pytest.mark.parametrize(
    ("cookie", "token"),
    [
        (b"hermes_session=abc", "abc"),
        (b"a=b; hermes_session=abc ;c=d", "abc"),
        (b"xhermes_session=abc; hermes_session", ""),
        (b"hermes_session=" + b"x" * sign_in.MAX_TOKEN, "x" * sign_in.MAX_TOKEN),
        (b"hermes_session=" + b"x" * (sign_in.MAX_TOKEN + 1), ""),
    ],
)
def test_the_cookie_is_found_among_others(cookie: bytes, token: str) -> None:
    assert cookie_token(Headers(((b"cookie", cookie),))) == token
