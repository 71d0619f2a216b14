"""Errors of vendors as texts that may be shown: without the key, a piece of it, or a whole response.

A vendor's text that shares six consecutive characters with the key is not quoted at all.
"""

import re

from svc_proto.basics.excerpt import safe_excerpt
from svc_proto.engine.http_client import HttpResult
from svc_proto.facts import Failure, FailureKind
from svc_proto.schema.json_object import error_text, json_value
from svc_proto.voice.provider_interface import ProviderError
from svc_proto.voice.provider_keys import ProviderCredentials

__all__ = ["truncated_error", "response_error", "safe_excerpt_of"]

MAX_BODY = 64 * 1024  # bytes of an error body that are read
SHARED = 6  # consecutive characters in common with the key
_SILENT = {
    FailureKind.TIMED_OUT: "did not answer in time",
    FailureKind.TOO_LARGE: "sent more than is taken",
    FailureKind.INVALID: "does not speak HTTP as it should, or its address is wrong",
}
_SECONDS = re.compile(r"[0-9]{1,6}")  # of a Retry-After


def response_error(access: ProviderCredentials, answer: HttpResult | Failure) -> ProviderError:
    """Return the error for a vendor's error response, or for a missing response."""
    name = access.endpoint
    if isinstance(answer, Failure):
        why = _SILENT.get(answer.kind) or f"cannot be reached: {answer.detail or answer.kind.value}"
        return ProviderError(f"{name} {why}")
    status = answer.status
    words = safe_excerpt_of(_error_text(answer.body), access.key)
    tail = f": {words}" if words else ""
    if status == 401:
        return ProviderError(f"{name} does not accept the configured API key")
    if status == 429:
        wait = (answer.headers.get(b"retry-after") or b"").decode("ascii", "replace").strip()
        again = f"; try again in {int(wait)} seconds" if _SECONDS.fullmatch(wait) else ""
        return ProviderError(f"{name} takes no more requests for now (429){again}{tail}")
    if 300 <= status < 400:
        return ProviderError(f"{name} answered {status}: redirects are not followed, since the key would go along")
    return ProviderError(f"{name} answered {status}{tail}")


def truncated_error(access: ProviderCredentials, failure: Failure) -> ProviderError:
    """Return the error for a response that ended too early."""
    if failure.kind is FailureKind.TIMED_OUT:
        return ProviderError(f"{access.endpoint} fell silent in the middle of its answer")
    return ProviderError(f"the connection to {access.endpoint} broke off in the middle of its answer")


def safe_excerpt_of(text: str, key: str) -> str:
    """Return a vendor's text on one short line; empty if it contains a piece of the key."""
    pieces = {key[place : place + SHARED] for place in range(len(key) - SHARED + 1)}
    if any(text[place : place + SHARED] in pieces for place in range(len(text) - SHARED + 1)):
        return ""
    return safe_excerpt(text, key)


def _error_text(body: bytes) -> str:
    """Return the text of an error body: a text in its JSON, or the body if it is plain text."""
    text = body[:MAX_BODY].decode("utf-8", "replace")
    return error_text(json_value(text, "" if text.lstrip().startswith(("<", "{", "[")) else text))
