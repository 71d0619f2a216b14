"""Parser of `mcp_servers` in the configuration file: MCP servers and the tools that the agent may use.

    mcp_servers:
      files: {command: npx, args: [-y, "@modelcontextprotocol/server-filesystem", /home/me], env: {TOKEN: …}}
      tickets: {url: "https://tickets.example/mcp", headers: {Authorization: Bearer …}, timeout: 120}

Invalid entries are reported by name, and the others are used. Reports contain no value of `env` or `headers`.
"""

import re
from collections.abc import Mapping

from attrs import frozen

from svc_proto.basics.sanitize import sanitize_line
from svc_proto.basics.validate import FALSE_WORDS, TRUE_WORDS
from svc_proto.schema import coercion
from svc_proto.schema.json_object import JsonObject, as_array
from svc_proto.service_clients.mcp_http_transport import HttpParameters
from svc_proto.service_clients.mcp_stdio_transport import StdioParameters
from svc_proto.settings import http_address

__all__ = ["MAX_SERVERS", "OFF", "McpServerConfig", "parse_mcp_servers"]

MAX_SERVERS = 32  # servers of one configuration; a further one is reported as a problem
MAX_TIMEOUT = 3_600.0  # s
MAX_SLUG = 24  # characters of a server's part of its tools' names
MAX_VALUE = 8_192  # characters of one header field
OFF = "it is switched off (enabled: false)"
_FIELD = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
_VALUE = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?")


@frozen(kw_only=True)
class McpServerConfig:
    """Configuration of one MCP server. `slug` has no underscore, so that tool names of two servers never collide."""

    name: str
    slug: str
    transport: StdioParameters | HttpParameters
    timeout: float = 60.0  # s for a call
    connect_timeout: float = 60.0  # s for the start
    trust: bool = False  # trust the server's `readOnlyHint`: such tools need no approval
    auto: tuple[str, ...] = ()  # tools that need no approval
    only: tuple[str, ...] | None = None  # enabled tools; None: all
    never: tuple[str, ...] = ()  # disabled tools

    def is_tool_enabled(self, tool: str) -> bool:
        """Report whether a tool of this name is enabled."""
        return tool not in self.never and (self.only is None or tool in self.only)


def parse_mcp_servers(found: Mapping[str, object]) -> tuple[list[McpServerConfig], dict[str, str]]:
    """Parse `mcp_servers`; return the valid servers, and by name the problems of the others.

    The others are invalid, disabled, or come after `MAX_SERVERS` valid ones.
    """
    servers: list[McpServerConfig] = []
    problems: dict[str, str] = {}
    slugs: dict[str, None] = {}
    for given, value in found.items():
        name = sanitize_line(str(given), 60)
        try:
            if len(servers) >= MAX_SERVERS:
                raise ValueError(f"there are more than {MAX_SERVERS}")
            servers.append(_server(name, JsonObject.of(value), slugs))
        except ValueError as error:
            problems[name] = str(error)
    return servers, problems


def _server(name: str, given: JsonObject, slugs: dict[str, None]) -> McpServerConfig:
    enabled = given.get("enabled", True)
    if enabled is False or str(enabled).lower() in FALSE_WORDS:
        raise ValueError(OFF)
    way = _way(given)
    tools = given.get("tools")
    only = _names(tools if as_array(tools) is None else {"include": tools}, "include")
    return McpServerConfig(
        name=name,
        slug=_slug(name, slugs),
        transport=way,
        timeout=_seconds(given, "timeout"),
        connect_timeout=_seconds(given, "connect_timeout"),
        trust=str(given.get("trust")).lower() in TRUE_WORDS,
        auto=_names(given, "auto") or (),
        only=_names(given, "include") if only is None else only,
        never=(*(_names(tools, "exclude") or ()), *(_names(given, "exclude") or ())),
    )


def _way(given: JsonObject) -> StdioParameters | HttpParameters:
    command, url = given.first_text("command"), given.first_text("url")
    if bool(command) == bool(url):
        raise ValueError("it needs a command or a url, and not both")
    if url:
        if given.first_text("transport", "type").lower() == "sse":
            raise ValueError("the old transport sse is not spoken: name the address of Streamable HTTP")
        if http_address(url) is None or "#" in url:
            raise ValueError("url must be an http:// or https:// URL with a host, without a password")
        return HttpParameters(url=url, headers=tuple(_field(name, value) for name, value in _texts(given, "headers")))
    args = given.array_or_none("args") if "args" in given else []
    if args is None:
        raise ValueError("args must be a list")
    argv = (command, *(_text(each, "args") for each in args))
    return StdioParameters(argv=argv, env=tuple(_texts(given, "env")), cwd=given.first_text("cwd") or None)


def _field(name: str, value: str) -> tuple[bytes, bytes]:
    if not _FIELD.fullmatch(name) or not _VALUE.fullmatch(value) or len(value) > MAX_VALUE:
        raise ValueError("headers must hold names and values of printable ASCII")
    return name.lower().encode("ascii"), value.encode("ascii")


def _texts(given: JsonObject, name: str) -> list[tuple[str, str]]:
    value = given.object_or_none(name)
    if value is None and given.get(name) is not None:
        raise ValueError(f"{name} must be an object")
    return [(str(key), _text(member, name)) for key, member in (value or {}).items()]


def _text(value: object, name: str) -> str:
    found = coercion.coerce_text(value, flags=True)
    if found is None or "\x00" in found:
        raise ValueError(f"{name} must hold texts")
    return found


def _seconds(given: JsonObject, name: str) -> float:
    if name not in given:
        return 60.0
    value = given.number(name, 0.001, MAX_TIMEOUT)
    if value is None:
        raise ValueError(f"{name} must be a number of seconds up to {MAX_TIMEOUT:g}")
    return float(value)


def _names(given: object, name: str) -> tuple[str, ...] | None:
    found = JsonObject.of(given).array_or_none(name)
    return None if found is None else tuple(map(str, found))


def _slug(name: str, taken: dict[str, None]) -> str:
    slug = re.sub("[^a-z0-9]+", "-", name.lower()).strip("-")[:MAX_SLUG] or "server"
    found, count = slug, 1
    while found in taken:
        count += 1
        found = f"{slug}-{count}"
    taken[found] = None
    return found
