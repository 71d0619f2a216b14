"""Voice sessions at the relay: created by POST, opened by WebSocket, and what ends them (wire voice 4.6, 4.7)."""

import json
from typing import Any

import pytest

from svc_proto.machines.pairing_api_keys import PairingApiKeys
from svc_proto.voice.connection import RECHECK
from tests.relay.harness import PEER, REMOTE, PhoneClient, RelayHarness
from tests.relay.routes.voice_harness import BASES, OUTPUT, RELAY_FILE, SECTIONS, WORK, VoiceRoutesHarness, text_of


def fields(token: str) -> tuple[tuple[bytes, bytes], ...]:
    return ((b"authorization", f"Bearer {token}".encode()),)


def make(book: RelayHarness, base: str, token: str, body: object = None) -> dict[str, Any]:
    answer = book.request(
        "POST", f"{base}/session", {"provider": "stub"} if body is None else body, token=token, peer=REMOTE
    )
    assert answer.status == 200, answer
    found: dict[str, Any] = answer.json
    assert found["websocket_path"] == f"{base}/{found['session_id']}"
    return found


def meet(
    book: RelayHarness, answer: dict[str, Any], token: str, *, peer: Any = REMOTE, tls: bool = False
) -> PhoneClient:
    return book.websocket(answer["websocket_path"], peer=peer, headers=fields(token), tls=tls)


def heard(phone: PhoneClient) -> list[str]:
    return [event["type"] for event in phone.envelopes()]


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize(("end", "code"), [("its client", 1000), ("its token", 1008), ("the relay", 1001)])
def test_a_session_ends_with(base: str, end: str, code: int) -> None:
    book = VoiceRoutesHarness()
    paired = book.pair(device_id="one")
    made = make(book, base, paired.token)
    phone = meet(book, made, paired.token)
    assert heard(phone) == ["voice.session.ready"]
    match end:
        case "its client":
            phone.text(json.dumps({"type": "session.close"}))
        case "its token":
            assert book.request("DELETE", f"/sessions/{paired.prefix}").status == 200
        case _:
            book.stop()
    assert phone.close_code == code
    logged = [log for log in book.logs if log.event in ("voice session made", "voice session over")]
    assert [log.event for log in logged] == ["voice session made", "voice session over"]
    assert {log.fields["session"] for log in logged} == {made["session_id"][:8]}


@pytest.mark.parametrize("base", BASES)
def test_a_body_may_be_left_out(base: str) -> None:
    book = VoiceRoutesHarness({RELAY_FILE: {SECTIONS[base]: {"provider": "stub"}}})
    token = book.pair().token
    answer = make(book, base, token, b"")
    assert (answer["provider"], answer["config_scope"], answer["config_path"]) == ("stub", "relay", None)


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize(("query", "body"), [("?profile=work", {"profile": "other"}), ("", {"profile": "work"})])
def test_the_profile(base: str, query: str, body: dict[str, object]) -> None:
    book = VoiceRoutesHarness({WORK: {SECTIONS[base]: {"provider": "stub", "sample_rate": 48000}}})
    answer = book.request("POST", f"{base}/session{query}", body, token=book.pair().token).json
    assert (answer["profile"], answer["config_scope"], answer["config_path"]) == ("work", "profile", WORK)
    assert (answer["provider"], answer["voice"], answer["sample_rate"]) == ("stub", "sine", 48000)


@pytest.mark.parametrize("base", BASES)
def test_disabled_section_gives_404(base: str) -> None:
    book = VoiceRoutesHarness({RELAY_FILE: {SECTIONS[base]: {"enabled": False}}})
    token = book.pair().token
    text_of(book.request("POST", f"{base}/session", {}, token=token), 404)
    # Wire terminal-voice 4.7: answered before authentication.
    text_of(book.open_websocket(f"{base}/x").result, 404)


@pytest.mark.parametrize("base", BASES)
def test_unknown_and_foreign_sessions_are_refused(base: str) -> None:
    book = VoiceRoutesHarness()
    token, other = book.pair(device_id="one").token, book.pair(device_id="two").token
    text_of(book.open_websocket(f"{base}/absent", headers=fields(token)).result, 404)
    answer = make(book, base, token)
    text_of(book.open_websocket(answer["websocket_path"], headers=fields(other)).result, 403)
    text_of(book.open_websocket(answer["websocket_path"]).result, 401)
    again = book.pair(device_id="one", operator={"keep_earlier": True}).token  # another token of the same device
    assert heard(meet(book, answer, again)) == ["voice.session.ready"]


def test_sessions_of_callers_without_an_id_are_private() -> None:
    book = VoiceRoutesHarness()
    book.http = lambda asked: (200, b"{}")
    answer = book.request("POST", f"{OUTPUT}/session", {"provider": "stub"}, token="first").json
    for token in ("second", book.pair().token):
        text_of(book.open_websocket(answer["websocket_path"], peer=PEER, headers=fields(token)).result, 403)
    assert meet(book, answer, "first", peer=PEER).is_open


@pytest.mark.parametrize("speaks", [False, True])
def test_replaced_main_key_ends_its_sockets(speaks: bool) -> None:
    keys = PairingApiKeys()
    book = VoiceRoutesHarness(keys=keys)
    book.http = lambda asked: (200, b"{}")
    answer = book.request("POST", f"{OUTPUT}/session", {"provider": "stub"}, token="main").json
    phone = meet(book, answer, "main", peer=PEER)
    book.after(59.0)
    assert phone.is_open
    keys.replaced += 1  # by the API server on the same host
    if speaks:
        phone.text("{}")
    else:
        book.after(RECHECK)
    assert phone.close_code == 1008
    answer = book.request("POST", f"{OUTPUT}/session", {"provider": "stub"}, token="new").json
    phone = meet(book, answer, "new", peer=PEER)
    book.after(3 * RECHECK)
    assert phone.is_open
