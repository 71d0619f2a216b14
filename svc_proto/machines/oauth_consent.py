"""Consent requests of OAuth clients, from the authorization request to the exchange of the code (decision 154).

A page shows the user a word (`code`). The owner finds the request by that word only, so that strangers cannot
disturb the owner. The page polls with its ticket until there is an answer. If that allows it, the authorization code is
created then.

| state       | trigger    | next        |
|-------------|------------|-------------|
| REQUESTED   | ALLOW      | ALLOWED     | by the owner, within ten minutes
| REQUESTED   | REFUSE     | REFUSED     |
| ALLOWED     | ISSUE_CODE | CODE_ISSUED | the browser is sent to the client with a code, valid for a minute
| REFUSED     | ISSUE_CODE | ENDED       | or with the refusal
| CODE_ISSUED | EXCHANGE   | EXCHANGED   | the client has shown the code and its verifier
| CODE_ISSUED | FAIL       | ENDED       | the code was shown with another client, redirect URI or verifier
| EXCHANGED   | FAIL       | ENDED       | the code was shown again: its tokens are revoked (RFC 6749 section 4.1.2)
| all of them | EXPIRE     | ENDED       | the deadline has passed
"""

from collections import Counter
from enum import Enum

from attrs import define, frozen

from svc_proto.basics.entropy import Entropy, new_code, new_secret, secrets_equal, sha256_hex
from svc_proto.basics.errors import Refused
from svc_proto.basics.expiring_map import ExpiringMap
from svc_proto.basics.moment import Moment
from svc_proto.machines.auth_rate_limiter import LOOPBACK, address_key
from svc_proto.machines.paired_session import PairedSession
from svc_proto.machines.transitions import Table, step
from svc_proto.schema.json_object import JsonObject
from svc_proto.schema.oauth import SCOPE_ACT, SCOPE_READ, AuthorizationRequest, decode_client_id, verifier_matches

__all__ = [
    "CONSENT_TABLE",
    "GrantedConsent",
    "AuthorizationConsent",
    "ConsentState",
    "ConsentTrigger",
    "ConsentRegistry",
    "parse_consent",
]

MAX_CONSENTS = 256  # a further one replaces a waiting one of the address that has most, see `_make_room`
MAX_OF_ADDRESS = 8  # of those that wait for the owner
ANSWER_TIMEOUT = 600.0  # s for the owner's answer, and again for the browser's return
CODE_LIFETIME = 60.0  # s of an authorization code; RFC 6749 section 4.1.2: ten minutes at most
ENDED_TTL = 600.0  # s for which a used code is kept, to detect its reuse


class ConsentState(Enum):
    """State of a consent request."""

    REQUESTED = "requested"
    ALLOWED = "allowed"
    REFUSED = "refused"
    CODE_ISSUED = "code issued"
    EXCHANGED = "exchanged"
    ENDED = "ended"


class ConsentTrigger(Enum):
    """Event that can change the state of a consent request."""

    ALLOW = "allow"
    REFUSE = "refuse"
    ISSUE_CODE = "issue code"
    EXCHANGE = "exchange"
    FAIL = "fail"
    EXPIRE = "expire"


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
    """Grant by the owner: one of the scopes, for `ttl` seconds."""

    scope: str
    ttl: float


