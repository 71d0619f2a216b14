"""Problems of a configuration file: one that cannot be read or parsed, misspelled settings, and wrong types."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from runtimes.failures import HostError
from runtimes.host.compute import load_yaml, yaml_line
from runtimes.host.logs import LogMessage
from svc_proto.api.agent_settings import find_misspelled
from svc_proto.api.config_types import find_wrong_types
from svc_proto.basics.sanitize import sanitize_line

if TYPE_CHECKING:
    import logging

__all__ = ["find_config_problems", "log_config_problems"]


def log_config_problems(logger: logging.Logger, *paths: str) -> None:
    """Log a warning for each problem of the files; a missing file has none."""
    for path in dict.fromkeys(paths):
        for line, problem in find_config_problems(path):
            where: Mapping[str, object] = {"path": path} if line is None else {"path": path, "line": line}
            logger.warning(LogMessage("configuration not used", {**where, "problem": problem}))


def find_config_problems(path: str) -> list[tuple[int | None, str]]:
    """Return the problems of a file with the numbers of their lines, None where unknown; a missing file has none."""
    try:
        text = Path(path).expanduser().read_text("utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return []
    except UnicodeDecodeError:
        return [(None, "the file is not UTF-8")]
    except OSError as error:
        return [(None, f"the file cannot be read: {error.strerror}")]
    try:
        found = load_yaml(text)
    except HostError as error:
        return [(None, f"the file is {error}" if str(error).startswith("not") else str(error))]
    near = [
        ((name,), f"{sanitize_line(name)} is no setting that is known here: is {meant} meant?")
        for name, meant in find_misspelled(found).items()
    ]
    wrong = [(problem.path, sanitize_line(problem.text)) for problem in find_wrong_types(found)]
    return [(yaml_line(text, member), problem) for member, problem in [*near, *wrong]]
