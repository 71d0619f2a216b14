"""Home folder and text encodings of a process, set up before anything else.

A process whose encoding of paths is not UTF-8 is started again in UTF-8 mode (PEP 540): paths and arguments would
otherwise depend on the locale. Output keeps its encoding; a character that the encoding lacks is replaced.
"""

import codecs
import os
import sys

__all__ = ["can_print", "prepare_process"]

OUTPUT_ENCODING = "_SVC_OUTPUT_ENCODING"  # variable from the first start of the interpreter to the second
HANDLER = "svc-replace"  # name of the error handler of the output
REPLACEMENTS = {
    "…": "...",
    "→": "->",
    "←": "<-",
    "–": "-",  # noqa: RUF001 - a sign that is replaced
    "—": "-",
    "•": "*",
    "●": "*",
    "○": "o",
    "✓": "+",
    "✗": "x",
    "·": ".",
    "“": '"',
    "”": '"',
    "‘": "'",  # noqa: RUF001 - a sign that is replaced
    "’": "'",  # noqa: RUF001 - a sign that is replaced
    "─": "-",
    "│": "|",
}


def prepare_process() -> None:
    """Prepare the encodings of this process; start the interpreter again if paths are not in UTF-8.

    Standard output and error output then replace the characters that their encoding lacks. For a user without HOME and
    without an entry in passwd, HOME is set to `/`.
    """
    _set_home()
    if not sys.flags.utf8_mode and codecs.lookup(sys.getfilesystemencoding()).name != "utf-8" and sys.executable:
        os.environ[OUTPUT_ENCODING] = getattr(sys.stdout, "encoding", "") or ""
        os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])  # noqa: S606 - this very program
    codecs.register_error(HANDLER, _replace)
    encoding = os.environ.pop(OUTPUT_ENCODING, "") or None
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)  # a stream of a test, or none
        if reconfigure is not None:
            reconfigure(encoding=encoding, errors=HANDLER)


def can_print(text: str) -> bool:
    """Report whether standard output has all characters of a text."""
    try:
        text.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return False
    return True


def _replace(error: UnicodeError) -> tuple[str | bytes, int]:
    """Return replacements for characters that the output's encoding lacks, and the place at which encoding continues.

    In UTF-8, bytes of a name that was not UTF-8 (PEP 383) are written as they were. An error of decoding is re-raised.
    """
    if not isinstance(error, UnicodeEncodeError):
        raise error
    signs = error.object[error.start : error.end]
    if codecs.lookup(error.encoding).name == "utf-8":
        return signs.encode("utf-8", "surrogateescape" if _is_escaped(signs) else "replace"), error.end
    return "".join(REPLACEMENTS.get(sign, "?") for sign in signs), error.end


def _is_escaped(signs: str) -> bool:
    return all("\udc80" <= sign <= "\udcff" for sign in signs)


def _set_home() -> None:
    if os.environ.get("HOME"):
        return
    import pwd  # noqa: PLC0415, RUF100 - seldom needed

    try:
        pwd.getpwuid(os.getuid())
    except KeyError:
        os.environ["HOME"] = "/"
