"""`svc-relay shell`: open a terminal on the relay's host, or run one command there."""

import os
import sys

import click

from clients.commands.cli import SETTINGS
from clients.commands.desktop_options import relay_selection, run_desktop_service, run_on_desktop, session_options
from runtimes.cli.runtime_option import runtime_option
from svc_proto.cli.errors import USAGE_ERROR, CliError

__all__ = ["main"]

EXAMPLES = """
\b
Examples:
  svc-relay shell  # the session "default"
  svc-relay shell --session work  # another session
  svc-relay shell --exec 'uptime; df -h'  # one command, with its exit status
  echo 'uptime' | svc-relay shell  # standard input is typed

Ctrl-] detaches; --escape '^\\' sets another key, or none. With tmux on the relay's host the session continues, and the
same command attaches again. A connection that is lost, or ended by a restart of the relay, is restored; Ctrl-C gives up
meanwhile.

With --exec the shell reads no profile, as over ssh. Ctrl-C goes to the command; a second one within two seconds, or
Ctrl-], ends it from here.

Exit codes: that of the command with --exec (130 after Ctrl-C), or of the shell (0 where the relay keeps it in tmux); 0
after detaching; 1 when the relay refuses or cannot be reached, or the terminal was lost; 2 for bad options.
"""


@click.command("shell", epilog=EXAMPLES, context_settings=SETTINGS)
@click.option("--session", "name", default=None, help="Name of the terminal session.  [default]")
@click.option("--shell", metavar="PATH", help="Absolute path of the shell to start.  [the relay's]")
@click.option(
    "--exec",
    "command",
    metavar="COMMAND",
    help="Run one command line in a POSIX shell, and end. Its input is the keyboard, or nothing.",
)
@click.option(
    "--escape", metavar="KEY", default="^]", show_default=True, help="Key that detaches: ^ and a sign, or none."
)
@session_options
@runtime_option
def main(
    name: str | None,
    shell: str | None,
    command: str | None,
    escape: str,
    remote: str | None,
    token: str | None,
    runtime: str,
) -> int:
    """Open a terminal on the relay's host. Ctrl-] detaches."""
    from clients.commands.terminal_guard import TerminalGuard
    from svc_proto.cli.desktop_sessions import find_stored_session
    from svc_proto.cli.shell import ShellRequest, ShellService

    who, key = relay_selection(remote, token), _key(escape)
    if shell is not None and not shell.startswith("/"):
        raise CliError("--shell must be an absolute path", code=USAGE_ERROR)
    if name is not None and not (0 < len(name.strip()) <= 64 and name.isprintable()):
        raise CliError("--session must be a name of 1 to 64 printable characters", code=USAGE_ERROR)
    person = sys.stdin.isatty()
    session = run_on_desktop(lambda engine: find_stored_session(engine, who), runtime)
    order = ShellRequest(
        session=session,
        name=name or (f"exec-{os.urandom(4).hex()}" if command is not None else "default"),
        shell=shell,
        command=command,
        escape=key,
        keyboard=person or command is None,
        person=person,
    )
    with TerminalGuard() as terminal:
        service = ShellService(order, watched=sys.stderr.isatty())
        end = run_desktop_service(
            service,
            runtime,
            stdio=True,
            last_words=terminal.abandon,
            compute={"terminal.size": terminal.size, "terminal.resized": terminal.resized},
            on_tell=lambda news: terminal.raw() if news.event == "raw" else None,
        )
        terminal.restore()
    if end.note and person:
        print(f"\r{end.note}", file=sys.stderr)
    return end.status


def _key(text: str) -> int | None:
    """Return the control code that `^X` names, or None for `none`. Raises `CliError`, code 2, for another text."""
    if text.lower() == "none":
        return None
    if len(text) == 2 and text[0] == "^" and "@" <= text[1].upper() <= "_":
        return ord(text[1].upper()) ^ 0x40
    raise CliError("--escape must be none, or ^ and one of A-Z [ \\ ] ^ _", code=USAGE_ERROR)
