"""People who upload and fetch media, post notifications, and look into the inspectors."""

from __future__ import annotations

import base64

from fuzz.invariants import Invariant
from fuzz.model import violated
from fuzz.peers import Caller
from fuzz.people.crowd import Crowd, Deeds, nothing
from fuzz.script import Deed, Step

__all__ = ["Media"]

INSPECTORS = (
    "/bridge/activity",
    "/media/inspect?include_expired=1",
    "/relay/info",
    "/bridge/devices",
    "/bridge/status",
    "/notifications/recent",
    "/sessions",
    "/health",
)


class Media:
    """The steps that concern what is kept for somebody else to see."""

    def __init__(self, crowd: Crowd) -> None:
        self.crowd = crowd
        self.world = crowd.world
        self._uploads: list[tuple[str, bytes]] = []
        self._decisions: dict[str, str] = {}
        self.deeds: dict[Deed, Deeds] = {
            Deed.UPLOAD: self._upload,
            Deed.FETCH: self._fetch,
            Deed.INSPECT: self._inspect,
            Deed.NOTIFY: self._notify,
        }

    def _upload(self, step: Step) -> None:
        if not self.crowd.sessions:
            return
        data = f"upload {self.crowd.number()} ".encode() * max(1, int(step.amount) // 10)
        content = base64.b64encode(data).decode()
        body = {"file_name": "a.bin", "content_type": "application/octet-stream", "content": content}

        def done(caller: Caller) -> None:
            if caller.status == 200:
                self._uploads.append((str(caller.answer.json["token"]), data))

        self.crowd.remote("POST", "/media/upload", body, self.crowd.session(step.who), done)

    def _fetch(self, step: Step) -> None:
        if not self._uploads:
            return
        token, data = self._uploads[step.other % len(self._uploads)]
        session = self.crowd.session(step.who) if step.who % 4 else None
        sent = self.crowd.now

        def done(caller: Caller) -> None:
            if caller.status == 200 and session is None:
                violated(Invariant.LOCAL_ONLY, "media were given to a caller without a token")
            if caller.status == 200 and session is not None and session.is_dead(self.world.wall, sent, self.crowd.now):
                violated(Invariant.DEAD_TOKEN, f"{session.prefix} fetched media after its end")
            if caller.status == 200 and caller.answer.body != data:
                violated(Invariant.OWN_BYTES, f"{data[:12]!r} was asked for, {caller.answer.body[:12]!r} came")

        self.crowd.remote("GET", f"/media/{token}", None, session, done)

    def _inspect(self, step: Step) -> None:
        path = INSPECTORS[step.who % len(INSPECTORS)]
        self.crowd.local("GET", path, None, self._activity if path == "/bridge/activity" else nothing)

    def _activity(self, caller: Caller) -> None:
        if caller.status != 200:
            return
        for record in caller.answer.json["activity"]:
            request_id, decision = record["request_id"], record["decision"]
            before = self._decisions.setdefault(request_id, decision)
            if before not in ("pending", decision):
                violated(Invariant.ONE_ANSWER, f"a record went from {before} to {decision}")
            self._decisions[request_id] = decision

    def _notify(self, step: Step) -> None:
        if self.crowd.open:
            device = self.crowd.open[step.who % len(self.crowd.open)]
            note = {"package": "com.example", "title": f"note {self.crowd.number()}", "text": "hello"}
            device.talker.say("notifications", "notification.posted", note)
            device.talker.say("system", "ping", {"ts": 1})
