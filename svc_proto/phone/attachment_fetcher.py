"""Fetcher of a chat's attachments, whose state is in `Attachment`.

At most four fetches run at once, in the order of display. Fetched files are kept in memory up to the cap of the
preferences; the oldest is dropped first.
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping

from attrs import define

from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Task
from svc_proto.engine.http_client import HttpResult, buffered
from svc_proto.facts import FailureKind
from svc_proto.phone.attachment import Attachment, MediaCache, find_markers
from svc_proto.phone.preferences import Preferences
from svc_proto.service_clients.relay_client import RelayClient
from svc_proto.service_clients.service_client import ServiceCallError

__all__ = ["AttachmentFetcher"]

MAX_ATTACHMENTS = 100  # attachments that are kept; the oldest is dropped, with its fetch
DOWNLOAD_TIMEOUT = 120.0  # s, for a whole file: 100 MB, the largest that may be allowed, at 7 Mbit/s
MAX_CONCURRENT = 4  # fetches; the others wait


@define(eq=False)
class _FetchedAttachment:
    attachment: Attachment
    task: Task | None = None
    size: int = 0  # bytes
    content_type: str = ""


class AttachmentFetcher:
    """Attachments of the displayed texts; `source` returns the relay client, None before the first sign-in.

    A new attachment, a successful tap and the end of a fetch that was not cancelled are reported as `attachment`:
    `number`, `state`, `message`, `tap` (whether one is offered), `size` in bytes, `content_type`.
    """

    def __init__(
        self,
        engine: Engine,
        preferences: Preferences,
        *,
        on_cellular: bool,
        source: Callable[[], RelayClient | None],
        notify: Callable[[str, Mapping[str, object]], None],
    ) -> None:
        self._engine = engine
        self._preferences = preferences
        self._on_cellular = on_cellular
        self._source = source
        self._emit = notify
        self._shown: OrderedDict[int, _FetchedAttachment] = OrderedDict()
        self._cache = MediaCache(preferences)
        self._bodies: dict[int, bytes] = {}
        self._count = 0

    def show(self, text: str) -> list[int]:
        """Add the attachments of a displayed text and return their numbers; start pending fetches as `go_on` does."""
        numbers = []
        for marker in find_markers(text):
            self._count += 1
            attachment = Attachment(marker, self._preferences, on_cellular=self._on_cellular)
            self._shown[self._count] = _FetchedAttachment(attachment)
            numbers.append(self._count)
            self._notify(self._count)
            while len(self._shown) > MAX_ATTACHMENTS:
                self._forget()
        self.go_on()
        return numbers

    def tap(self, number: int) -> bool:
        """Let an attachment be fetched at the user's request; return False if no tap is offered for it.

        The fetch starts when `go_on` permits it.
        """
        shown = self._shown.get(number)
        if shown is None or not shown.attachment.can_tap:
            return False
        shown.attachment.tap()
        self._notify(number)
        self.go_on()
        return True

    def on_network(self, *, cellular: bool) -> None:
        """Apply a change of the network; fetches that waited for another network may start."""
        self._on_cellular = cellular
        for shown in self._shown.values():
            shown.attachment.on_cellular = cellular
        self.go_on()

    def body(self, number: int) -> bytes | None:
        """Return the bytes of an attachment; None if they are not cached."""
        return self._bodies.get(number)

    def go_on(self) -> None:
        """Start pending fetches if there is a relay client, up to `MAX_CONCURRENT` at once."""
        source = self._source()
        if source is None:
            return
        running = sum(shown.task is not None for shown in self._shown.values())
        wanted = [number for number, shown in self._shown.items() if shown.attachment.wants_fetch and not shown.task]
        for number in wanted[: max(0, MAX_CONCURRENT - running)]:
            self._fetch(number, self._shown[number], source)

    def cancel_all(self) -> None:
        """Cancel all fetches."""
        for shown in self._shown.values():
            if shown.task is not None:
                shown.task.cancel()
                shown.task = None

    def _fetch(self, number: int, shown: _FetchedAttachment, source: RelayClient) -> None:
        most = self._preferences.max_inbound

        def done(answer: HttpResult | Exception) -> None:
            shown.task = None
            self._answered(number, shown, answer, most)
            self.go_on()

        target = shown.attachment.target
        flow = source.request(self._engine, "GET", target, into=buffered(most), fields=(), within=DOWNLOAD_TIMEOUT)
        shown.task = self._engine.spawn(flow, on_done=done, on_error=done)

    def _answered(self, number: int, shown: _FetchedAttachment, answer: HttpResult | Exception, most: int) -> None:
        if isinstance(answer, ServiceCallError):
            too_large = answer.failure is not None and answer.failure.kind is FailureKind.TOO_LARGE
            shown.attachment.on_response(200 if too_large else None, most + 1)
        elif isinstance(answer, Exception):
            self._engine.log_bug(answer)
            shown.attachment.on_response(None, 0)
        else:
            shown.attachment.on_response(answer.status, len(answer.body))
            if answer.status == 200:
                shown.size = len(answer.body)
                shown.content_type = (answer.headers.get(b"content-type") or b"").decode("latin-1")
                self._bodies[number] = answer.body
                for gone in self._cache.put(str(number), shown.size, self._engine.now.wall):
                    del self._bodies[int(gone)]
        self._notify(number)

    def _forget(self) -> None:
        _, shown = self._shown.popitem(last=False)
        if shown.task is not None:
            shown.task.cancel()
        # The bytes stay in the cache, whose cap limits them.

    def _notify(self, number: int) -> None:
        shown = self._shown[number]
        attachment = shown.attachment
        self._emit(
            "attachment",
            {
                "number": number,
                "state": attachment.state.value,
                "message": attachment.message,
                "tap": attachment.can_tap,
                "size": shown.size,
                "content_type": shown.content_type,
            },
        )
