"""Clients that upload media, register files of the host, and fetch both."""

import base64
from collections.abc import Callable

from fuzz.simulation.actors.actor_context import BOUNDARY, ActorContext, StepHandler
from fuzz.simulation.deployment import MAX_MEDIA
from fuzz.simulation.invariants import Invariant, violated
from fuzz.simulation.models.media_model import MediaFileModel
from fuzz.simulation.models.reference_model import SessionModel
from fuzz.steps import ChangeFile, FetchMedia, ShareFile, Step, UploadMedia
from tests.support.sim_http import RequestClient

SHARED, FILES = "/tmp/shared", 6  # a folder within the roots, and its number of files
SECRET = "/etc/secret.txt"  # outside of all roots
SWEEP_TIMEOUT = 2.0  # s from the expiry of an upload to the deletion of its file
FORM = 4_000  # bytes from which an upload may be a form
ANY_TYPE = "application/octet-stream"


class MediaUsers:
    """Handler of the steps in which clients upload, register and fetch media; checks contents and lifetimes."""

    def __init__(self, crowd: ActorContext) -> None:
        self.crowd = crowd
        self.world = crowd.world
        self._media_model = crowd.world.media_model
        self._contents: dict[str, list[tuple[float, bytes | None]]] = {}  # contents of host files, with start times
        self.handlers: dict[type[Step], StepHandler] = {
            UploadMedia: self._upload,
            ShareFile: self._share,
            ChangeFile: self._change_one,
            FetchMedia: self._fetch,
        }

    def _upload(self, step: UploadMedia) -> None:
        if not self.crowd.sessions:
            return
        data = f"upload {self.crowd.next_number()} ".encode() * max(1, int(step.size) // 10)
        session, done = self.crowd.pick_session(step.session), self._registered(data)
        if step.size >= FORM and step.form % 3:
            self.crowd.request_as_agent("POST", "/media/upload", _form(data), session, done)
            return
        content = base64.b64encode(data).decode()
        body = {"file_name": "a.bin", "content_type": ANY_TYPE, "content": content}
        self.crowd.request_as_agent("POST", "/media/upload", body, session, done)

    def _share(self, step: ShareFile) -> None:
        path = f"{SHARED}/{step.file % FILES}.txt"
        if path not in self._contents:
            self._change(path, f"file {step.file % FILES} of the host".encode())
        data = self._contents[path][-1][1] or b""
        body = {"path": path, "content_type": ANY_TYPE}
        self.crowd.request_as_operator("POST", "/media/register", body, self._registered(data, path))

    def _change_one(self, step: ChangeFile) -> None:
        told, disk = self._media_model.known_files, self.world.home.disk
        path = told[step.file % len(told)].path if told else ""
        if not path:
            return
        match self.crowd.next_number() % 6:
            case 0:
                disk.remove(path)
                self._contents[path].append((self.crowd.now, None))
            case 1:
                disk.put(SECRET, b"secret of the host")
                disk.symlink(path, SECRET)
                self._contents[path].append((self.crowd.now, None))
            case 2:
                self._change(path, f"file {path} as it is now".encode())
            case _:
                self._change(path, bytes(MAX_MEDIA + 1))

    def _change(self, path: str, data: bytes) -> None:
        self.world.home.disk.put(path, data)
        self._contents.setdefault(path, []).append((self.crowd.now, data if len(data) <= MAX_MEDIA else None))

    def _versions(self, medium: MediaFileModel, since: float) -> list[bytes | None]:
        """Return the possible contents for a fetch that was sent at `since`; None: the file must not be served."""
        if not medium.path:
            return [medium.data]
        contents = self._contents[medium.path]
        first = max(place for place, (when, _) in enumerate(contents) if place == 0 or when <= since)
        return [data for _, data in contents[first:]]

    def _registered(self, data: bytes, path: str = "") -> Callable[[RequestClient], None]:
        medium = self._media_model.add(data, self.crowd.now, path)

        def done(caller: RequestClient) -> None:
            if not path:
                self.world.sim.after(SWEEP_TIMEOUT, self.check_spool)
            if caller.status == 200:
                if not any(version is not None for version in self._versions(medium, medium.since.sent)):
                    violated(Invariant.OWN_BYTES, f"{path} was taken, and may not be had")
                medium.token = str(caller.answer.json["token"])
                medium.since.told = self.crowd.now
            elif caller.status:
                self._media_model.refused(medium)

        return done

    def _fetch(self, step: FetchMedia) -> None:
        told = self._media_model.known_files
        if not told:
            return
        medium = told[step.medium % len(told)]
        session = self.crowd.pick_session(step.session) if self.crowd.sessions and step.session % 4 else None
        sent = self.crowd.now
        use = self._media_model.use(medium, sent)

        def done(caller: RequestClient) -> None:
            if caller.status == 200:
                use.told = self.crowd.now
                self._got(medium, session, sent, caller.answer.body)
            elif caller.status >= 500 or (caller.status == 404 and self.world.store_trouble):
                # The entry may have been found, and its file not have been read.
                use.told, use.is_sure = self.crowd.now, False
            elif caller.status and (caller.status != 404 or None not in self._versions(medium, sent)):
                # Else the file may have been found, but its present content must not be served.
                medium.uses.remove(use)
            if caller.status == 404:
                self.world.count("media that were over")
                there = None not in self._versions(medium, sent) and not self.world.store_trouble
                if there and self._media_model.must_live(medium, sent, self.crowd.now):
                    violated(Invariant.MEDIA_LIFE, f"{medium.data[:12]!r} cannot be had, and is not over")

        self.crowd.request_as_agent("GET", f"/media/{medium.token}", None, session, done)

    def _got(self, medium: MediaFileModel, session: SessionModel | None, sent: float, body: bytes) -> None:
        data, versions = medium.data, self._versions(medium, sent)
        if session is None:
            violated(Invariant.ACCESS, "media were given to a caller without a token")
        if session.is_dead(self.world.wall, sent, self.crowd.now):
            violated(Invariant.DEAD_TOKEN, f"{session.prefix} fetched media after its end")
        if body not in versions:
            violated(Invariant.OWN_BYTES, f"{data[:12]!r} was asked for, {body[:12]!r} came")
        over = self._media_model.end_reason(medium, sent)
        if over:
            violated(Invariant.MEDIA_LIFE, f"{data[:12]!r} was had: {over}")

    def check_inspector(self, caller: RequestClient, sent: float) -> None:
        """Check the unexpired entries that the media inspector lists.

        They include all that must exist, none that must have ended, and no more than the limit.
        """
        media_model = self._media_model
        live = {record["token"] for record in caller.answer.json["media"] if not record["is_expired"]}
        if len(live) > media_model.cap:
            violated(Invariant.MEDIA_LIFE, f"{len(live)} media are kept, of {media_model.cap} at most")
        for medium in media_model.known_files:
            over = media_model.end_reason(medium, sent) if medium.token in live else ""
            if over:
                violated(Invariant.MEDIA_LIFE, f"{medium.data[:12]!r} is shown: {over}")
            if medium.token not in live and media_model.must_live(medium, sent, self.crowd.now):
                violated(Invariant.MEDIA_LIFE, f"{medium.data[:12]!r} is not shown, and is not over")

    def check_spool(self) -> None:
        """Check that there are no more spooled files than uploads that may exist.

        Do nothing while the relay is down, and after faults that leave files behind.
        """
        world, model, latest = self.world, self._media_model, self.crowd.now - SWEEP_TIMEOUT
        if world.store_trouble or not world.is_relay_up or (model.outages and len(world.wall.steps) > 1):
            return  # files of a killed relay are deleted by their date
        there = len(world.home.disk.files(world.home.spool))
        kept = sum(not each.path and not model.end_reason(each, latest) for each in model.media)
        if there > kept:
            violated(Invariant.MEDIA_LIFE, f"{there} files of uploads are kept, and {kept} uploads may be there")


def _form(data: bytes) -> bytes:
    head = f'--{BOUNDARY}\r\ncontent-disposition: form-data; name="file"; filename="a.bin"\r\n'
    return f"{head}content-type: {ANY_TYPE}\r\n\r\n".encode() + data + f"\r\n--{BOUNDARY}--\r\n".encode()
