"""Owners of sessions, who end them, change their terms and list them."""

from __future__ import annotations

from fuzz.invariants import Invariant
from fuzz.model import Session, check_grants, violated
from fuzz.peers import Caller
from fuzz.people.crowd import GRANTS, Crowd, Deeds
from fuzz.script import Deed, Step

__all__ = ["Owners"]

ENDED_WITHIN = 20.0  # s in which a socket of a revoked session is gone, on a network without trouble


class Owners:
    """The steps that concern sessions."""

    def __init__(self, crowd: Crowd) -> None:
        self.crowd = crowd
        self.world = crowd.world
        self.deeds: dict[Deed, Deeds] = {
            Deed.REVOKE: self._revoke,
            Deed.EXTEND: self._extend,
            Deed.LIST: self._list,
        }

    def _revoke(self, step: Step) -> None:
        if not self.crowd.sessions:
            return
        caller = self.crowd.session(step.who)
        session = self.crowd.session(step.other)
        session.revoking = True
        sent = self.crowd.now

        def done(answer: Caller) -> None:
            if answer.status != 200:
                return
            if caller.is_dead(self.world.wall, sent, self.crowd.now) and step.who % 4:
                violated(Invariant.DEAD_TOKEN, f"{caller.prefix} revoked {session.prefix} after its own end")
            session.revoked = self.crowd.now
            self.world.sim.after(ENDED_WITHIN, lambda: self._check_ended(session, sent))

        path = f"/sessions/{session.prefix}"
        if step.who % 4:
            self.crowd.remote("DELETE", path, None, caller, done)
        else:
            self.crowd.local("DELETE", path, None, done)

    def _check_ended(self, session: Session, since: float) -> None:
        if self.world.shaken >= since or not self.world.relay.alive:
            return
        for device in self.crowd.open:
            if device.session is session and device.talker.began < since:
                violated(Invariant.SOCKETS_ENDED, f"{device.name} is open {ENDED_WITHIN:.0f} s after it was revoked")

    def _extend(self, step: Step) -> None:
        if not self.crowd.sessions:
            return
        session = self.crowd.session(step.who)
        body: dict[str, object] = {"ttl_seconds": int(step.amount)}
        grants = GRANTS[step.other % len(GRANTS)]
        if grants is not None:
            body["grants"] = grants
        session.terms.append(None)
        session.patches += 1
        session.patched += 1
        alone = session.patches == 1
        begun = session.patched

        def done(caller: Caller) -> None:
            session.patches -= 1
            if caller.status == 200:
                terms = session.learn(caller.answer.json)
                if alone and session.patched == begun:
                    session.terms = [terms]
                else:
                    session.terms.append(terms)
            elif caller.status in (400, 401, 403, 404, 409):
                session.terms.remove(None)

        self.crowd.remote("PATCH", f"/sessions/{session.prefix}", body, session, done)

    def _list(self, step: Step) -> None:
        sent = self.crowd.now

        def done(caller: Caller) -> None:
            if caller.status != 200:
                return
            gone = [one.prefix for one in self.crowd.sessions if one.is_dead(self.world.wall, sent, self.crowd.now)]
            for record in caller.answer.json["sessions"]:
                check_grants(record["grants"], record["expires_at"], record["token_prefix"])
                if record["token_prefix"] in gone:
                    violated(Invariant.DEAD_TOKEN, f"{record['token_prefix']} is listed after its end")

        if self.crowd.sessions and step.who % 3:
            self.crowd.remote("GET", "/sessions", None, self.crowd.session(step.who), done)
        else:
            self.crowd.local("GET", "/sessions", None, done)
