"""Request targets, their paths and queries, and URLs: splitting, and one pass of decoding.

Malformed paths and URLs are refused; a query is parsed in any form.
"""

import re
from functools import lru_cache
from urllib.parse import parse_qsl, quote, unquote_to_bytes, urljoin, urlsplit

from svc_proto.basics.errors import RemoteProtocolError
from svc_proto.basics.fast_frozen import fast_frozen

__all__ = [
    "Url",
    "decode_segment",
    "encode_segment",
    "has_scheme",
    "parse_query",
    "parse_query_list",
    "parse_query_path",
    "parse_url",
    "redirect_within_origin",
    "split_target",
]

DEFAULT_PORTS = {"http": 80, "ws": 80, "https": 443, "wss": 443}
SECURE = ("https", "wss")
MAX_URLS = 64  # parsed URLs that are kept: a program calls the same few again and again
REPLACEMENT = "%EF%BF%BD"  # U+FFFD
_ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/?]*")
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_HOST = re.compile(r"[A-Za-z0-9._~-]+|[0-9A-Fa-f:.]+")
_BLANK = re.compile(r"[\x00-\x20\x7f-\xff]|[^\x00-\xff]")


@fast_frozen
class Url:
    """An absolute URL. `host` has no brackets, `target` goes on the request line, `tls` follows the scheme."""

    scheme: str
    host: str
    port: int
    tls: bool
    target: str


def split_target(target: str) -> tuple[str, str]:
    """Return the raw path and the raw query of a request target, in origin or absolute form (RFC 9112 section 3.2).

    Raises `RemoteProtocolError` with status 400 for any other form, for a fragment, and for a malformed escape in the
    path. `*` (of OPTIONS) is its own path.
    """
    if not target.startswith("/"):
        absolute = _ABSOLUTE.match(target)
        if absolute is None and target != "*":
            raise RemoteProtocolError("the request target has no path")
        if absolute is not None:
            target = target[absolute.end() :]
            target = target if target.startswith("/") else "/" + target
    if "#" in target:
        raise RemoteProtocolError("the request target has a fragment")
    path, _, query = target.partition("?")
    if "%" in path and _BAD_ESCAPE.search(path):
        raise RemoteProtocolError("the path has a malformed escape")
    return path, query


def decode_segment(segment: str) -> str:
    """Percent-decode one segment of a path.

    A segment without an escape is returned unchanged. In others, a malformed escape, bytes that are not UTF-8, and NUL
    raise `RemoteProtocolError`.
    """
    if "%" not in segment:
        return segment
    if _BAD_ESCAPE.search(segment):
        raise RemoteProtocolError("the path has a malformed escape")
    try:
        text = unquote_to_bytes(segment).decode("utf-8")
    except UnicodeDecodeError:
        raise RemoteProtocolError("the path is not UTF-8") from None
    if "\x00" in text:
        raise RemoteProtocolError("the path has a NUL")
    return text


def encode_segment(text: str) -> str:
    """Percent-encode text as one segment of a path, the inverse of `decode_segment`."""
    return quote(text, safe="")


def parse_query_list(query: str) -> list[tuple[str, str]]:
    """Parse every parameter of a query in order, decoded; `+` is a blank. Never raises.

    Escaped bytes that are not UTF-8, and an escaped NUL, become U+FFFD. The size of a head bounds the number of
    parameters.
    """
    return parse_qsl(query.replace("%00", REPLACEMENT), keep_blank_values=True, errors="replace")


def parse_query(query: str) -> dict[str, str]:
    """Parse the parameters of a query, escapes and `+` decoded; of a repeated name the first value."""
    parameters: dict[str, str] = {}
    for name, value in parse_query_list(query):
        parameters.setdefault(name, value)
    return parameters


def parse_query_path(query: str, name: str) -> str:
    """Return a parameter that is a path on this host, empty if absent; of a repeated name the first value.

    A path is bytes: those that are not UTF-8 become lone surrogates, as `os.fsdecode` makes them (PEP 383).
    """
    pairs = parse_qsl(query.replace("%00", REPLACEMENT), keep_blank_values=True, errors="surrogateescape")
    return next((value for key, value in pairs if key == name), "")


@lru_cache(maxsize=MAX_URLS)
def parse_url(url: str) -> Url:
    """Parse an absolute http, https, ws or wss URL. Raises `RemoteProtocolError` for other text.

    User information is refused, since it is a secret that would end in logs; a fragment is dropped.
    """
    if _BLANK.search(url):
        raise RemoteProtocolError("the URL has a character that is not allowed")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise RemoteProtocolError("the URL is malformed") from None
    scheme = parts.scheme
    if scheme not in DEFAULT_PORTS:
        raise RemoteProtocolError("the URL is not one of http, https, ws, wss")
    if "@" in parts.netloc:
        raise RemoteProtocolError("the URL has user information")
    if not _HOST.fullmatch(host) or port == 0:
        raise RemoteProtocolError("the URL has no usable host or port")
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Url(scheme, host, port or DEFAULT_PORTS[scheme], scheme in SECURE, target)


def has_scheme(url: str, *schemes: str) -> bool:
    """Report whether `parse_url` accepts a text, and its scheme is one of `schemes`."""
    try:
        return parse_url(url).scheme in schemes
    except RemoteProtocolError:
        return False


def redirect_within_origin(url: str, location: bytes) -> str | None:
    """Return the URL that a Location field names, without its fragment (RFC 9110 section 10.2.2).

    None for another origin, or a malformed URL.
    """
    try:
        target = urljoin(url, location.decode("ascii"))
        before, after = parse_url(url), parse_url(target)
    except (ValueError, RemoteProtocolError):
        return None
    same_origin = (before.scheme, before.host, before.port) == (after.scheme, after.host, after.port)
    return target.partition("#")[0] if same_origin else None
