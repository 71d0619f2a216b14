"""Expected life of registered media (wire core 6.5), by the requests and responses of their clients.

Times are monotonic seconds.
"""

from math import inf

from attrs import define, field


@define(eq=False)
class MediaUse:
    """Use of a media file, registration or fetch, at some time between request and response."""

    sent: float
    told: float = inf
    is_sure: bool = True  # False: the file may have been found, but the request failed


@define(eq=False)
class MediaFileModel:
    """Media file behind a token. The first of its uses is its registration."""

    data: bytes
    uses: list[MediaUse]
    path: str = ""  # of a file of the host; an upload has none
    token: str = ""  # until it is reported

    @property
    def since(self) -> MediaUse:
        """Return the registration of the file, its first use."""
        return self.uses[0]


@define
class MediaModel:
    """All media files: each lives for `ttl` seconds, and there are never more than `cap`."""

    ttl: float
    cap: int
    media: list[MediaFileModel] = field(factory=list)
    outages: list[tuple[float, float]] = field(factory=list)  # of the relay, which drop all media

    def is_running_since(self, when: float) -> bool:
        """Report whether the relay has run without a stop since `when`."""
        return all(came < when for _, came in self.outages)

    def add(self, data: bytes, now: float, path: str = "") -> MediaFileModel:
        """Record a file that a client is about to register."""
        medium = MediaFileModel(data, [MediaUse(now)], path)
        self.media.append(medium)
        return medium

    def refused(self, medium: MediaFileModel) -> None:
        """Remove a file whose registration was refused."""
        self.media.remove(medium)

    def use(self, medium: MediaFileModel, now: float) -> MediaUse:
        """Record a fetch that is about to be sent."""
        use = MediaUse(now)
        medium.uses.append(use)
        return use

    @property
    def known_files(self) -> list[MediaFileModel]:
        """Return the files with a known token, oldest first."""
        return [medium for medium in self.media if medium.token]

    def end_reason(self, medium: MediaFileModel, sent: float) -> str:
        """Return why the file cannot exist any more at the time `sent`; empty if it may exist."""
        told = medium.since.told
        if medium.since.sent >= sent:
            return ""
        if sent >= told + self.ttl:
            return f"{sent - told:.1f} s after it was registered for {self.ttl:.0f} s"
        if any(went >= told and came <= sent for went, came in self.outages):
            return "after the relay was started again"
        used = max(use.told for use in medium.uses if use.sent < sent)  # at the latest; infinite without a response
        newer = [each for each in self.media if each.since.sent > used and each.since.told < sent]
        return f"{len(newer)} newer ones are there, of {self.cap} at most" if len(newer) >= self.cap else ""

    def must_live(self, medium: MediaFileModel, sent: float, now: float) -> bool:
        """Report whether a fetch between `sent` and `now` must find the file."""
        since = medium.since
        if medium.since.told > sent or now >= since.sent + self.ttl:
            return False
        if any(came >= since.sent and went <= now for went, came in self.outages):
            return False
        used = max(use.sent for use in medium.uses if use.is_sure and use.told <= sent)  # at the earliest
        others = [each for each in self.media if each is not medium]
        return sum(any(use.told >= used and use.sent <= now for use in each.uses) for each in others) < self.cap
