"""The key of this host's API server, by the chain of wire core 2.7.

First the agent's configuration file, then `.env` in the service home, then what the environment said.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from attrs import define, field

from svc_proto.basics.dotenv import parse_dotenv
from svc_proto.engine.client import Fetched, bearer
from svc_proto.engine.files import read_file, read_yaml
from svc_proto.engine.flow import Flow
from svc_proto.facts import Failure
from svc_proto.voice.profiles import section

if TYPE_CHECKING:
    from svc_proto.engine.core import Engine

__all__ = ["ShownKey", "host_api_key"]

T = TypeVar("T")


@define
class ShownKey:
    """The key as a program shows it. Where it is refused `find` is asked for another, given the one that was shown."""

    value: str = field(default="", repr=False)
    find: Callable[[str], Flow[str]] | None = None

    def show(self, ask: Callable[[tuple[tuple[bytes, bytes], ...]], Flow[T]]) -> Flow[T]:
        """Ask with the header field that shows it, and once more if the key was replaced meanwhile."""
        shown = self.value
        answer = yield from ask(bearer(shown))
        if self.find is None or not shown or not isinstance(answer, Fetched) or answer.status != 401:
            return answer
        self.value = yield from self.find(shown)
        return answer if self.value == shown else (yield from ask(bearer(self.value)))


def host_api_key(engine: Engine, config_path: str, home: str, otherwise: str) -> Flow[str]:
    """The key; empty if there is none. A file that cannot be read counts as absent."""
    settings = yield from read_yaml(engine, config_path)
    if not isinstance(settings, Failure):
        server = section(section(settings, "platforms"), "api_server")
        for holder, name in ((section(server, "extra"), "key"), (server, "api_key")):
            key = holder.get(name)
            if isinstance(key, str) and key:
                return key
    lines = yield from read_file(engine, f"{home}/.env")
    if not isinstance(lines, Failure):
        key = parse_dotenv(lines.decode("utf-8", "replace")).get("API_SERVER_KEY")
        if key is not None:
            return key
    return otherwise
