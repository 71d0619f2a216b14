"""Random world: principals pair, act, answer and are revoked at two nodes; each result is compared with a model."""

import json
from collections import Counter
from random import Random
from typing import Any

from attrs import define

from fuzz.authority.deployment import NODES, AuthorityDeployment
from fuzz.authority.model import CHANNELS, READ, RIGHTS, SPANS, PrincipalModel, deadline, draw_terms
from fuzz.authority.routes import API_ROUTES, CHANNEL_MESSAGES, DEVICE_ROUTES, LOCAL_ROUTES, OWNER_ROUTES
from svc_proto.agent.interface import ApprovalRequested
from svc_proto.relay.access import withheld_from
from svc_proto.service_clients.authority import POWERS, authority_headers
from tests.api.harness import KEY
from tests.api.scripted_agent import ScriptedTurn, call_of
from tests.relay.harness import PhoneClient

__all__ = ["AuthorityViolation", "World"]

ACTIONS = 30
REFUSED = (401, 403, 429)
MOST_PRINCIPALS = 6


class AuthorityViolation(AssertionError):  # noqa: N818 - a found failure, not an error of the program
    """Result that differs from the model, such as a route that a principal reached without a grant."""


@define(eq=False)
class _Run:
    principal: PrincipalModel | None
    node: int
    turn: ScriptedTurn
    id: str
    by_relay: frozenset[str] | None = None  # what the relay named as withheld


