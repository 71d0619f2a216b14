"""Expressions of the core: none has a group that is repeated possessively.

Python before 3.11.5 has such a group match less than it does, and leaves what comes behind it unread (CPython issue
106052): a field of a head behind one that is plain, say. A single character or class may be repeated so.
"""

from __future__ import annotations

import io
import re
import tokenize
from pathlib import Path

import pytest

import svc_proto

ROOT = Path(svc_proto.__file__).parent
CLASS = re.compile(r"\\.|\[\^?\]?(?:\\.|[^]\\])*\]")
POSSESSIVE = re.compile(r"\)(?:[*+?]|\{\d*,?\d*\})\+")


def possessive_groups(source: str) -> list[str]:
    """The string literals that have one."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    strings = [token.string for token in tokens if token.type == tokenize.STRING]
    return [string for string in strings if POSSESSIVE.search(CLASS.sub("", string))]


def test_no_group_is_repeated_possessively() -> None:
    paths = sorted(ROOT.rglob("*.py"))
    assert ROOT / "wire" / "http1_fast_path_server.py" in paths
    found = [(path.name, each) for path in paths for each in possessive_groups(path.read_text(encoding="utf-8"))]
    assert not found


@pytest.mark.parametrize("pattern", ["(?:a|b)++", "(ab)*+", "(ab)?+", "(a){2}+", "(a){1,2}+", "[)](a)++"])
def test_the_checker_flags(pattern: str) -> None:
    assert possessive_groups(f"import re\n_A = re.compile(rb'{pattern}')\n")


@pytest.mark.parametrize("pattern", ["(?:a++|b)+", "([ab]*+)", "[)*+]", "[])++]", r"\)++", "a?+", "(a+)", "(a)"])
def test_the_checker_lets_pass(pattern: str) -> None:
    assert not possessive_groups(f"import re\n_A = re.compile(r'{pattern}')\n")
