from typing import Any

import pytest

from svc_proto.agent.mcp_config import MAX_SERVERS, OFF, McpServerConfig, parse_mcp_servers
from svc_proto.service_clients.mcp_http_transport import HttpParameters
from svc_proto.service_clients.mcp_stdio_transport import StdioParameters


def read(**given: Any) -> McpServerConfig:
    (server,), problems = parse_mcp_servers({"shop": given})
    assert problems == {}
    return server


def problem(**given: Any) -> str:
    servers, problems = parse_mcp_servers({"shop": given})
    assert servers == []
    return problems["shop"]


def test_a_program_or_an_address() -> None:
    env = {"TOKEN": "t", "PORT": 7, "VERBOSE": True}
    server = read(command="npx", args=["-y", "pkg", 8], env=env, cwd="/srv", timeout=5, connect_timeout=120)
    texts = (("TOKEN", "t"), ("PORT", "7"), ("VERBOSE", "true"))
    assert server.transport == StdioParameters(argv=("npx", "-y", "pkg", "8"), env=texts, cwd="/srv")
    assert (server.name, server.slug, server.timeout, server.connect_timeout) == ("shop", "shop", 5.0, 120.0)
    assert read(command="x") == McpServerConfig(name="shop", slug="shop", transport=StdioParameters(argv=("x",)))
    bearer = "Bearer " + "t" * 8_185
    server = read(url="https://a.example/?x=1", headers={"Authorization": bearer}, transport="http")
    fields = ((b"authorization", bearer.encode()),)
    assert server.transport == HttpParameters(url="https://a.example/?x=1", headers=fields)
    assert "Bearer" not in repr(server)


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({}, "abc"),
        ({"tools": ["a"]}, "a"),
        ({"tools": {"include": ["a", "b"], "exclude": ["b"]}}, "a"),
        ({"tools": {"exclude": ["b"]}}, "ac"),
        ({"include": ["c"]}, "c"),
        ({"exclude": ["c"]}, "ab"),
        ({"tools": []}, ""),
        ({"tools": {"resources": False}}, "abc"),
    ],
)
def test_which_tools(given: dict[str, Any], wanted: str) -> None:
    server = read(command="x", **given)
    assert [name for name in "abc" if server.is_tool_enabled(name)] == list(wanted)


def test_trusted_servers_and_automatic_tools() -> None:
    server = read(command="x", trust=True, auto=["a"])
    assert (server.trust, server.auto) == (True, ("a",))
    assert read(command="x", trust="yes").trust is True  # a word in YAML 1.2
    assert read(command="x", trust="perhaps").trust is False
    assert read(command="x", trust=None).trust is False
    assert read(command="x").auto == ()


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({}, "it needs a command or a url, and not both"),
        ({"command": "x", "url": "http://a/"}, "it needs a command or a url, and not both"),
        ({"command": "x", "enabled": False}, OFF),
        ({"command": "x", "enabled": "no"}, OFF),
        ({"command": "x", "args": "-y"}, "args must be a list"),
        ({"command": "x", "args": [{}]}, "args must hold texts"),
        ({"command": "x", "args": ["\0"]}, "args must hold texts"),
        ({"command": "x", "env": ["A=1"]}, "env must be an object"),
        ({"command": "x", "env": {"A": None}}, "env must hold texts"),
        ({"command": "x", "timeout": 0}, "timeout must be a number of seconds up to 3600"),
        ({"command": "x", "timeout": "60"}, "timeout must be a number of seconds up to 3600"),
        ({"command": "x", "connect_timeout": 3601}, "connect_timeout must be a number of seconds up to 3600"),
        ({"url": "ftp://a/"}, "url must be an http:// or https:// URL with a host, without a password"),
        ({"url": "http://u:p@a/"}, "url must be an http:// or https:// URL with a host, without a password"),
        ({"url": "http://a/#b"}, "url must be an http:// or https:// URL with a host, without a password"),
        ({"url": "http://a/", "type": "SSE"}, "the old transport sse is not spoken: name the address of Streamable"),
        ({"url": "http://a/", "headers": {"A B": "x"}}, "headers must hold names and values of printable ASCII"),
        ({"url": "http://a/", "headers": {"A": "x\r\nB: y"}}, "headers must hold names and values of printable ASCII"),
        ({"url": "http://a/", "headers": {"A": "x" * 8_193}}, "headers must hold names and values of printable ASCII"),
    ],
)
def test_unusable_entries(given: dict[str, Any], why: str) -> None:
    assert problem(**given).startswith(why)


def test_server_slugs_are_unique_and_servers_limited() -> None:
    names = ["My Files", "my_files", "a_b", "a", "…", "x" * 100, "a\u202e\nb"]
    servers, _ = parse_mcp_servers({name: {"command": "x"} for name in names})
    slugs = [server.slug for server in servers]
    assert slugs == ["my-files", "my-files-2", "a-b", "a", "server", "x" * 24, "a-b-2"]
    assert servers[-1].name == "a b"
    servers, problems = parse_mcp_servers({f"s{number}": {"command": "x"} for number in range(MAX_SERVERS + 1)})
    assert len(servers) == MAX_SERVERS
    assert problems == {f"s{MAX_SERVERS}": f"there are more than {MAX_SERVERS}"}
    assert parse_mcp_servers({"a": 7})[1] == {"a": "it needs a command or a url, and not both"}
