"""Where the reference phone of this host shows its screen: a file of the service home, which a dashboard reads.

The phone listens on loopback and answers whoever shows the secret in that file (mode 0600), which is made anew at each
start. So other users of the host, and pages, neither see its screen nor touch it.
"""

from __future__ import annotations

from attrs import field, frozen

from svc_proto.basics import strict_json
from svc_proto.commands import ReadConfig, WriteConfig
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow, ask
from svc_proto.facts import Failure
from svc_proto.schema.members import Members

__all__ = ["PHONE_DOOR", "PhoneDoor", "close_phone_door", "find_phone_door", "open_phone_door"]

PHONE_DOOR = "phone-screen"  # in the state folder
SIZE = 32  # bytes of entropy
READ_WITHIN = 1.0  # s


@frozen
class PhoneDoor:
    """Its address (`http://127.0.0.1:41233`), and the bearer that it asks for."""

    url: str
    secret: str = field(repr=False)


def open_phone_door(engine: Engine, url: str) -> Flow[tuple[PhoneDoor, Failure | None]]:
    """Say where the phone is; what went wrong, if nobody can know it now."""
    door = PhoneDoor(url, engine.entropy(SIZE).hex())
    text = strict_json.dumps({"url": door.url, "secret": door.secret})
    return door, (yield from ask(engine, WriteConfig(engine.new_op(), PHONE_DOOR, text)))


def close_phone_door(engine: Engine) -> Flow[None]:
    """Take it back."""
    yield from ask(engine, WriteConfig(engine.new_op(), PHONE_DOOR, ""))


def find_phone_door(engine: Engine) -> Flow[PhoneDoor | None]:
    """The phone of this host; None if there is none."""
    text = yield from ask(engine, ReadConfig(engine.new_op(), PHONE_DOOR), within=READ_WITHIN)
    if isinstance(text, Failure):
        return None
    found = Members.parsed(text)
    url, secret = found.text("url"), found.text("secret")
    return PhoneDoor(url, secret) if url.startswith("http://127.0.0.1:") and secret else None
