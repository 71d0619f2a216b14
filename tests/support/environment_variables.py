"""Comparison of docs/reference/environment.md with the variables that the product reads."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/reference/environment.md"
SYSTEM = {"HOME", "SHELL"}  # variables of the operating system
# These names are composed in voice_config.
COMPOSED = re.compile(r"RELAY_(?:VOICE_OUTPUT|REALTIME_VOICE)_[A-Z_]+|[A-Z]+_(?:BASE|REALTIME)_URL")


class _Asked(dict[str, str]):
    """Empty environment that records the names with which `get` is called."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def get(self, name: str, default: object = None) -> object:  # type: ignore[override] # there is only the default
        self.names.add(name)
        return default


def documented() -> set[str]:
    """Return the variables in the first columns of the page's tables, and those of its section of older names.

    A name such as `…_MODEL` continues the name before it, less its `_ENABLED`.
    """
    text = PAGE.read_text()
    names = set(re.findall(r"`([A-Z][A-Z0-9_]+)`", text.partition("\n## Older names\n")[2]))
    for row in re.findall(r"^\| (`[A-Z].*?) \|", text, re.MULTILINE):
        base = ""
        for name in re.findall(r"`([^`]+)`", row):
            base = base if name.startswith("…") else name.removesuffix("_ENABLED")
            names.add(name.replace("…", base))
    return names


def undocumented(read: Callable[[Mapping[str, str]], object]) -> set[str]:
    """Return the variables that `read` gets from an environment, without those of the page and of the system."""
    asked = _Asked()
    read(asked)
    assert len(asked.names) > 5
    return asked.names - documented() - SYSTEM


def unknown() -> set[str]:
    """Return the variables of the page that no source file of the product contains, without composed names."""
    folders = ("svc_proto", "runtimes", "servers", "clients")
    text = "\n".join(path.read_text() for folder in folders for path in (ROOT / folder).rglob("*.py"))
    return {name for name in documented() if name not in text and not COMPOSED.fullmatch(name)}
