"""Reader of a long message of a client, which arrives in parts: the content of an attachment becomes an upload.

The rest of the message is in memory, as a message without a content is.
"""

from collections.abc import Callable, Iterator

from svc_proto.api.gateway.attachment_content import MAX_FILE
from svc_proto.api.gateway.attachment_upload import AttachmentUpload
from svc_proto.basics.strict_json import JsonError
from svc_proto.schema.json_rpc import PARSE_ERROR, RpcError
from svc_proto.schema.long_member import LongMemberReader

__all__ = ["CONTENT_NAMES", "LongMessage"]

CONTENT_NAMES = ("content_base64", "bytes_base64", "data_url")  # parameters that hold a content


class LongMessage:
    """A message with a call on each line; the first content in it is received as an upload."""

    __slots__ = ("_error", "_new_upload", "_reader", "_upload")

    def __init__(self, new_upload: Callable[[bool], AttachmentUpload]) -> None:
        """Initialize; the argument of `new_upload` is whether the content is a data URL."""
        self._new_upload = new_upload
        self._reader = LongMemberReader(CONTENT_NAMES)
        self._upload: AttachmentUpload | None = None
        self._error: RpcError | None = None

    @property
    def buffered_bytes(self) -> int:
        """Number of characters in memory, without those of the upload."""
        return self._reader.size

    def receive_text(self, text: str) -> None:
        """Read a part of the message; after an error the rest is dropped."""
        if self._error is not None:
            return
        try:
            content = self._reader.receive_text(text)
        except JsonError as error:
            self._error = RpcError(PARSE_ERROR, f"not JSON: {error}")
            self._reader = LongMemberReader(())  # for the memory of the old one
            self.discard()
            return
        if self._reader.name:
            if self._upload is None:
                self._upload = self._new_upload(self._reader.name == "data_url")
            self._upload.receive_text(content, limit=MAX_FILE)

    def finish(self) -> Iterator[tuple[str, str, AttachmentUpload | None]]:
        """Return the lines after the last part, each with the name of a parameter and its upload, or with "" and None.

        Raises `RpcError` if the message cannot be read.
        """
        rest = ""
        try:
            rest = self._reader.finish()
        except JsonError as error:
            self._error = RpcError(PARSE_ERROR, f"not JSON: {error}")
            self.discard()
        if self._error is not None:
            raise self._error
        upload, self._upload = self._upload, None
        if upload is not None:
            upload.end()
        for number, line in enumerate(rest.split("\n")):
            is_long = upload is not None and number == self._reader.line
            yield line, self._reader.name if is_long else "", upload if is_long else None

    def discard(self) -> None:
        """Delete what was received of a content, unless `finish` has returned it."""
        if self._upload is not None:
            self._upload.discard()
            self._upload = None
