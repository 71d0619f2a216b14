"""`.env` file of the service home, in the form that shells use: lines of `NAME=value`.

It may set all of our variables except those that locate the home. Variables of other programs are ignored.
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["parse_own_settings", "parse_dotenv", "set_dotenv", "merge_env_file"]

QUOTES = ("'", '"')
OWN_PREFIXES = ("API_SERVER_", "RELAY_", "SVC_", "HERMES_RELAY_")
HOME_VARIABLES = ("SVC_HOME", "HERMES_HOME")


def merge_env_file(env: Mapping[str, str], text: str) -> dict[str, str]:
    """Return an environment with the file's settings as defaults; a variable that is empty counts as unset."""
    return {**parse_own_settings(text), **{name: value for name, value in env.items() if value.strip()}}


def parse_own_settings(text: str) -> dict[str, str]:
    """Return our variables that the lines set."""
    return {
        name: value
        for name, value in parse_dotenv(text).items()
        if name.startswith(OWN_PREFIXES) and name not in HOME_VARIABLES
    }


def parse_dotenv(text: str) -> dict[str, str]:
    """Return the variables that the lines set; the last one counts. `export` and a pair of quotes are removed.

    A line that is no assignment is a comment, and so is one without a value.
    """
    found: dict[str, str] = {}
    for line in text.splitlines():
        name, equals, value = _split(line)
        if value[:1] in QUOTES and value[-1:] == value[:1]:
            value = value[1:-1]
        if equals and value and name and not name.startswith("#"):
            found[name] = value
    return found


def set_dotenv(text: str, name: str, value: str) -> str:
    """Return the text with a value for a name, which needs no quotes: in the lines that set it, else in one more."""
    lines = text.splitlines()
    found = [place for place, line in enumerate(lines) if _split(line)[:2] == (name, "=")]
    for place in found:
        exported = "export " if lines[place].strip().startswith("export ") else ""
        lines[place] = f"{exported}{name}={value}"
    return "\n".join([*lines, *([] if found else [f"{name}={value}"])]) + "\n"


def _split(line: str) -> tuple[str, str, str]:
    name, equals, value = line.strip().removeprefix("export ").partition("=")
    return name.strip(), equals, value.strip()
