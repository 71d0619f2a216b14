"""Error responses (wire api 2.1): `{"error": "TEXT"}` on paths that begin as in `MANAGEMENT`, else the OpenAI form.

The OpenAI form is `{"error": {"message": "TEXT", "type": "invalid_request_error", "param": null, "code": "..."}}`. Its
type depends on the status, and a 401 has no `param`.
"""

from svc_proto.basics.errors import Refused
from svc_proto.engine.core import Engine
from svc_proto.engine.message import Response, json_response

__all__ = [
    "MANAGEMENT",
    "check_not_stopping",
    "shutting_down",
    "error_response",
    "invalid_request",
    "model_not_found",
    "session_not_found",
    "not_found",
    "store_unavailable",
]

MANAGEMENT = ("/api/config", "/api/memory", "/api/skills", "/api/available-models")  # wire api 8: the short form
NAMELESS = ("", "invalid_json", "invalid_body", "invalid_field")  # errors whose code is null in wire api 2.1
MAX_ID_CHARS = 80  # characters of an id in a message


def invalid_request(message: str, *, code: str | None = None, param: str | None = None, status: int = 400) -> Refused:
    """Build the error for an invalid request; a `code` of None is null in the answer."""
    return Refused(status, code or "", message, extra={} if param is None else {"field": param})


def not_found(message: str, *, code: str | None = None) -> Refused:
    """Build a 404 with a message; a `code` of None is null in the answer."""
    return Refused(404, code or "", message)


def session_not_found(identity: str) -> Refused:
    """Build a 404 `session_not_found`, at which the relay's voice agent creates a new session (wire api 2.1)."""
    return not_found(f"No such session: {identity[:MAX_ID_CHARS]}", code="session_not_found")


def model_not_found(identity: str) -> Refused:
    """Build a 404 `model_not_found` for an unknown model, as OpenAI's API does."""
    return invalid_request(
        f"the model {identity[:MAX_ID_CHARS]!r} does not exist", code="model_not_found", param="model", status=404
    )


def store_unavailable() -> Refused:
    """Build a 503 `session_db_unavailable`, for a store that fails or times out, or a file that cannot be read."""
    return Refused(503, "session_db_unavailable", "the session store is unavailable")


def shutting_down() -> Refused:
    """Build a 503 at shutdown. Phones look for the code at the start of the message (wire api 2.3)."""
    text = "gateway_draining: the server is shutting down, try again in a moment"
    return Refused(503, "gateway_draining", text, headers=((b"retry-after", b"1"),))


def check_not_stopping(engine: Engine) -> None:
    """Raise `Refused` 503 `gateway_draining` while the server shuts down."""
    if engine.stopping:
        raise shutting_down()


def error_response(refused: Refused, path: str) -> Response:
    """Build the response to a refused request: in the short form for paths of `MANAGEMENT`, else in OpenAI's form."""
    if path.startswith(MANAGEMENT):
        return json_response(refused.status, {"error": refused.message}, refused.headers)
    error: dict[str, object] = {"message": refused.message, "type": _type(refused.status)}
    if refused.status != 401:  # wire api 2.1: this body has no `param`
        error["param"] = refused.extra.get("field")
    error["code"] = None if refused.code in NAMELESS else refused.code
    return json_response(refused.status, {"error": error}, refused.headers)


def _type(status: int) -> str:
    if status == 429:
        return "rate_limit_error"
    return "server_error" if status >= 500 else "invalid_request_error"
