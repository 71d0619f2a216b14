"""Regular expressions of the core: none has a group that is repeated possessively.

Python before 3.11.5 lets such a group match too little, and leaves the rest unread (CPython issue 106052): for example
a header field after a simple one. A single character or class may be repeated possessively.
"""

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
    """Return the string literals of a source that have a group which is repeated possessively."""
    if not POSSESSIVE.search(source):
        return []
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    strings = [token.string for token in tokens if token.type == tokenize.STRING]
    return [string for string in strings if POSSESSIVE.search(CLASS.sub("", string))]


@pytest.mark.unmeasured
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
