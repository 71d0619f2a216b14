"""Options that name a relay, and functions that run a desktop command with this host's session file and pins."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from pathlib import Path

    from svc_proto.cli.desktop_sessions import RelaySelection
    from svc_proto.cli.one_shot_service import OneShotService
    from svc_proto.cli.session_store import StoredSession
    from svc_proto.commands import Notify
    from svc_proto.engine.core import Engine
    from svc_proto.engine.flow import Flow
    from svc_proto.service_clients.relay_client import RelayClient

__all__ = [
    "run_on_desktop",
    "run_desktop_service",
    "run_on_relay",
    "run_on_session",
    "relay_option",
    "session_path",
    "session_options",
    "relay_selection",
]

Command = TypeVar("Command", bound=Callable[..., Any])
T = TypeVar("T")


def relay_option(command: Command) -> Command:
    """Add `--remote` to a command."""
    return click.option(
        "--remote",
        metavar="URL",
        envvar=["SVC_RELAY_URL", "HERMES_RELAY_URL"],
        help="The relay's address.  [SVC_RELAY_URL]",
    )(command)


def session_options(command: Command) -> Command:
    """Add `--remote` and `--token` to a command."""
    token = click.option(
        "--token", envvar=["SVC_RELAY_TOKEN", "HERMES_RELAY_TOKEN"], help="Use this session token.  [SVC_RELAY_TOKEN]"
    )
    return relay_option(token(command))


def relay_selection(remote: str | None, token: str | None) -> RelaySelection:
    """Return the relay and the token that the options name; a member is None if its option is missing or empty.

    Raises `CliError`, code 2, for an invalid option, or a token without a relay.
    """
    from svc_proto.cli.desktop_sessions import RelaySelection
    from svc_proto.cli.errors import USAGE_ERROR, CliError
    from svc_proto.cli.input_parsing import parse_relay_url

    token = (token or "").strip() or None
    if token is not None and not all("!" <= sign <= "~" for sign in token):
        raise CliError("--token must be printable ASCII without blanks", code=USAGE_ERROR)
    if token is not None and not remote:
        raise CliError("--token needs --remote ws://…", code=USAGE_ERROR)
    return RelaySelection(remote=parse_relay_url(remote) if remote else None, token=token)


def session_path() -> Path:
    """Return the path of this desktop's session file, in the service home."""
    from clients.commands.host_settings import service_home
    from clients.commands.session_file import SessionFile

    return SessionFile(service_home()).path


def run_on_relay(
    call: Callable[[Engine, RelayClient], Flow[T]],
    who: RelaySelection,
    runtime: str,
    *,
    on_tell: Callable[[Notify], None] | None = None,
) -> T:
    """Run a flow with a relay's HTTP client, and return its result.

    The client has the token of the session that `find_stored_session` returns for `who`, and the URL that `select_url`
    selects for that session. Raises `CliError` if there is no such session.
    """
    from svc_proto.cli.desktop_sessions import relay_client_for

    def plan(engine: Engine, session: StoredSession) -> Flow[T]:
        return (yield from call(engine, (yield from relay_client_for(engine, session))))

    return run_on_session(plan, who, runtime, on_tell=on_tell)


def run_on_session(
    call: Callable[[Engine, StoredSession], Flow[T]],
    who: RelaySelection,
    runtime: str,
    *,
    on_tell: Callable[[Notify], None] | None = None,
) -> T:
    """Run a flow with the session that `find_stored_session` returns for `who`, and return the flow's result.

    That is the one of the named relay, which a token makes if none is stored, or else the only stored one. Raises
    `CliError` if there is no such session.
    """
    from svc_proto.cli.desktop_sessions import find_stored_session

    def plan(engine: Engine) -> Flow[T]:
        return (yield from call(engine, (yield from find_stored_session(engine, who))))

    return run_on_desktop(plan, runtime, on_tell=on_tell)


def run_on_desktop(
    plan: Callable[[Engine], Flow[T]], runtime: str, *, on_tell: Callable[[Notify], None] | None = None
) -> T:
    """Run a flow with the session file, certificate pins and identity of this host, and return its result."""
    from svc_proto.cli.one_shot_service import OneShotService

    return run_desktop_service(OneShotService(plan, watched=sys.stderr.isatty()), runtime, on_tell=on_tell)


def run_desktop_service(
    service: OneShotService[T],
    runtime: str,
    *,
    on_tell: Callable[[Notify], None] | None = None,
    compute: Mapping[str, Callable[..., object]] | None = None,
    stdio: bool = False,
    last_words: Callable[[], None] | None = None,
) -> T:
    """Run a service with the session file, certificate pins and identity of this host, and return its result.

    `compute` adds functions; the other arguments are those of `run_service`.
    """
    from clients.commands.host_settings import service_home
    from clients.commands.service_runner import run_service
    from clients.commands.session_file import SessionFile
    from runtimes.tls.contexts import PinnedTrust

    home, pins = service_home(), PinnedTrust()
    file = SessionFile(home)
    works: dict[str, Callable[..., object]] = {
        "sessions.read": file.read,
        "sessions.change": file.change,
        "host.identity": describe_host,
        "tls.expect": pins.expect,
        "tls.seen": pins.seen,
        **(compute or {}),
    }
    return run_service(
        service,
        runtime,
        home=home,
        compute=works,
        client_tls=pins,
        on_tell=on_tell,
        stdio=stdio,
        last_words=last_words,
    )


def describe_host() -> tuple[str, str]:
    """Return this host's name, or "desktop" if it has none, and the name and release of its operating system."""
    import platform
    import socket

    return socket.gethostname() or "desktop", f"{platform.system()} {platform.release()}".strip()
