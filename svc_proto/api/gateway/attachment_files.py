"""Files of attached images in the spool folder: reading for the turn of their prompt, and deletion."""

from base64 import b64encode
from collections.abc import Iterable, Mapping

from svc_proto.api.errors import store_unavailable
from svc_proto.api.gateway.live_session import PromptAttachment
from svc_proto.commands import DeleteBlob, SweepFolder
from svc_proto.engine.core import Engine
from svc_proto.engine.files import read_file
from svc_proto.engine.flow import Flow, run_operation
from svc_proto.facts import Failure

__all__ = ["SPOOL", "delete_files", "load_parts", "sweep_files"]

SPOOL = "attachments"  # folder in the state folder
STALE_AFTER = 86_400.0  # s
MAX_FILE = 32 * 1024 * 1024  # bytes of one image


def load_parts(engine: Engine, attachments: Iterable[PromptAttachment]) -> Flow[list[Mapping[str, object]]]:
    """Return texts and images as content parts, images as data URLs. Raises `Refused` 503 if a file cannot be read."""
    parts: list[Mapping[str, object]] = []
    for attached in attachments:
        if not attached.path:
            parts.append({"type": "text", "text": attached.text})
            continue
        data = yield from read_file(engine, attached.path, limit=MAX_FILE)
        if isinstance(data, Failure):
            raise store_unavailable()
        url = f"data:image/{attached.kind};base64,{b64encode(data).decode('ascii')}"
        parts.append({"type": "image_url", "image_url": {"url": url}})
    return parts


def delete_files(engine: Engine, attachments: Iterable[PromptAttachment]) -> None:
    """Delete the files of those attachments that are images; attached texts have no files."""
    for attached in attachments:
        if attached.path:
            engine.emit(DeleteBlob(attached.path))


def sweep_files(engine: Engine) -> Flow[None]:
    """Delete files older than a day from the spool folder of images."""
    yield from run_operation(engine, SweepFolder(engine.new_op(), SPOOL, engine.now.wall - STALE_AFTER))
