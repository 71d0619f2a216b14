"""What is said to people is a sentence, and what is said to programs a word, wherever a test makes somebody say it.

Each refusal of the core is met by some test, so that no test has to repeat its text to see that it has one, and that
word and text stand in their places.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from functools import wraps
from typing import Any

from svc_proto.basics import errors
from svc_proto.basics.errors import LocalProtocolError, ProtocolError, Refused, RemoteProtocolError, ToolError

__all__ = ["hold_sentences", "mistake_of"]

WORD = re.compile(r"[a-z0-9_]*")  # a code for programs
MUST = re.compile(r"\S+ must be (\S+)")
ENOUGH = ("present", "base64", "code")  # what alone says what a field must be


def mistake_of(error: Exception) -> str:
    """What is wrong with how an error speaks; empty if nothing is."""
    text = str(error)
    if isinstance(error, Refused) and not WORD.fullmatch(error.code):
        return f"no word for programs: {error.code!r}"
    if " " not in text:
        return f"no sentence for people: {text!r}"
    if (only := MUST.fullmatch(text)) and only[1] not in ENOUGH:
        return f"this says too little: {text!r}"
    return ""


def hold_sentences() -> None:
    """A module of the core that makes one of our errors, and has it speak otherwise: AssertionError."""
    for kind in (ProtocolError, LocalProtocolError, RemoteProtocolError, Refused, ToolError):
        kind.__init__ = _held(kind.__init__)  # type: ignore[method-assign] # of all errors, whoever imports them


def _held(made: Callable[..., None]) -> Callable[..., None]:
    @wraps(made)
    def init(self: Exception, *args: Any, **options: Any) -> None:
        made(self, *args, **options)
        maker = str(sys._getframe(1).f_globals["__name__"])
        if maker.startswith("svc_proto.") and maker != errors.__name__:  # where one is made by way of its base
            assert not (mistake := mistake_of(self)), mistake

    return init
