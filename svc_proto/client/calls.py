"""One JSON request to a server, for a command: the object it answers with, or a `Problem` that people understand."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import field, frozen

from svc_proto.basics import strict_json
from svc_proto.basics.visible import plain
from svc_proto.client.pins import distrust
from svc_proto.client.problem import Problem, because
from svc_proto.engine.client import Fetched, bearer, fetch
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.engine.local_secret import secret_fields
from svc_proto.facts import Failure
from svc_proto.schema.members import Members

__all__ = [
    "Target",
    "answer_object",
    "answer_value",
    "error_text",
    "fields_for",
    "plain",
    "request",
    "request_json",
    "unreachable",
]

JSON = (b"content-type", b"application/json")


@frozen
class Target:
    """A server: what people call it, its http(s) address without a slash at the end, and what lets us in."""

    name: str
    url: str
    token: str = field(default="", repr=False)
    remedy: str = ""  # what to do when it cannot be reached
    local: bool = False  # the relay on this host: it is shown the local secret, if there is one


def request(
    engine: Engine,
    target: Target,
    method: str,
    path: str,
    body: Mapping[str, object] | None = None,
    *,
    within: float = 10.0,
) -> Flow[Fetched]:
    """Make one request. Raises `Problem` when there is no answer, whatever its status may be otherwise."""
    secret = (yield from secret_fields(engine)) if target.local else ()
    answer = yield from fetch(
        engine,
        method,
        target.url + path,
        headers=(*fields_for(target), *secret),
        body=b"" if body is None else strict_json.dumps_bytes(body),
        within=within,
    )
    if isinstance(answer, Failure):
        raise Problem(unreachable(target, answer))
    return answer


def request_json(
    engine: Engine,
    target: Target,
    method: str,
    path: str,
    body: Mapping[str, object] | None = None,
    *,
    within: float = 10.0,
) -> Flow[Members]:
    """The same; a status of 300 or more is a `Problem` too, and so is a body that is no JSON object."""
    answer = yield from request(engine, target, method, path, body, within=within)
    if answer.status >= 300:
        raise Problem(f"{target.name} refuses: {error_text(answer)}")
    return answer_object(target, answer)


def answer_value(target: Target, answer: Fetched) -> object:
    """The JSON of a body. Raises `Problem`."""
    try:
        return strict_json.loads(answer.body)
    except strict_json.JsonError:
        raise Problem(f"{target.name} at {target.url} does not answer in JSON: is it really one?") from None


def answer_object(target: Target, answer: Fetched) -> Members:
    """The JSON object of a body. Raises `Problem`."""
    value = answer_value(target, answer)
    if not isinstance(value, dict):
        raise Problem(f"{target.name} at {target.url} answers with something else than an object: is it really one?")
    return Members.of(value)


def error_text(answer: Fetched) -> str:
    """What a server says is wrong, in any of the shapes in use (wire core 0.4, wire api 2.1), fit for a terminal."""
    try:
        value = strict_json.loads(answer.body)
    except strict_json.JsonError:
        value = answer.body.decode("utf-8", "replace")
    found = Members.of(value)
    said = value if isinstance(value, str) else found.text("error", "detail") or found.inner("error").text("message")
    text = plain(said)
    return f"{text} (status {answer.status})" if text else f"status {answer.status}"


def unreachable(target: Target, failure: Failure) -> str:
    """The line for a server that does not answer."""
    distrusted = distrust(target.url, failure)
    if distrusted is not None:
        return distrusted
    remedy = f"; {target.remedy}" if target.remedy else ""
    return f"{target.name} at {target.url} cannot be reached: {because(failure)}{remedy}"


def fields_for(target: Target) -> tuple[tuple[bytes, bytes], ...]:
    """The headers of a request to it."""
    return (JSON, *bearer(target.token))
