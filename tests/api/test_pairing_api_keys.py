from typing import Any

import pytest

from svc_proto.api.config import ApiConfig
from svc_proto.facts import Address
from svc_proto.machines.paired_session import DeviceInfo, PairedSession
from svc_proto.machines.pairing_api_keys import PairingApiKeys
from svc_proto.machines.pairing_codes import PairingMeta
from tests.api.harness import KEY, ApiCall, ApiHarness
from tests.api.test_authority import CODE, KeyHolder
from tests.support.playbook import counting_entropy

STREAM = {"message": "/count 500"}


class Beside:
    """API server with a pairing key whose code is registered; `pair` completes the pairing."""

    def __init__(self) -> None:
        self.keys = PairingApiKeys()
        self.book = ApiHarness(keys=self.keys)
        self.key, self.key_hash = self.keys.new_key(counting_entropy())
        self.book.secrets |= {self.key}
        self.keys.codes.register(CODE, self.book.now, PairingMeta(key_hash=self.key_hash))

    def pair(self, **how: Any) -> PairedSession:
        self.keys.codes.consume(CODE, self.book.now)
        return self.keys.sessions.create(self.book.now, counting_entropy(), key_hash=self.key_hash, **how)[1]

    def ask(self, key: str | None = None) -> int:
        return self.book.request("GET", "/api/sessions", key=self.key if key is None else key).status

    def stream(self, key: str | None = None) -> ApiCall:
        path = f"/api/sessions/{self.book.session()}/chat/stream"
        return self.book.call("POST", path, STREAM, key=self.key if key is None else key)


@pytest.fixture
def beside() -> Beside:
    return Beside()


def test_pairing_key_is_accepted_like_the_main_key(beside: Beside) -> None:
    assert (beside.ask(), beside.ask(KEY), beside.ask("sk-wrong"), beside.ask(beside.key_hash)) == (200, 200, 401, 401)
    for path in ("/v1/models", "/api/memory", "/api/config", "/api/skills"):
        assert beside.book.request("GET", path, key=beside.key).status == 200
    named = [(b"x-svc-session-id", b"s-1")]  # a header that requires a key
    assert beside.book.request("GET", "/api/sessions", key=beside.key, headers=named).status == 200
    session = beside.pair()
    assert beside.ask() == 200
    beside.keys.sessions.revoke(session, beside.book.now)
    assert (beside.ask(), beside.ask(KEY)) == (401, 200)
    assert not beside.book.leaks()


@pytest.mark.parametrize("names", ["hermes", "svc", ""])
def test_the_names_follow_the_client_of_the_key(beside: Beside, names: str) -> None:
    def shown(key: str, *headers: tuple[bytes, bytes]) -> list[object]:
        models = beside.book.request("GET", "/v1/models", key=key, headers=list(headers)).json["data"]
        about = beside.book.request("GET", "/v1/capabilities", key=key, headers=list(headers)).json
        return [models[0]["owned_by"], models[0]["id"], about["object"], about["model"]]

    def named(brand: str) -> list[object]:
        return [brand, f"{brand}-agent", f"{brand}.capabilities", f"{brand}-agent"]

    assert shown(beside.key) == named("svc")  # not paired yet
    beside.pair(device=DeviceInfo(names=names))
    assert shown(beside.key) == named(names or "svc")
    assert shown(KEY) == named("svc")
    assert shown(KEY, (b"x-hermes-session-key", b"me")) == named("hermes")
    assert shown(beside.key, (b"x-svc-session-key", b"me")) == named("svc")


def test_pairing_key_is_never_the_operator() -> None:
    holder = KeyHolder(None, paired=False)
    book = holder.book
    session, here = book.session(), {"peer": Address("127.0.0.1", 50_000), "host": b"127.0.0.1:8642"}
    for shown, operator in ((holder.key, None), (KEY, ())):
        book.chat(session, key=shown, headers=[(b"x-svc-operator", b"1")], **here)
        assert book.hand.turn.operator == operator
        book.hand.finish()


def test_api_without_shared_keys_refuses_pairing_keys() -> None:
    book = ApiHarness()
    assert book.request("GET", "/api/sessions", key=PairingApiKeys().new_key(counting_entropy())[0]).status == 401
    book = ApiHarness(ApiConfig(), keys=PairingApiKeys())  # without a main key no key is required
    assert book.request("GET", "/api/sessions", key="").status == 200


def test_stream_ends_with_its_session_only(beside: Beside) -> None:
    session = beside.pair()
    mine, others = beside.stream(), beside.stream(KEY)
    beside.book.after(1.5)
    assert len(mine.named_events()) > 2
    beside.keys.sessions.revoke(session, beside.book.now)
    beside.book.after(1.0)
    assert mine.gone
    assert not others.gone
    assert [event for event, _ in mine.named_events()][
        -1
    ] != "done"  # cut off, so that no client takes it for an orderly end
    beside.book.after(120.0)
    assert [event for event, _ in others.named_events()][-1] == "done"


@pytest.mark.parametrize("path", ["/v1/runs", "/api/sessions/{}/chat/stream"])
def test_unread_run_ends_with_its_session(beside: Beside, path: str) -> None:
    session, book = beside.pair(), beside.book
    chats = [book.session() for _ in range(2)]
    for chat, key in zip(chats, (beside.key, KEY), strict=True):
        body = {"input": STREAM["message"], "session_id": chat} if path == "/v1/runs" else STREAM
        book.call("POST", path.format(chat), body, key=key).vanish()
    book.after(1.5)
    assert book.api.runs.states()["running"] == 2
    beside.keys.sessions.revoke(session, book.now)
    book.after(2.0)
    assert book.api.runs.states()["running"] == 1
    assert book.api.runs.outcomes["cancelled"] == 1
    book.after(120.0)
    assert (book.api.runs.outcomes["cancelled"], book.api.runs.outcomes["completed"]) == (1, 1)
    assert len(book.engine.revocables) == 0


def test_stream_ends_when_the_session_expires(beside: Beside) -> None:
    beside.pair(ttl=5.0)
    call = beside.stream()
    beside.book.after(4.9)
    assert not call.gone
    beside.book.after(1.1)
    assert call.gone


def test_busy_phone_does_not_delay_the_end_of_another(beside: Beside) -> None:
    session, mine = beside.pair(), beside.key
    call = beside.stream()
    beside.key, other_hash = beside.keys.new_key(lambda n: b"x" * n)
    beside.keys.codes.register("AAAAAA", beside.book.now, PairingMeta(key_hash=other_hash))
    beside.keys.sessions.revoke(session, beside.book.now)
    for _ in range(3):
        beside.book.after(0.5)
        assert beside.ask() == 200
    assert beside.ask(mine) == 401
    assert call.gone


def test_stream_begun_before_the_pairing_continues(beside: Beside) -> None:
    call = beside.stream()
    beside.book.after(1.5)
    beside.pair()
    beside.book.after(120.0)
    assert [event for event, _ in call.named_events()][-1] == "done"


def test_no_timer_without_anything_to_end(beside: Beside) -> None:
    """Check that no timer is left five minutes after a request with the main key or with a pairing's key."""

    def sleeps(key: str) -> bool:
        beside.ask(key)
        beside.book.after(300.0)
        return beside.book.engine.next_deadline() is None

    assert beside.book.engine.next_deadline() is None
    assert sleeps(KEY)
    assert sleeps(beside.key)
