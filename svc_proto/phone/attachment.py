"""Attachment in a chat: a media marker whose file is fetched from the relay, or a card with the reason why not.

SPEC.md "Client attachment fetch", with the implied rows (a successful fetch, a tap, a retry):

| state       | trigger      | next        |                                                              |
|-------------|--------------|-------------|--------------------------------------------------------------|
| LOADING     | WAIT_FOR_TAP | LOADING     | on cellular with auto-fetch off: a tap-to-download affordance |
| LOADING     | TAP          | LOADING     | requested by the user: fetch                                 |
| LOADING     | FETCHED      | READY       |                                                              |
| LOADING     | TOO_LARGE    | FAILED      | "file too large"                                             |
| LOADING     | UNREACHABLE  | UNAVAILABLE | the card names the reason: relay offline                     |
| LOADING     | FORBIDDEN    | UNAVAILABLE | sandbox violation                                            |
| LOADING     | MISSING      | UNAVAILABLE | file not found                                               |
| UNAVAILABLE | TAP          | LOADING     | try again                                                    |
"""

import re
from enum import Enum
from html import unescape
from urllib.parse import quote, unquote

from attrs import define, field, frozen

from svc_proto.basics.brand import BRANDS
from svc_proto.machines.transitions import Table, step
from svc_proto.phone.preferences import Preferences

__all__ = [
    "ATTACHMENT_TABLE",
    "Attachment",
    "AttachmentState",
    "AttachmentTrigger",
    "MediaMarker",
    "MediaCache",
    "find_markers",
]

_SCHEMES = "|".join(re.escape(brand.scheme) for brand in BRANDS.values())
# Quotation marks of all scripts, and the marks of Markdown.
_OPENING = r"[<*_~\u00ab\u2018-\u201f\u2039\u300a-\u300f]"
_MARKER = re.compile(
    rf"MEDIA:(?:(?:{_SCHEMES})://(?P<token>[A-Za-z0-9_-]+)"
    r"|(?P<quote>[\"'`])(?P<quoted>/[^\n]*?)(?P=quote)"
    rf"|{_OPENING}{{0,3}}(?P<words>/(?:(?!MEDIA:)[^\n])+))"
)
# Places where a path without quotes may end: at a blank, at a mark that text or Markdown puts behind a path, before a
# run of ASCII punctuation that ends a word, and between an extension and a letter of a script without blanks.
_AFTER_EXTENSION = "|".join(rf"(?<=\.{'[A-Za-z0-9]' * length})" for length in range(1, 6))
_PATH_END = re.compile(
    r"(?P<blank>\s+)"
    r"|(?=[\"'`<>|*)\]},;])"
    r"|(?=[!-/:-@[-`{-~]+(?:\s|$))"
    r"|(?=[\u00a1-\u00bf\u2010-\u2027\u2030-\u205e\u3000-\u303f\u30fb\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65])"
    rf"|(?:{_AFTER_EXTENSION})(?=[^\x00-\x7f])"
)
_ESCAPE = re.compile(r"\\([!-/:-@[-`{-~])")  # of Markdown
MAX_PATH_WORDS = 8  # of a path without quotes
MAX_PATHS = 24  # possible paths of one marker


class AttachmentState(Enum):
    """State of an attachment."""

    LOADING = "LOADING"
    READY = "READY"
    FAILED = "FAILED"
    UNAVAILABLE = "unavailable card"


class AttachmentTrigger(Enum):
    """Trigger of a transition of `ATTACHMENT_TABLE`."""

    WAIT_FOR_TAP = "on cellular, auto-fetch off"
    TAP = "tap"
    FETCHED = "fetched"
    TOO_LARGE = "too large"
    UNREACHABLE = "relay offline"
    FORBIDDEN = "sandbox violation"
    MISSING = "file not found"


ATTACHMENT_TABLE: Table[AttachmentState, AttachmentTrigger] = {
    (AttachmentState.LOADING, AttachmentTrigger.WAIT_FOR_TAP): AttachmentState.LOADING,
    (AttachmentState.LOADING, AttachmentTrigger.TAP): AttachmentState.LOADING,
    (AttachmentState.LOADING, AttachmentTrigger.FETCHED): AttachmentState.READY,
    (AttachmentState.LOADING, AttachmentTrigger.TOO_LARGE): AttachmentState.FAILED,
    (AttachmentState.LOADING, AttachmentTrigger.UNREACHABLE): AttachmentState.UNAVAILABLE,
    (AttachmentState.LOADING, AttachmentTrigger.FORBIDDEN): AttachmentState.UNAVAILABLE,
    (AttachmentState.LOADING, AttachmentTrigger.MISSING): AttachmentState.UNAVAILABLE,
    (AttachmentState.UNAVAILABLE, AttachmentTrigger.TAP): AttachmentState.LOADING,
}


MESSAGES = {
    AttachmentTrigger.TOO_LARGE: "file too large",
    AttachmentTrigger.UNREACHABLE: "relay offline",
    AttachmentTrigger.FORBIDDEN: "sandbox violation",
    AttachmentTrigger.MISSING: "file not found",
}

NOT_THERE = (AttachmentTrigger.MISSING, AttachmentTrigger.FORBIDDEN)  # with these, a shorter path is tried


