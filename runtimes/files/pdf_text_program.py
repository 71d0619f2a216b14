"""Child program that reads the text of a PDF file.

    python -I pdf_text_program.py < FILE    ->  {"pages": 3, "read": 3, "text": "..."}  or  {"error": "why not"}

A malicious file can make the parser use much time and memory, so it runs in a process of its own, with limits.
"""

import contextlib
import json
import logging
import os
import resource
import sys
from collections.abc import Sequence
from io import BytesIO

__all__ = ["main", "read_text"]

MAX_PAGES = 500  # pages that are read
MAX_CHARS = 400_000  # characters of text; pages after that are not read
CPU_SECONDS, MEMORY, FILES = 20, 1 << 30, 64
NICE = 5


def main(arguments: Sequence[str]) -> int:
    """Read a PDF file from standard input, and print its text, or the error, as JSON. Returns 0."""
    _limit()
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)
    try:
        answer = read_text(sys.stdin.buffer.read())
    except MemoryError:
        answer = {"error": "the PDF file needs too much memory"}
    sys.stdout.write(json.dumps(answer) + "\n")
    return 0


def read_text(data: bytes) -> dict[str, object]:
    """Return `pages`, `read` (number of pages that were read, at most `MAX_PAGES`) and `text`, or only `error`.

    Raises `MemoryError`.
    """
    from pypdf import PdfReader  # noqa: PLC0415, RUF100 - only here

    texts: list[str] = []
    try:
        reader = PdfReader(BytesIO(data))
        if reader.is_encrypted and not reader.decrypt(""):
            return {"error": "the PDF file needs a password"}
        pages = len(reader.pages)
        for page in reader.pages[:MAX_PAGES]:
            texts.append(page.extract_text())
            if sum(map(len, texts)) > MAX_CHARS:
                break
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001, RUF100 - a damaged file makes the library raise errors of any kind
        return {"error": "the PDF file is damaged"}
    return {"pages": pages, "read": len(texts), "text": "\n\n".join(texts)[:MAX_CHARS]}


def _limit() -> None:
    """Lower the priority of this process, limit its processor time, memory and open files, and forbid file writes.

    A limit that the host does not permit is skipped.
    """
    os.nice(NICE)
    limits = ((resource.RLIMIT_CPU, CPU_SECONDS), (resource.RLIMIT_AS, MEMORY), (resource.RLIMIT_NOFILE, FILES))
    for what, limit in (*limits, (resource.RLIMIT_FSIZE, 0), (resource.RLIMIT_CORE, 0)):
        with contextlib.suppress(ValueError, OSError):  # the host has a lower limit already, or has no such limit
            resource.setrlimit(what, (limit, limit))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
