"""Address of the screen of this host's reference phone: a file of the state folder, which a dashboard reads.

The phone listens on loopback and accepts clients with the secret in that file (mode 0600), which each start replaces.
So other users of the host, and web pages, neither see its screen nor control it.
"""

from attrs import field, frozen

from svc_proto.basics import strict_json
from svc_proto.commands import WriteConfig
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow, run_operation
from svc_proto.facts import Failure
from svc_proto.schema.json_object import JsonObject
from svc_proto.service_clients.local_secret import create_secret, read_secret

__all__ = [
    "PHONE_SCREEN_FILE",
    "PhoneScreenEndpoint",
    "withdraw_phone_screen",
    "find_phone_screen",
    "publish_phone_screen",
]

PHONE_SCREEN_FILE = "phone-screen"  # in the state folder


@frozen
class PhoneScreenEndpoint:
    """Address of the phone (`http://127.0.0.1:41233`), and the bearer token that it requires."""

    url: str
    secret: str = field(repr=False)


def publish_phone_screen(engine: Engine, url: str) -> Flow[tuple[PhoneScreenEndpoint, Failure | None]]:
    """Store the phone's address with a new secret; return both with the failure to store them, if any."""
    secret, problem = yield from create_secret(
        engine, PHONE_SCREEN_FILE, lambda secret: strict_json.dumps({"url": url, "secret": secret})
    )
    return PhoneScreenEndpoint(url, secret.decode("ascii")), problem


def withdraw_phone_screen(engine: Engine) -> Flow[None]:
    """Replace the stored address and secret of this host's reference phone by an empty text."""
    yield from run_operation(engine, WriteConfig(engine.new_op(), PHONE_SCREEN_FILE, ""))


def find_phone_screen(engine: Engine) -> Flow[PhoneScreenEndpoint | None]:
    """Return the endpoint of this host's phone; None if there is none."""
    found = JsonObject.parse_or_empty((yield from read_secret(engine, PHONE_SCREEN_FILE)))
    url, secret = found.text("url"), found.text("secret")
    return PhoneScreenEndpoint(url, secret) if url.startswith("http://127.0.0.1:") and secret else None
