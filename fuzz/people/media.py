"""People who upload and fetch media, post notifications, and look into the inspectors."""

from __future__ import annotations

import base64
from collections.abc import Callable

from fuzz.invariants import Invariant
from fuzz.model import Session, violated
from fuzz.peers import Caller
from fuzz.people.crowd import Crowd, Deeds, nothing
from fuzz.script import Deed, Step
from fuzz.shelf import Medium

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
SHARED, FILES = "/tmp/shared", 6  # a folder within the roots, and how many files are in it
ANY_TYPE = "application/octet-stream"


class Media:
    """The steps that concern what is kept for somebody else to see."""

    def __init__(self, crowd: Crowd) -> None:
        self.crowd = crowd
        self.world = crowd.world
        self._shelf = crowd.world.shelf
        self._decisions: dict[str, str] = {}
        self.deeds: dict[Deed, Deeds] = {
            Deed.UPLOAD: self._upload,
            Deed.SHARE: self._share,
            Deed.FETCH: self._fetch,
            Deed.INSPECT: self._inspect,
            Deed.NOTIFY: self._notify,
        }

    def _upload(self, step: Step) -> None:
        if not self.crowd.sessions:
            return
        data = f"upload {self.crowd.number()} ".encode() * max(1, int(step.amount) // 10)
        content = base64.b64encode(data).decode()
        body = {"file_name": "a.bin", "content_type": ANY_TYPE, "content": content}
        self.crowd.remote("POST", "/media/upload", body, self.crowd.session(step.who), self._registered(data))

    def _share(self, step: Step) -> None:
        path, data = f"{SHARED}/{step.who % FILES}.txt", f"file {step.who % FILES} of the host".encode()
        disk = self.world.home.disk
        if not disk.exists(path):
            disk.put(path, data)
        body = {"path": path, "content_type": ANY_TYPE}
        self.crowd.local("POST", "/media/register", body, self._registered(data))

    def _registered(self, data: bytes) -> Callable[[Caller], None]:
        medium = self._shelf.put(data, self.crowd.now)

        def done(caller: Caller) -> None:
            if caller.status == 200:
                medium.token = str(caller.answer.json["token"])
                medium.since.told = self.crowd.now
            elif caller.status:
                self._shelf.refused(medium)

        return done

    def _fetch(self, step: Step) -> None:
        told = self._shelf.told
        if not told:
            return
        medium = told[step.other % len(told)]
        session = self.crowd.session(step.who) if self.crowd.sessions and step.who % 4 else None
        sent = self.crowd.now
        use = self._shelf.use(medium, sent)

        def done(caller: Caller) -> None:
            if caller.status == 200:
                use.told = self.crowd.now
                self._got(medium, session, sent, caller.answer.body)
            elif caller.status:
                self._shelf.missed(medium, use)
            if caller.status == 404:
                self.world.count("media that were over")
                if not self.world.store_trouble and self._shelf.must_live(medium, sent, self.crowd.now):
                    violated(Invariant.MEDIA_LIFE, f"{medium.data[:12]!r} cannot be had, and is not over")

        self.crowd.remote("GET", f"/media/{medium.token}", None, session, done)

    def _got(self, medium: Medium, session: Session | None, sent: float, body: bytes) -> None:
        data = medium.data
        if session is None:
            violated(Invariant.LOCAL_ONLY, "media were given to a caller without a token")
        if session.is_dead(self.world.wall, sent, self.crowd.now):
            violated(Invariant.DEAD_TOKEN, f"{session.prefix} fetched media after its end")
        if body != data:
            violated(Invariant.OWN_BYTES, f"{data[:12]!r} was asked for, {body[:12]!r} came")
        over = self._shelf.over_before(medium, sent)
        if over:
            violated(Invariant.MEDIA_LIFE, f"{data[:12]!r} was had: {over}")

    def _inspect(self, step: Step) -> None:
        path = INSPECTORS[step.who % len(INSPECTORS)]
        sent = self.crowd.now
        listeners = {INSPECTORS[0]: self._activity, INSPECTORS[1]: lambda caller: self._shown(caller, sent)}
        self.crowd.local("GET", path, None, listeners.get(path, nothing))

    def _shown(self, caller: Caller, sent: float) -> None:
        """The inspector of media knows what lives, and what does not."""
        if caller.status != 200:
            return
        shelf = self._shelf
        live = {record["token"] for record in caller.answer.json["media"] if not record["is_expired"]}
        if len(live) > shelf.cap:
            violated(Invariant.MEDIA_LIFE, f"{len(live)} media are kept, of {shelf.cap} at most")
        for medium in shelf.told:
            over = shelf.over_before(medium, sent) if medium.token in live else ""
            if over:
                violated(Invariant.MEDIA_LIFE, f"{medium.data[:12]!r} is shown: {over}")
            if medium.token not in live and shelf.must_live(medium, sent, self.crowd.now):
                violated(Invariant.MEDIA_LIFE, f"{medium.data[:12]!r} is not shown, and is not over")

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