@define(kw_only=True)
class AuthorizationConsent:
    """A consent request. Only `ConsentRegistry` changes it, except that the token exchange sets `session`."""

    question: AuthorizationRequest
    address: str  # of the browser
    ticket: str  # identifies the browser's page
    code: str  # word that the owner types
    form_token: str  # part of the form that the owner's answer has to contain
    until: float  # monotonic
    allowed: GrantedConsent | None = None
    secret: str = ""  # SHA-256 of the authorization code
    session: PairedSession | None = None  # created by the exchange
    state: ConsentState = ConsentState.REQUESTED

    def step(self, trigger: ConsentTrigger) -> None:
        """Change the state by `CONSENT_TABLE`; for `ConsentRegistry` alone."""
        self.state = step(CONSENT_TABLE, self.state, trigger)

    def to_record(self, now: Moment) -> dict[str, object]:
        """Return the request without its `session`, for another node, which parses it with `parse_consent`."""
        authorization_request, allowed = self.question, self.allowed
        return {
            "client": authorization_request.client.identity,
            "redirect": authorization_request.redirect,
            "scope": authorization_request.scope,
            "challenge": authorization_request.challenge,
            "state": authorization_request.state,
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
    """Parse a request that another node has released; None for an invalid one."""
    client, allowed = decode_client_id(record.text("client")), record.get_object("allowed")
    stage = next((state for state in ConsentState if state.value == record.text("stage")), None)
    if client is None or stage is None or not record.text("ticket"):
        return None
    question = AuthorizationRequest(
        client=client,
        redirect=record.text("redirect"),
        scope=SCOPE_ACT if record.text("scope") == SCOPE_ACT else SCOPE_READ,
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
    """Consent requests of this node, until they end, are displaced, or are released to another node."""

    def __init__(self) -> None:
        self._consents: ExpiringMap[str, AuthorizationConsent] = ExpiringMap(MAX_CONSENTS)  # by ticket

    def __len__(self) -> int:
        return len(self._consents)

    @property
    def is_full(self) -> bool:
        """Report whether the registry holds `MAX_CONSENTS` requests."""
        return len(self._consents) >= MAX_CONSENTS

    def request(
        self, question: AuthorizationRequest, address: str, now: Moment, entropy: Entropy
    ) -> AuthorizationConsent:
        """Create a request; a full registry drops another one for it.

        Raise `Refused` 429 if too many of this address wait for the owner.
        """
        self.expire(now)
        key = address_key(address)
        waiting = [each for each in self._consents.values() if each.state is ConsentState.REQUESTED]
        if sum(address_key(each.address) == key for each in waiting) >= MAX_OF_ADDRESS:
            raise Refused(429, "temporarily_unavailable", "too many questions wait for an answer: try again later")
        self._make_room(waiting)
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

    def _make_room(self, waiting: list[AuthorizationConsent]) -> None:
        """If the registry is full, drop a waiting request, if there is one: the oldest of the address with most.

        A request from this host is dropped only if no other waits.
        """
        if not self.is_full or not waiting:
            return
        counts = Counter(address_key(each.address) for each in waiting)
        dropped = max(waiting, key=lambda each: (each.address not in LOOPBACK, counts[address_key(each.address)]))
        self._consents.discard(dropped.ticket)

    def find_by_ticket(self, ticket: str, now: Moment) -> AuthorizationConsent | None:
        """Return the request of a page's ticket, or None."""
        return self._consents.get(ticket, now.mono)

    def find_by_code(self, code: str, now: Moment) -> AuthorizationConsent | None:
        """Return the request that waits for the owner with this word, or None."""
        self.expire(now)
        word = code.strip().upper()
        found = (each for each in self._consents.values() if each.state is ConsentState.REQUESTED)
        return next((each for each in found if secrets_equal(each.code, word)), None)

    def find_by_authorization_code(self, secret: str, now: Moment) -> AuthorizationConsent | None:
        """Return the request of an authorization code, by the code's SHA-256, or None."""
        self.expire(now)
        return next((each for each in self._consents.values() if secrets_equal(each.secret, secret)), None)

    def find(self, by: str, value: str, now: Moment) -> AuthorizationConsent | None:
        """Return the request with this `ticket`, owner's word (`code`) or SHA-256 of the authorization code (`secret`).

        Return None if there is none.
        """
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
        """Remove a request that another node has taken over."""
        self._consents.discard(consent.ticket)

    def mark_code_reused(self, consent: AuthorizationConsent) -> None:
        """End a request whose code was used already, and which another node has looked up since."""
        consent.step(ConsentTrigger.FAIL)
        self._consents.discard(consent.ticket)

    def adopt_from_node(self, consent: AuthorizationConsent) -> None:
        """Add a request that another node has released."""
        self._store(consent)

    def answer(self, consent: AuthorizationConsent, allowed: GrantedConsent | None, now: Moment) -> None:
        """Store the owner's answer to a consent request; with `allowed` None the owner refuses."""
        consent.step(ConsentTrigger.REFUSE if allowed is None else ConsentTrigger.ALLOW)
        consent.allowed = allowed
        consent.until = now.mono + ANSWER_TIMEOUT
        self._store(consent)

    def issue_code(self, consent: AuthorizationConsent, now: Moment, entropy: Entropy) -> str:
        """Create and return the authorization code for the returning browser.

        After a refusal, end the request and return an empty text.
        """
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
        """Use a code: return its request, None for an unknown code, and whether the client may get tokens.

        A code is accepted once; a wrong or a second use ends the request.
        """
        consent = self.find_by_authorization_code(sha256_hex(secret), now)
        if consent is None:
            return None, False
        authorization_request = consent.question
        good = (
            consent.state is ConsentState.CODE_ISSUED
            and authorization_request.client.identity == client
            and redirect in (None, authorization_request.redirect)
            and verifier_matches(verifier, authorization_request.challenge)
        )
        consent.step(ConsentTrigger.EXCHANGE if good else ConsentTrigger.FAIL)
        if good:
            consent.until = now.mono + ENDED_TTL
            self._store(consent)
        else:
            self._consents.discard(consent.ticket)
        return consent, good

    def expire(self, now: Moment) -> None:
        """Remove the requests whose deadline has passed."""
        for _, consent in self._consents.purge(now.mono):
            consent.step(ConsentTrigger.EXPIRE)

    def next_expiry(self) -> float | None:
        """Return the time (monotonic s) at which the next request expires; None without requests."""
        return self._consents.next_expiry()

    def _store(self, consent: AuthorizationConsent) -> None:
        self._consents.put(consent.ticket, consent, consent.until)
