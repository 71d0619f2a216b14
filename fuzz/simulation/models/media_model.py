"""The life of media as those know it who put them there and fetch them (wire core 6.5).

It looks at no server. A request whose answer was lost may have been carried out at any time from then on, or never.
What is said to be over is over whatever happened to those, and what must live does so, too. Monotonic seconds.
"""

from __future__ import annotations

from math import inf

from attrs import define, field


@define(eq=False)
class MediaUse:
    """Somebody asked for it, or put it there: it was used at some time between the two."""

    sent: float
    told: float = inf


@define(eq=False)
class MediaFileModel:
    """A file behind a token. The first of its uses is its registration."""

    data: bytes
    uses: list[MediaUse]
    path: str = ""  # of a file of the host; an upload has none
    token: str = ""  # until it is told

    @property
    def since(self) -> MediaUse:
        """When it was put there."""
        return self.uses[0]

    def last_used(self, before: float) -> float:
        """By those who had asked by then it was not used later; what has no answer yet may come at any time."""
        return max(use.told for use in self.uses if use.sent < before)

    def surely_used(self, before: float) -> float:
        """It was used later than that, by those whose answers had come by then."""
        return max(use.sent for use in self.uses if use.told <= before)


@define
class MediaModel:
    """All of them: each lives for `ttl` seconds, and there are never more than `cap`."""

    ttl: float
    cap: int
    media: list[MediaFileModel] = field(factory=list)
    outages: list[tuple[float, float]] = field(factory=list)  # of the relay, which forgets them all

    def is_running_since(self, when: float) -> bool:
        """Whether the relay has run from then on."""
        return all(came < when for _, came in self.outages)

    def add(self, data: bytes, now: float, path: str = "") -> MediaFileModel:
        """Somebody is about to put something there."""
        medium = MediaFileModel(data, [MediaUse(now)], path)
        self.media.append(medium)
        return medium

    def refused(self, medium: MediaFileModel) -> None:
        """It was not put there."""
        self.media.remove(medium)

    def use(self, medium: MediaFileModel, now: float) -> MediaUse:
        """Somebody is about to fetch it."""
        use = MediaUse(now)
        medium.uses.append(use)
        return use

    def discard_use(self, medium: MediaFileModel, use: MediaUse) -> None:
        """It was not there, or nobody looked: that was no use of it."""
        medium.uses.remove(use)

    @property
    def known_files(self) -> list[MediaFileModel]:
        """Those whose token is known, oldest first."""
        return [medium for medium in self.media if medium.token]

    def end_reason(self, medium: MediaFileModel, sent: float) -> str:
        """Why it was over when something was sent; empty if that cannot be said."""
        told = medium.since.told
        if medium.since.sent >= sent:
            return ""
        if sent >= told + self.ttl:
            return f"{sent - told:.1f} s after it was registered for {self.ttl:.0f} s"
        if any(went >= told and came <= sent for went, came in self.outages):
            return "after the relay was started again"
        used = medium.last_used(sent)
        newer = [each for each in self.media if each.since.sent > used and each.since.told < sent]
        return f"{len(newer)} newer ones are there, of {self.cap} at most" if len(newer) >= self.cap else ""

    def max_stored_uploads(self, now: float) -> int:
        """How many uploads may be on the disk: those that are not over, or are under way."""
        return sum(not medium.path and not self.end_reason(medium, now) for medium in self.media)

    def must_live(self, medium: MediaFileModel, sent: float, now: float) -> bool:
        """Whether a fetch of this span of time must find it."""
        since = medium.since
        if medium.since.told > sent or now >= since.sent + self.ttl:
            return False
        if any(came >= since.sent and went <= now for went, came in self.outages):
            return False
        used = medium.surely_used(sent)
        others = [each for each in self.media if each is not medium]
        return sum(any(use.told >= used and use.sent <= now for use in each.uses) for each in others) < self.cap
