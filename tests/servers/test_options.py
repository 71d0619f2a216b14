"""Tests of the servers' command lines: options, and errors for invalid ones."""

import socket
from importlib import import_module

import pytest

from servers.options import ProgramCommand
from tests.servers.conftest import Failing

EVERY = ["servers.__main__", "servers.relay", "servers.api", "servers.dashboard"]
BAD = [("--nope",), ("stray",), ("--port",), ("--port", "x"), ("--port", "65536"), ("--runtime", "twisted")]


def program(name: str) -> ProgramCommand:
    main: ProgramCommand = import_module(name).main
    return main


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        *((name, arguments) for name in EVERY for arguments in (*BAD, ("--host", "203.0.113.7", "--port", "0"))),
        *((name, ("--log-level", "loud")) for name in EVERY[1:]),
        *((name, ("--brand", "acme")) for name in EVERY[1:3]),
        ("servers.relay", ("--shell", "sh")),
        ("servers.relay", ("--webapi-url", "ftp://x")),
        ("servers.api", ("--relay-url", "ftp://x")),
    ],
    ids=str,
)
def test_invalid_options_give_one_line(failing: Failing, name: str, arguments: tuple[str, ...]) -> None:
    code, line = failing(program(name), *arguments)
    assert code == 2
    assert (arguments[1] if arguments[0] == "--host" else arguments[0]) in line or "needs a password" in line


@pytest.mark.parametrize(
    ("name", "option", "role", "others"),
    [
        ("servers.relay", "--port", "", "--port"),
        ("servers.api", "--port", "api: ", "--port (of svc up: --api-port)"),
        ("servers.dashboard", "--port", "dashboard: ", "--port (of svc up: --dashboard-port)"),
        ("servers.__main__", "--api-port", "api: ", "--port (of svc up: --api-port)"),
    ],
)
def test_a_port_in_use(failing: Failing, name: str, option: str, role: str, others: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        free = () if option == "--port" else ("--port", "0", "--dashboard-port", "0")
        code, line = failing(program(name), "--host", "127.0.0.1", option, str(port), *free)
    hint = f"svc status shows what runs here, {others} names another"
    assert (code, line) == (2, f"{role}cannot listen on 127.0.0.1:{port}: address already in use; {hint}")
