"""A file goes from the phone to the relay's media registry: `POST /media/upload`, multipart (wire core 6.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import frozen

from svc_proto.device.handset import NeedsUpload
from svc_proto.engine.client import bearer, fetch
from svc_proto.engine.flow import Flow
from svc_proto.facts import Failure
from svc_proto.schema.members import Members
from svc_proto.wire.multipart import Part, encode_multipart

if TYPE_CHECKING:
    from svc_proto.engine.core import Engine

__all__ = ["Uploaded", "upload_file"]

UPLOAD_WITHIN = 15.0  # s, wire bridge 3.4


@frozen
class Uploaded:
    """The token of a registered file, or what went wrong."""

    token: str | None
    problem: str = ""


def upload_file(engine: Engine, relay_url: str, token: str, file: NeedsUpload) -> Flow[Uploaded]:
    """Upload with the phone's own session token."""
    boundary = engine.entropy(16).hex()
    part = Part(name="file", filename=file.file_name, content_type=file.content_type, data=file.data)
    answer = yield from fetch(
        engine,
        "POST",
        f"{relay_url}/media/upload",
        headers=(
            *bearer(token),
            (b"content-type", f"multipart/form-data; boundary={boundary}".encode("ascii")),
        ),
        body=encode_multipart((part,), boundary),
        within=UPLOAD_WITHIN,
    )
    if isinstance(answer, Failure):
        return Uploaded(None, answer.kind.value)
    if answer.status != 200:
        return Uploaded(None, f"the relay answered {answer.status}")
    found = Members.parsed(answer.body).text("token")
    return Uploaded(found) if found else Uploaded(None, "the relay gave no token")
