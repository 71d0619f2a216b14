import pytest
from attrs import evolve

from svc_proto.basics import strict_json
from svc_proto.basics.entropy import sha256_hex
from svc_proto.basics.errors import LocalProtocolError, Refused
from svc_proto.machines.oauth_consent import (
    CONSENT_TABLE,
    AuthorizationConsent,
    ConsentRegistry,
    ConsentState,
    ConsentTrigger,
    GrantedConsent,
    parse_consent,
)
from svc_proto.schema.json_object import JsonObject
from svc_proto.schema.oauth import AuthorizationRequest, OAuthClient
from tests.machines.fixed_inputs import at
from tests.support.playbook import counting_entropy

VERIFIER, CHALLENGE = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk", "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
CLIENT = OAuthClient("Agent", ("https://a.example/",))
QUESTION = AuthorizationRequest(
    client=CLIENT, redirect="https://a.example/", scope="bridge", challenge=CHALLENGE, state=None
)
YES = GrantedConsent("bridge", 60.0)


class ConsentHarness:
    def __init__(self) -> None:
        self.consents = ConsentRegistry()
        self.entropy = counting_entropy()

    def ask(
        self, mono: float = 0.0, address: str = "192.0.2.1", question: AuthorizationRequest = QUESTION
    ) -> AuthorizationConsent:
        return self.consents.request(question, address, at(mono), self.entropy)

    def trade(self, code: str, mono: float) -> tuple[AuthorizationConsent | None, bool]:
        return self.consents.exchange_code(code, CLIENT.identity, QUESTION.redirect, VERIFIER, at(mono))


@pytest.fixture
def consents() -> ConsentHarness:
    return ConsentHarness()


def test_every_state_can_end() -> None:
    live = set(ConsentState) - {ConsentState.ENDED}
    assert {state for state, trigger in CONSENT_TABLE if trigger is ConsentTrigger.EXPIRE} == live
    assert not [row for row in CONSENT_TABLE if row[0] is ConsentState.ENDED]


def test_consents_and_their_codes_expire(consents: ConsentHarness) -> None:
    consent = consents.ask()
    assert consents.consents.find_by_code(f" {consent.code.lower()} ", at(599)) is consent
    assert consents.consents.find_by_code("", at(599)) is None
    assert consents.consents.find_by_code(consent.code, at(600)) is None
    assert consent.state is ConsentState.ENDED
    consents = ConsentHarness()
    consent = consents.ask()
    consents.consents.answer(consent, YES, at(599))
    assert consents.consents.find_by_ticket(consent.ticket, at(1198)) is consent
    assert consents.consents.find_by_ticket(consent.ticket, at(1199)) is None
    assert consents.consents.next_expiry() == 1199
    with pytest.raises(LocalProtocolError):
        consents.consents.answer(consent, None, at(600))
    consents = ConsentHarness()
    consent = consents.ask()
    consents.consents.answer(consent, YES, at(1))
    code = consents.consents.issue_code(consent, at(2), consents.entropy)
    assert consents.consents.next_expiry() == 62.0
    assert consents.trade("", 3) == (None, False)
    assert consents.trade(code, 61.9) == (consent, True)
    assert consents.consents.next_expiry() == 661.9
    assert consents.trade(code, 600) == (consent, False)
    assert consents.trade(code, 600) == (None, False)
    assert len(consents.consents) == 0
    refused = consents.ask()
    consents.consents.answer(refused, None, at(1))
    assert consents.consents.issue_code(refused, at(2), consents.entropy) == ""
    assert (len(consents.consents), consents.consents.next_expiry()) == (0, None)  # it has ended and cannot expire


def test_places_for_consents_are_shared_out_to_crowds_and_networks(consents: ConsentHarness) -> None:
    mine = [consents.ask(address=f"2001:db8::{number}") for number in range(8)]
    with pytest.raises(Refused) as caught:
        consents.ask(address="2001:db8::9")
    assert caught.value.status == 429
    consents.ask(address="2001:db8:1::1")
    consents.consents.answer(mine[0], None, at(0))
    consents.ask(address="2001:db8::9")
    consents = ConsentHarness()
    first = consents.ask()
    for number in range(256):
        consents.ask(address=f"198.51.{number}.1")
    assert len(consents.consents) == 256
    assert consents.consents.is_full
    assert consents.consents.find_by_ticket(first.ticket, at(0)) is None
    consents = ConsentHarness()
    answered = [consents.ask(address=f"198.51.{number}.1") for number in range(256)]
    for each in answered:
        consents.consents.answer(each, YES, at(0))
    consents.ask()
    assert consents.consents.find_by_ticket(answered[0].ticket, at(0)) is None
    assert len(consents.consents) == 256
    consents = ConsentHarness()
    used = consents.ask()
    consents.consents.answer(used, YES, at(0))
    code = consents.consents.issue_code(used, at(0), consents.entropy)
    consents.trade(code, 0)
    alone, here = consents.ask(address="203.0.113.9"), consents.ask(address="::1")
    for number in range(32 * 8):
        consents.ask(address=f"198.51.{number % 32}.1")
    assert len(consents.consents) == 256
    assert consents.consents.find_by_ticket(alone.ticket, at(0)) is alone
    for number in range(256):  # one request each
        consents.ask(address=f"198.52.{number}.1")
    assert consents.consents.find_by_ticket(here.ticket, at(0)) is here
    assert consents.trade(code, 1) == (used, False)


def test_consent_is_moved_to_another_node(consents: ConsentHarness) -> None:
    other = ConsentHarness()

    def move(consent: AuthorizationConsent, *by: tuple[str, str]) -> AuthorizationConsent:
        record = JsonObject.load(strict_json.dumps_bytes(consent.to_record(at(10))))
        consents.consents.release_to_node(consent)
        assert len(consents.consents) == 0
        taken = parse_consent(record, at(3610))
        assert taken is not None
        other.consents.adopt_from_node(taken)
        assert [other.consents.find(name, value, at(3610)) for name, value in by] == [taken] * len(by)
        moved = (taken.question, taken.address, taken.until - 3600, taken.state)
        assert moved == (consent.question, consent.address, consent.until, consent.state)
        return taken

    consent = consents.ask()
    asked = move(consent, ("ticket", consent.ticket), ("code", consent.code))
    assert asked.form_token == consent.form_token
    other.consents.answer(asked, None, at(3611))
    allowed = consents.ask(question=evolve(QUESTION, scope="bridge:read", state="s&t"))
    consents.consents.answer(allowed, YES, at(1))
    assert move(allowed, ("ticket", allowed.ticket)).allowed == YES
    issued = consents.ask()
    consents.consents.answer(issued, YES, at(1))
    code = consents.consents.issue_code(issued, at(2), consents.entropy)
    moved = move(issued, ("secret", sha256_hex(code)))
    assert other.trade(code, 3612) == (moved, True)
    consents.consents.adopt_from_node(moved)
    consents.consents.mark_code_reused(moved)
    assert (moved.state, len(consents.consents)) == (ConsentState.ENDED, 0)
    assert [other.consents.find(by, "", at(3613)) for by in ("ticket", "code", "secret", "else")] == [None] * 4


@pytest.mark.parametrize("lack", ["client", "stage", "ticket"])
def test_invalid_records(consents: ConsentHarness, lack: str) -> None:
    record = consents.ask().to_record(at(0))
    assert parse_consent(JsonObject(record), at(0)) is not None
    assert parse_consent(JsonObject({**record, lack: "?" if lack != "ticket" else ""}), at(0)) is None
