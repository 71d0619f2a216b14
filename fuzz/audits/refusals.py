"""The whole of a refusal of the API in its long form (wire api 2.1 and 2.4)."""

from __future__ import annotations

from typing import Any

from fuzz.audit import Audit
from fuzz.peers import Caller
from fuzz.world import API_KEY

__all__ = ["refused"]

FIELDS = {  # of every answer that is no stream, wire api 2.4; none says that it came by TLS
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "x-xss-protection": "0",
    "strict-transport-security": "",
    "access-control-allow-origin": "",
}


def _check_fields(audit: Audit, caller: Caller) -> None:
    """The header fields that every answer carries."""
    headers = caller.answer.headers
    told = {name: (headers.get(name.encode()) or b"").decode() for name in FIELDS}
    audit.same(told, FIELDS, f"the headers of {caller.method} {caller.path}")
    if not headers.get(b"permissions-policy"):
        audit.wrong(f"{caller.path} is answered without a policy of permissions")


def refused(audit: Audit, caller: Caller, status: int, code: str | None, param: str | None) -> None:
    """The whole of a refusal in the long form (wire api 2.1)."""
    about = f"{caller.method} {caller.path}"
    audit.right(caller, status, about=about)
    error = dict(caller.answer.json["error"])
    said = error.pop("message")
    kind = "rate_limit_error" if status == 429 else "invalid_request_error" if status < 500 else "server_error"
    is_: dict[str, Any] = {"type": kind, "param": param, "code": code}
    if status == 401:
        is_.pop("param")
    audit.same((error, bool(said), [*caller.answer.json]), (is_, True, ["error"]), f"how {about} is refused: {said}")
    if API_KEY in caller.answer.body.decode():
        audit.wrong(f"{about} says the key")
    _check_fields(audit, caller)