class World:
    """A random world of one seed: nodes, principals and the model; `counts` has the number of actions by name."""

    def __init__(self, seed: int) -> None:
        self.rng = Random(f"authority {seed}")
        self.book = AuthorityDeployment()
        self.counts: Counter[str] = Counter()
        self.principals: list[PrincipalModel] = []
        self.sockets: list[tuple[PrincipalModel, PhoneClient]] = []
        self.runs: list[_Run] = []
        self.trace: list[str] = []
        self.values = 0
        self.owner_values: set[str] = set()

    def run(self) -> Counter[str]:
        """Run the world; return the number of actions by name. Raise `AuthorityViolation` at the first difference."""
        self.pair()
        for _ in range(ACTIONS):
            action = self.rng.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
            self.counts[action.__name__] += 1
            action(self)
            self._check_runs()
        self._end()
        return self.counts

    # --- principals ---

    def pair(self) -> None:
        """Register a code at a random node, and pair a new principal with it at a random node.

        Do nothing if there are `MOST_PRINCIPALS` principals.
        """
        if len(self.principals) >= MOST_PRINCIPALS:
            return
        number = len(self.principals)
        who, terms = draw_terms(self.rng, number, self._now)
        book, code = self.book, f"CODE{number:02}"
        book.at(self._node())
        answer = book.request("POST", "/pairing/register", {"code": code, **terms})
        self._expect(answer.status == 200, "registration", answer)
        who.key = answer.json.get("api_key", "")
        self._expect(bool(who.key) is ("chat" in who.ends), f"a key without chat for {who}")
        book.at(self._node())
        phone = book.websocket(peer=book.address(who.address))
        ok = phone.auth(pairing_code=code, device_name=who.name, device_id=who.name, client_surface="desktop")
        self._expect(ok["type"] == "auth.ok", "pairing", ok)
        who.token = ok["payload"]["session_token"]
        self.principals.append(who)
        self.sockets.append((who, phone))
        self.trace.append(f"{self._now:.0f} pair {who}")

    def revoke(self) -> None:
        """Try to revoke a random principal, as the operator or as a random principal, and check the result."""
        who, by = self._any(), self.rng.choice([None, None, *self.principals])
        if who is None:
            return
        self.book.at(self._node())
        status = self._request("DELETE", f"/sessions/{who.prefix}", by)
        allowed = by is None or by.may_as_device("" if by is who else "manage", self._now)
        self.trace.append(f"{self._now:.0f} revoke {who.name} by {by and by.name}: {status}")
        if not allowed:
            self._expect(status in REFUSED or not who.is_active(self._now), f"{by} revoked {who}", status)
        elif who.is_active(self._now):
            self._expect(status == 200, f"{by} could not revoke {who}", status)
            who.is_revoked = True
            self._check_sockets()

    def change_grants(self) -> None:
        """Try to change a grant or right of an active device, as operator or random principal; check the result."""
        who, by = self._any(), self.rng.choice([None, *self.principals])
        if who is None or who.audience or not who.is_active(self._now):
            return
        power = self.rng.choice((*CHANNELS, *RIGHTS))
        span: object = self.rng.choice((False, False, *SPANS))
        held = who.may(power, self._now)
        self.book.at(self._node())
        status = self._request("PATCH", f"/sessions/{who.prefix}", by, {"grants": {power: span}})
        self.trace.append(f"{self._now:.0f} {power}={span} of {who.name} by {by and by.name}: {status}")
        if by is not None and not by.may_as_device("" if by is who else "manage", self._now):
            self._expect(status in REFUSED, f"{by} changed {who}", status)
        if status != 200:
            self._expect(by is not None, "the operator could not change a grant", status)
            return
        if span is False:
            who.ends.pop(power, None)
            who.rights.discard(power)
            if by is None:
                who.given.discard(power)
        elif power in RIGHTS:
            self._expect(by is None or held, f"{by} gave the right {power} to {who}")
            who.rights.add(power)
        else:
            self._expect(by is None or power in who.given, f"{by} gave {power} to {who}")
            who.given.add(power)
            who.ends[power] = min(who.until, deadline(self._now, float(str(span))))

    def wait(self) -> None:
        """Advance the time by 0.5, 2 or 10 s, and check the sockets."""
        self.book.after(self.rng.choice((0.5, 2.0, 10.0)))
        self._check_sockets()

    # --- the relay ---

    def probe_relay(self) -> None:
        """Send a random principal's requests to four routes for devices, all routes for local programs, and `/mcp`.

        Compare each response with the model.
        """
        who = self._any()
        if who is None:
            return
        self.book.at(self._node())
        for method, path, power in self.rng.sample(DEVICE_ROUTES, 4):
            self._compare(who, method, path, who.may_as_device(power, self._now))
        for method, path in LOCAL_ROUTES:
            self._compare(who, method, path, allowed=False)
        self._compare(who, "POST", "/mcp", who.may("bridge", self._now) or who.may(READ, self._now))

    def list_sessions(self) -> None:
        """Compare the sessions that the relay lists for a random principal with those of the model.

        Do nothing if the principal may not list sessions.
        """
        who = self._any()
        if who is None or not who.may_as_device("", self._now):
            return
        self.book.at(self._node())
        answer = self.book.request("GET", "/sessions", token=who.token, peer=self.book.address(who.address))
        seen = {each["token_prefix"] for each in answer.json["sessions"]}
        active = {each.prefix for each in self.principals if each.is_active(self._now)}
        self._expect(seen == (active if who.may("manage", self._now) else {who.prefix}), f"{who} sees", seen)

    def open_socket(self) -> None:
        """Open a WebSocket with a principal's token, and check whether it is accepted.

        If it is, check that messages on channels without a grant are refused.
        """
        who = self._any()
        if who is None:
            return
        self.book.at(self._node())
        phone = self.book.websocket(peer=self.book.address(who.address))
        phone.send("system", "auth", {"session_token": who.token, "device_name": who.name}, "auth-1")
        answers = phone.envelopes()
        is_in = any(each["type"] == "auth.ok" for each in answers)
        self._expect(is_in is who.may_as_device("", self._now), f"socket of {who}", answers)
        if not is_in:
            return
        self.sockets.append((who, phone))
        for channel, kind, power in CHANNEL_MESSAGES:
            if not who.may(power, self._now):
                phone.send(channel, kind, {})
                self._expect("grant_required" in str(phone.envelopes()), f"{who} opened {channel}")

    def forge_message(self) -> None:
        """Publish one invented message and three recorded ones, as a program with access to Redis does."""
        who = self._any()
        if who is None:
            return
        record = next((dict(each) for each in self.book.store.values() if each["token_prefix"] == who.prefix), {})
        record |= {"grants": dict.fromkeys(CHANNELS), "rights": list(RIGHTS), "expires_at": "never"}
        message = {"from": "0123456789abcdef", "number": 1, "told": 1, "word": "saved", "body": record}
        invented = [b"svc:0:all", json.dumps(message).encode()]
        for channel, text in (invented, *self.rng.choices(self.book.published, k=3)):
            self.book.publish(channel, text)

    # --- the API ---

    def probe_api(self) -> None:
        """Send requests with a principal's API key to the API's routes for clients and for the owner.

        Compare each response with the model. Do nothing for a principal without a key.
        """
        who, n = self._any(), self._node()
        if who is None or not who.key:
            return
        self.book.at_api(n)
        for method, path, power in API_ROUTES:
            self._compare(who, method, path, who.may_at_api(power, self._now), token=who.key)
        for method, path in OWNER_ROUTES:
            self._compare(who, method, path, allowed=False, token=who.key)

    def change_agent(self) -> None:
        """Let a principal with a key, or the owner, write a note or the model's name; check whether it is permitted."""
        who = self.rng.choice([None, *self.principals])
        if who is not None and not who.key:
            return
        value = self._value()
        kind = self.rng.choice(("note", "setting"))
        method, path, body = {
            "note": ("POST", "/api/memory", {"target": "memory", "content": value}),
            "setting": ("PATCH", "/api/config", {"model": value}),
        }[kind]
        self.book.at_api(self._node())
        status = self._api_status(method, path, who, body)
        allowed = who is None or who.may_at_api("manage", self._now)
        self._expect((status == 200) is allowed, f"{kind} of {who}", status)
        if allowed:
            (self.owner_values if who is None else who.values).add(value)

    def start_run(self) -> None:
        """Request a run with a principal's key, or by the relay for a principal, or by the owner.

        Check whether it is permitted. Without the principal's key, or, by the relay, its session, nothing is requested.
        """
        who, n = self.rng.choice([None, *self.principals]), self._node()
        headers: tuple[tuple[bytes, bytes], ...] = ()
        by_relay, key = None, KEY
        if who is not None and self.rng.random() < 0.3:
            session = next(iter(self.book.relays[n][1].sessions.find(who.prefix, self.book.now)), None)
            if session is None:
                self._expect(not who.is_active(self._now), f"{who} is unknown at node {n}")
                return
            by_relay = frozenset(withheld_from(session, self.book.now))
            truth = {power for power in ("chat", *POWERS) if not who.may(power, self._now)}
            self._expect(by_relay == truth, f"the relay withholds from {who}", by_relay)
            headers = authority_headers(who.name, by_relay)
        elif who is not None:
            key = who.key
        if not key:
            return
        self.book.at_api(n)
        body = {"input": "go", **({"session_id": "shared"} if self.rng.random() < 0.3 else {})}
        known = len(self.book.agents[n].hands)
        host = "" if who is None else who.address
        answer = self.book.request("POST", "/v1/runs", body, token=key, headers=headers, peer=self.book.address(host))
        allowed = who is None or by_relay is not None or who.may_use_api(self._now)
        self._expect((answer.status not in REFUSED) is allowed, f"run of {who}", answer.status)
        hands = self.book.agents[n].hands
        if answer.status == 202 and len(hands) > known:
            self.runs.append(_Run(who, n, hands[-1], answer.json["run_id"], by_relay))

    def answer_approval(self) -> None:
        """Let a run request an approval, and let a principal with a key or the owner answer the request.

        Check whether the answer is permitted; the owner denies it if it was not. Do nothing without a run.
        """
        running = [run for run in self.runs if not run.turn.cancelled]
        if not running:
            return
        run, by = self.rng.choice(running), self.rng.choice([None, *self.principals])
        if by is not None and not by.key:
            return
        pattern = self._value()
        self.book.at_api(run.node)
        path = f"/v1/runs/{run.id}"
        asked = ApprovalRequested(call=call_of(), command="x", description="why", pattern=pattern)
        chat = self.book.request("GET", path, token=KEY).json["session_id"]
        memory, host = self.book.api(run.node).parts.approvals, run.turn.host
        run.turn.do(lambda: memory.request(chat, asked, host))
        choice = self.rng.choice(("once", "session", "always", "deny"))
        status = self._api_status("POST", f"{path}/approval", by, {"choice": choice, "call_id": "call_7"})
        lasts = choice in ("session", "always")
        is_own = by is run.principal and run.by_relay is None and not lasts
        allowed = by is None or by.may_at_api("chat" if is_own else "manage", self._now)
        self._expect((status == 200) is allowed, f"{choice} of {by} for a run of {run.principal}", status)
        if not allowed:
            self._api_status("POST", f"{path}/approval", None, {"choice": "deny", "call_id": "call_7"})
        elif lasts:
            (self.owner_values if by is None else by.values).add(pattern)

    # --- checks ---

    def _check_runs(self) -> None:
        for run in self.runs:
            who, authority = run.principal, run.turn.turn.authority
            if run.turn.cancelled:
                continue
            for power in POWERS:
                held = who is None or (who.may(power, self._now) if run.by_relay is None else power not in run.by_relay)
                self._expect(authority.holds(power) is held, f"a run of {who} and {power}")

    def _check_sockets(self) -> None:
        for who, phone in self.sockets:
            if not who.is_active(self._now):
                self._expect(not phone.is_open, f"an open socket of {who}")

    def _end(self) -> None:
        """Revoke all principals, and check that their sockets, routes and API keys have ended.

        The runs that they started with an API key must be cancelled too.
        """
        for who in self.principals:
            if who.is_active(self._now):
                self.book.at(self._node())
                self._expect(self._request("DELETE", f"/sessions/{who.prefix}", None) == 200, f"revoking {who}")
                who.is_revoked = True
        self._check_sockets()
        self.book.after(1.5)  # the API polls for keys that have ended
        for run in self.runs:
            if run.principal is not None and run.by_relay is None:
                self._expect(run.turn.cancelled, f"a run of {run.principal} goes on")
        for who in self.principals:
            for n in range(NODES):
                self.book.at(n)
                for method, path, _ in self.rng.sample(DEVICE_ROUTES, 3):
                    self._compare(who, method, path, allowed=False)
                self.book.at_api(n)
                if who.key:
                    self._compare(who, "GET", "/api/sessions", allowed=False, token=who.key)
        self._check_changes()

    def _check_changes(self) -> None:
        """Undo the changes of all principals; check the listed changes before and after.

        The values that the owner wrote must remain.
        """
        for n in range(NODES):
            before = self._in_force(n)
            for who in self.principals:
                self._check_listed(who, before, n)
                self._owner("POST", "/api/changes/undo", {"principal": who.prefix}, n)
            left = self._in_force(n)
            for who in self.principals:
                self._check_listed(who, left, n)
            lost = self.owner_values & before - left
            self._expect(not lost, "the owner's own values were undone", lost)

    def _check_listed(self, who: PrincipalModel, values: set[str], n: int) -> None:
        listed = {each["after"] for each in self._owner("GET", f"/api/changes?principal={who.prefix}", n=n)["changes"]}
        unknown = (who.values & values) - listed
        self._expect(not unknown, f"{unknown} of {who} act, but are not listed", listed)

    # --- helpers ---

    @property
    def _now(self) -> float:
        return self.book.clock.now

    def _node(self) -> int:
        return self.rng.randrange(NODES)

    def _any(self) -> PrincipalModel | None:
        return self.rng.choice(self.principals) if self.principals else None

    def _value(self) -> str:
        self.values += 1
        return f"value-{self.values}"

    def _request(self, method: str, path: str, by: PrincipalModel | None, body: object = None) -> int:
        if by is None:
            return self.book.status(method, path, body)
        return self.book.status(method, path, body, token=by.token, host=by.address)

    def _api_status(self, method: str, path: str, by: PrincipalModel | None, body: object = None) -> int:
        token, host = (KEY, "") if by is None else (by.key, by.address)
        return self.book.status(method, path, body, token=token, host=host)

    def _owner(self, method: str, path: str, body: object = None, n: int = 0) -> Any:
        self.book.at_api(n)
        answer = self.book.request(method, path, body, token=KEY)
        self._expect(answer.status == 200, f"{method} {path}", answer)
        return answer.json

    def _in_force(self, n: int) -> set[str]:
        """Return the model's name, the notes and the approved patterns that an API server uses."""
        found = set(self._owner("GET", "/api/memory?target=memory", n=n)["entries"])
        found.add(self._owner("GET", "/api/config", n=n)["model"])
        return found | {each["pattern"] for each in self._owner("GET", "/api/approvals", n=n)["approvals"]}

    def _compare(self, who: PrincipalModel, method: str, path: str, allowed: bool, *, token: str = "") -> None:
        status = self.book.status(method, path, token=token or who.token, host=who.address)
        self._expect((status not in REFUSED) is allowed, f"{method} {path} of {who} at {self._now}", status)

    def _expect(self, holds: bool, *what: object) -> None:
        if not holds:
            raise AuthorityViolation(" ".join(map(str, what)) + "\n" + "\n".join(self.trace))


WEIGHTS = {
    World.pair: 6, World.revoke: 3, World.change_grants: 4, World.wait: 3, World.probe_relay: 5, World.list_sessions: 1,
    World.open_socket: 2, World.forge_message: 1, World.probe_api: 3, World.change_agent: 3, World.start_run: 4,
    World.answer_approval: 4
}  # fmt: skip
