"""Owners of paired sessions: they revoke sessions, change their terms, and list them."""

from collections.abc import Callable

from fuzz.simulation.actors.actor_context import GRANTS, ActorContext, StepHandler
from fuzz.simulation.invariants import Invariant, violated
from fuzz.simulation.models.grant_model import GrantTerms, RequestedTerms, fits, patched
from fuzz.simulation.models.reference_model import SessionModel, check_grants
from fuzz.steps import ExtendSession, ListSessions, RevokeSession, Step
from tests.support.sim_http import RequestClient

NOT_CHANGED = (400, 401, 403, 404, 409)
LASTS = "the relay goes on trying"  # without `PASSES` in the text, a revocation that the store refused is lasting
PASSES = "a restart before that"
KEPT = 40  # value of `grants` from which a change of grants keeps the lifetime


class SessionOwners:
    """Steps of the owners of sessions: revoke, extend and list."""

    def __init__(self, crowd: ActorContext) -> None:
        self.crowd = crowd
        self.world = crowd.world
        self.handlers: dict[type[Step], StepHandler] = {
            RevokeSession: self._revoke,
            ExtendSession: self._extend,
            ListSessions: self._list,
        }

    def _revoke(self, step: RevokeSession) -> None:
        if self.crowd.sessions:
            caller = self.crowd.pick_session(step.caller) if step.caller % 4 else None
            self.revoke(self.crowd.pick_session(step.session), caller)

    def revoke(self, session: SessionModel, caller: SessionModel | None) -> None:
        """Request the revocation of a session, as `caller` or as the operator, and record the result."""
        session.revoking = True
        relay = self.world.relay

        def done(answer: RequestClient) -> None:
            lasting = answer.status == 500 and _lasts(str(answer.answer.json.get("error")))
            if (answer.status == 200 or lasting) and session.revoked is None:
                session.revoked = self.crowd.now
            elif answer.status == 500 and self.world.relay is relay and self.world.is_relay_up:
                session.suspended = self.crowd.now

        self.crowd.request(caller, "DELETE", f"/sessions/{session.prefix}", None, done)

    def _extend(self, step: ExtendSession) -> None:
        if not self.crowd.sessions:
            return
        grants = GRANTS[step.grants % len(GRANTS)]
        ttl = None if grants is not None and step.grants >= KEPT else int(step.lifetime)
        self.extend(self.crowd.pick_session(step.session), RequestedTerms(ttl, grants))

    def extend(self, session: SessionModel, wish: RequestedTerms, changed: Callable[[], None] | None = None) -> None:
        """Request other terms of a session, as the session itself, and check the response.

        `changed` is called after success.
        """
        before, sent = session.sure, self.crowd.now
        session.terms.append(None)
        session.patches += 1
        session.patched += 1
        alone = session.patches == 1
        begun = session.patched
        wished = wish.grants or {}
        beyond = [channel for channel in session.withheld if wished.get(channel) is not None]

        def done(caller: RequestClient) -> None:
            session.patches -= 1
            over = wish.ttl is not None and self._may_be_over(sent, wish.ttl)  # perhaps because of this change
            if caller.status in NOT_CHANGED and not (caller.status == 401 and over):
                session.terms.remove(None)
                if caller.status == 403 and not (beyond or self.world.policy.reduce_only):
                    violated(Invariant.STATUS, f"{session.prefix} may not change itself")
                return
            if caller.status != 200:
                session.past.append(None)
                if before is not None and alone and session.patched == begun and self._is_passing(caller, session):
                    self._change_meanwhile(session, before, wish, sent)
                session.explicit = None
                return
            if beyond:
                violated(Invariant.LIFETIME, f"{session.prefix} got {beyond}, which its pairing withheld")
            terms = session.learn(caller.answer.json)
            session.past.append(terms)
            session.changed = self.crowd.now
            if alone and session.patched == begun:
                self._check_terms(session, before, wish, terms, sent)
                session.terms = [terms]
            else:
                session.terms.append(terms)
            if session.explicit is not None:
                session.explicit.update(dict.fromkeys(wish.grants or ()))
            if changed is not None:
                changed()

        self.crowd.request_as_agent("PATCH", f"/sessions/{session.prefix}", wish.members, session, done)

    def _may_be_over(self, sent: float, ttl: float) -> bool:
        """Report whether a lifetime requested at `sent` may have elapsed by the wall clock, which steps may set."""
        readings = self.world.wall.spans(sent, self.crowd.now)
        return max(last for _, last in readings) >= min(first for first, _ in readings) + ttl

    def _is_passing(self, caller: RequestClient, session: SessionModel) -> bool:
        told = caller.status == 500 and caller.answer.json.get("code") == "store_failed"
        lasts = self.world.is_relay_up and self.world.media_model.is_running_since(caller.began)
        return told and session.explicit is not None and lasts and len(self.world.wall.steps) == 1

    def _change_meanwhile(self, session: SessionModel, before: GrantTerms, wish: RequestedTerms, sent: float) -> None:
        explicit, world = tuple(session.explicit or ()), self.world
        ((low, high),) = world.wall.spans(sent, self.crowd.now)
        new = [patched(before, explicit, wish, world.policy, wall) for wall in (low, high)]
        session.terms, session.afterwards, session.changed = [*new], [before, *new], self.crowd.now

    def _check_terms(
        self, session: SessionModel, before: GrantTerms | None, wish: RequestedTerms, told: GrantTerms, sent: float
    ) -> None:
        if before is None or session.explicit is None:
            return
        world, explicit = self.world, tuple(session.explicit)
        readings = world.wall.spans(sent, self.crowd.now)
        if not fits(told, lambda wall: patched(before, explicit, wish, world.policy, wall), readings):
            violated(Invariant.LIFETIME, f"{session.prefix} had {before}, asked for {wish} and got {told}")
        if world.policy.reduce_only and not told.is_within(before):
            violated(Invariant.LIFETIME, f"{session.prefix} had {before}, and got more: {told}")

    def _list(self, step: ListSessions) -> None:
        self.list_all(self.crowd.pick_session(step.caller) if self.crowd.sessions and step.caller % 3 else None)

    def list_all(self, asks: SessionModel | None) -> None:
        """Request the list of sessions, as a session or as the operator, and check it.

        A session with withheld channels must see itself only, the others all sessions.
        """
        crowd, sent = self.crowd, self.crowd.now
        seen_by = crowd.sessions if asks is None or not asks.withheld else [asks]  # others need the right `manage`
        known = {one.prefix: (one, one.patched, one.sure) for one in seen_by}

        def done(caller: RequestClient) -> None:
            if caller.status != 200:
                return
            listed = {record["token_prefix"]: record for record in caller.answer.json["sessions"]}
            seen = [record["last_seen"] for record in listed.values()]
            if seen != sorted(seen, reverse=True) or len(listed) < len(caller.answer.json["sessions"]):
                violated(Invariant.AS_PREDICTED, f"sessions are not listed by when they were last seen: {seen}")
            if asks is not None and asks.withheld and not {asks.prefix}.issuperset(listed):
                violated(Invariant.ACCESS, f"{asks.prefix} is shown other sessions without the right to it")
            for prefix, record in listed.items():
                check_grants(record["grants"], record["expires_at"], prefix)
            for prefix, (session, begun, terms) in known.items():
                if prefix not in listed:
                    if crowd.must_be_alive(session):
                        violated(Invariant.LIVE_TOKEN, f"{prefix} is not listed")
                    continue
                if session.is_dead(self.world.wall, sent, crowd.now):
                    violated(Invariant.DEAD_TOKEN, f"{prefix} is listed after its end")
                told = session.learn(listed[prefix])
                if terms is not None and session.patched == begun and told != terms:
                    violated(Invariant.LIFETIME, f"{prefix} is listed with {told}, and has {terms}")

        crowd.request(asks, "GET", "/sessions", None, done)


def _lasts(told: str) -> bool:
    return LASTS in told and PASSES not in told