@frozen
class MediaMarker:
    """Media marker in a chat text: a token of the media registry, or an absolute path of the host.

    The end of a path without quotes is uncertain: `shorter` has further possible paths. First are shorter ones as
    written, longest first, then all of them and `path` without escapes, in all up to `MAX_PATHS` paths.
    """

    token: str | None = None
    path: str | None = None
    shorter: tuple[str, ...] = ()

    @property
    def targets(self) -> tuple[str, ...]:
        """HTTP paths on the relay, to be tried in this order: the next one after a 403 or 404."""
        if self.token is not None:
            return (f"/media/{self.token}",)
        return tuple(
            f"/media/by-path?path={quote(path, safe='', errors='replace')}" for path in (self.path or "", *self.shorter)
        )


def find_markers(text: str) -> list[MediaMarker]:
    """Return the markers in a chat text, in order, of either brand (SPEC.md "Media marker in chat text")."""
    return [_marker(match) for match in _MARKER.finditer(text)]


@define
class Attachment:
    """Attachment of a chat: if `wants_fetch`, fetch `target` and report the result by `on_response`."""

    marker: MediaMarker
    preferences: Preferences
    on_cellular: bool = False
    state: AttachmentState = field(default=AttachmentState.LOADING, init=False)
    tapped: bool = field(default=False, init=False)
    _tried: int = field(default=0, init=False)  # index in the marker's targets
    message: str = field(default="", init=False)

    def __attrs_post_init__(self) -> None:
        if not self.wants_fetch:
            self._step(AttachmentTrigger.WAIT_FOR_TAP)

    @property
    def wants_fetch(self) -> bool:
        """Report whether the file is to be fetched now."""
        held = self.on_cellular and not self.preferences.auto_fetch_on_cellular and not self.tapped
        return self.state is AttachmentState.LOADING and not held

    @property
    def target(self) -> str:
        """The path on the relay from which to fetch the file."""
        return self.marker.targets[self._tried]

    @property
    def can_tap(self) -> bool:
        """Report whether to show a tap-to-download affordance: a fetch waits for a tap, or the file is unavailable."""
        waiting = self.state is AttachmentState.LOADING and not self.wants_fetch
        return waiting or self.state is AttachmentState.UNAVAILABLE

    def tap(self) -> None:
        """Let the file be fetched at the user's request; do nothing if `can_tap` is false."""
        if self.can_tap:
            self._step(AttachmentTrigger.TAP)
            self.tapped = True
            self._tried = 0
            self.message = ""

    def on_response(self, status: int | None, size: int) -> None:
        """Handle the relay's response: its status, None if there was none, and the body's size in bytes.

        If the file is missing or not allowed and the marker has a further path, `target` becomes that path. A response
        in another state than `LOADING` is ignored.
        """
        if self.state is AttachmentState.LOADING:  # else a late response to an abandoned fetch
            trigger = _trigger(status, size, self.preferences.max_inbound)
            if trigger in NOT_THERE and self._tried + 1 < len(self.marker.targets):
                self._tried += 1  # try a shorter path
                return
            self.message = MESSAGES.get(trigger, "")
            self._step(trigger)

    def _step(self, trigger: AttachmentTrigger) -> None:
        self.state = step(ATTACHMENT_TABLE, self.state, trigger)


class MediaCache:
    """Index of the cached media files; the oldest by modification time are deleted first (spec "Limits")."""

    def __init__(self, preferences: Preferences) -> None:
        self._cap = preferences.cache_cap
        self._files: dict[str, tuple[float, int]] = {}

    @property
    def size(self) -> int:
        """The size of the cached files in bytes."""
        return sum(size for _, size in self._files.values())

    def put(self, name: str, size: int, modified: float) -> list[str]:
        """Add a stored file to the index, and remove the oldest ones so that the cap holds; return the removed names.

        The added file may be among them.
        """
        self._files[name] = (modified, size)
        gone: list[str] = []
        excess = self.size - self._cap
        for oldest in sorted(self._files, key=lambda each: (self._files[each][0], each)):
            if excess <= 0:
                break
            excess -= self._files.pop(oldest)[1]
            gone.append(oldest)
        return gone


def _marker(match: re.Match[str]) -> MediaMarker:
    if match["words"] is None:
        return MediaMarker(match["token"], match["quoted"])
    words = match["words"].strip()
    ends = [end for end in _PATH_END.finditer(words) if end.start() > 1]
    blanks = [end.start() for end in ends if end["blank"]][MAX_PATH_WORDS - 1 :]
    last = blanks[0] if blanks else len(words)
    possible = dict.fromkeys(words[: end.start()].rstrip() for end in ends if end.start() < last)
    longest_first = [words[:last], *reversed([*possible][: MAX_PATHS - 1])]
    path, *shorter = [*dict.fromkeys([*longest_first, *map(_unescaped, longest_first)])][:MAX_PATHS]
    return MediaMarker(path=path, shorter=tuple(shorter))


def _unescaped(path: str) -> str:
    """Return a path without the escapes of Markdown, HTML and URLs, which some models write."""
    return unquote(unescape(_ESCAPE.sub(r"\1", path)))


def _trigger(status: int | None, size: int, most: int) -> AttachmentTrigger:
    match status:
        case 200:
            return AttachmentTrigger.FETCHED if size <= most else AttachmentTrigger.TOO_LARGE
        case 403:
            return AttachmentTrigger.FORBIDDEN
        case 404:
            return AttachmentTrigger.MISSING
        case _:
            return AttachmentTrigger.UNREACHABLE
