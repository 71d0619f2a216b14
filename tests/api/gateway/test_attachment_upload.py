from base64 import b64encode
from itertools import pairwise

import pytest

from svc_proto.api.gateway.attachment_upload import AttachmentUpload, UploadSpace
from svc_proto.commands import WriteBlob
from tests.api.scripted_agent import TurnHarness
from tests.support.core_harness import SPOOL

LIMIT = 400_000
CONTENT = bytes(range(256)) * 1200


@pytest.mark.parametrize("step", [1001, 100_000, 10**6])
@pytest.mark.parametrize("head", ["", "data:text/plain;base64,"])
def test_any_split_gives_the_same_file(step: int, head: str) -> None:
    book, space, text = TurnHarness(), UploadSpace(), head + b64encode(CONTENT).decode()
    full: list[bool] = []

    def receive() -> AttachmentUpload:
        upload = AttachmentUpload(book.api.engine, space, full.append, is_url=bool(head), text_limit=10)
        for start, end in pairwise([0, 5, 17, *range(40, len(text), step), len(text)]):
            upload.receive_text(text[start:end], limit=LIMIT)
        upload.end()
        return upload

    uploads: list[AttachmentUpload] = []
    book.within(lambda: uploads.append(receive()), book.node)
    (upload,) = uploads
    assert (upload.error, upload.size, space.used, upload.text()) == (None, len(CONTENT), len(CONTENT), None)
    assert full == [True, False]
    written = b"".join(command.data for command in book.commands if isinstance(command, WriteBlob))
    assert (written, upload.start) == (CONTENT, CONTENT[:1024])
    assert len(book.disk.files(SPOOL)) == 1
    for _ in range(2):
        book.within(upload.discard, book.node)
    assert (len(book.disk.files(SPOOL)), space.used) == (0, 0)
