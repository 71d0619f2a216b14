"""OAuth 2.1 clients that the owner authorizes: they register, request consent, and use tokens.

Each consent has one outcome. A code is valid once, with its verifier. A refresh token is valid until it is rotated; the
use of an older one revokes its grant. An access token opens `/mcp` until it is replaced.
"""

from __future__ import annotations

import re
from base64 import urlsafe_b64encode
from collections.abc import Callable
from functools import partial
from hashlib import sha256
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from attrs import define, field

from fuzz.simulation.actors.actor_context import ActorContext, Deeds, no_further_checks
from fuzz.simulation.actors.session_owners import SessionOwners
from fuzz.simulation.deployment import LOCAL, REMOTE
from fuzz.simulation.invariants import Invariant
from fuzz.simulation.models.grant_model import GrantTerms
from fuzz.simulation.models.reference_model import SessionModel, violated
from fuzz.steps import AuthorizeAgent, Step
from runtimes.sim.process import SimProcess
from tests.support.sim_http import RequestClient

ACT, READ = "bridge", "bridge:read"
WAYS = 16  # of `choice`: actions of authorized clients, and variants of registration
LASTS = (None, None, 300, 45)  # s of the grant
SLACK = 600.0  # s of an access token's hour that no check relies on
WORD = re.compile(r'class="word">(\w+)<')
REDIRECT = "http://127.0.0.1:7171/back"
REMEMBERED = 500.0  # s for which the relay certainly stores a used code
FORM = "application/x-www-form-urlencoded"


@define(eq=False)
class OAuthClientModel:
    """OAuth client, the owner's answer, and its tokens."""

    name: str
    verifier: str
    wanted: str  # requested scope
    relay: SimProcess
    client: str = ""
    ticket: str = ""
    said: str | None = None  # the scope that the owner granted; empty: none
    collected: bool = False
    code: str = ""
    scope: str = ""
    session: SessionModel | None = None
    access: str = ""
    refresh: str = ""
    since: float = 0.0  # when it got the first tokens
    fresh: float = 0.0  # when it got the last tokens
    old_access: list[str] = field(factory=list)
    old_refresh: list[str] = field(factory=list)
    under_way: int = 0  # requests for tokens
    doubtful: bool = False  # it is uncertain which tokens are valid
    burnt: bool = False  # its code was used by another client

    @property
    def state(self) -> str:
        """Return the `state` of the authorization request."""
        return f"state of {self.name}"


