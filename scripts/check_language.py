"""Checker for the language of docstrings, comments, documents and commit subjects.

    python scripts/check_language.py            # check all files and the commits since the base
    python scripts/check_language.py FILE...    # check these files

The rules are in `language.toml`. The exit code is 1 if there are findings.
"""

import ast
import re
import subprocess
import sys
import tokenize
import tomllib
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parent.parent
CONFIG: dict[str, Any] = tomllib.loads(Path(__file__).with_name("language.toml").read_text(encoding="utf-8"))
CODE = {".py", ".js", ".html", ".css", ".sh", ".toml", ".yaml", ".yml"}


def _words(name: str) -> str:
    return "|".join(word.replace("\\ ", " ") for word in re.split(r"(?<!\\)\s+", CONFIG[name].strip()))


FIRST = re.compile(rf"(?:{_words('first_words')})\b", re.IGNORECASE)
PERSONS = re.compile(rf"\b(?:{CONFIG['persons']})\b", re.IGNORECASE)
WHO = re.compile(CONFIG["bare_who"], re.IGNORECASE)
SPEECH = re.compile(rf"\b(?:{_words('speech')})\b", re.IGNORECASE)
SPOKEN = re.compile(rf"\b(?:{'|'.join(CONFIG['speech_allowed'])})\b", re.IGNORECASE)
QUOTED = re.compile(r"`[^`]*`")
NO_VERBS, VERBS = set(CONFIG["no_verbs"].split()), set(CONFIG["verbs"].split())
FENCE = re.compile(r"^ *(```|~~~)")
OTHER_BLOCK = re.compile(r"^ *(\||#|<|\[[^\]]+\]: |!\[)")  # table, heading, HTML, link target, picture
ITEM = re.compile(r"^ *([-*+]|\d+\.) +")
SENTENCE_END = re.compile(r"(?<=[.!?])[)\"*]* +(?=[A-Z`\"*(\[])")


class Finding(NamedTuple):
    """A violation of a language rule: its line, the rule's name, and the text."""

    line: int
    rule: str
    text: str


def check_file(path: Path) -> Iterator[Finding]:
    """Yield the findings of one file; Python files and Markdown documents have rules of their own."""
    text = path.read_text(encoding="utf-8", errors="replace")
    yield from (
        Finding(number, "person", line.strip())
        for number, line in enumerate(text.splitlines(), 1)
        if PERSONS.search(QUOTED.sub("", line))
    )
    if path.suffix == ".py":
        yield from check_python(text)
    elif path.suffix == ".md":
        yield from check_document(text)


def check_python(text: str) -> Iterator[Finding]:
    """Yield the findings of docstrings and comments."""
    for number, docstring in docstrings(text):
        if FIRST.match(docstring.lstrip()):
            yield Finding(number, "docstring", docstring.partition("\n")[0])
        for offset, line in enumerate(docstring.splitlines()):
            yield from check_prose(number + offset, line)
    lines = iter(text.splitlines(keepends=True))
    for token in tokenize.generate_tokens(lambda: next(lines, "")):
        if token.type == tokenize.COMMENT:
            yield from check_prose(token.start[0], token.string.lstrip("# "))


def docstrings(text: str) -> Iterator[tuple[int, str]]:
    """Yield line and text of each docstring of a module."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            docstring = ast.get_docstring(node)
            if docstring:
                yield node.body[0].lineno, docstring


def check_document(text: str) -> Iterator[Finding]:
    """Yield the findings of a Markdown document: prose, long lines and long sentences, without tables and code."""
    fenced = False
    block: list[str] = []
    start = 0
    for number, line in enumerate([*text.splitlines(), ""], 1):
        if FENCE.match(line):
            fenced = not fenced
        prose = not fenced and not FENCE.match(line) and not OTHER_BLOCK.match(line)
        if block and (not prose or not line.strip() or ITEM.match(line)):
            yield from check_sentences(start, " ".join(block))
            block = []
        if not prose or not line.strip():
            continue
        if len(line) > CONFIG["line_length"]:
            yield Finding(number, "line", f"{len(line)} characters")
        yield from check_prose(number, line)
        start = start if block else number
        block.append(ITEM.sub("", line).strip())


def check_sentences(number: int, paragraph: str) -> Iterator[Finding]:
    """Yield each sentence of a paragraph that is too long; a piece of code counts as one word."""
    for sentence in SENTENCE_END.split(QUOTED.sub("code", paragraph)):
        count = len(re.findall(r"\w[\w'./-]*", sentence))
        if count > CONFIG["sentence_length"]:
            yield Finding(number, "sentence", f"{count} words: {sentence[:60]}")


def check_prose(number: int, line: str) -> Iterator[Finding]:
    """Yield the findings of a line of prose: a `who` without a noun, and verbs of speech."""
    line = QUOTED.sub("", line)
    if WHO.search(line):
        yield Finding(number, "who", line.strip())
    if SPEECH.search(SPOKEN.sub("", line)):
        yield Finding(number, "speech", line.strip())


def check_commits() -> Iterator[str]:
    """Yield each commit since the base whose subject breaks a rule.

    A subject begins with a capitalized word that looks like an imperative verb, has a limited length, and does not end
    with a full stop.
    """
    log = _git("log", "--no-merges", "--format=%h %s", f"{CONFIG['base']}..HEAD")  # empty without a clone or its base
    for commit, _, subject in (line.partition(" ") for line in log.splitlines()):
        first = subject.partition(" ")[0].lower()
        other = first in NO_VERBS or (first.endswith(("s", "ed", "ing")) and first not in VERBS)
        if other or not subject[:1].isupper() or subject.endswith(".") or len(subject) > CONFIG["subject_length"]:
            yield f"commit {commit}: {subject}"


def tracked_files() -> list[str]:
    """Return the files of the repository whose words are checked."""
    files = _git("ls-files", "--cached", "--others", "--exclude-standard").splitlines()
    return sorted(
        file
        for file in files
        if Path(file).suffix in CODE | {".md"} and not any(fnmatch(file, each) for each in CONFIG["skipped"])
        if (ROOT / file).is_file()
    )


def main(arguments: list[str]) -> int:
    """Check the named files, or all files and commits; print the findings, and return the exit code."""
    files = arguments or tracked_files()
    problems = [f"{file}:{line}: {rule}: {text}" for file in files for line, rule, text in check_file(ROOT / file)]
    if not arguments:
        problems += check_commits()
    print("\n".join(problems) or "language: no findings")
    return bool(problems)


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S607 - of the path
    return done.stdout


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
