"""Common behaviour of the commands: lazy subcommands, one-line errors, exit codes, Ctrl-C, broken output.

The module imports little beside click, so that `--help` and shell completion start fast.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, NoReturn, TypeVar

import click

from runtimes.cli.click_help import HelpFormatter
from runtimes.cli.process_text import can_print, prepare_process
from runtimes.host.exit_process import exit_process
from svc_proto.cli.errors import CliError

__all__ = [
    "SETTINGS",
    "LazyGroup",
    "SingleCommand",
    "json_option",
    "json_text",
    "print_json",
    "print_lines",
    "print_table",
    "terminal_safe",
    "error_reason",
]

INTERRUPTED = 130  # the shell's code for Ctrl-C
SETTINGS = {"help_option_names": ["-h", "--help"]}
Command = TypeVar("Command", bound=Callable[..., Any])
click.Context.formatter_class = HelpFormatter


def json_option(command: Command) -> Command:
    """Add `--json` to a command."""
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON document, for programs.")(command)


def print_lines(lines: list[str]) -> None:
    """Print lines to standard output; on a terminal, wrap long ones between words."""
    from runtimes.cli.word_wrap import wrap_line

    for line in lines:
        print(wrap_line(line))


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table to standard output; on a terminal that is too narrow for it, print each row as a block of lines."""
    from svc_proto.cli.desktop_output import table

    width = os.get_terminal_size(sys.stdout.fileno()).columns if sys.stdout.isatty() else None
    print_lines(table(columns, rows, width))


def print_json(value: object, *, ordered: bool = False) -> None:
    """Print a JSON document to standard output, indented; `ordered` sorts members by name."""
    print(json_text(value, indent=2, ordered=ordered))


def json_text(value: object, *, indent: int | None = None, ordered: bool = False) -> str:
    """Return a readable JSON text without terminal control: characters that are not printable are escaped."""
    text = json.dumps(value, indent=indent, sort_keys=ordered, ensure_ascii=False)
    if not can_print(text):
        text = json.dumps(value, indent=indent, sort_keys=ordered)
    if text.isascii() and "\x7f" not in text:
        return text
    return "".join(sign if sign.isprintable() or sign == "\n" else json.dumps(sign)[1:-1] for sign in text)


def terminal_safe(text: str, *, on_terminal: bool) -> str:
    """Return text for output: on a terminal without unprintable characters except newline and tab; else unchanged."""
    if not on_terminal:
        return text
    return "".join(sign for sign in text if sign.isprintable() or sign in "\n\t")


def error_reason(error: OSError) -> str:
    """Return, in lower case, the system's text for an error, or the name of its class if there is no text."""
    return (error.strerror or type(error).__name__).lower()


class SingleCommand(click.Command):
    """Click command that is a whole program: an error becomes one line and an exit code.

    With `SVC_DEBUG`, an internal error is raised instead.
    """

    def main(self, *args: Any, **extra: Any) -> NoReturn:
        """Run the command, and exit the process."""
        _main(super().main, args, extra)


class LazyGroup(click.Group):
    """Click group that imports a subcommand when needed; `modules` has `module:attribute` and short help of each."""

    def __init__(self, *args: Any, modules: Mapping[str, tuple[str, str]], **extra: Any) -> None:
        super().__init__(*args, **extra)
        self._modules = modules

    def main(self, *args: Any, **extra: Any) -> NoReturn:
        """Run the program, and exit the process."""
        _main(super().main, args, extra)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the subcommands, in the order of `modules`."""
        return list(self._modules)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a subcommand and return it; None for an unknown name."""
        if cmd_name not in self._modules:
            return None
        module, _, attribute = self._modules[cmd_name][0].partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Resolve a command; the error for an unknown name lists the commands, unless the name begins with a dash."""
        if args and not args[0].startswith("-") and args[0] not in self._modules:
            ctx.fail(f"No such command {args[0]!r}: choose one of {', '.join(self._modules)}.")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the table of subcommands, without loading any."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in self._modules.items()])


def _main(run: Callable[..., object], args: tuple[Any, ...], extra: dict[str, Any]) -> NoReturn:
    extra["standalone_mode"] = False
    prepare_process()
    sys.unraisablehook = _repeat_interrupt
    try:
        code = _guarded(run, args, extra)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader has closed the pipe, as `| head` does
        code = _abandon_output()
    except OSError as error:
        code = _abandon_output()
        _print_error(f"the output cannot be written: {error_reason(error)}")
    exit_process(code)


def _repeat_interrupt(dropped: sys.UnraisableHookArgs) -> None:
    """Send SIGINT again if Python has dropped a `KeyboardInterrupt`, as one that a finalizer raised.

    Other dropped exceptions are reported as Python does.
    """
    if not issubclass(dropped.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(dropped)
        return
    signal.signal(signal.SIGALRM, lambda signum, frame: signal.raise_signal(signal.SIGINT))
    signal.setitimer(signal.ITIMER_REAL, 0.001)  # after this callback


def _guarded(run: Callable[..., object], args: tuple[Any, ...], extra: dict[str, Any]) -> int:
    try:
        code = run(*args, **extra)
    except click.exceptions.NoArgsIsHelpError as error:
        print(error.format_message(), file=sys.stderr)
        return error.exit_code
    except click.UsageError as error:
        where = f" (see {error.ctx.command_path} --help)" if error.ctx is not None else ""
        return _print_error(" ".join(error.format_message().split()).rstrip(".") + where, error.exit_code)
    except click.ClickException as error:
        return _print_error(" ".join(error.format_message().split()), error.exit_code)
    except CliError as error:
        return _print_error(str(error), error.code)
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except OSError:
        raise
    except Exception as error:
        if os.environ.get("SVC_DEBUG"):
            raise
        return _print_error(f"internal error: {type(error).__name__} (SVC_DEBUG=1 shows where)", 70)
    return code if isinstance(code, int) else 0


def _print_error(text: str, code: int = 1) -> int:
    print(f"error: {text}", file=sys.stderr)
    return code


def _abandon_output() -> int:
    """Redirect a broken standard output to the null device, so that the interpreter's exit does not retry; return 1."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 1