class OAuthClients:
    """Steps of OAuth clients."""

    def __init__(self, crowd: ActorContext, owners: SessionOwners) -> None:
        self.crowd = crowd
        self.world = crowd.world
        self._owners = owners
        self.guests: list[OAuthClientModel] = []
        self.deeds: dict[type[Step], Deeds] = {AuthorizeAgent: self._step}

    @property
    def inside(self) -> list[OAuthClientModel]:
        """Return the clients that were authorized at some time."""
        return [guest for guest in self.guests if guest.session is not None]

    def is_sure(self, guest: OAuthClientModel) -> bool:
        """Report whether the relay must accept the access token of a client."""
        session = guest.session
        return (
            session is not None
            and not guest.doubtful
            and not guest.under_way
            and self.crowd.must_be_alive(session)
            and len(self.world.wall.steps) == 1
            and self.crowd.now < guest.fresh + 3600.0 - SLACK
        )

    def _step(self, step: AuthorizeAgent) -> None:
        inside, way = self.inside, step.action % WAYS
        if not inside or way < WAYS // 2:
            self._register_client(way, step)
            return
        guest = inside[step.agent % len(inside)]
        match way:
            case 8 | 9:
                self.renew(guest)
            case 10:
                self._renew_by_an_old_one(guest)
            case 11:
                self._use_an_old_one(guest)
            case 12:
                self._give_back(guest)
            case 13:
                self._trade(guest, guest.verifier)
            case 14:
                self._try_routes(guest)
            case _:
                assert guest.session is not None
                self._owners.revoke(guest.session, None)

    # --- consent ---

    def _register_client(self, way: int, step: AuthorizeAgent) -> None:
        number = self.crowd.next_number()
        verifier = f"verifier-{number}-".ljust(50, "v")
        scope = READ if step.action // WAYS % 3 == 0 else ACT
        guest = OAuthClientModel(f"agent-{number}", verifier, scope, self.world.relay)
        self.guests.append(guest)

        def registered(caller: RequestClient) -> None:
            if caller.status == 201:
                guest.client = str(caller.answer.json["client_id"])
                self._request_authorization(guest, asked)

        def asked(caller: RequestClient) -> None:
            if caller.status == 303:
                guest.ticket = _location(caller)
                self._show_consent_page(guest, shown)

        def shown(caller: RequestClient) -> None:
            found = WORD.search(caller.answer.body.decode())
            if caller.status == 200 and found is not None:
                self.world.sim.after(step.seconds, lambda: self._question(guest, found[1], way, step))

        body = {"client_name": guest.name, "redirect_uris": [REDIRECT]}
        self.crowd.request_as_operator("POST", "/oauth/register", body, registered)

    def _request_authorization(self, guest: OAuthClientModel, done: Callable[[RequestClient], None]) -> None:
        challenge = urlsafe_b64encode(sha256(guest.verifier.encode()).digest()).rstrip(b"=").decode()
        query = {
            "response_type": "code",
            "client_id": guest.client,
            "redirect_uri": REDIRECT,
            "scope": guest.wanted,
            "state": guest.state,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
            "resource": f"http://{LOCAL.authority}/mcp",
        }
        self.crowd.request_as_operator("GET", f"/oauth/authorize?{urlencode(query)}", None, done)

    def _show_consent_page(self, guest: OAuthClientModel, done: Callable[[RequestClient], None]) -> None:
        self.crowd.request_as_operator("GET", f"/oauth/{guest.ticket}", None, done)

    def _question(self, guest: OAuthClientModel, word: str, way: int, step: AuthorizeAgent) -> None:
        """Let the owner read the authorization request, and answer or ignore the request."""
        if way == 7:
            return
        path = f"/mcp/questions/{word}"
        scope = "" if way == 6 else READ if step.action // (3 * WAYS) % 3 == 0 else guest.wanted

        def seen(caller: RequestClient) -> None:
            if caller.status != 200:
                return
            asked = caller.answer.json
            if (asked["client_name"], asked["scope"]) != (guest.name, guest.wanted):
                violated(
                    Invariant.CONSENT, f"{guest.name} asks for {guest.wanted}, and the owner is told {asked!r:.200}"
                )
            if way == 5:  # with the ballot of another request
                self._answer(guest, path, "0" * 36, guest.wanted, step)
            self._answer(guest, path, str(asked["ballot"]), scope, step)
            if way == 4:  # and then the opposite answer
                other = "" if scope else guest.wanted
                self.world.sim.after(0.4, lambda: self._answer(guest, path, str(asked["ballot"]), other, step))

        self.crowd.request_as_operator("GET", path, None, seen)

    def _answer(self, guest: OAuthClientModel, path: str, ballot: str, scope: str, step: AuthorizeAgent) -> None:
        ttl = LASTS[step.agent % len(LASTS)]
        body: dict[str, object] = {"ballot": ballot, "allow": bool(scope), **({"scope": scope} if scope else {})}
        if ttl is not None:
            body["ttl_seconds"] = ttl

        def done(caller: RequestClient) -> None:
            if caller.status != 200:
                return
            if ballot.startswith("0000"):
                violated(Invariant.CONSENT, f"a question of {guest.name} was answered with the ballot of another")
            if guest.said is not None:
                violated(
                    Invariant.CONSENT, f"the owner's answer to {guest.name} was taken twice: {guest.said!r}, {scope!r}"
                )
            guest.said = scope
            self.world.count("questions of agents answered")
            self._show_consent_page(guest, partial(self._led, guest, ttl, step.action % WAYS))

        self.crowd.request_as_operator("POST", path, body, done)

    def _led(self, guest: OAuthClientModel, ttl: int | None, way: int, caller: RequestClient) -> None:
        """Check the redirect of the consent page."""
        if caller.status != 303:
            return
        fields = {name: values[0] for name, values in parse_qs(urlsplit(_location(caller)).query).items()}
        if fields.get("state") != guest.state or guest.collected:
            violated(Invariant.CONSENT, f"{guest.name} is led to {fields}, once more: {guest.collected}")
        guest.collected = True
        if ("code" in fields) != bool(guest.said) or ("error" in fields) == bool(guest.said):
            violated(Invariant.CONSENT, f"{guest.said!r} was the answer to {guest.name}, which is told {fields}")
        guest.code = fields.get("code", "")
        if not guest.code:
            return
        self.world.secrets[guest.code] = "an authorisation code"
        self._show_consent_page(guest, partial(self._led, guest, ttl, way))  # the page must be gone now
        if way == 3:  # another client has the code
            self._trade(guest, "another-verifier".ljust(50, "v"), ttl)
        elif way != 2:  # with `way` 2, the client never uses the code
            self._trade(guest, guest.verifier, ttl)

    # --- codes and tokens ---

    def _trade(self, guest: OAuthClientModel, verifier: str, ttl: int | None = None) -> None:
        """Exchange the code for tokens, with its verifier, or with that of another client."""
        form = {"grant_type": "authorization_code", "code": guest.code, "redirect_uri": REDIRECT}
        again, wrong = guest.session is not None, verifier != guest.verifier
        guest.under_way += 1

        def done(caller: RequestClient) -> None:
            guest.under_way -= 1
            if caller.status == 200 and (again or wrong or guest.burnt):
                why = "with another's verifier" if wrong else "once more"
                violated(Invariant.TOKENS_ONCE, f"the code of {guest.name} was taken {why}")
            if caller.status == 200:
                self._let_in(guest, caller.answer.json, ttl)
            elif again:
                known = self.crowd.now < guest.since + REMEMBERED and self.world.relay is guest.relay
                self._ended(guest, caller, known=known)
            elif wrong and caller.status == 400:
                guest.burnt = True
                self._trade(guest, guest.verifier, ttl)

        self._post(guest, {**form, "code_verifier": verifier}, done)

    def _let_in(self, guest: OAuthClientModel, told: dict[str, Any], ttl: int | None) -> None:
        token = str(told["refresh_token"])
        session = guest.session = SessionModel(token.partition(".")[0], "agent", guest.name, "mcp")
        guest.scope = str(told["scope"])
        end = self.world.wall.highest(self.crowd.now) + ttl if ttl is not None else float("inf")
        session.terms = [GrantTerms(end, {guest.scope: end})]
        session.past = [*session.terms]
        guest.since = self.crowd.now
        self._check_tokens(guest, told)
        self.world.count("agents let in")

    def _check_tokens(self, guest: OAuthClientModel, told: dict[str, Any]) -> None:
        if told["scope"] != guest.scope or (guest.said == READ and guest.scope != READ):
            violated(Invariant.LOOKS_ONLY, f"{guest.name} was given {guest.said!r}, and has {told['scope']!r}")
        guest.access, guest.refresh, guest.fresh = told["access_token"], told["refresh_token"], self.crowd.now
        self.world.secrets[guest.access] = "an access token"
        self.world.secrets[guest.refresh] = "a refresh token"

    def renew(self, guest: OAuthClientModel) -> None:
        """Use the refresh token."""
        shown, access = guest.refresh, guest.access

        def done(caller: RequestClient) -> None:
            if caller.status == 200 and shown != guest.refresh:
                violated(Invariant.TOKENS_ONCE, f"{guest.name} got tokens for a refresh token that was rotated")
            if caller.status != 200:
                guest.doubtful = True  # the token may have been rotated
                return
            guest.old_access.append(access)
            guest.old_refresh.append(shown)
            self._check_tokens(guest, caller.answer.json)
            self.world.count("tokens of agents renewed")

        self._show(guest, shown, done)

    def _renew_by_an_old_one(self, guest: OAuthClientModel) -> None:
        if not guest.old_refresh:
            self.renew(guest)
            return

        def done(caller: RequestClient) -> None:
            if caller.status == 200 and self._is_kept:
                violated(Invariant.TOKENS_ONCE, f"{guest.name} got tokens for a refresh token that was rotated")
            self._ended(guest, caller, known=True)

        self._show(guest, guest.old_refresh[0], done)

    def _show(self, guest: OAuthClientModel, token: str, done: Callable[[RequestClient], None]) -> None:
        guest.under_way += 1

        def told(caller: RequestClient) -> None:
            guest.under_way -= 1
            done(caller)

        self._post(guest, {"grant_type": "refresh_token", "refresh_token": token}, told)

    def _ended(self, guest: OAuthClientModel, caller: RequestClient, *, known: bool) -> None:
        """Record that the reuse of a code or token has revoked its grant."""
        session = guest.session
        guest.doubtful = True
        if caller.status == 400 and known and session is not None and session.revoked is None and self._is_kept:
            session.revoked = self.crowd.now
            self.world.count("agents that showed a token twice")
            self._try(guest, guest.access, "/mcp", "an access token of what was ended opens")

    def _use_an_old_one(self, guest: OAuthClientModel) -> None:
        for token in guest.old_access[-1:]:
            self._try(guest, token, "/mcp", "an access token that was replaced opens")

    def _try_routes(self, guest: OAuthClientModel) -> None:
        self._try(guest, guest.access, "/ping", "an access token of an agent opens")
        self._try(guest, guest.refresh, "/mcp", "a refresh token opens")
        assert guest.session is not None
        self._try(guest, guest.session.token, "/mcp", "a part of a refresh token opens")

    def _try(self, guest: OAuthClientModel, token: str, path: str, what: str) -> None:
        kept = self._is_kept

        def done(caller: RequestClient) -> None:
            if caller.status not in (0, 401, 403, 429) and kept and self._is_kept:
                violated(Invariant.TOKENS_ONCE, f"{what} {path}: {guest.name}, {caller.status}")

        headers = {"authorization": f"Bearer {token}", "accept": "text/event-stream"}
        self.world.request(self.world.agent, REMOTE, "GET", path, headers=headers, done=done)

    def _give_back(self, guest: OAuthClientModel) -> None:
        session = guest.session
        assert session is not None
        session.revoking = True

        def done(caller: RequestClient) -> None:
            if caller.status == 200 and session.revoked is None and not guest.doubtful and self._is_kept:
                session.revoked = self.crowd.now

        self._post(guest, {"token": guest.refresh}, done, path="/oauth/revoke")

    # --- helpers ---

    @property
    def _is_kept(self) -> bool:
        """Report whether all changes are stored, so that they survive a restart."""
        world = self.world
        return not (world.store_trouble or world.store_refused or world.disk_trouble)

    def _post(
        self,
        guest: OAuthClientModel,
        form: dict[str, str],
        done: Callable[[RequestClient], None] = no_further_checks,
        path: str = "/oauth/token",
    ) -> None:
        body = urlencode({"client_id": guest.client, **form}).encode()
        world = self.world
        world.request(world.home, LOCAL, "POST", path, headers={"content-type": FORM}, body=body, done=done)


def _location(caller: RequestClient) -> str:
    return (caller.answer.headers.get(b"location") or b"").decode()
