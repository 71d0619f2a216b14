from base64 import b64encode
from itertools import pairwise

import pytest

from svc_proto.api.gateway import attachment_upload
from svc_proto.api.gateway.attachment_upload import MAX_HEAD, AttachmentUpload, UploadSpace
from svc_proto.commands import WriteBlob
from tests.api.scripted_agent import TurnHarness
from tests.support.core_harness import SPOOL

CONTENT = bytes(range(256)) * 1200
LIMIT = len(CONTENT)


class UploadHarness(TurnHarness):
    """API server with one upload, whose notifications of a full buffer are in `full`."""

    def __init__(self, *, is_url: bool = False) -> None:
        super().__init__()
        self.space = UploadSpace()
        self.full: list[bool] = []
        self.uploads: list[AttachmentUpload] = []
        self.is_url = is_url

    def receive(self, *texts: str) -> AttachmentUpload:
        self.within(lambda: self._receive(texts), self.node)
        return self.uploads[-1]

    def _receive(self, texts: tuple[str, ...]) -> None:
        upload = AttachmentUpload(self.api.engine, self.space, self.full.append, is_url=self.is_url, text_limit=10)
        for text in texts:
            upload.receive_text(text, limit=LIMIT)
        self.uploads.append(upload)
        upload.end()


@pytest.mark.parametrize("step", [1001, 100_000, 10**6])
@pytest.mark.parametrize("head", ["", "data:text/plain;base64,"])
def test_any_split_gives_the_same_file(step: int, head: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attachment_upload, "MAX_SPACE", LIMIT)
    book, text = UploadHarness(is_url=bool(head)), head + b64encode(CONTENT).decode()
    places = [0, 5, 17, *range(40, len(text), step), len(text)]
    upload = book.receive(*(text[start:end] for start, end in pairwise(places)))
    assert (upload.error, upload.size, book.space.used, upload.text()) == (None, LIMIT, LIMIT, None)
    assert book.full == [True, False]
    written = b"".join(command.data for command in book.commands if isinstance(command, WriteBlob))
    assert (written, upload.start) == (CONTENT, CONTENT[:1024])
    assert len(book.disk.files(SPOOL)) == 1
    for _ in range(2):
        book.within(upload.discard, book.node)
    assert (len(book.disk.files(SPOOL)), book.space.used) == (0, 0)


@pytest.mark.parametrize(("high_water", "full"), [(0, [True, False]), (2, [True, False]), (3, [])])
def test_buffer_is_full_above_the_high_water_mark(
    high_water: int, full: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attachment_upload, "HIGH_WATER", high_water)
    book = UploadHarness()
    book.receive("QUJD")
    assert book.full == full


@pytest.mark.parametrize(("size", "refused"), [(MAX_HEAD - 1, False), (MAX_HEAD, True)])
def test_head_of_a_data_url_is_limited(size: int, refused: bool) -> None:
    head = "data:".ljust(size - 7, "x") + ";base64"
    for texts in ((f"{head},QUJD",), (head, ",QUJD")):
        upload = UploadHarness(is_url=True).receive(*texts)
        assert (upload.error is not None) is refused
