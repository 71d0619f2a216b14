"""Where the reference phone of this host shows its screen: a file of the service home, which a dashboard reads.

The phone listens on loopback and answers whoever shows the secret in that file (mode 0600), which is made anew at each
start. So other users of the host, and pages, neither see its screen nor touch it.
"""

from __future__ import annotations

from attrs import field, frozen

from svc_proto.basics import strict_json
from svc_proto.commands import WriteConfig
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow, run_operation
from svc_proto.facts import Failure
from svc_proto.schema.json_object import JsonObject
from svc_proto.service_clients.local_secret import make_secret, read_secret

__all__ = ["PHONE_DOOR", "PhoneDoor", "close_phone_door", "find_phone_door", "open_phone_door"]

PHONE_DOOR = "phone-screen"  # in the state folder


@frozen
class PhoneDoor:
    """Its address (`http://127.0.0.1:41233`), and the bearer that it asks for."""

    url: str
    secret: str = field(repr=False)


def open_phone_door(engine: Engine, url: str) -> Flow[tuple[PhoneDoor, Failure | None]]:
    """Say where the phone is; what went wrong, if nobody can know it now."""
    secret, problem = yield from make_secret(
        engine, PHONE_DOOR, lambda secret: strict_json.dumps({"url": url, "secret": secret})
    )
    return PhoneDoor(url, secret.decode("ascii")), problem


def close_phone_door(engine: Engine) -> Flow[None]:
    """Take it back."""
    yield from run_operation(engine, WriteConfig(engine.new_op(), PHONE_DOOR, ""))


def find_phone_door(engine: Engine) -> Flow[PhoneDoor | None]:
    """The phone of this host; None if there is none."""
    found = JsonObject.parse_or_empty((yield from read_secret(engine, PHONE_DOOR)))
    url, secret = found.text("url"), found.text("secret")
    return PhoneDoor(url, secret) if url.startswith("http://127.0.0.1:") and secret else None
