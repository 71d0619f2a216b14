"""Input validation of the dashboard: 422 with a list of details `{type, loc, msg}` (wire core 9)."""

from svc_proto.basics import strict_json
from svc_proto.basics.errors import Refused
from svc_proto.engine.message import Request, parse_json
from svc_proto.schema.json_object import JsonObject

__all__ = ["parse_body", "parse_boolean", "parse_prefix", "pop_text", "unprocessable", "parse_integer"]

MAX_PREFIX = 64  # characters, wire core 9
MAX_DIGITS = 9  # digits of a whole number in a query: 422
MAX_TEXT = 2_048  # characters
FLAGS = {
    **dict.fromkeys(("1", "true", "t", "yes", "y", "on"), True),
    **dict.fromkeys(("0", "false", "f", "no", "n", "off"), False),
}


def unprocessable(kind: str, message: str, *place: str) -> Refused:
    """Build the error for an invalid input and its location, such as `("query", "limit")`."""
    return Refused(422, "invalid", message, extra={"detail": [{"type": kind, "loc": list(place), "msg": message}]})


def parse_prefix(request: Request) -> str:
    """Return the token prefix of the path. Raises `Refused` 422 above 64 characters."""
    prefix = request.params["prefix"]
    if len(prefix) > MAX_PREFIX:
        raise unprocessable("string_too_long", f"at most {MAX_PREFIX} characters", "path", "prefix")
    return prefix


def parse_integer(request: Request, name: str) -> int | None:
    """Parse a whole number of the query, of at most nine digits; None if absent. Raises `Refused` 422."""
    text = request.query.get(name)
    if text is None:
        return None
    digits = text.strip().removeprefix("-")
    if not (digits.isascii() and digits.isdecimal() and len(digits) <= MAX_DIGITS):
        raise unprocessable("int_parsing", "must be a whole number", "query", name)
    return int(text)


def parse_boolean(request: Request, name: str) -> bool | None:
    """Parse a truth value of the query; None if absent. Raises `Refused` 422."""
    text = request.query.get(name)
    if text is None:
        return None
    flag = FLAGS.get(text.strip().lower())
    if flag is None:
        raise unprocessable("bool_parsing", "must be true or false", "query", name)
    return flag


def parse_body(request: Request) -> JsonObject:
    """Parse the body as a JSON object; an empty body is an empty object. Raises `Refused` 422."""
    if not request.body:
        return JsonObject()
    try:
        value = parse_json(request.body)
    except strict_json.JsonError as error:
        raise unprocessable("json_invalid", f"not valid JSON: {error}", "body") from None
    found = JsonObject.of_or_none(value)
    if found is None:
        raise unprocessable("dict_type", "must be a JSON object", "body")
    return found


def pop_text(body: JsonObject, name: str) -> str | None:
    """Remove a text from a body, and return it stripped; None if it is absent, null or blank. Raises `Refused` 422."""
    text, given = body.string(name), body.pop(name, None)
    if text != given or len(text or "") > MAX_TEXT:
        raise unprocessable("string_type", f"must be text of at most {MAX_TEXT} characters", "body", name)
    return (text or "").strip() or None
