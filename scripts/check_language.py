"""Checker for the language of docstrings, comments, documents and commit subjects.

    python scripts/check_language.py            # report findings above the counts of language_debt.txt; exit code 1
    python scripts/check_language.py FILE...    # list every finding of these files
    python scripts/check_language.py --lower    # lower the counts to what is there; follows renamed files
    python scripts/check_language.py --figures  # print totals

The rules are in `language.toml`. `language_debt.txt` has the number of permitted findings by file and rule. A file
that it does not name must be free of findings. Without that list, `--lower` writes it from the present state.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tokenize
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

ROOT = Path(__file__).parent.parent
DEBT = Path(__file__).with_name("language_debt.txt")
CONFIG: dict[str, Any] = tomllib.loads(Path(__file__).with_name("language.toml").read_text(encoding="utf-8"))
CODE = {".py", ".js", ".html", ".css", ".sh", ".toml", ".yaml", ".yml"}
Counts: TypeAlias = dict[str, Counter[str]]


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
    """A violation of a rule."""

    line: int
    rule: str
    text: str


def check_file(path: Path) -> Iterator[Finding]:
    """Yield the findings of one file, by its suffix."""
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
    """Yield each commit since the base whose subject is too long or does not start with an imperative verb."""
    log = _git("log", "--no-merges", "--format=%h %s", f"{CONFIG['base']}..HEAD")  # empty without a clone or its base
    for commit, _, subject in (line.partition(" ") for line in log.splitlines()):
        first = subject.partition(" ")[0].lower()
        other = first in NO_VERBS or (first.endswith(("s", "ed", "ing")) and first not in VERBS)
        if other or not subject[:1].isupper() or subject.endswith(".") or len(subject) > CONFIG["subject_length"]:
            yield f"commit {commit}: {subject}"


def count(files: list[str]) -> Counts:
    """Return the number of findings of each file with any, by rule."""
    counts = {file: Counter(found.rule for found in check_file(ROOT / file)) for file in files}
    return {file: counted for file, counted in counts.items() if counted}


def tracked_files() -> list[str]:
    """Return the files of the repository whose words are checked."""
    files = _git("ls-files", "--cached", "--others", "--exclude-standard").splitlines()
    return sorted(
        file
        for file in files
        if Path(file).suffix in CODE | {".md"} and not any(fnmatch(file, each) for each in CONFIG["skipped"])
        if (ROOT / file).is_file()
    )


def read_debt() -> Counts:
    """Read the permitted counts: `PATH RULE=COUNT ...` in each line."""
    debt: Counts = {}
    for line in DEBT.read_text(encoding="utf-8").splitlines():
        file, *pairs = line.split()
        debt[file] = Counter({rule: int(number) for rule, _, number in (pair.partition("=") for pair in pairs)})
    return debt


def lower_debt(counts: Mapping[str, Counter[str]]) -> None:
    """Write the counts; none is higher than before, except in a first version."""
    if DEBT.exists():
        debt = read_debt()
        commit = _git("log", "-1", "--format=%H", "--", str(DEBT)).strip()
        for line in _git("diff", "-M40%", "--diff-filter=R", "--name-status", commit).splitlines() if commit else ():
            _, old, new = line.split("\t")
            debt[new] = debt.get(old, Counter())
        counts = {file: found & debt.get(file, Counter()) for file, found in counts.items()}
    lines = (
        f"{file} {' '.join(f'{rule}={number}' for rule, number in sorted(found.items()))}\n"
        for file, found in sorted(counts.items())
        if found
    )
    DEBT.write_text("".join(lines), encoding="utf-8")


def print_figures(files: list[str], counts: Counts) -> None:
    """Print the totals of each rule, in code and in documents."""
    for title, chosen in (
        ("code", [file for file in files if not file.endswith(".md")]),
        ("documents", [file for file in files if file.endswith(".md")]),
    ):
        total = sum((counts.get(file, Counter()) for file in chosen), Counter[str]())
        print(
            f"{title}: {len(chosen)} files; {', '.join(f'{rule} {number}' for rule, number in sorted(total.items()))}"
        )
    all_of_them = [text for file in files if file.endswith(".py") for _, text in docstrings((ROOT / file).read_text())]
    wrong = sum(1 for text in all_of_them if FIRST.match(text.lstrip()))
    print(f"docstrings: {len(all_of_them)}; {wrong} start wrong ({wrong / len(all_of_them):.1%})")


def main(arguments: list[str]) -> int:
    """Run the checker and return its exit code."""
    if arguments and not arguments[0].startswith("-"):
        found = [f"{file}:{line}: {rule}: {text}" for file in arguments for line, rule, text in check_file(Path(file))]
        print("\n".join(found))
        return bool(found)
    files = tracked_files()
    counts = count(files)
    if arguments == ["--lower"]:
        lower_debt(counts)
    elif arguments == ["--figures"]:
        print_figures(files, counts)
        return 0
    debt = read_debt()
    problems = [
        f"{file}: {rule}: {number} findings, {debt.get(file, Counter())[rule]} permitted"
        for file, found in counts.items()
        for rule, number in found.items()
        if number > debt.get(file, Counter())[rule]
    ]
    if problems:
        problems.append("python scripts/check_language.py FILE lists the findings of a file")
    problems += check_commits()
    print("\n".join(problems) or "language: no new findings")
    return bool(problems)


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
