"""Help formatter and `--version` option of the programs, based on those of click.

The comment of an example that does not fit the help's width is moved. The version includes the commit if it is known.
"""

import re
from collections.abc import Callable
from typing import Any, TypeVar

import click

__all__ = ["HelpFormatter", "version_option"]

Command = TypeVar("Command", bound=Callable[..., Any])

_EXAMPLE = re.compile(r"(  \S.*?)  (# .*)")  # a command and its explanation, as a comment of the shell


class HelpFormatter(click.HelpFormatter):
    """Formatter that moves the comment of an example above its command if both do not fit one line."""

    def write_text(self, text: str) -> None:
        """Write a text; the comment of an example that does not fit is written above its command."""
        room = self.width - self.current_indent
        lines: list[str] = []
        for line in text.splitlines():
            example = _EXAMPLE.fullmatch(line) if len(line) > room else None
            lines += [line] if example is None else [f"  {example[2]}", example[1]]
        super().write_text("\n".join(lines))


def version_option(program: str | None = None) -> Callable[[Command], Command]:
    """Return a decorator that adds the option `--version`, which prints a program's name and version.

    Without `program`, the name is the one that the program was called by.
    """

    def show(context: click.Context, parameter: click.Parameter, value: bool) -> None:
        if not value or context.resilient_parsing:
            return
        # loaded at the first use: it reads files
        from runtimes.files.installed_version import installed_version  # noqa: PLC0415, RUF100

        click.echo(f"{program or context.find_root().info_name} {installed_version()}")
        context.exit()

    return click.option(
        "--version", is_flag=True, expose_value=False, is_eager=True, callback=show, help="Show the version and exit."
    )
