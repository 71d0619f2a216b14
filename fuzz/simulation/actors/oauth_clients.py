"""OAuth 2.1 clients that the owner authorizes: they register, request consent, and use tokens.

Each consent has one outcome. A code is valid once, with its verifier. A refresh token is valid until it is rotated,
and for a grace after that; the use of an older one revokes its grant. An access token opens `/mcp` as long.
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

from fuzz.simulation.actors.actor_context import ActorContext, StepHandler, no_further_checks
from fuzz.simulation.actors.session_owners import SessionOwners
from fuzz.simulation.deployment import LOCAL, REMOTE
from fuzz.simulation.invariants import Invariant
from fuzz.simulation.models.grant_model import GrantTerms
from fuzz.simulation.models.reference_model import SessionModel, violated
from fuzz.steps import AuthorizeAgent, Step
from runtimes.sim.process import SimProcess
from svc_proto.machines.oauth_tokens import REFRESH_GRACE
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
    used_at: dict[str, float] = field(factory=dict)  # by used refresh token: when the answer to its first use came
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
        self.apps: list[OAuthClientModel] = []
        self.handlers: dict[type[Step], StepHandler] = {AuthorizeAgent: self._step}

    @property
    def inside(self) -> list[OAuthClientModel]:
        """Return the clients that were authorized at some time."""
        return [app for app in self.apps if app.session is not None]

    def is_sure(self, app: OAuthClientModel) -> bool:
        """Report whether the relay must accept the access token of a client."""
        session = app.session
        return (
            session is not None
            and not app.doubtful
            and not app.under_way
            and self.crowd.must_be_alive(session)
            and len(self.world.wall.steps) == 1
            and self.crowd.now < app.fresh + 3600.0 - SLACK
        )

    def _step(self, step: AuthorizeAgent) -> None:
        inside, way = self.inside, step.action % WAYS
        if not inside or way < WAYS // 2:
            self._register_client(way, step)
            return
        app = inside[step.agent % len(inside)]
        match way:
            case 8 | 9:
                self.renew(app)
            case 10:
                self._renew_by_an_old_one(app)
            case 11:
                self._use_an_old_one(app)
            case 12:
                self._give_back(app)
            case 13:
                self._trade(app, app.verifier)
            case 14:
                self._try_routes(app)
            case _:
                assert app.session is not None
                self._owners.revoke(app.session, None)

    # --- consent ---

    def _register_client(self, way: int, step: AuthorizeAgent) -> None:
        number = self.crowd.next_number()
        verifier = f"verifier-{number}-".ljust(50, "v")
        scope = READ if step.action // WAYS % 3 == 0 else ACT
        app = OAuthClientModel(f"agent-{number}", verifier, scope, self.world.relay)
        self.apps.append(app)

        def registered(caller: RequestClient) -> None:
            if caller.status == 201:
                app.client = str(caller.answer.json["client_id"])
                self._request_authorization(app, asked)

        def asked(caller: RequestClient) -> None:
            if caller.status == 303:
                app.ticket = _location(caller)
                self._show_consent_page(app, shown)

        def shown(caller: RequestClient) -> None:
            found = WORD.search(caller.answer.body.decode())
            if caller.status == 200 and found is not None:
                self.world.sim.after(step.seconds, lambda: self._question(app, found[1], way, step))

        body = {"client_name": app.name, "redirect_uris": [REDIRECT]}
        self.crowd.request_as_operator("POST", "/oauth/register", body, registered)

    def _request_authorization(self, app: OAuthClientModel, done: Callable[[RequestClient], None]) -> None:
        challenge = urlsafe_b64encode(sha256(app.verifier.encode()).digest()).rstrip(b"=").decode()
        query = {
            "response_type": "code",
            "client_id": app.client,
            "redirect_uri": REDIRECT,
            "scope": app.wanted,
            "state": app.state,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
            "resource": f"http://{LOCAL.authority}/mcp",
        }
        self.crowd.request_as_operator("GET", f"/oauth/authorize?{urlencode(query)}", None, done)

    def _show_consent_page(self, app: OAuthClientModel, done: Callable[[RequestClient], None]) -> None:
        self.crowd.request_as_operator("GET", f"/oauth/{app.ticket}", None, done)

    def _question(self, app: OAuthClientModel, word: str, way: int, step: AuthorizeAgent) -> None:
        """Let the owner read the authorization request, and answer or ignore the request."""
        if way == 7:
            return
        path = f"/mcp/questions/{word}"
        scope = "" if way == 6 else READ if step.action // (3 * WAYS) % 3 == 0 else app.wanted

        def seen(caller: RequestClient) -> None:
            if caller.status != 200:
                return
            asked = caller.answer.json
            if (asked["client_name"], asked["scope"]) != (app.name, app.wanted):
                violated(Invariant.CONSENT, f"{app.name} asks for {app.wanted}, and the owner is told {asked!r:.200}")
            if way == 5:  # with the ballot of another request
                self._answer(app, path, "0" * 36, app.wanted, step)
            self._answer(app, path, str(asked["ballot"]), scope, step)
            if way == 4:  # and then the opposite answer
                other = "" if scope else app.wanted
                self.world.sim.after(0.4, lambda: self._answer(app, path, str(asked["ballot"]), other, step))

        self.crowd.request_as_operator("GET", path, None, seen)

    def _answer(self, app: OAuthClientModel, path: str, ballot: str, scope: str, step: AuthorizeAgent) -> None:
        ttl = LASTS[step.agent % len(LASTS)]
        body: dict[str, object] = {"ballot": ballot, "allow": bool(scope), **({"scope": scope} if scope else {})}
        if ttl is not None:
            body["ttl_seconds"] = ttl

        def done(caller: RequestClient) -> None:
            if caller.status != 200:
                return
            if ballot.startswith("0000"):
                violated(Invariant.CONSENT, f"a question of {app.name} was answered with the ballot of another")
            if app.said is not None:
                violated(
                    Invariant.CONSENT, f"the owner's answer to {app.name} was taken twice: {app.said!r}, {scope!r}"
                )
            app.said = scope
            self.world.count("questions of agents answered")
            self._show_consent_page(app, partial(self._led, app, ttl, step.action % WAYS))

        self.crowd.request_as_operator("POST", path, body, done)

    def _led(self, app: OAuthClientModel, ttl: int | None, way: int, caller: RequestClient) -> None:
        """Check the redirect of the consent page."""
        if caller.status != 303:
            return
        fields = {name: values[0] for name, values in parse_qs(urlsplit(_location(caller)).query).items()}
        if fields.get("state") != app.state or app.collected:
            violated(Invariant.CONSENT, f"{app.name} is led to {fields}, once more: {app.collected}")
        app.collected = True
        if ("code" in fields) != bool(app.said) or ("error" in fields) == bool(app.said):
            violated(Invariant.CONSENT, f"{app.said!r} was the answer to {app.name}, which is told {fields}")
        app.code = fields.get("code", "")
        if not app.code:
            return
        self.world.secrets[app.code] = "an authorisation code"
        self._show_consent_page(app, partial(self._led, app, ttl, way))  # the page must be gone now
        if way == 3:  # another client has the code
            self._trade(app, "another-verifier".ljust(50, "v"), ttl)
        elif way != 2:  # with `way` 2, the client never uses the code
            self._trade(app, app.verifier, ttl)

    # --- codes and tokens ---

    def _trade(self, app: OAuthClientModel, verifier: str, ttl: int | None = None) -> None:
        """Exchange the code for tokens, with its verifier, or with that of another client."""
        form = {"grant_type": "authorization_code", "code": app.code, "redirect_uri": REDIRECT}
        again, wrong = app.session is not None, verifier != app.verifier
        app.under_way += 1

        def done(caller: RequestClient) -> None:
            app.under_way -= 1
            if caller.status == 200 and (again or wrong or app.burnt):
                why = "with another's verifier" if wrong else "once more"
                violated(Invariant.TOKENS_ONCE, f"the code of {app.name} was taken {why}")
            if caller.status == 200:
                self._let_in(app, caller.answer.json, ttl)
            elif again:
                known = self.crowd.now < app.since + REMEMBERED and self.world.relay is app.relay
                self._ended(app, caller, known=known)
            elif wrong and caller.status == 400:
                app.burnt = True
                self._trade(app, app.verifier, ttl)

        self._post(app, {**form, "code_verifier": verifier}, done)

    def _let_in(self, app: OAuthClientModel, told: dict[str, Any], ttl: int | None) -> None:
        token = str(told["refresh_token"])
        session = app.session = SessionModel(token.partition(".")[0], "agent", app.name, "mcp")
        app.scope = str(told["scope"])
        end = self.world.wall.highest(self.crowd.now) + ttl if ttl is not None else float("inf")
        session.terms = [GrantTerms(end, {app.scope: end})]
        session.past = [*session.terms]
        app.since = self.crowd.now
        self._check_tokens(app, told)
        self.world.count("agents let in")

    def _check_tokens(self, app: OAuthClientModel, told: dict[str, Any]) -> None:
        if told["scope"] != app.scope or (app.said == READ and app.scope != READ):
            violated(Invariant.LOOKS_ONLY, f"{app.name} was given {app.said!r}, and has {told['scope']!r}")
        app.access, app.refresh, app.fresh = told["access_token"], told["refresh_token"], self.crowd.now
        self.world.secrets[app.access] = "an access token"
        self.world.secrets[app.refresh] = "a refresh token"

    def renew(self, app: OAuthClientModel) -> None:
        """Use the refresh token."""
        shown, access = app.refresh, app.access

        def done(caller: RequestClient) -> None:
            if caller.status == 200 and shown != app.refresh:
                violated(Invariant.TOKENS_ONCE, f"{app.name} got tokens for a refresh token that was rotated")
            if caller.status != 200:
                app.doubtful = True  # the token may have been rotated
                return
            app.old_access.append(access)
            app.old_refresh.append(shown)
            app.used_at[shown] = self.crowd.now
            self._check_tokens(app, caller.answer.json)
            self.world.count("tokens of agents renewed")

        self._show(app, shown, done)

    def _renew_by_an_old_one(self, app: OAuthClientModel) -> None:
        old = next((token for token in app.old_refresh if self._is_grace_over(app, token)), None)
        if old is None:
            self._renew_by_a_shared_one(app)
            return

        def done(caller: RequestClient) -> None:
            if caller.status == 200 and self._is_kept and self._is_grace_over(app, old):
                violated(Invariant.TOKENS_ONCE, f"{app.name} got tokens for a refresh token that was rotated")
            self._ended(app, caller, known=True)

        self._show(app, old, done)

    def _renew_by_a_shared_one(self, app: OAuthClientModel) -> None:
        """Use the last refresh token once more, as a second program with the same token does."""
        if not app.old_refresh:
            self.renew(app)
            return

        def done(caller: RequestClient) -> None:
            if caller.status == 200:
                self._check_tokens(app, caller.answer.json)
                self.world.count("tokens of agents renewed by a second program")
            else:
                app.doubtful = True  # the grace may have ended meanwhile

        self._show(app, app.old_refresh[-1], done)

    def _is_grace_over(self, app: OAuthClientModel, token: str) -> bool:
        """Report whether a used refresh token has to be refused by now."""
        wall, now, used = self.world.wall, self.crowd.now, app.used_at[token]
        begun = max(high for _, high in wall.spans(used, used))
        return wall.earliest(now, now) - begun >= REFRESH_GRACE

    def _show(self, app: OAuthClientModel, token: str, done: Callable[[RequestClient], None]) -> None:
        app.under_way += 1

        def told(caller: RequestClient) -> None:
            app.under_way -= 1
            done(caller)

        self._post(app, {"grant_type": "refresh_token", "refresh_token": token}, told)

    def _ended(self, app: OAuthClientModel, caller: RequestClient, *, known: bool) -> None:
        """Record that the reuse of a code or token has revoked its grant."""
        session = app.session
        app.doubtful = True
        if caller.status == 400 and known and session is not None and session.revoked is None and self._is_kept:
            session.revoked = self.crowd.now
            self.world.count("agents that showed a token twice")
            self._try(app, app.access, "/mcp", "an access token of what was ended opens")

    def _use_an_old_one(self, app: OAuthClientModel) -> None:
        for token, refresh in [*zip(app.old_access, app.old_refresh, strict=True)][-1:]:
            if self._is_grace_over(app, refresh):
                self._try(app, token, "/mcp", "an access token that was replaced opens")

    def _try_routes(self, app: OAuthClientModel) -> None:
        self._try(app, app.access, "/ping", "an access token of an agent opens")
        self._try(app, app.refresh, "/mcp", "a refresh token opens")
        assert app.session is not None
        self._try(app, app.session.token, "/mcp", "a part of a refresh token opens")

    def _try(self, app: OAuthClientModel, token: str, path: str, what: str) -> None:
        kept = self._is_kept

        def done(caller: RequestClient) -> None:
            if caller.status not in (0, 401, 403, 429) and kept and self._is_kept:
                violated(Invariant.TOKENS_ONCE, f"{what} {path}: {app.name}, {caller.status}")

        headers = {"authorization": f"Bearer {token}", "accept": "text/event-stream"}
        self.world.request(self.world.agent, REMOTE, "GET", path, headers=headers, done=done)

    def _give_back(self, app: OAuthClientModel) -> None:
        session = app.session
        assert session is not None
        session.revoking = True

        def done(caller: RequestClient) -> None:
            if caller.status == 200 and session.revoked is None and not app.doubtful and self._is_kept:
                session.revoked = self.crowd.now

        self._post(app, {"token": app.refresh}, done, path="/oauth/revoke")

    # --- helpers ---

    @property
    def _is_kept(self) -> bool:
        """Report whether all changes are stored, so that they survive a restart."""
        world = self.world
        return not (world.store_trouble or world.store_refused or world.disk_trouble)

    def _post(
        self,
        app: OAuthClientModel,
        form: dict[str, str],
        done: Callable[[RequestClient], None] = no_further_checks,
        path: str = "/oauth/token",
    ) -> None:
        body = urlencode({"client_id": app.client, **form}).encode()
        world = self.world
        world.request(world.home, LOCAL, "POST", path, headers={"content-type": FORM}, body=body, done=done)


def _location(caller: RequestClient) -> str:
    return (caller.answer.headers.get(b"location") or b"").decode()
