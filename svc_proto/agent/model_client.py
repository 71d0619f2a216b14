"""Client for one model call: `POST {base_url}/chat/completions`, streamed, with retries before the answer begins.

After each batch of events the client waits for the host's readers, and does not read the connection meanwhile. The key
is sent in the request only: redirects are not followed, and error texts of a server are shortened and stripped of the
key.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from attrs import frozen

from svc_proto.agent.completion_assembler import CompletionAssembler, ModelResponseError
from svc_proto.agent.interface import AgentHost, ModelEndpoint, TextDelta
from svc_proto.basics import strict_json
from svc_proto.basics.excerpt import safe_excerpt
from svc_proto.basics.sanitize import is_printable_ascii
from svc_proto.commands import Level
from svc_proto.engine.flow import Flow, sleep
from svc_proto.engine.http_client import HttpResult, bearer_header, fetch
from svc_proto.engine.response_readers import EventReader, event_stream
from svc_proto.facts import Failure, FailureKind
from svc_proto.schema.json_object import JsonObject, error_text

if TYPE_CHECKING:
    from svc_proto.engine.core import Engine

__all__ = ["DEFAULT_MODEL_LIMITS", "ModelCallFailure", "ModelCallLimits", "call_model"]

JSON = (b"content-type", b"application/json")
RETRIED = (408, 409, 425, 429)  # statuses that are retried, like every 5xx
_NO_TOOLS = re.compile(r"(?:not|n't) support(?:ing)? (?:tool|function)", re.IGNORECASE)
# Members that some servers refuse, and their replacements.
_FALLBACK_MEMBERS = {
    "tools": None,
    "stream_options": None,
    "max_tokens": "max_completion_tokens",
}


@frozen(kw_only=True)
class ModelCallLimits:
    """Limits of a model call. Times in seconds."""

    connect: float = 15.0
    answer: float = 300.0  # until the response head: a local model may have to be loaded first
    silence: float = 300.0  # between two events
    whole: float = 3_600.0  # for one answer, whether or not the connection is active
    trailer: float = 5.0  # for usage and end, after the answer itself
    attempts: int = 4
    first_pause: float = 1.0  # doubles after each attempt
    longest_pause: float = 60.0  # a longer Retry-After ends the attempts


DEFAULT_MODEL_LIMITS = ModelCallLimits()


@frozen(kw_only=True)
class ModelCallFailure:
    """Reason for a missing or incomplete answer. `text` is for people."""

    text: str
    code: str = "upstream_error"
    reason: str = ""  # for the log, without the server's text; empty: as `text`
    pause: float | None = None  # s until the next attempt, as requested by the server
    retryable: bool = False  # another attempt may succeed
    unwanted: str | None = None  # the request member that the server refuses
    status: int | None = None  # HTTP status of the refusal


def call_model(
    engine: Engine,
    route: ModelEndpoint,
    request: Mapping[str, object],
    host: AgentHost,
    limits: ModelCallLimits,
    *,
    before_text: str = "",
    needed: tuple[str, ...] = (),
) -> Flow[CompletionAssembler | ModelCallFailure]:
    """Call the model and emit its text to the host. `before_text` is emitted before the first piece.

    If a server refuses a member, the request is repeated without it, unless the member is `needed`.
    """
    if not is_printable_ascii(route.api_key):
        return ModelCallFailure(text="the model's API key has characters that no header can carry")
    model_request = {"model": route.model, "stream": True, "stream_options": {"include_usage": True}, **request}
    pause = limits.first_pause
    attempt = 0
    while True:
        attempt += 1
        answer = yield from _attempt(engine, route, model_request, host, limits, before_text)
        if isinstance(answer, CompletionAssembler):
            return answer
        if answer.unwanted in model_request and answer.unwanted not in needed:
            engine.log(
                Level.WARNING, "model request repeated without a member", member=answer.unwanted, model=route.model
            )
            model_request = _without_member(model_request, answer.unwanted)
            continue
        delay = answer.pause if answer.pause is not None else pause * (1.0 - engine.entropy(1)[0] / 512)
        if not answer.retryable or attempt >= limits.attempts or delay > limits.longest_pause:
            where = {"url": route.base_url.partition("?")[0], "model": route.model}
            why = answer.reason or answer.text
            engine.log(Level.WARNING, "model failed", **where, status=answer.status, code=answer.code, why=why)
            return answer
        engine.log(Level.WARNING, "model request retried", attempt=attempt, seconds=delay)
        yield from sleep(engine, delay)
        pause *= 2


def _attempt(
    engine: Engine,
    route: ModelEndpoint,
    model_request: Mapping[str, object],
    host: AgentHost,
    limits: ModelCallLimits,
    before_text: str,
) -> Flow[CompletionAssembler | ModelCallFailure]:
    begun = engine.now.mono
    opened = yield from fetch(
        engine,
        "POST",
        f"{route.base_url.rstrip('/')}/chat/completions",
        headers=(JSON, *bearer_header(route.api_key)),
        body=strict_json.dumps_bytes(model_request),
        into=event_stream(),
        connect_within=limits.connect,
        within=limits.answer,
    )
    if isinstance(opened, Failure):
        return _no_connection(opened, again=engine.now.mono - begun < limits.answer)
    progress = _AttemptProgress(host, before_text)
    try:
        if isinstance(opened, HttpResult):
            return (yield from _whole(opened, progress, route))
        return (yield from _stream(engine, opened, progress, limits))
    except ModelResponseError as problem:
        text = f"the model's server failed: {safe_excerpt(str(problem), route.api_key)}"
        return ModelCallFailure(text=text, reason="the model's server failed", retryable=not progress.assembly.begun)
    finally:
        if isinstance(opened, EventReader):
            opened.abandon()


class _AttemptProgress:
    """Progress of one attempt: the assembled answer, and its events for the host."""

    def __init__(self, host: AgentHost, before_text: str) -> None:
        self._host = host
        self._before_text = before_text
        self.assembly = CompletionAssembler()

    def feed(self, data: str) -> None:
        for delta in self.assembly.feed(data):
            if self._before_text and isinstance(delta, TextDelta):
                self._host.emit(TextDelta(self._before_text))
                self._before_text = ""
            self._host.emit(delta)

    def yield_to_loop(self) -> Flow[None]:
        if self._host.reader_behind:
            yield from self._host.wait_drained()


def _stream(
    engine: Engine, reader: EventReader, progress: _AttemptProgress, limits: ModelCallLimits
) -> Flow[CompletionAssembler | ModelCallFailure]:
    assembly, latest = progress.assembly, engine.now.mono + limits.whole
    while not assembly.is_finished:
        if engine.now.mono >= latest:
            return ModelCallFailure(
                text=f"the model's answer was not over after {limits.whole:g} s", code="upstream_timeout"
            )
        batch = yield from reader.read(within=limits.trailer if assembly.finish else limits.silence)
        if isinstance(batch, tuple):
            for event in batch:
                if not assembly.is_finished:
                    progress.feed(event.data)
            yield from progress.yield_to_loop()
            continue
        if assembly.finish:
            break  # the answer is complete, only the usage may be missing
        if batch is not None and batch.kind is FailureKind.TIMED_OUT:
            return ModelCallFailure(
                text=f"the model's server was silent for {limits.silence:g} s", code="upstream_timeout"
            )
        return ModelCallFailure(text="the model's answer broke off: the connection ended", retryable=not assembly.begun)
    return assembly


def _whole(
    answer: HttpResult, progress: _AttemptProgress, route: ModelEndpoint
) -> Flow[CompletionAssembler | ModelCallFailure]:
    """Handle a response that is no event stream: an error, or a completion in one piece."""
    body = answer.body.decode("utf-8", "replace")
    if answer.status != 200:
        return _refusal(answer, body, route)
    if not body.lstrip().startswith("{"):
        return ModelCallFailure(text="the model's server sent neither an event stream nor JSON; is the base URL right?")
    progress.feed(body)
    if not progress.assembly.done:
        return ModelCallFailure(text="the model's server sent JSON without an answer; is the base URL right?")
    yield from progress.yield_to_loop()
    return progress.assembly


def _refusal(answer: HttpResult, body: str, route: ModelEndpoint) -> ModelCallFailure:
    status = answer.status
    members = JsonObject.parse_or_empty(body)
    said = safe_excerpt(error_text(members), route.api_key)
    match status:
        case 401 | 403:
            what = "the model's server does not accept the key (SVC_MODEL_API_KEY)"
        case 404:
            what = "the model's server knows no such model or path (SVC_MODEL, SVC_MODEL_BASE_URL)"
        case 429:
            what = "the model's server is asked too often, or its quota is used up"
        case _ if 300 <= status < 400:
            what = "the model's server redirects, which is not followed since a key would go along"
        case _:
            what = "the model's server refused the request" if status < 500 else "the model's server failed"
    return ModelCallFailure(
        text=f"{what}: {status}{f', {said}' if said else ''}",
        retryable=status in RETRIED or status >= 500,
        pause=_retry_after(answer),
        unwanted=_unwanted(said) if status in (400, 422) else None,
        status=status,
        reason=what,
    )


def _unwanted(said: str) -> str | None:
    """Return the request member that a server's error names, if it may be omitted."""
    if _NO_TOOLS.search(said):
        return "tools"
    if "max_completion_tokens" in said:
        return "max_tokens"
    return "stream_options" if "stream_options" in said else None


def _without_member(request: Mapping[str, object], member: str) -> dict[str, object]:
    instead = _FALLBACK_MEMBERS[member]
    rest = {name: value for name, value in request.items() if name != member}
    return rest if instead is None else {**rest, instead: request[member]}


def _retry_after(answer: HttpResult) -> float | None:
    wanted = answer.headers.get(b"retry-after") or b""
    return float(wanted) if wanted.isdigit() else None


def _no_connection(failure: Failure, *, again: bool) -> ModelCallFailure:
    match failure.kind:
        case FailureKind.TIMED_OUT:
            return ModelCallFailure(
                text="the model's server did not answer in time", code="upstream_timeout", retryable=again
            )
        case FailureKind.TLS:
            return ModelCallFailure(text="the model's server has no certificate that can be trusted")
        case FailureKind.INVALID:
            return ModelCallFailure(text=f"the model's server cannot be used: {safe_excerpt(failure.detail)}")
        case FailureKind.TOO_LARGE:
            return ModelCallFailure(text="the model's server sent too much")
        case _:
            return ModelCallFailure(text="the model's server cannot be reached (SVC_MODEL_BASE_URL)", retryable=True)
