"""Command-line options of the servers, and one-line usage errors."""

import gc
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TypeVar

import click

from runtimes.cli.click_help import HelpFormatter, version_option
from runtimes.cli.process_text import prepare_process
from runtimes.cli.runtime_option import runtime_option

__all__ = [
    "HELP",
    "INTERRUPTED",
    "ProgramCommand",
    "api_options",
    "dashboard_options",
    "exit_with_error",
    "relay_options",
    "workers_option",
]

HELP = {"help_option_names": ["-h", "--help"]}
INTERRUPTED = 130  # the shell's code for Ctrl-C, before a loop handles the signal
NO_SSL = click.option("--no-ssl", is_flag=True, default=None, help="Serve without TLS even if a certificate is set.")
LOG_FORMAT = click.option(
    "--log-format", help="Log format: text or json (one object per line).  [SVC_LOG_FORMAT; text]"
)

Command = TypeVar("Command", bound=Callable[..., Any])
Option = Callable[[Any], Any]
click.Context.formatter_class = HelpFormatter


class ProgramCommand(click.Command):
    """Command whose usage errors are one line on standard error, with exit code 2.

    It has `--version`.
    """

    def __init__(self, *args: Any, **extra: Any) -> None:
        super().__init__(*args, **extra)
        version_option("svc-relay")(self)

    def main(self, *args: Any, **extra: Any) -> NoReturn:
        """Run the command, and exit the process."""
        extra["standalone_mode"] = False
        prepare_process()
        gc.disable()  # loaded modules stay, so a collection would find nothing; `launch` enables it again
        try:
            code = super().main(*args, **extra)
        except click.ClickException as error:
            exit_with_error(" ".join(error.format_message().split()), error.exit_code)
        except click.Abort:
            sys.exit(INTERRUPTED)
        finally:
            gc.enable()
        sys.exit(code)


def relay_options(command: Command) -> Command:
    """Add the start options of the relay (spec "Relay start options"), `--brand` and `--runtime`."""
    options = [
        click.option("--host", help="Address to listen on.  [RELAY_HOST; 0.0.0.0]"),
        _port("RELAY_PORT; 8767"),
        NO_SSL,
        click.option("--shell", help="Absolute path of the shell for terminals.  [RELAY_TERMINAL_SHELL]"),
        click.option("--webapi-url", help="Address of the API server.  [RELAY_WEBAPI_URL; http://localhost:8642]"),
        click.option("--log-level", help="DEBUG, INFO, WARNING or ERROR.  [RELAY_LOG_LEVEL; INFO]"),
        LOG_FORMAT,
        click.option("--config", help="Agent configuration file.  [RELAY_HERMES_CONFIG; ~/.svc/config.yaml]"),
        click.option(
            "--allow-insecure-api-key",
            is_flag=True,
            default=None,
            help="Accept an API key for voice over plain HTTP from other hosts.  [RELAY_ALLOW_INSECURE_API_BEARER]",
        ),
        click.option("--root-path", help="Path prefix behind a proxy, such as /relay.  [RELAY_ROOT_PATH]"),
        click.option(
            "--local-trust",
            help="How to recognize programs of this host: user, address or secret.  [RELAY_LOCAL_TRUST; user]",
        ),
        click.option("--brand", help="Names for clients that are not recognized: svc or hermes.  [SVC_BRAND; svc]"),
    ]
    return _taken(command, options)


def workers_option(command: Command) -> Command:
    """Add `--workers`, for a relay in a process of its own."""
    kind = click.IntRange(1, 64)  # `svc_proto.relay_config.MAX_WORKERS`
    return click.option(
        "--workers", type=kind, help="Number of processes, see docs/howto/cluster.md.  [RELAY_WORKERS; 1]"
    )(command)


def dashboard_options(command: Command) -> Command:
    """Add the start options of the dashboard, and `--runtime`."""
    options = [
        click.option(
            "--host", help="Address to listen on; for other hosts, set a password.  [SVC_DASHBOARD_HOST; 127.0.0.1]"
        ),
        _port("SVC_DASHBOARD_PORT; 9119"),
        NO_SSL,
        click.option("--root-path", help="Path prefix behind a proxy, such as /board.  [SVC_DASHBOARD_ROOT_PATH]"),
        click.option("--chat/--no-chat", default=True, show_default=True, help="Show the chat with the agent."),
        click.option("--log-level", help="DEBUG, INFO, WARNING or ERROR.  [SVC_DASHBOARD_LOG_LEVEL; INFO]"),
        LOG_FORMAT,
    ]
    return _taken(command, options)


def api_options(command: Command) -> Command:
    """Add the start options of the API server, and `--runtime`."""
    options = [
        click.option("--host", help="Address to listen on.  [API_SERVER_HOST; 127.0.0.1]"),
        _port("API_SERVER_PORT; 8642"),
        NO_SSL,
        click.option("--root-path", help="Path prefix behind a proxy, such as /api.  [API_SERVER_ROOT_PATH]"),
        click.option("--relay-url", help="Address of the relay.  [SVC_RELAY_URL; http://127.0.0.1:8767]"),
        click.option("--log-level", help="DEBUG, INFO, WARNING or ERROR.  [API_SERVER_LOG_LEVEL; INFO]"),
        LOG_FORMAT,
        click.option("--config", help="Configuration file.  [SVC_CONFIG; ~/.svc/config.yaml]"),
        click.option("--brand", help="Names for clients that are not recognized: svc or hermes.  [SVC_BRAND; svc]"),
    ]
    return _taken(command, options)


def exit_with_error(message: str, code: int) -> NoReturn:
    """Print an error line to standard error, and exit the process with `code`."""
    print(f"error: {message}", file=sys.stderr)
    sys.exit(code)


def _port(otherwise: str) -> Option:
    return click.option("--port", type=click.IntRange(0, 65_535), help=f"Port; 0 picks a free one.  [{otherwise}]")


def _taken(command: Command, options: Sequence[Option]) -> Command:
    """Return a command with these options, in this order, and with `--runtime`."""
    for option in reversed(options):
        command = option(command)
    return runtime_option(command)
