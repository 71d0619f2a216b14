"""The agent's picture: a small image that the owner chose, kept in the state folder as a data URL."""

from base64 import b64encode

from attrs import frozen

from svc_proto.basics.errors import Refused
from svc_proto.commands import WriteConfig
from svc_proto.engine.core import Engine
from svc_proto.engine.files import read_state
from svc_proto.engine.flow import Flow, run_operation
from svc_proto.facts import Failure
from svc_proto.machines.inbox import image_type
from svc_proto.schema.json_object import JsonObject

__all__ = ["Avatar", "parse_avatar", "read_avatar", "write_avatar"]

FILE = "avatar"
MAX_AVATAR = 512 * 1024  # bytes


@frozen
class Avatar:
    """A picture with its media type."""

    kind: str
    data: bytes

    @property
    def url(self) -> str:
        """Return the picture as a data URL."""
        return f"data:{self.kind};base64,{b64encode(self.data).decode()}"


def parse_avatar(content: str) -> Avatar | None:
    """Return the picture in the base64 behind the last comma of a text, or in the whole text without a comma.

    None if it is no picture of a known format, or larger than `MAX_AVATAR`. The media type of a data URL is ignored.
    """
    data = JsonObject(data=content.rpartition(",")[2].strip()).binary("data")
    kind = image_type(data) if len(data) <= MAX_AVATAR else None
    return None if kind is None else Avatar(f"image/{kind}", data)


def read_avatar(engine: Engine) -> Flow[Avatar | None]:
    """Return the agent's stored picture; None if there is none, or if it cannot be read or is no valid picture."""
    content = yield from read_state(engine, FILE)
    return None if content is None or isinstance(content, Failure) else parse_avatar(content)


def write_avatar(engine: Engine, avatar: Avatar) -> Flow[None]:
    """Store the agent's picture in the state folder. Raises `Refused` 503 if it cannot be written."""
    written = yield from run_operation(engine, WriteConfig(engine.new_op(), FILE, avatar.url))
    if isinstance(written, Failure):
        raise Refused(503, "store_unavailable", "the picture could not be stored")
