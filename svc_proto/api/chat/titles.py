"""Validation of session titles and of ids that clients choose (wire api 2.1, 3.3), and titles of copies."""

import re
import unicodedata
from collections.abc import Iterable

from svc_proto.api.errors import invalid_request
from svc_proto.schema.json_object import as_text

__all__ = ["check_session_id", "clean_title", "base_title", "title_of_copy"]

MAX_TITLE = 100  # characters after cleaning, wire api 3.1
MAX_ID = 256  # characters, wire api 2.1
HIDDEN = ("Cc", "Cf", "Cs", "Zl", "Zp")  # control, zero-width and bidi characters (unicode general categories)
BLANK = re.compile(r"\s+")
_DRIVE = re.compile(r"[A-Za-z]:")
_NUMBERED = re.compile(r"(.+) #([0-9]{1,9})")


def clean_title(value: object) -> str | None:
    """Return a title without hidden characters and repeated spaces; None for None and for a blank one.

    Raises `Refused` 400 `invalid_title` for another type, and for more than 100 characters.
    """
    if value is None:
        return None
    text = as_text(value)
    if text is None:
        raise invalid_request("title must be a string or null", code="invalid_title", param="title")
    spaced = BLANK.sub(" ", text)  # before the removal of control characters, which include tabs and line ends
    title = " ".join("".join(each for each in spaced if unicodedata.category(each) not in HIDDEN).split())
    if len(title) > MAX_TITLE:
        raise invalid_request(f"title may have at most {MAX_TITLE} characters", code="invalid_title", param="title")
    return title or None


def base_title(title: str) -> str:
    """Return a title without the number of a copy: `Trip` of `Trip #2`."""
    numbered = _NUMBERED.fullmatch(title)
    return title if numbered is None else numbered[1]


def title_of_copy(title: str, taken: Iterable[str]) -> str:
    """Return the title with the number after the highest one in use, at least `Trip #2` (wire api 3.8).

    A number at the end of `title` is replaced. A long title is cut, so that the whole has at most 100 characters.
    """
    stem = base_title(title)
    used = [1]
    for other in taken:
        numbered = _NUMBERED.fullmatch(other)
        if numbered is not None and numbered[1] == stem:
            used.append(int(numbered[2]))
    suffix = f" #{max(used) + 1}"
    return stem[: MAX_TITLE - len(suffix)] + suffix


def check_session_id(value: object, *, param: str | None = "id") -> str:
    """Return an id that a client chose, if it is valid. Raises `Refused` 400 `invalid_session_id`.

    An id is a text of 1 to 256 printable characters without slashes, `..`, or a drive letter at its start.
    """
    found = as_text(value)
    if not found:
        raise invalid_request("a session id must be a string", code="invalid_session_id", param=param)
    if len(found) > MAX_ID:
        raise invalid_request(
            f"a session id may have at most {MAX_ID} characters", code="invalid_session_id", param=param
        )
    if _DRIVE.match(found) or ".." in found or any(each in "/\\" or not each.isprintable() for each in found):
        text = "a session id may hold neither control characters nor anything that means a path"
        raise invalid_request(text, code="invalid_session_id", param=param)
    return found
