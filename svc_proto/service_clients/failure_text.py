"""Texts for people: the reason of a failed operation, and the name of a model's server."""

from urllib.parse import urlsplit, urlunsplit

from svc_proto.facts import Failure

__all__ = ["failure_reason", "model_server_name"]

_REASONS = {  # by the value of a `FailureKind`
    "not_found": "not found",
    "denied": "permission denied",
    "no_space": "no space left on the device",
    "too_large": "too large",
    "timed_out": "no answer in time",
    "unreachable": "not reachable",
}


def failure_reason(failure: Failure) -> str:
    """Return the reason of a failed operation: the failure's detail, else a few words for its kind."""
    return failure.detail or _REASONS.get(failure.kind.value, failure.kind.value.replace("_", " "))


def model_server_name(base_url: str, source: str) -> str:
    """Return the name of a model's server for people: its address, and the setting that names the address, if any.

    The query and user information are left out: they may hold a key.
    """
    parts = urlsplit(base_url)
    address = urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
    return f"the model's server at {address}" + (f" ({source})" if source else "")
