"""The option `--runtime` of the programs. Its completion, and a check of the default loop, load no loop."""

from collections.abc import Callable
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from runtimes.run import RUNTIMES, RuntimeMissingError, find_runtime, require_package

__all__ = ["check_runtime", "runtime_option"]

DEFAULT = "anyio"

Command = TypeVar("Command", bound=Callable[..., Any])


def runtime_option(command: Command) -> Command:
    """Add the option `--runtime` to a command."""
    return click.option(
        "--runtime",
        metavar="NAME",
        default=DEFAULT,
        show_default=True,
        envvar="SVC_RUNTIME",
        callback=check_runtime,
        shell_complete=_complete,
        help=f"Event loop: {', '.join(RUNTIMES)}, or package.module:function (anyio is asyncio).  [SVC_RUNTIME]",
    )(command)


def check_runtime(ctx: click.Context, param: click.Parameter, name: str) -> str:
    """Load the loop of this name and return the name; raise `click.BadParameter` if the loop cannot be loaded.

    The default loop is not loaded, only its package is looked up. Shell completion checks nothing.
    """
    if not ctx.resilient_parsing:
        try:
            (require_package if name == DEFAULT else find_runtime)(name)
        except RuntimeMissingError as error:
            raise click.BadParameter(str(error), ctx, param) from error
    return name


def _complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(name) for name in RUNTIMES if name.startswith(incomplete)]
