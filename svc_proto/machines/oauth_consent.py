"""Questions of OAuth clients to the owner, from the request to the code that was traded for tokens (decision 154).

Who asks sees a word (`code`) on a page and says it to the owner, who finds the question by it: strangers cannot ring at
his door. The page comes back by its ticket until there is an answer; the authorisation code is made when it is led on.

| state   | trigger  | next    |
|---------|----------|---------|
| ASKED   | ALLOW    | ALLOWED | by the owner, within ten minutes
| ASKED   | REFUSE   | REFUSED |
| ALLOWED | COLLECT  | ISSUED  | the browser is sent to the client with a code, good for a minute
| REFUSED | COLLECT  | ENDED   | or with the refusal
| ISSUED  | TRADE    | TRADED  | the client has shown the code and its verifier
| ISSUED  | FAIL     | ENDED   | somebody has shown the code without what belongs to it
| TRADED  | FAIL     | ENDED   | the code was shown again: what it gave is taken back (RFC 6749 section 4.1.2)
| each of these | ELAPSE | ENDED |
"""

from __future__ import annotations

from enum import Enum

from attrs import define, frozen

from svc_proto.basics.entropy import Entropy, new_code, new_secret, secrets_equal, sha256_hex
from svc_proto.basics.errors import Refused
from svc_proto.basics.expiring_map import ExpiringMap
from svc_proto.basics.moment import Moment
from svc_proto.machines.auth_rate_limiter import address_key
from svc_proto.machines.paired_session import PairedSession
from svc_proto.machines.transitions import Table, step
from svc_proto.schema.json_object import JsonObject
from svc_proto.schema.oauth import AuthorizationRequest, decode_client_id, verifier_matches

__all__ = [
    "CONSENT_TABLE",
    "GrantedConsent",
    "AuthorizationConsent",
    "ConsentState",
    "ConsentTrigger",
    "ConsentRegistry",
    "parse_consent",
]

MAX_CONSENTS = 256  # a further one takes the place of the oldest
MAX_OF_ADDRESS = 8  # that wait for the owner
ANSWER_TIMEOUT = 600.0  # s for the owner, and again for the browser to come back
CODE_LIFETIME = 60.0  # s of an authorisation code; RFC 6749 section 4.1.2: ten minutes at most
ENDED_TTL = 600.0  # s for which a code that was traded is known when it comes again


class ConsentState(Enum):
    """Where a question is."""

    REQUESTED = "asked"
    ALLOWED = "allowed"
    REFUSED = "refused"
    CODE_ISSUED = "issued"
    EXCHANGED = "traded"
    ENDED = "ended"


class ConsentTrigger(Enum):
    """What happens to it."""

    ALLOW = "allow"
    REFUSE = "refuse"
    ISSUE_CODE = "collect"
    EXCHANGE = "trade"
    FAIL = "fail"
    EXPIRE = "elapse"


_S, _T = ConsentState, ConsentTrigger
CONSENT_TABLE: Table[ConsentState, ConsentTrigger] = {
    (_S.REQUESTED, _T.ALLOW): _S.ALLOWED,
    (_S.REQUESTED, _T.REFUSE): _S.REFUSED,
    (_S.ALLOWED, _T.ISSUE_CODE): _S.CODE_ISSUED,
    (_S.REFUSED, _T.ISSUE_CODE): _S.ENDED,
    (_S.CODE_ISSUED, _T.EXCHANGE): _S.EXCHANGED,
    (_S.CODE_ISSUED, _T.FAIL): _S.ENDED,
    (_S.EXCHANGED, _T.FAIL): _S.ENDED,
    (_S.REQUESTED, _T.EXPIRE): _S.ENDED,
    (_S.ALLOWED, _T.EXPIRE): _S.ENDED,
    (_S.REFUSED, _T.EXPIRE): _S.ENDED,
    (_S.CODE_ISSUED, _T.EXPIRE): _S.ENDED,
    (_S.EXCHANGED, _T.EXPIRE): _S.ENDED,
}


@frozen
class GrantedConsent:
    """What the owner gives: one of the scopes, for so many seconds."""

    scope: str
    ttl: float


@define(kw_only=True)
class AuthorizationConsent:
    """One question. Made and changed by `ConsentRegistry` alone; who trades it names the session."""

    question: AuthorizationRequest
    address: str  # of the browser
    ticket: str  # by which the browser comes back
    code: str  # that the owner types
    form_token: str  # that whoever answers has to show, and got with the question
    until: float  # monotonic
    allowed: GrantedConsent | None = None
    secret: str = ""  # SHA-256 of the authorisation code
    session: PairedSession | None = None  # that it was traded for
    state: ConsentState = ConsentState.REQUESTED

    def step(self, trigger: ConsentTrigger) -> None:
        """Follow the table; for `ConsentRegistry` alone."""
        self.state = step(CONSENT_TABLE, self.state, trigger)

    def to_record(self, now: Moment) -> dict[str, object]:
        """All of it, for another node of the service; `parse_consent` gives it back there."""
        asked, allowed = self.question, self.allowed
        return {
            "client": asked.client.identity,
            "redirect": asked.redirect,
            "scope": asked.scope,
            "challenge": asked.challenge,
            "state": asked.state,
            "address": self.address,
            "ticket": self.ticket,
            "code": self.code,
            "ballot": self.form_token,
            "left": self.until - now.mono,
            "allowed": None if allowed is None else {"scope": allowed.scope, "ttl": allowed.ttl},
            "secret": self.secret,
            "stage": self.state.value,
        }


def parse_consent(record: JsonObject, now: Moment) -> AuthorizationConsent | None:
    """A question that another node has given away; None for what is none."""
    client, allowed = decode_client_id(record.text("client")), record.get_object("allowed")
    stage = next((state for state in ConsentState if state.value == record.text("stage")), None)
    if client is None or stage is None or not record.text("ticket"):
        return None
    question = AuthorizationRequest(
        client=client,
        redirect=record.text("redirect"),
        scope=record.text("scope"),
        challenge=record.text("challenge"),
        state=record.text("state") or None,
    )
    return AuthorizationConsent(
        question=question,
        address=record.text("address"),
        ticket=record.text("ticket"),
        code=record.text("code"),
        form_token=record.text("ballot"),
        until=now.mono + (record.number("left") or 0.0),
        allowed=GrantedConsent(allowed.text("scope"), allowed.number("ttl") or 0.0) if allowed else None,
        secret=record.text("secret"),
        state=stage,
    )


class ConsentRegistry:
    """All of them. What has ended is forgotten."""

    def __init__(self) -> None:
        self._consents: ExpiringMap[str, AuthorizationConsent] = ExpiringMap(MAX_CONSENTS)  # by ticket

    def __len__(self) -> int:
        return len(self._consents)

    def request(
        self, question: AuthorizationRequest, address: str, now: Moment, entropy: Entropy
    ) -> AuthorizationConsent:
        """A new question. `Refused` 429 where this address has asked too many that nobody has answered."""
        self.expire(now)
        key = address_key(address)
        waiting = [each for each in self._consents.values() if each.state is ConsentState.REQUESTED]
        if sum(address_key(each.address) == key for each in waiting) >= MAX_OF_ADDRESS:
            raise Refused(429, "temporarily_unavailable", "too many questions wait for an answer: try again later")
        consent = AuthorizationConsent(
            question=question,
            address=address,
            ticket=new_secret(entropy),
            code=new_code(entropy),
            form_token=new_secret(entropy),
            until=now.mono + ANSWER_TIMEOUT,
        )
        self._store(consent)
        return consent

    def find_by_ticket(self, ticket: str, now: Moment) -> AuthorizationConsent | None:
        """The question that a page asks after."""
        return self._consents.get(ticket, now.mono)

    def find_by_code(self, code: str, now: Moment) -> AuthorizationConsent | None:
        """The question that the owner means, if it waits for an answer."""
        self.expire(now)
        word = code.strip().upper()
        found = (each for each in self._consents.values() if each.state is ConsentState.REQUESTED)
        return next((each for each in found if secrets_equal(each.code, word)), None)

    def find_by_authorization_code(self, secret: str, now: Moment) -> AuthorizationConsent | None:
        """The question that an authorisation code answers, by the code's SHA-256."""
        self.expire(now)
        return next((each for each in self._consents.values() if secrets_equal(each.secret, secret)), None)

    def find(self, by: str, value: str, now: Moment) -> AuthorizationConsent | None:
        """That of a `ticket`, of a `code` that the owner types, or of the SHA-256 of a `secret`."""
        match by:
            case "ticket":
                return self.find_by_ticket(value, now)
            case "code":
                return self.find_by_code(value, now)
            case "secret" if value:
                return self.find_by_authorization_code(value, now)
            case _:
                return None

    def release_to_node(self, consent: AuthorizationConsent) -> None:
        """It is somebody else's now."""
        self._consents.discard(consent.ticket)

    def mark_code_reused(self, consent: AuthorizationConsent) -> None:
        """A code that was traded is shown again, elsewhere."""
        consent.step(ConsentTrigger.FAIL)
        self._consents.discard(consent.ticket)

    def adopt_from_node(self, consent: AuthorizationConsent) -> None:
        """It was somebody else's."""
        self._store(consent)

    def answer(self, consent: AuthorizationConsent, allowed: GrantedConsent | None, now: Moment) -> None:
        """The owner has decided; None is no."""
        consent.step(ConsentTrigger.REFUSE if allowed is None else ConsentTrigger.ALLOW)
        consent.allowed = allowed
        consent.until = now.mono + ANSWER_TIMEOUT
        self._store(consent)

    def issue_code(self, consent: AuthorizationConsent, now: Moment, entropy: Entropy) -> str:
        """The browser has come back to an answer: the authorisation code that it takes along; empty for a no."""
        consent.step(ConsentTrigger.ISSUE_CODE)
        if consent.state is ConsentState.ENDED:
            self._consents.discard(consent.ticket)
            return ""
        secret = new_secret(entropy)
        consent.secret, consent.until = sha256_hex(secret), now.mono + CODE_LIFETIME
        self._store(consent)
        return secret

    def exchange_code(
        self, secret: str, client: str, redirect: str | None, verifier: str, now: Moment
    ) -> tuple[AuthorizationConsent | None, bool]:
        """A code is shown: the question that it answers, and whether it is good for tokens. It is shown once."""
        consent = self.find_by_authorization_code(sha256_hex(secret), now)
        if consent is None:
            return None, False
        asked = consent.question
        good = (
            consent.state is ConsentState.CODE_ISSUED
            and asked.client.identity == client
            and redirect in (None, asked.redirect)
            and verifier_matches(verifier, asked.challenge)
        )
        consent.step(ConsentTrigger.EXCHANGE if good else ConsentTrigger.FAIL)
        if good:
            consent.until = now.mono + ENDED_TTL
            self._store(consent)
        else:
            self._consents.discard(consent.ticket)
        return consent, good

    def expire(self, now: Moment) -> None:
        """Forget what nobody has answered, collected or traded in time."""
        for _, consent in self._consents.purge(now.mono):
            consent.step(ConsentTrigger.EXPIRE)

    def next_expiry(self) -> float | None:
        """When (monotonic seconds) the next one ends."""
        return self._consents.next_expiry()

    def _store(self, consent: AuthorizationConsent) -> None:
        self._consents.put(consent.ticket, consent, consent.until)
